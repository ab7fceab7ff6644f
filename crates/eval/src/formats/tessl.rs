//! The format of Tessl: a folder per scenario with `task.md`, weighted criteria in `criteria.json`,
//! and its set-up in `scenario.json`.

use savoir_lint::{Diagnostic, Span};
use savoir_skill::Folder;

use super::{EvalFile, EvalReading, open, open_json};
use crate::{
    json::{Node, Value},
    limits::MAX_ASSERTIONS,
    set::{Assertion, Case, CaseFile, Grader, Location},
};

/// Lists of criteria, in files of different age.
const LISTS: [&str; 2] = ["checklist", "criteria"];
/// Files of a scenario that are not copied into the workspace.
const OWN_FILES: [&str; 4] = ["task.md", "criteria.json", "scenario.json", "capability.txt"];

/// The scenario that a file is the task of: `evals/<scenario>/task.md`.
pub(super) fn scenario_of(path: &str) -> Option<&str> {
    let scenario = path.strip_prefix("evals/")?.strip_suffix("/task.md")?;
    (!scenario.contains('/')).then_some(scenario)
}

pub(super) fn read(folder: &Folder, scenario: &str, reading: &mut EvalReading) {
    let root = format!("evals/{scenario}");
    let task_path = format!("{root}/task.md");
    let mut task = EvalFile { format: Some("tessl"), ..EvalFile::new(&task_path) };
    let prompt = match open(folder, &task_path) {
        Ok(source) => {
            let prompt = source.text().trim().to_owned();
            task.source = Some(source);
            prompt
        }
        Err(error) => {
            task.diagnostics.extend(error.map(|error| *error));
            String::new()
        }
    };
    if prompt.is_empty() && task.diagnostics.is_empty() {
        let error = Diagnostic::error("eval-missing-field", Span::default(), "the task is empty");
        task.diagnostics.push(error.help("describe in task.md what the agent should do"));
    }
    let (assertions, expected) = criteria(folder, &root, &mut task, reading);
    let title = title(folder, &root, reading);
    let own = |name: &str| OWN_FILES.contains(&name);
    let files = folder.files().iter().filter_map(|file| {
        let path = file.path.strip_prefix(&root)?.strip_prefix('/')?;
        (!own(path)).then(|| CaseFile {
            path: path.to_owned(),
            source: file.path.clone(),
            span: Span::default(),
        })
    });
    if task.diagnostics.iter().all(|found| !found.is_error()) {
        reading.set.cases.push(Case {
            id: title.unwrap_or_else(|| scenario.to_owned()),
            prompt,
            expected,
            files: files.collect(),
            assertions,
            requires: Vec::new(),
            location: Location { file: task_path, span: Span::default() },
        });
    }
    reading.files.push(task);
}

/// The criteria of a scenario, and the sentence about all of them.
fn criteria(
    folder: &Folder,
    root: &str,
    task: &mut EvalFile,
    reading: &mut EvalReading,
) -> (Vec<Assertion>, Option<String>) {
    let path = format!("{root}/criteria.json");
    let Some((mut file, parsed)) = open_json(folder, &path) else {
        let message = "the scenario has no criteria.json";
        let error = Diagnostic::error("eval-missing-file", Span::default(), message);
        task.diagnostics.push(error.help("add criteria.json with a `checklist` beside task.md"));
        return (Vec::new(), None);
    };
    file.format = Some("tessl");
    let Some(parsed) = parsed else {
        reading.files.push(file);
        return (Vec::new(), None);
    };
    let list = match &parsed.value {
        Value::List(_) => Some(&parsed),
        _ => LISTS.iter().find_map(|key| parsed.get(key)),
    };
    let items = list.and_then(Node::items);
    if items.is_none() {
        let error = Diagnostic::error("eval-missing-field", parsed.span, "`checklist` is missing");
        let help = "write {\"checklist\": [{\"name\": …, \"description\": …, \"max_score\": …}]}";
        file.diagnostics.push(error.help(help));
    }
    let mut assertions = Vec::new();
    for item in items.unwrap_or_default().iter().take(MAX_ASSERTIONS) {
        let text = |key: &str| item.get(key).and_then(Node::text).map(str::trim);
        let words = [text("name"), text("description")];
        let words: Vec<&str> =
            words.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        if words.is_empty() {
            let message = "the criterion has no `description`";
            let error = Diagnostic::error("eval-missing-field", item.span, message);
            file.diagnostics.push(error.help("describe what a good result has"));
            continue;
        }
        let weight = ["max_score", "weight"].iter().find_map(|key| item.get(key));
        let weight = weight.map_or(1.0, |node| match &node.value {
            Value::Number(number) => {
                number.as_f64().filter(|weight| *weight >= 0.0).unwrap_or(-1.0)
            }
            _ => -1.0,
        });
        if weight < 0.0 {
            let message = "`max_score` is not a number of at least 0";
            file.diagnostics.push(
                Diagnostic::error("eval-wrong-type", item.span, message)
                    .help("write the points that the criterion is worth, for example 10"),
            );
            continue;
        }
        let (text, grader) = (words.join(": "), Grader::Judge);
        assertions.push(Assertion { text, weight, grader, span: item.span });
    }
    let expected = parsed.get("context").and_then(Node::text).map(str::to_owned);
    reading.files.push(file);
    (assertions, expected)
}

/// The name in `scenario.json`.
fn title(folder: &Folder, root: &str, reading: &mut EvalReading) -> Option<String> {
    let (mut file, parsed) = open_json(folder, &format!("{root}/scenario.json"))?;
    file.format = Some("tessl");
    let title = parsed.as_ref().and_then(|parsed| {
        let text = ["id", "name"].iter().find_map(|key| parsed.get(key)?.text())?;
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    });
    reading.files.push(file);
    title
}
