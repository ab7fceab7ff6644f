//! Writes a first `evals/evals.json` from the text of a skill, for the author to edit.

use savoir_lint::words::one_line;
use savoir_skill::Skill;
use serde_json::{Value, json};

/// Assertions that are suggested.
const MAX_SUGGESTIONS: usize = 5;
/// Words of a suggestion. Longer list items are explanations, not results.
const MAX_SUGGESTION_CHARS: usize = 140;

/// The text of a new file.
pub fn new_evals(skill: &Skill) -> String {
    let description = one_line(&skill.description);
    let (does, when) = split_use(&description);
    let mut assertions: Vec<Value> = suggestions(&skill.body).map(Value::from).collect();
    if assertions.is_empty() {
        assertions.push("EDIT: one fact that is true of a good result".into());
    }
    let file = json!({
        "skill_name": skill.name,
        "evals": [
            {
                "id": 1,
                "prompt": format!("EDIT: a task as a user would write it. {when}"),
                "expected_output": format!("EDIT: what a good result is. {does}"),
                "files": [],
                "assertions": assertions,
            },
            {
                "id": 2,
                "prompt": "EDIT: a harder task, with a mistake that an agent without the skill makes",
                "expected_output": "EDIT: what a good result is",
                "files": [],
                "assertions": [
                    "EDIT: one fact that is true of a good result",
                    {"type": "file-exists", "path": "EDIT-result.txt"},
                ],
            },
        ],
    });
    // A value of strings and lists can always be written.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// Splits a description into what the skill does and when it is used.
fn split_use(description: &str) -> (&str, &str) {
    for marker in ["Use when", "Use this", "Use for", "When to use"] {
        if let Some(at) = description.find(marker) {
            return (description[..at].trim(), description[at..].trim());
        }
    }
    (description, description)
}

/// Short list items of the instructions: the author keeps those that a result can show.
fn suggestions(body: &str) -> impl Iterator<Item = String> {
    let mut in_code = false;
    let lines = body.lines().filter(move |line| {
        in_code ^= line.trim_start().starts_with("```");
        !in_code
    });
    lines.filter_map(list_item).take(MAX_SUGGESTIONS).map(|item| format!("EDIT: {item}"))
}

fn list_item(line: &str) -> Option<String> {
    let line = line.trim();
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or_else(|| {
        let (number, rest) = line.split_once(". ")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
    })?;
    let item = item.replace("**", "");
    let is_short = (10..=MAX_SUGGESTION_CHARS).contains(&item.chars().count());
    is_short.then(|| savoir_lint::visible(item.trim()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_names_the_skill_and_suggests_assertions() {
        let text = "---\nname: pdf\ndescription: Reads PDF files. Use when the user has a PDF.\n---\n\
            # PDF\n\n1. Extract the text of each page\n- **Keep** tables as Markdown\n- no\n";
        let source = savoir_skill::Source::from_bytes(text.into()).unwrap();
        let skill = savoir_skill::read(source, None).skill;
        let value: Value = serde_json::from_str(&new_evals(&skill)).unwrap();
        assert_eq!(value["skill_name"], "pdf");
        let first = &value["evals"][0];
        assert!(first["prompt"].as_str().unwrap().contains("Use when the user has a PDF."));
        assert_eq!(
            first["assertions"],
            json!(["EDIT: Extract the text of each page", "EDIT: Keep tables as Markdown"])
        );
    }
}
