//! Limits where symlinks of a local skill may lead.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::git;

/// The folder that links of a skill must not leave. All paths are real ones, without links.
#[derive(Debug)]
pub(crate) enum Boundary {
    /// A folder of which every file may be read.
    Folder(PathBuf),
    /// The work tree of a git repository. It may have private files such as `.env`, so links may
    /// lead only to files that git tracks.
    WorkTree {
        root: PathBuf,
        /// Read when the first link leads out of a skill.
        tracked: OnceLock<HashSet<PathBuf>>,
    },
}

impl Boundary {
    /// Returns the git work tree that contains a folder, or else the folder itself. A home folder
    /// that is a repository does not count, because it has more than skills.
    pub(crate) fn around(folder: &Path) -> Self {
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let is_repository = |folder: &&Path| {
            folder.join(".git").exists()
                && Some(*folder) != home.as_deref()
                && folder.parent().is_some()
        };
        match folder.ancestors().find(is_repository) {
            Some(root) => Self::WorkTree { root: root.to_owned(), tracked: OnceLock::new() },
            None => Self::Folder(folder.to_owned()),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Folder(root) | Self::WorkTree { root, .. } => root,
        }
    }

    /// Whether a link that leads out of the skill folder may lead to this file.
    pub(crate) fn may_link_to(&self, file: &Path) -> bool {
        match self {
            Self::Folder(root) => file.starts_with(root),
            Self::WorkTree { root, tracked } => {
                // Without git, no file is known to be tracked.
                let read = || git::tracked_files(root).unwrap_or_default();
                tracked.get_or_init(read).contains(file)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn boundary_is_the_repository_or_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let inner = place.join("repository/skills/x");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(Boundary::around(&inner).root(), inner);
        fs::write(place.join("repository/.git"), "gitdir: elsewhere").unwrap();
        let boundary = Boundary::around(&inner);
        assert_eq!(boundary.root(), place.join("repository"));
        fs::write(place.join("repository/file"), "x").unwrap();
        assert!(!boundary.may_link_to(&place.join("repository/file")), "no git tracks it");
    }
}
