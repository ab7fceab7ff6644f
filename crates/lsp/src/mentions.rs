//! Finds where skills are named: in other skills, settings, locks, agents and workflows.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use memchr::memmem;
use savoir_lint::Span;
use savoir_package::{agent_file, lock, manifest};
use savoir_skill::{Document, Source, folder::is_skill_file};

use crate::{
    file_kind::FileKind,
    limits::{MAX_MENTIONS, MAX_SEARCHED_BYTES},
    lookup::touches,
    open_file::OpenFile,
    state::State,
};

/// A place that names a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) certainty: Certainty,
}

/// Whether a text certainly refers to the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// A path, a setting, or the name of the skill itself.
    Certain,
    /// A word in prose that looks like the name.
    Probable,
}

/// A file with mentions.
#[derive(Debug)]
pub(crate) struct FileMentions {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) mentions: Vec<Mention>,
}

/// The name of the skill at an offset of an open file, if there is one.
pub(crate) fn at(state: &State, file: &OpenFile, offset: usize) -> Option<Mention> {
    if let Some(own) = own_name(file)
        && touches(own.span, offset)
    {
        return Some(own);
    }
    let text = file.text();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let bytes = text.as_bytes();
    let start = offset - bytes[..offset].iter().rev().take_while(|byte| is_part(byte)).count();
    let end = offset + bytes[offset..].iter().take_while(|byte| is_part(byte)).count();
    let span = Span::new(start, end);
    let name = span.slice(text);
    if name.is_empty() || state.index.named(name).is_empty() {
        return None;
    }
    let certainty = certainty(file.path.as_deref()?, text, span)?;
    Some(Mention { name: name.to_owned(), span, certainty })
}

/// The field `name` of an open SKILL.md.
pub(crate) fn own_name(file: &OpenFile) -> Option<Mention> {
    if !file.is_skill() {
        return None;
    }
    name_field(file.text())
}

/// The field `name` of the text of a SKILL.md.
pub(crate) fn name_field(text: &str) -> Option<Mention> {
    let document = Document::parse(Source::new(text.to_owned()));
    let node = document.field("name")?;
    let name = node.text().filter(|name| !name.is_empty())?.to_owned();
    Some(Mention { name, span: node.span, certainty: Certainty::Certain })
}

/// Every mention of a skill in the workspace, file by file.
pub(crate) fn find(state: &State, name: &str) -> Vec<FileMentions> {
    let mut files = BTreeMap::new();
    let mut count = 0;
    for path in searched_files(state) {
        if count >= MAX_MENTIONS {
            break;
        }
        let Some(text) = state.text_of(&path, MAX_SEARCHED_BYTES) else { continue };
        let mentions = in_text(&path, &text, name);
        if !mentions.is_empty() {
            count += mentions.len();
            files.insert(path.clone(), FileMentions { path, text, mentions });
        }
    }
    files.into_values().collect()
}

/// The files that may name skills: every SKILL.md, and the settings of each workspace folder.
fn searched_files(state: &State) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        state.index.skills().into_iter().map(|skill| skill.path.into_path_buf()).collect();
    for folder in &state.folders {
        paths.extend([manifest::FILE, lock::FILE].map(|name| folder.join(name)));
        paths.extend(agent_file::FILES.map(|name| folder.join(name)));
        let workflows = std::fs::read_dir(folder.join("workflows")).into_iter().flatten().flatten();
        paths.extend(workflows.map(|entry| entry.path()));
    }
    paths.extend(state.files.values().filter_map(|file| file.path.clone()));
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn in_text(path: &Path, text: &str, name: &str) -> Vec<Mention> {
    let is_skill = path.file_name().and_then(|name| name.to_str()).is_some_and(is_skill_file);
    let own = if is_skill && memmem::find(text.as_bytes(), name.as_bytes()).is_some() {
        name_field(text).filter(|own| own.name == name)
    } else {
        None
    };
    let own_span = own.as_ref().map(|own| own.span);
    let found = memmem::find_iter(text.as_bytes(), name.as_bytes());
    let others = found.filter_map(|at| {
        let span = Span::new(at, at + name.len());
        if own_span.is_some_and(|own| own.start <= span.start && span.end <= own.end) {
            return None;
        }
        let certainty = certainty(path, text, span)?;
        Some(Mention { name: name.to_owned(), span, certainty })
    });
    own.iter().cloned().chain(others).collect()
}

