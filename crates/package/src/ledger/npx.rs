//! Supports the tool `npx skills`, with its ledgers `skills-lock.json` in a project and
//! `~/.agents/.skill-lock.json` for a user.

use std::path::{Component, Path, PathBuf};

use savoir_skill::collation;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    Origin,
    files::{Item, Kind},
    git, hex,
    origin::NpxOrigin,
    tool_ledger::LedgerFormat,
};
use crate::agents::{Agents, Scope};

/// The path of a project's ledger, relative to the project.
pub(super) const PROJECT_LEDGER: &str = "skills-lock.json";

/// Returns the path of the user's ledger.
pub(super) fn user_ledger(agents: &Agents) -> PathBuf {
    match agents.state() {
        Some(state) => state.join("skills/.skill-lock.json"),
        None => agents.home().join(".agents/.skill-lock.json"),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    source: String,
    #[serde(default)]
    source_type: String,
    source_url: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    skill_path: Option<String>,
    computed_hash: Option<String>,
    skill_folder_hash: Option<String>,
    pinned_ref: Option<String>,
}

/// The format of a project's ledger; the field is the folder of the project.
pub(super) struct Project<'a>(pub(super) &'a Path);

/// The format of the user's ledger; the field is the home folder.
pub(super) struct User<'a>(pub(super) &'a Path);

impl LedgerFormat for Project<'_> {
    type Record = Record;

    const VERSIONS: &'static [u64] = &[1];

    fn entry(&self, key: String, record: Record) -> (String, Origin) {
        entry(key, record, Scope::Project, self.0)
    }
}

impl LedgerFormat for User<'_> {
    type Record = Record;

    // The tool itself discards older versions.
    const VERSIONS: &'static [u64] = &[3];

    fn entry(&self, key: String, record: Record) -> (String, Origin) {
        entry(key, record, Scope::User, self.0)
    }
}

/// Converts an entry. A local source is relative to the project, or to the home folder.
fn entry(key: String, record: Record, scope: Scope, base: &Path) -> (String, Origin) {
    let local = record.source_type == "local";
    let source = if local { absolute(base, &record.source) } else { record.source };
    let hash = record.computed_hash.or(record.skill_folder_hash);
    let origin = NpxOrigin {
        source,
        source_type: record.source_type,
        url: record.source_url,
        reference: record.reference,
        path: record.skill_path,
        hash: hash.filter(|hash| !hash.is_empty()),
        pinned: record.pinned_ref,
        scope,
    };
    let folder = if is_folder_name(&key) { key } else { folder_name(&key) };
    (folder, Origin::Npx(origin))
}

fn absolute(base: &Path, path: &str) -> String {
    let parts = base.join(path);
    let mut whole = PathBuf::new();
    for part in parts.components() {
        match part {
            Component::CurDir => (),
            Component::ParentDir => drop(whole.pop()),
            _ => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}

/// Whether the tool installs a skill of this name into a folder of the same name, as it does for
/// nearly all names.
fn is_folder_name(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| !matches!(byte, b'.' | b'-'));
    let bytes = name.as_bytes();
    bytes.len() < 256
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
        && !name.contains("--")
}

/// Returns the folder name that the tool uses for a skill of this name.
fn folder_name(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for c in name.to_lowercase().chars() {
        if matches!(c, 'a'..='z' | '0'..='9' | '.' | '_') {
            folder.push(c);
        } else if !folder.ends_with('-') {
            folder.push('-');
        }
    }
    let folder: String = folder.trim_matches(['.', '-']).chars().take(255).collect();
    if folder.is_empty() { "unnamed-skill".to_owned() } else { folder }
}

/// Whether a hash that the tool recorded matches these files.
///
/// The tool computes its hash before it copies, and does not copy `metadata.json`: for a skill that
/// has such a file, the hash never matches.
pub(super) fn is_hash_of(hash: &str, items: &[Item]) -> bool {
    let whole: Vec<&Item> = items.iter().collect();
    let clean: Vec<&Item> = items.iter().filter(|item| !item.is_ignored_name()).collect();
    let same = whole.len() == clean.len();
    let mut choices = [Some(clean), (!same).then_some(whole)].into_iter().flatten();
    if hash.len() == 40 {
        return choices.any(|items| git::is_tree(hash, &items));
    }
    choices.any(|items| computed_hash(&items) == hash)
}

/// Hashes paths and bytes one after the other, without separators and without links.
fn computed_hash(items: &[&Item]) -> String {
    let mut files: Vec<&&Item> = items.iter().filter(|item| item.kind != Kind::Link).collect();
    files.sort_by_cached_key(|item| collation::key(&item.path));
    let mut hash = Sha256::new();
    for file in files {
        hash.update(&file.path);
        hash.update(&file.bytes);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_match_npx_skills() {
        for (name, folder) in [
            ("PDF Tools", "pdf-tools"),
            ("a..b_c", "a..b_c"),
            ("a--b", "a-b"),
            ("", "unnamed-skill"),
            ("../../x", "x"),
            ("---", "unnamed-skill"),
            ("Größe", "gr-e"),
        ] {
            assert_eq!(folder_name(name), folder);
            assert_eq!(is_folder_name(name), name == folder, "{name}");
        }
    }
}
