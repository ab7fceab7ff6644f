use std::collections::BTreeSet;

use super::ArchiveError;
use crate::{
    File, Tree,
    limits::{MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_RATIO, MAX_RATIO_FREE_BYTES},
    path::{self, PathProblem},
};

/// The entries of an archive that were read so far.
#[derive(Default)]
pub(super) struct TreeBuilder {
    tree: Tree,
    folders: BTreeSet<String>,
    entries: usize,
}

impl TreeBuilder {
    /// Counts an entry, so that nobody is kept busy with folders and junk.
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

    /// A folder of its own entry. It is kept only if it has files, but it must make sense.
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

/// What archivers add by themselves: the shadows that macOS keeps of files, and its folder views.
pub(super) fn is_junk(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    path.split('/').next() == Some("__MACOSX") || name == ".DS_Store" || name.starts_with("._")
}

/// The path of an entry as text.
pub(super) fn text(name: &[u8]) -> Result<&str, ArchiveError> {
    str::from_utf8(name).map_err(|_| {
        let problem = PathProblem::Characters("it is not written in UTF-8".to_owned());
        ArchiveError::path(&String::from_utf8_lossy(name), problem)
    })
}

/// Refuses a file by its size alone.
pub(super) fn check_size(path: &str, size: u64) -> Result<(), ArchiveError> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(ArchiveError::TooLarge(format!(
        "`{}` has {size} bytes; a file of a skill has at most {MAX_FILE_BYTES}",
        path.escape_debug()
    )))
}

/// How many bytes may come out of so many packed ones.
pub(super) fn max_unpacked_bytes(packed: u64) -> u64 {
    packed.saturating_mul(MAX_RATIO).max(MAX_RATIO_FREE_BYTES)
}
