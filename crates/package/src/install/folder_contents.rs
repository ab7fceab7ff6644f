//! Reads the content of the target folder of a skill.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::InstallFailure;
use crate::{Tree, TreeError, tree::SIGNATURE_FILES};

/// Folders that mark a repository.
const REPOSITORY_FOLDERS: [&str; 3] = [".git", ".hg", ".svn"];

/// The content of a path that a skill is to be installed to.
#[derive(Clone, Debug)]
pub(super) enum FolderContents {
    Absent,
    /// The files of a skill, or of something else.
    Tree(Tree),
    /// A link to another folder.
    Link(PathBuf),
    /// Content that could not be restored unchanged, with the reason.
    Unsupported(String),
}

impl PartialEq for FolderContents {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Tree(one), Self::Tree(other)) => one == other,
            (Self::Link(one), Self::Link(other)) => one == other,
            _ => false,
        }
    }
}

impl FolderContents {
    pub(super) fn at(path: &Path) -> Result<Self, InstallFailure> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(error) => return Err(InstallFailure::io(path)(error)),
        };
        if metadata.is_symlink() {
            return Ok(Self::Link(fs::read_link(path).map_err(InstallFailure::io(path))?));
        }
        if !metadata.is_dir() {
            return Ok(Self::Unsupported("it is not a folder".to_owned()));
        }
        if REPOSITORY_FOLDERS.iter().any(|name| path.join(name).exists()) {
            return Ok(Self::Unsupported("it is a repository".to_owned()));
        }
        // [`Tree::read`] would replace links by the files that they lead to.
        Ok(match Tree::read_without_links(path) {
            Ok(tree) => Self::Tree(tree),
            Err(TreeError::Link(link)) => {
                Self::Unsupported(format!("{} is a link", path.join(link).display()))
            }
            Err(error) => Self::Unsupported(error.to_string()),
        })
    }

    /// The files, if it is a folder.
    pub(super) fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Tree(tree) => Some(tree),
            _ => None,
        }
    }

    /// Whether there is nothing to lose: no folder, or an empty one.
    pub(super) fn is_empty_or_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Tree(tree) => tree.files().len() == 0,
            Self::Link(_) | Self::Unsupported(_) => false,
        }
    }

    /// The reason why the content could not be restored, if so.
    pub(super) fn unsupported_reason(&self) -> Option<&str> {
        match self {
            Self::Unsupported(why) => Some(why),
            _ => None,
        }
    }
}

/// Whether two trees are the same skill. Signatures and executable bits are ignored, because the
/// lock covers neither: signatures may be added later, and some file systems have no executable
/// bit.
pub(super) fn same(one: &Tree, other: &Tree) -> bool {
    one.is_same_skill(other)
}

/// Whether a tree has any signature file.
pub(super) fn is_signed(tree: &Tree) -> bool {
    SIGNATURE_FILES.iter().any(|name| tree.get(name).is_some())
}

/// Whether two trees have the same signatures.
pub(super) fn same_signatures(one: &Tree, other: &Tree) -> bool {
    let bytes = |tree: &Tree, name: &str| tree.get(name).map(|file| file.bytes.clone());
    SIGNATURE_FILES.iter().all(|name| bytes(one, name) == bytes(other, name))
}
