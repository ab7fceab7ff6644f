//! Reads the files of a skill from a folder, an archive or a single file.

use std::{ffi::OsStr, fs, io, path::Path};

use savoir_skill::folder::is_skill_file;
use thiserror::Error;

use crate::{
    archive::{self, ArchiveError},
    limits::MAX_ARCHIVE_BYTES,
    tree::{File, Tree, TreeError},
};

/// Why a path has no files of a skill that can be read.
#[derive(Debug, Error)]
pub enum InputError {
    /// Nothing exists at the path.
    #[error("the file or folder does not exist")]
    Missing,
    /// The operating system returned an error.
    #[error(transparent)]
    Io(io::Error),
    /// The folder is not that of a skill.
    #[error("it contains no SKILL.md")]
    NoSkill,
    /// The file is too large.
    #[error("it has more than {MAX_ARCHIVE_BYTES} bytes")]
    TooLarge,
    /// The files cannot be those of a skill.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The archive cannot be read, or has not exactly one skill.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl InputError {
    /// A stable error code, if there is one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Tree(error) => Some(error.code()),
            Self::Archive(error) => Some(error.code()),
            Self::Missing | Self::Io(_) | Self::NoSkill | Self::TooLarge => None,
        }
    }

    /// What the user can do, if something is known to help.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::NoSkill)
            .then_some("name a skill's folder, an archive of one, or a Markdown file")
    }
}

/// Reads the files of one skill: those of a folder or an archive, or a single file. A Markdown file
/// of any name is read as SKILL.md.
pub fn read_tree(path: &Path) -> Result<Tree, InputError> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => InputError::Missing,
        _ => InputError::Io(error),
    })?;
    if metadata.is_dir() {
        let tree = Tree::read(path)?;
        let has_skill = tree.files().any(|(path, _)| is_skill_file(path));
        return if has_skill { Ok(tree) } else { Err(InputError::NoSkill) };
    }
    if metadata.len() > MAX_ARCHIVE_BYTES {
        return Err(InputError::TooLarge);
    }
    let bytes = fs::read(path).map_err(InputError::Io)?;
    if archive::kind(&bytes).is_some() {
        return Ok(archive::unpack(&bytes).and_then(archive::one_skill)?.1);
    }
    let name = if is_document(path, &bytes) { "SKILL.md".to_owned() } else { file_name(path) };
    let mut tree = Tree::default();
    tree.add(name, File { bytes, executable: false })?;
    Ok(tree)
}

/// Whether a file is read as a SKILL.md, and not as a script or data.
fn is_document(path: &Path, bytes: &[u8]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "md" | "markdown" | "mdx" | "mdc" | "txt")
        || bytes.starts_with(b"---")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
