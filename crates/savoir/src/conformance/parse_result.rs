//! Parses skills for the vectors, and converts warnings and errors to the JSON of the vectors.

use savoir_skill::{Dialect, Reading, Severity, Source, read_as};
use serde_json::{Value, json};

use super::OperationError;

/// Codes that the vectors use for every dialect; other errors become `invalid_value`.
const COMMON_CODES: [&str; 6] = [
    "missing-field", "wrong-type", "invalid-value", "invalid-version", "invalid-name",
    "reserved-field",
];

/// Codes of gibb.eri.sh errors that concern a tool instead of a field.
const TOOL_CODES: [&str; 5] =
    ["no-tools", "duplicate-tool", "invalid-tool-name", "no-command", "invalid-command"];

/// Codes for a file that does not start with a fence.
const OPENING_FENCE_CODES: [&str; 5] = [
    "missing-frontmatter", "empty-file", "missing-fence", "code-fenced", "blank-before-frontmatter",
];

/// Reads a text in a dialect.
pub(super) fn read_skill(text: &str, dialect: Dialect) -> Result<Reading, OperationError> {
    let source = Source::from_bytes(text.as_bytes().to_vec());
    let source = source.map_err(|error| OperationError::BadInput(error.to_string()))?;
    Ok(read_as(source, dialect, None))
}

/// Converts an error code to the spelling of the vectors.
pub(super) fn vector_code(code: &str) -> String {
    code.replace('-', "_")
}

/// Returns the codes of the warnings.
pub(super) fn warning_codes(reading: &Reading) -> Vec<String> {
    let warnings = reading.diagnostics.iter().filter(|found| found.severity == Severity::Warning);
    warnings.map(|found| vector_code(found.code)).collect()
}

/// Returns the first error as JSON.
pub(super) fn first_error(reading: &Reading) -> Option<Value> {
    let found = reading.error()?;
    let gibberish = reading.detection.dialect == Dialect::GIBBERISH;
    let skillrt = reading.detection.dialect == Dialect::SKILLRT;
    let about_yaml = reading.document.problems().contains(found);
    let about_tool = gibberish && TOOL_CODES.contains(&found.code);
    let error = match found.code {
        "unclosed-frontmatter" if skillrt => "unterminated_frontmatter".to_owned(),
        "unclosed-frontmatter" => "missing_closing_fence".to_owned(),
        "duplicate-key" => "duplicate_key".to_owned(),
        opened if OPENING_FENCE_CODES.contains(&opened) => "missing_opening_fence".to_owned(),
        _ if about_yaml => "invalid_yaml".to_owned(),
        known if COMMON_CODES.contains(&known) || about_tool => vector_code(known),
        "unknown-mode" if gibberish => vector_code(found.code),
        _ => "invalid_value".to_owned(),
    };
    let mut failure = json!({"ok": false, "error": error, "message": found.message});
    if let Some(field) = &found.field {
        failure[if about_tool { "tool" } else { "field" }] = json!(field);
    }
    Some(failure)
}
