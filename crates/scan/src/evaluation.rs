//! Recognizes evaluation data and fixtures: texts that describe how an agent behaves, also badly, in
//! order to test it.
//!
//! An agent does not read them by itself. If another text of the skill sends it there, they are
//! instructions like all others.

use std::sync::LazyLock;

use super::{
    context::AnalyzedFragment,
    fragment::{Language, Role, TextFragment},
    passage::{Passage, passages},
    phrase::Phrases,
};

/// Folders of tests and their data.
const FOLDERS: [&str; 12] = [
    "evals", "eval", "evaluation", "evaluations", "tests", "test", "__tests__", "fixtures",
    "testdata", "test_data", "test-data", "golden",
];

static READS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "read|reads|follow|follows|obey|load|loads|consult|apply|do|execute|according|rules|instructions|steps|print|prints|says|say",
    ])
});

/// Marks the fragments that are evaluation data and that nothing sends the agent to.
pub(super) fn mark_evaluation_data(fragments: &mut [AnalyzedFragment<'_>]) {
    if !fragments.iter().any(|analyzed| is_candidate(&analyzed.fragment)) {
        return;
    }
    let directing: Vec<(String, bool)> = fragments
        .iter()
        .map(|analyzed| &analyzed.fragment)
        .filter(|fragment| fragment.depth == 0 && !is_candidate(fragment))
        .flat_map(directing_texts)
        .collect();
    for analyzed in fragments.iter_mut().filter(|analyzed| is_candidate(&analyzed.fragment)) {
        let names = names_of(&analyzed.fragment.path);
        // Documents are for reading, so naming one is enough.
        let is_document = analyzed.fragment.language == Language::Markdown;
        let is_directed = directing
            .iter()
            .filter(|(_, reads)| *reads || is_document)
            .any(|(text, _)| names.iter().any(|name| text.contains(name.as_str())));
        analyzed.fragment.is_evaluation = !is_directed;
    }
}

fn is_candidate(fragment: &TextFragment<'_>) -> bool {
    let is_text = matches!(fragment.language, Language::Other | Language::Markdown)
        && matches!(fragment.role, Role::Data | Role::Document);
    let mut parts = fragment.path.rsplit('/');
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let stem = name.split_once('.').filter(|(_, ending)| *ending != "md").map(|(stem, _)| stem);
    let is_list = stem.is_some_and(|stem| matches!(stem, "evals" | "eval" | "evaluations"));
    fragment.depth == 0
        && fragment.hidden_in.is_none()
        && is_text
        && (is_list || parts.any(|folder| FOLDERS.contains(&folder.to_ascii_lowercase().as_str())))
}

/// How other texts can name a file: by its name, or by its folder.
fn names_of(path: &str) -> Vec<String> {
    let path = path.to_lowercase();
    let mut name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    // Many folders have one.
    if name == "readme.md" {
        name = path
            .rsplitn(3, '/')
            .take(2)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join("/");
    }
    let folders = path.match_indices('/').map(|(at, _)| path[..=at].to_owned());
    let folders = folders.filter(|folder| {
        let last = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        FOLDERS.contains(&last)
    });
    let mut names: Vec<String> = folders.collect();
    names.push(name);
    names
}

/// The passages of a document, and whether each sends the agent to read something; scripts that
/// print files.
fn directing_texts(fragment: &TextFragment<'_>) -> Vec<(String, bool)> {
    if let Some(prose) = fragment.prose() {
        let text = |one: &Passage<'_>| (one.text.to_lowercase(), one.matches(&READS));
        return passages(&prose.text).iter().map(text).collect();
    }
    let prints = ["print(", "console.log(", "cat ", "stdout"];
    let is_printer =
        fragment.role == Role::Script && prints.iter().any(|mark| fragment.text.contains(mark));
    is_printer.then(|| (fragment.text.to_lowercase(), true)).into_iter().collect()
}
