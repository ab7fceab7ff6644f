//! Hashes that identify the original of a skill installed by another tool.

use std::{collections::BTreeSet, path::Path};

use super::{
    LedgerEntry, Origin, Source,
    files::{self, Item, Kind},
    git, npx,
};
use crate::Tree;

/// Recorded hashes of a skill's original files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// Possible git tree ids of its original folder: the recorded one, and those of the current
    /// files, which may be unmodified.
    pub(crate) objects: BTreeSet<String>,
    /// The hash that `npx skills` recorded.
    hash: Option<String>,
}

impl Traces {
    /// Returns the hashes for a skill from this source.
    pub(crate) fn of(entry: &LedgerEntry, source: &Source) -> Self {
        let mut objects = BTreeSet::new();
        if let Source::Git { tree_sha: Some(sha), .. } = source {
            objects.insert(sha.clone());
        }
        if let Ok(items) = files::read(entry.path()) {
            let whole: Vec<&Item> = items.iter().collect();
            let clean: Vec<&Item> = items.iter().filter(|item| !item.is_ignored_name()).collect();
            objects.extend(git::trees(&clean));
            objects.extend(git::trees(&whole));
        }
        let hash = match entry.recorded() {
            Some(Origin::Npx(origin)) => origin.hash.clone(),
            _ => None,
        };
        Self { objects, hash }
    }

    /// Whether these files match the hash that the tool recorded.
    pub(crate) fn is_original(&self, tree: &Tree) -> bool {
        let items: Vec<Item> = tree.files().map(item).collect();
        self.hash.as_ref().is_some_and(|hash| npx::is_hash_of(hash, &items))
    }

    /// Like [`Self::is_original`], for the files of a folder.
    pub(crate) fn is_original_folder(&self, folder: &Path) -> bool {
        let items = files::read(folder);
        let is_hash =
            |items: &[Item]| self.hash.as_ref().is_some_and(|hash| npx::is_hash_of(hash, items));
        items.is_ok_and(|items| is_hash(&items))
    }
}

fn item((path, file): (&str, &crate::File)) -> Item {
    let kind = if file.executable { Kind::Program } else { Kind::File };
    Item { path: path.to_owned(), kind, bytes: file.bytes.clone() }
}
