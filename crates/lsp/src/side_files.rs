//! Checks the files around skills: `AGENT.yaml`, `savoir.toml`, `evals.json` and workflows.

use std::path::Path;

use savoir_package::{
    ContentError,
    agent_file::AgentFile,
    manifest::Manifest,
    policy::{Policy, PolicyFile},
};
use savoir_skill::{
    Folder, Source,
    folder::{File, is_skill_file},
    limits::MAX_FILE_BYTES,
};

use crate::{FileProblem, file_kind::FileKind, open_file::OpenFile, state::State};

pub(crate) fn problems(state: &State, file: &OpenFile) -> Vec<FileProblem> {
    let text = file.text();
    match file.kind {
        FileKind::Agent => agent(file),
        FileKind::Settings => settings(state, file),
        FileKind::Evals => evals(state, file),
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
    // Invalid TOML is reported as one problem, not twice.
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

/// Whether a JSON file in a folder `workflows` is a workflow of Savoir. Other programs use folders
/// with this name, too.
fn is_workflow(text: &str) -> bool {
    ["\"nodes\"", "\"graph_data\"", "\"workflow\""].iter().any(|key| text.contains(key))
}

/// Checks the evaluations of a skill like `savoir check`, with the text in the editor. Other
/// programs use files with this name, too, so the skill must exist.
fn evals(state: &State, file: &OpenFile) -> Vec<FileProblem> {
    let Some(path) = file.path.as_deref() else { return Vec::new() };
    // A check of selected rules does not check evaluations.
    if !state.settings(Some(path)).options.select.is_empty() {
        return Vec::new();
    }
    let Some(root) = skill_of_evals(path) else { return Vec::new() };
    let Some((folder, relative)) = with_text(root, path, file.text()) else { return Vec::new() };
    let Some(skill) = folder.files().iter().find(|file| is_skill_file(&file.path)) else {
        return Vec::new();
    };
    let Some(text) = state.text_of(&root.join(&skill.path), MAX_FILE_BYTES as u64) else {
        return Vec::new();
    };
    let skill = savoir_skill::read(Source::new(text), Some(&folder)).skill.name;
    state.environment.check_evals(&folder, &skill, &relative)
}

/// The folder of the skill that an evaluation file belongs to.
fn skill_of_evals(path: &Path) -> Option<&Path> {
    let beside = path.parent()?;
    let is_folder = |name: &str| beside.file_name().is_some_and(|folder| folder == name);
    let root = if is_folder("evals") || is_folder("eval") { beside.parent()? } else { beside };
    let names = std::fs::read_dir(root).ok()?.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.into_string().ok())
        .any(|name| is_skill_file(&name))
        .then_some(root)
}

/// A folder in which one file has the text of the editor, and the path of that file inside the
/// folder.
fn with_text(root: &Path, path: &Path, text: &str) -> Option<(Folder, String)> {
    let disk = Folder::open(root).ok()?;
    let relative = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
    let mut files = disk.files().to_vec();
    if let Err(at) = files.binary_search_by(|file| file.path.cmp(&relative)) {
        files.insert(at, File { path: relative.clone(), link: false });
    }
    let name = disk.name().map(str::to_owned);
    let (open, text) = (relative.clone(), text.to_owned());
    let read = move |path: &str| {
        if path == open { Some(text.clone().into_bytes()) } else { disk.read(path).ok() }
    };
    Some((Folder::in_memory(name.as_deref(), files, read), relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_characters() {
        assert_eq!(offset("a\né😀b", 2, 3), 8);
        assert_eq!(offset("a\nb", 9, 9), 3);
        assert_eq!(offset("", 1, 1), 0);
    }
}
