use std::collections::BTreeSet;

use super::ArchiveError;
use crate::{
    File, Tree,
    limits::{MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_RATIO, MAX_RATIO_FREE_BYTES},
    path::{self, PathProblem},
};

/// Collects the entries of an archive.
#[derive(Default)]
pub(super) struct TreeBuilder {
    tree: Tree,
    folders: BTreeSet<String>,
    entries: usize,
}

impl TreeBuilder {
    /// Counts an entry; fails if there are too many, even if they are only folders or ignored
    /// files.
    pub(super) fn count_entry(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES { Err(ArchiveError::TooManyFiles) } else { Ok(()) }
    }

    pub(super) fn add_file(&mut self, path: &str, file: File) -> Result<(), ArchiveError> {
        if self.tree.files().len() >= MAX_FILES {
            return Err(ArchiveError::TooManyFiles);
        }
        Ok(self.tree.add(path.to_owned(), file)?)
    }

    /// Checks the path of a folder entry. Folders without files are not kept.
    pub(super) fn add_folder(&mut self, path: &str) -> Result<(), ArchiveError> {
        path::check(path).map_err(|problem| ArchiveError::path(path, problem))?;
        self.folders.insert(path.to_owned());
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Tree, ArchiveError> {
        match self.folders.into_iter().find(|folder| self.tree.get(folder).is_some()) {
            Some(folder) => {
                Err(ArchiveError::path(&folder, PathProblem::FileAndFolder(folder.clone())))
            }
            None => Ok(self.tree),
        }
    }
}

/// Whether a file was added by an archiver: the `AppleDouble` files and folder views of macOS.
pub(super) fn is_junk(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    path.split('/').next() == Some("__MACOSX") || name == ".DS_Store" || name.starts_with("._")
}

/// Decodes the path of an entry.
pub(super) fn text(name: &[u8]) -> Result<&str, ArchiveError> {
    str::from_utf8(name).map_err(|_| {
        let problem = PathProblem::Characters("it is not written in UTF-8".to_owned());
        ArchiveError::path(&String::from_utf8_lossy(name), problem)
    })
}

/// Rejects a file that is too large, before it is read.
pub(super) fn check_size(path: &str, size: u64) -> Result<(), ArchiveError> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(ArchiveError::TooLarge(format!(
        "`{}` has {size} bytes; a file of a skill has at most {MAX_FILE_BYTES}",
        path.escape_debug()
    )))
}

/// Returns how many bytes may be unpacked from `packed` bytes.
pub(super) fn max_unpacked_bytes(packed: u64) -> u64 {
    packed.saturating_mul(MAX_RATIO).max(MAX_RATIO_FREE_BYTES)
}
