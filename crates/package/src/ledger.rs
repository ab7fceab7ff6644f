//! Finds all skills on a machine, whichever tool installed them.
//!
//! [`Ledger::open`] only lists folders and reads the ledgers of other tools, so that ten thousand
//! skills are found in the blink of an eye. What costs more is asked of each [`LedgerEntry`]:
//! [`LedgerEntry::details`] reads its SKILL.md, [`LedgerEntry::drift`] holds its files against the hash that the
//! tool took which installed it, and [`LedgerEntry::adoption`] tells what a lock needs to take it over.
//! Nothing is written.
//!
//! - `npx`, `gh` and `clawhub` know one tool each: its files and its hashes.
//! - `files` reads a folder, `git` names it as git does, `order` sorts as JavaScript does.

mod adoption;
mod book;
mod clash;
mod clawhub;
mod entry;
mod files;
mod gh;
mod git;
mod npx;
mod order;
mod origin;
mod search;
mod traces;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fmt::{self, Display, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::{
    book::{LedgerCache, ToolLedger},
    search::SearchResult,
};
use crate::agents::Agents;

pub use adoption::{Adoption, Source};
pub use clash::{ClashOutcome, NameClash};
pub use entry::{Details, Drift, EntryError, LedgerEntry, SkillLocation, UnknownDrift};
pub use origin::{ClawHub, Gh, Npx, Origin};
pub(crate) use traces::Traces;

/// Where to look.
#[derive(Clone, Debug)]
pub struct SearchRoots {
    /// The agents of the user.
    pub agents: Agents,
    /// The project, if there is one.
    pub project: Option<PathBuf>,
    /// Folders of the project from the one that the user is in up to its root, without the root, the
    /// nearest first: agents read the skills of each.
    pub inner: Vec<PathBuf>,
    /// The folders of skills that Savoir installed, and what its lock holds each of them to.
    pub own: HashMap<PathBuf, Option<String>>,
}

/// Something that could not be read. Everything else was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
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
    /// The ledgers of each folder.
    books: Vec<Vec<Arc<ToolLedger>>>,
    cache: LedgerCache,
    warnings: Vec<Warning>,
}

impl Ledger {
    /// Finds all skills.
    pub fn open(places: &SearchRoots) -> Self {
        let SearchResult { mut entries, books, cache, warnings } = search::all(places);
        entries
            .sort_unstable_by(|a, b| a.name().cmp(b.name()).then_with(|| a.path().cmp(b.path())));
        Self { entries, books, cache, warnings }
    }

    /// The skills, sorted by name. A folder that a link leads to stands here once.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// The skills of a name.
    pub fn named(&self, name: &str) -> &[LedgerEntry] {
        let start = self.entries.partition_point(|entry| entry.name() < name);
        let count = self.entries[start..].partition_point(|entry| entry.name() == name);
        &self.entries[start..start + count]
    }

    /// What could not be read.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Skills that the ledgers of other tools name and that are not there: the ledger, and the name
    /// of the folder.
    pub fn missing(&self) -> Vec<(&Path, &str)> {
        let places = self.entries.iter().flat_map(LedgerEntry::places);
        let links: HashSet<&OsStr> =
            places.filter_map(|place| place.link().and_then(Path::file_name)).collect();
        let is_named_by = |book: &Arc<ToolLedger>, entry: &LedgerEntry| {
            let books = entry.places().iter().flat_map(|place| &self.books[place.folder.at]);
            books.into_iter().any(|known| Arc::ptr_eq(known, book))
        };
        let mut missing = Vec::new();
        for (path, book) in self.cache.books() {
            for key in book.skills.keys() {
                let name = key.rsplit('/').next().unwrap_or(key);
                let is_there = self.named(name).iter().any(|entry| is_named_by(book, entry));
                if !is_there && !links.contains(OsStr::new(name)) {
                    missing.push((path, key.as_str()));
                }
            }
        }
        missing.sort_unstable();
        missing
    }

    /// The names under which one agent sees more than one skill.
    pub fn clashes(&self) -> Vec<NameClash<'_>> {
        clash::find(&self.entries)
    }
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
