//! Shows code lenses above a skill to run, render or evaluate it. The editor runs them after a
//! click.

use lsp_types::{CodeLens, Command};
use savoir_lint::Span;
use serde_json::json;

use crate::{open_file::OpenFile, state::State};

/// Evaluation files of a skill; only with them, the lens for evaluating is shown.
const EVALUATIONS: [&str; 2] = ["evals/evals.json", "evals.json"];

pub(crate) fn of(state: &State, file: &OpenFile) -> Vec<CodeLens> {
    if !file.is_skill() || !state.client.shows_lenses {
        return Vec::new();
    }
    let Some(folder) = file.path.as_deref().and_then(std::path::Path::parent) else {
        return Vec::new();
    };
    let listed = file.folder();
    let has = |path: &str| listed.as_ref().is_some_and(|folder| folder.has(path));
    let mut commands = vec![("Run", "savoir.run"), ("Render", "savoir.render")];
    if EVALUATIONS.iter().any(|path| has(path)) {
        commands.push(("Evaluate", "savoir.evaluate"));
    }
    let lens = |(title, command): (&str, &str)| CodeLens {
        range: file.range(Span::at(0)),
        command: Some(Command {
            title: title.to_owned(),
            tooltip: None,
            command: command.to_owned(),
            arguments: Some(vec![json!(folder.to_string_lossy())]),
        }),
        data: None,
    };
    commands.into_iter().map(lens).collect()
}
