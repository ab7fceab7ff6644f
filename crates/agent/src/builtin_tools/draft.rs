//! Builds the SKILL.md of a skill that a model drafts, and checks it like any other skill.

use std::fmt::Write as _;

use savoir_lint::words::one_line;
use savoir_skill::{
    Dialect, Source, check,
    name::slugify,
    yaml::{YamlVersion, write::write_scalar},
};
use serde_json::{Map, Value};

use crate::library::{Draft, LibraryError};

/// Maximum length of the instructions in bytes.
const MAX_INSTRUCTION_BYTES: usize = 64 * 1024;

/// Builds the SKILL.md of a draft from the fields that a model passed, or returns what is wrong
/// with them.
pub fn build_draft(fields: &Map<String, Value>) -> Result<Draft, LibraryError> {
    let draft_error = |reason: String| LibraryError::Draft { reason };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::trim);
    let required = |key: &str| {
        let found = text(key).filter(|text| !text.is_empty());
        found.ok_or_else(|| draft_error(format!("`{key}` is missing")))
    };
    let name =
        slugify(required("name")?).ok_or_else(|| draft_error("its name has no letters".into()))?;
    let instructions = required("instructions")?;
    if instructions.len() > MAX_INSTRUCTION_BYTES {
        return Err(draft_error(format!(
            "the instructions have more than {MAX_INSTRUCTION_BYTES} bytes"
        )));
    }
    let mut head =
        format!("name: {name}\ndescription: {}\n", one_line_scalar(required("description")?));
    for (key, field) in [("when_to_use", "when_to_use"), ("allowed_tools", "allowed-tools")] {
        if let Some(value) = text(key).filter(|text| !text.is_empty()) {
            // Writing to a `String` cannot fail.
            let _ = writeln!(head, "{field}: {}", one_line_scalar(value));
        }
    }
    let text = format!("---\n{head}---\n\n{instructions}\n");
    let options =
        check::Options { dialect: Some(Dialect::PERSONAL_AGENT), ..check::Options::default() };
    let source = Source::from_bytes(text.clone().into_bytes());
    let source = source.map_err(|error| draft_error(error.to_string()))?;
    let checked = check::check(source, None, &options);
    match check::most_relevant_error(&checked.diagnostics) {
        Some(found) => Err(draft_error(format!("{}: {}", found.code, found.message))),
        None => Ok(Draft { name, text }),
    }
}

/// Formats a text as a YAML scalar on one line.
fn one_line_scalar(text: &str) -> String {
    write_scalar(&one_line(text), YamlVersion::V1_1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft(value: &Value) -> Result<Draft, LibraryError> {
        build_draft(value.as_object().unwrap())
    }

    #[test]
    fn draft_from_model_fields_is_valid() {
        let written = draft(&json!({
            "name": "Weekly Report", "description": "Writes: the report.\nUse on Fridays.",
            "instructions": "1. Collect.\n2. Write.", "allowed_tools": "Read Bash(git log:*)",
        }))
        .unwrap();
        assert_eq!(written.name, "weekly-report");
        let reading =
            savoir_skill::read(Source::from_bytes(written.text.into_bytes()).unwrap(), None);
        assert!(reading.is_valid(), "{:?}", reading.diagnostics);
        assert_eq!(reading.skill.description, "Writes: the report. Use on Fridays.");
        assert_eq!(reading.skill.policy.allowed_tools.unwrap().len(), 2);
    }

    #[test]
    fn draft_cannot_add_other_fields() {
        let written = draft(&json!({
            "name": "x", "description": "a\ncontext: fork\nenabled: true", "instructions": "y",
        }))
        .unwrap();
        assert!(!written.text.contains("\ncontext"), "{}", written.text);
    }

    #[test]
    fn incomplete_or_invalid_draft_is_rejected() {
        for wrong in [
            json!({}),
            json!({"name": "x", "description": "y"}),
            json!({"name": "!!", "description": "y", "instructions": "z"}),
            json!({"name": "x", "description": " ", "instructions": "z"}),
            json!({"name": "x", "description": "y", "instructions": "z".repeat(MAX_INSTRUCTION_BYTES + 1)}),
            json!({"name": "x", "description": "a\u{1b}[31mred", "instructions": "z"}),
        ] {
            assert_eq!(draft(&wrong).unwrap_err().code(), "draft-refused", "{wrong}");
        }
    }
}
