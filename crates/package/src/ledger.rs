//! Finds all skills on a machine, whichever tool installed them. A tool ledger is the file in which
//! another tool lists the skills that it installed.
//!
//! [`Ledger::open`] only lists folders and reads tool ledgers, so that it stays fast with ten
//! thousand skills. Slower work is done per [`LedgerEntry`]: [`LedgerEntry::details`] reads its
//! SKILL.md, [`LedgerEntry::drift`] compares its files with the hash that the installing tool
//! recorded, and [`LedgerEntry::adoption`] returns the data that a lock needs to adopt the skill.
//! Nothing is written.
//!
//! - `npx`, `gh` and `clawhub` each support one tool: its files and its hashes.
//! - `files` reads a folder, `git` computes its git object id.

mod adoption;
mod clash;
mod clawhub;
mod entry;
mod files;
mod gh;
mod git;
mod npx;
mod origin;
mod search;
mod tool_ledger;
mod traces;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fmt::{self, Display},
    path::{Path, PathBuf},
    sync::Arc,
};

use savoir_skill::digest::hex;

use self::{
    search::SearchResult,
    tool_ledger::{LedgerCache, ToolLedger},
};
use crate::agents::Agents;

pub use adoption::{Adoption, Source};
pub use clash::{ClashOutcome, NameClash};
pub use entry::{Details, Drift, EntryError, LedgerEntry, SkillLocation, UnknownDrift};
pub use origin::{ClawHubOrigin, GhOrigin, NpxOrigin, Origin};
pub(crate) use traces::Traces;

/// The folders in which to search for skills.
#[derive(Clone, Debug)]
pub struct SearchRoots {
    pub agents: Agents,
    /// The root of the project, if there is one.
    pub project: Option<PathBuf>,
    /// Folders of the project from the current folder up to its root, without the root, nearest
    /// first: agents read the skills of each.
    pub nested_folders: Vec<PathBuf>,
    /// The folders of skills that Savoir installed, with the integrity that the lock pins for each.
    pub installed_by_savoir: HashMap<PathBuf, Option<String>>,
}

/// A file that could not be read. The search continues with all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub path: PathBuf,
    pub reason: String,
}

impl Warning {
    fn new(path: &Path, reason: impl Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// All skills on a machine, for one user and one project.
#[derive(Debug)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
    /// The tool ledgers that may name the skills of each folder.
    tool_ledgers: Vec<Vec<Arc<ToolLedger>>>,
    cache: LedgerCache,
    warnings: Vec<Warning>,
}

impl Ledger {
    /// Searches all folders.
    pub fn open(roots: &SearchRoots) -> Self {
        let SearchResult { mut entries, tool_ledgers, cache, warnings } =
            search::find_all_skills(roots);
        entries
            .sort_unstable_by(|a, b| a.name().cmp(b.name()).then_with(|| a.path().cmp(b.path())));
        Self { entries, tool_ledgers, cache, warnings }
    }

    /// The skills, sorted by name. A folder that links lead to is listed once.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// The skills with this folder name.
    pub fn named(&self, name: &str) -> &[LedgerEntry] {
        let start = self.entries.partition_point(|entry| entry.name() < name);
        let count = self.entries[start..].partition_point(|entry| entry.name() == name);
        &self.entries[start..start + count]
    }

    /// The files that could not be read.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns skills that tool ledgers name and whose folders do not exist: the path of the
    /// ledger, and the name in it.
    pub fn missing(&self) -> Vec<(&Path, &str)> {
        let places = self.entries.iter().flat_map(LedgerEntry::places);
        let links: HashSet<&OsStr> =
            places.filter_map(|place| place.link().and_then(Path::file_name)).collect();
        let is_named_by = |tool_ledger: &Arc<ToolLedger>, entry: &LedgerEntry| {
            let tool_ledgers =
                entry.places().iter().flat_map(|place| &self.tool_ledgers[place.folder.index]);
            tool_ledgers.into_iter().any(|known| Arc::ptr_eq(known, tool_ledger))
        };
        let mut missing = Vec::new();
        for (path, tool_ledger) in self.cache.tool_ledgers() {
            for key in tool_ledger.skills.keys() {
                let name = key.rsplit('/').next().unwrap_or(key);
                let is_there = self.named(name).iter().any(|entry| is_named_by(tool_ledger, entry));
                if !is_there && !links.contains(OsStr::new(name)) {
                    missing.push((path, key.as_str()));
                }
            }
        }
        missing.sort_unstable();
        missing
    }

    /// The names under which one agent sees several skills.
    pub fn clashes(&self) -> Vec<NameClash<'_>> {
        clash::find(&self.entries)
    }
}

#[cfg(test)]
mod tests;
