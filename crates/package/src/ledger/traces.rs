//! Hashes that identify the original of a skill installed by another tool.

use std::{collections::BTreeSet, path::Path};

use super::{
    LedgerEntry, Origin, Source,
    files::{self, Item, Kind},
    git, npx,
};
use crate::Tree;

/// What is known of the original of a skill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// Names that git may have given to its folder: the one that was written down, and those of the
    /// files as they lie there, which may be the original still.
    pub(crate) objects: BTreeSet<String>,
    /// The hash that `npx skills` wrote down.
    hash: Option<String>,
}

impl Traces {
    /// What is known of the original of a skill that came from a source.
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

    /// Whether some files are those of which the tool took its hash.
    pub(crate) fn is_original(&self, tree: &Tree) -> bool {
        let items: Vec<Item> = tree.files().map(item).collect();
        self.hash.as_ref().is_some_and(|hash| npx::is_hash_of(hash, &items))
    }

    /// The same for the files of a folder as they lie there.
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
