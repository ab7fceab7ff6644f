//! Formats parsed skills as the vectors do.

use savoir_skill::{Dialect, Reading, Severity, Source, read_as};
use serde_json::{Value, json};

use super::OperationError;

/// Codes that the vectors use for every dialect; what has no code among them is an invalid value.
const CODES: [&str; 6] = [
    "missing-field",
    "wrong-type",
    "invalid-value",
    "invalid-version",
    "invalid-name",
    "reserved-field",
];

/// Codes of the commands in a gibb.eri.sh file, which are about a tool and not about a field.
const TOOL_CODES: [&str; 5] =
    ["no-tools", "duplicate-tool", "invalid-tool-name", "no-command", "invalid-command"];

/// Codes for a file that does not begin with a fence.
const UNOPENED: [&str; 5] = [
    "missing-frontmatter",
    "empty-file",
    "missing-fence",
    "code-fenced",
    "blank-before-frontmatter",
];

/// Reads a text in a dialect.
pub(super) fn reading(text: &str, dialect: Dialect) -> Result<Reading, OperationError> {
    let source = Source::from_bytes(text.as_bytes().to_vec());
    let source = source.map_err(|error| OperationError::BadInput(error.to_string()))?;
    Ok(read_as(source, dialect, None))
}

/// A code of the library in the spelling of the vectors.
pub(super) fn code(code: &str) -> String {
    code.replace('-', "_")
}

/// The warnings of a reading.
pub(super) fn warnings(reading: &Reading) -> Vec<String> {
    let warnings = reading.diagnostics.iter().filter(|found| found.severity == Severity::Warning);
    warnings.map(|found| code(found.code)).collect()
}

/// The first error of a reading; `None` if it has none.
pub(super) fn failure(reading: &Reading) -> Option<Value> {
    let found = reading.error()?;
    let gibberish = reading.detection.dialect == Dialect::GIBBERISH;
    let skillrt = reading.detection.dialect == Dialect::SKILLRT;
    let about_yaml = reading.document.problems().contains(found);
    let about_tool = gibberish && TOOL_CODES.contains(&found.code);
    let error = match found.code {
        "unclosed-frontmatter" if skillrt => "unterminated_frontmatter".to_owned(),
        "unclosed-frontmatter" => "missing_closing_fence".to_owned(),
        "duplicate-key" => "duplicate_key".to_owned(),
        opened if UNOPENED.contains(&opened) => "missing_opening_fence".to_owned(),
        _ if about_yaml => "invalid_yaml".to_owned(),
        known if CODES.contains(&known) || about_tool => code(known),
        "unknown-mode" if gibberish => code(found.code),
        _ => "invalid_value".to_owned(),
    };
    let mut failure = json!({"ok": false, "error": error, "message": found.message});
    if let Some(field) = &found.field {
        failure[if about_tool { "tool" } else { "field" }] = json!(field);
    }
    Some(failure)
}
