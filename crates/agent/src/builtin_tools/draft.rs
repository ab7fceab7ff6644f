//! Creates a skill that a model wrote, after the same checks as for any other skill.

use std::fmt::Write as _;

use savoir_skill::{
    Dialect, Source, check,
    name::slugify,
    yaml::{YamlVersion, write::write_scalar},
};
use serde_json::{Map, Value};

use crate::library::{Draft, LibraryError};

/// Maximum length of the instructions in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Writes the SKILL.md of a draft from the fields that a model passed, or returns what is wrong
/// with them.
pub fn write(given: &Map<String, Value>) -> Result<Draft, LibraryError> {
    let refused = |reason: String| LibraryError::Draft { reason };
    let text = |key: &str| given.get(key).and_then(Value::as_str).map(str::trim);
    let needed = |key: &str| {
        let found = text(key).filter(|text| !text.is_empty());
        found.ok_or_else(|| refused(format!("`{key}` is missing")))
    };
    let name = slugify(needed("name")?).ok_or_else(|| refused("its name has no letters".into()))?;
    let instructions = needed("instructions")?;
    if instructions.len() > MAX_BYTES {
        return Err(refused(format!("the instructions have more than {MAX_BYTES} bytes")));
    }
    let mut head = format!("name: {name}\ndescription: {}\n", scalar(needed("description")?));
    for (key, field) in [("when_to_use", "when_to_use"), ("allowed_tools", "allowed-tools")] {
        if let Some(value) = text(key).filter(|text| !text.is_empty()) {
            // Writing to a `String` cannot fail.
            let _ = writeln!(head, "{field}: {}", scalar(value));
        }
    }
    let text = format!("---\n{head}---\n\n{instructions}\n");
    let options =
        check::Options { dialect: Some(Dialect::PERSONAL_AGENT), ..check::Options::default() };
    let source = Source::from_bytes(text.clone().into_bytes());
    let source = source.map_err(|error| refused(error.to_string()))?;
    let checked = check::check(source, None, &options);
    match check::most_relevant_error(&checked.diagnostics) {
        Some(found) => Err(refused(format!("{}: {}", found.code, found.message))),
        None => Ok(Draft { name, text }),
    }
}

/// Formats a text as a YAML scalar on one line.
fn scalar(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    write_scalar(&line, YamlVersion::V1_1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft(value: &Value) -> Result<Draft, LibraryError> {
        write(value.as_object().unwrap())
    }

    #[test]
    fn draft_of_a_model_is_a_valid_skill() {
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
        // A value that contains line breaks cannot add other fields.
        let written = draft(&json!({
            "name": "x", "description": "a\ncontext: fork\nenabled: true", "instructions": "y",
        }))
        .unwrap();
        assert!(!written.text.contains("\ncontext"), "{}", written.text);
        for wrong in [
            json!({}),
            json!({"name": "x", "description": "y"}),
            json!({"name": "!!", "description": "y", "instructions": "z"}),
            json!({"name": "x", "description": " ", "instructions": "z"}),
            json!({"name": "x", "description": "y", "instructions": "z".repeat(MAX_BYTES + 1)}),
            json!({"name": "x", "description": "a\u{1b}[31mred", "instructions": "z"}),
        ] {
            assert_eq!(draft(&wrong).unwrap_err().code(), "draft-refused", "{wrong}");
        }
    }
}
