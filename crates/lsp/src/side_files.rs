//! Checks the files around skills: `AGENT.yaml`, `savoir.toml`, `evals.json` and workflows.

use savoir_package::{
    ContentError,
    agent_file::AgentFile,
    manifest::Manifest,
    policy::{Policy, PolicyFile},
};
use savoir_skill::yaml::{Node, Tree};
use serde_json::Value;

use crate::{FileProblem, file_kind::FileKind, open_file::OpenFile, state::State};

pub(crate) fn problems(state: &State, file: &OpenFile) -> Vec<FileProblem> {
    let text = file.text();
    match file.kind {
        FileKind::Agent => agent(file),
        FileKind::Settings => settings(state, file),
        FileKind::Evals => evals(text),
        FileKind::Workflow if is_workflow(text) => state.environment.check_workflow(text),
        FileKind::Workflow | FileKind::Skill | FileKind::Other => Vec::new(),
    }
}

fn name(file: &OpenFile) -> String {
    let name = file.path.as_deref().and_then(|path| path.file_name()?.to_str());
    name.unwrap_or("the file").to_owned()
}

fn agent(file: &OpenFile) -> Vec<FileProblem> {
    match AgentFile::parse(&name(file), file.text()) {
        Ok(agent) => {
            agent.warnings.iter().map(|warning| at_place(file.text(), warning, false)).collect()
        }
        Err(error) => vec![at_place(file.text(), &error, true)],
    }
}

fn settings(state: &State, file: &OpenFile) -> Vec<FileProblem> {
    let path = file.path.clone().unwrap_or_else(|| "savoir.toml".into());
    let mut problems = state.environment.check_settings(&path, file.text());
    // A file that is not TOML is one problem, not two.
    if problems.is_empty() {
        let (name, text) = (name(file), file.text());
        let manifest = Manifest::parse(&name, text).map(drop);
        let policy = Policy::default().add_text(&name, text, PolicyFile::Shared);
        let errors = [manifest, policy].into_iter().filter_map(Result::err);
        problems.extend(errors.map(|error| at_place(text, &error, true)));
    }
    problems
}

/// The problem at the line and column of an error, up to the end of the word there.
fn at_place(text: &str, error: &ContentError, is_error: bool) -> FileProblem {
    let start = offset(text, error.place.position.line, error.place.position.column);
    let rest = &text[start..];
    let line = rest.lines().next().unwrap_or_default();
    let end = line.find([':', '=', ',', '#', ']', '}']).unwrap_or(line.len());
    let length = line[..end].trim_end().len();
    FileProblem {
        span: start..start + length,
        message: error.message.clone(),
        hint: error.hint.clone(),
        is_error,
    }
}

/// The byte offset of a line and a column, both from one, the column in characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => memchr::memchr_iter(b'\n', text.as_bytes())
            .nth(line - 2)
            .map_or(text.len(), |at| at + 1),
    };
    let rest = text[start..].split('\n').next().unwrap_or_default();
    let bom = rest.len() - rest.trim_start_matches('\u{feff}').len();
    let at = rest[bom..].char_indices().nth(column.saturating_sub(1));
    start + at.map_or(rest.len(), |(at, _)| bom + at)
}

/// Whether a JSON file in a folder `workflows` is a workflow of Savoir: other programs keep theirs
/// in folders of this name, too.
fn is_workflow(text: &str) -> bool {
    ["\"nodes\"", "\"graph_data\"", "\"workflow\""].iter().any(|key| text.contains(key))
}

/// Checks the shape of `evals.json`: an object with the list `evals`, whose items have a prompt.
fn evals(text: &str) -> Vec<FileProblem> {
    let value: Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(value) => value,
        Err(error) => {
            let start = offset(text, error.line(), error.column());
            let message = format!("the file is not JSON: {error}");
            return vec![FileProblem { span: start..start, message, hint: None, is_error: true }];
        }
    };
    let warning = |span, message: &str, hint: &str| FileProblem {
        span,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        is_error: false,
    };
    let shape =
        "write {\"skill_name\": \"…\", \"evals\": [{\"prompt\": \"…\", \"assertions\": [\"…\"]}]}";
    let Some(cases) = value.get("evals").and_then(Value::as_array) else {
        // Other formats of evaluations share the file name.
        let is_other = value.is_array() || value.get("cases").is_some();
        let span = 0..text.lines().next().map_or(0, str::len);
        let missing = warning(span, "there is no list `evals`", shape);
        return if is_other { Vec::new() } else { vec![missing] };
    };
    let prompts = ["prompt", "question", "query"];
    let lacks = |case: &Value| prompts.iter().all(|key| case.get(key).is_none());
    let numbers =
        cases.iter().enumerate().filter(|(_, case)| lacks(case)).map(|(number, _)| number);
    let tree = Tree::parse(text).ok().and_then(|tree| tree.root);
    let items = tree.as_ref().and_then(|root| root.get("evals")).and_then(Node::items);
    numbers
        .map(|number| {
            let span = items.and_then(|items| items.get(number)).map(|item| item.span);
            let span = span.map_or(0..0, |span| span.start..span.start + 1);
            warning(span, "this evaluation has no prompt", "add \"prompt\": \"…\"")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_without_a_prompt_are_found() {
        assert!(evals(r#"{"evals": [{"prompt": "x"}]}"#).is_empty());
        assert!(evals(r#"[{"query": "x", "should_trigger": true}]"#).is_empty());
        let found = evals("{\n  \"evals\": [\n    {\"id\": 1}\n  ]\n}\n");
        assert_eq!((found.len(), found[0].span.clone()), (1, 19..20));
        assert!(evals("{\"evals\": [").first().is_some_and(|found| found.is_error));
    }

    #[test]
    fn offsets_count_characters() {
        assert_eq!(offset("a\né😀b", 2, 3), 8);
        assert_eq!(offset("a\nb", 9, 9), 3);
        assert_eq!(offset("", 1, 1), 0);
    }
}