/// Whether a word names a skill, by the text around it; `None` if it is only a word.
fn certainty(path: &Path, text: &str, span: Span) -> Option<Certainty> {
    let before = text.get(..span.start)?;
    let after = text.get(span.end..)?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if before.ends_with(is_part) || after.starts_with(is_part) {
        return None;
    }
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if file == lock::FILE {
        return is_quoted_or_path(before, after).then_some(Certainty::Certain);
    }
    match FileKind::new(Some(path), "") {
        FileKind::Skill => in_skill(before, after),
        FileKind::Settings => in_settings(before, after),
        FileKind::Agent => in_agent(before, after),
        FileKind::Workflow => in_workflow(before, after),
        FileKind::Evals | FileKind::Other => None,
    }
}

/// `"name"`, or a part of a path in quotes.
fn is_quoted_or_path(before: &str, after: &str) -> bool {
    before.ends_with(['"', '\'', '/']) && after.starts_with(['"', '\'', '/'])
}

/// A path through the folder of the skill is certain; `/name`, `$name`, `@name` and `` `name` `` in
/// prose may be something else.
fn in_skill(before: &str, after: &str) -> Option<Certainty> {
    let is_path = before.ends_with("../") || before.ends_with("skills/");
    if is_path && after.starts_with(['/', ')', '`', '"', '\'', ' ', '\n', '\r']) {
        return Some(Certainty::Certain);
    }
    let in_code = before.ends_with('`') && after.starts_with('`');
    let sigil = before.strip_suffix(['/', '$', '@']);
    let is_called =
        sigil.is_some_and(|rest| rest.is_empty() || rest.ends_with([' ', '\n', '`', '(', '"']));
    (in_code || is_called).then_some(Certainty::Probable)
}

/// A key of the table `[skills]`, a table `[skills.name]`, or a path.
fn in_settings(before: &str, after: &str) -> Option<Certainty> {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_key = line.trim_matches(['"', ' ', '\t']).is_empty()
        && after.trim_start_matches(['"', ' ', '\t']).starts_with(['=', '.']);
    let is_table = line.trim().trim_end_matches('"') == "[skills.";
    let is_path = line.contains("path") && is_quoted_or_path(before, after);
    (is_key || is_table || is_path).then_some(Certainty::Certain)
}

/// An item of a list, or the name of one.
fn in_agent(before: &str, after: &str) -> Option<Certainty> {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let start = line.trim_end_matches(['"', '\'']);
    let begins = start.trim() == "-"
        || (start.trim_start().starts_with('-') && start.trim_end().ends_with("name:"))
        || (start.contains('[') && start.trim_end().ends_with(['[', ',']));
    let ends = after.is_empty()
        || after
            .starts_with(['"', '\'', '\n', '\r', '@', ',', ']', '}', ' ', '>', '<', '=', '~', '^']);
    (begins && ends).then_some(Certainty::Certain)
}

fn in_workflow(before: &str, after: &str) -> Option<Certainty> {
    let key = before.strip_suffix('"')?.trim_end().strip_suffix(':')?.trim_end();
    (key.ends_with("\"skillName\"") && after.starts_with('"')).then_some(Certainty::Certain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, Certainty)> {
        let found = in_text(Path::new(path), text, "web-search");
        found.into_iter().map(|mention| (mention.span.start, mention.certainty)).collect()
    }

    #[test]
    fn names_in_skills_are_graded() {
        let text = "---\nname: demo\n---\nSee [x](../web-search/SKILL.md), `web-search` and /web-search.\nA web-search, my-web-search, web-search2.\n";
        let certainties: Vec<_> =
            found("/s/demo/SKILL.md", text).into_iter().map(|(_, certainty)| certainty).collect();
        assert_eq!(certainties, [Certainty::Certain, Certainty::Probable, Certainty::Probable]);
    }

    #[test]
    fn the_own_name_is_certain() {
        let text = "---\nname: \"web-search\"\n---\n";
        assert_eq!(found("/s/web-search/SKILL.md", text), [(10, Certainty::Certain)]);
    }

    #[test]
    fn settings_agents_locks_and_workflows_are_read() {
        let settings =
            "[skills]\nweb-search = \"1\"\nother = \"web-search\"\n[skills.web-search]\n";
        assert_eq!(found("/p/savoir.toml", settings).len(), 2);
        let agent = "name: a\nskills:\n  - web-search\n  - {name: x}\n  - name: web-search\n    version: '1'\ndescription: web-search\n";
        assert_eq!(found("/p/AGENT.yaml", agent).len(), 2);
        let lock = "order = [\"web-search\"]\n[[skill]]\nname = \"web-search\"\n# web-search\n";
        assert_eq!(found("/p/savoir.lock", lock).len(), 2);
        let workflow =
            r#"{"nodes": [{"data": {"skillName": "web-search", "label": "web-search"}}]}"#;
        assert_eq!(found("/p/workflows/x.json", workflow).len(), 1);
    }
}
