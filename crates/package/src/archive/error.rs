use thiserror::Error;

use super::ArchiveKind;
use crate::{
    TreeError,
    limits::{MAX_ENTRIES, MAX_FILES},
    path::PathProblem,
};

/// Why an archive is rejected.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The format is not supported.
    #[error("it is neither a zip nor a tar; pack the skill's folder as a zip")]
    Unknown,
    /// The archive is malformed.
    #[error("{}{why}; pack it again or load it again", at(entry.as_ref()))]
    Malformed { kind: ArchiveKind, entry: Option<String>, why: &'static str },
    /// Different programs could extract different files.
    #[error(
        "{}{why}, so that programs could see different files in it; pack it again",
        at(entry.as_ref())
    )]
    Confusion { entry: Option<String>, why: &'static str },
    #[error("`{}` is encrypted; pack it again without a password", .0.escape_debug())]
    Encrypted(String),
    /// An entry is a link.
    #[error("`{}` is a link; pack the file itself in its place", .0.escape_debug())]
    Link(String),
    /// An entry is neither a file nor a folder.
    #[error("`{}` is neither a plain file nor a folder; leave it out", .0.escape_debug())]
    FileType(String),
    /// The content is too large.
    #[error("{0}; leave out what the skill does not need")]
    TooLarge(String),
    #[error(
        "it has more than {MAX_FILES} files or {MAX_ENTRIES} entries; leave out what the skill does not need"
    )]
    TooManyFiles,
    /// SKILL.md is not at the expected path.
    #[error("{0}; put SKILL.md and its files into one folder and pack that")]
    Layout(String),
    /// An entry cannot be a file of a skill.
    #[error("{0}; rename it or leave it out, and pack it again")]
    Entry(TreeError),
}

impl ArchiveError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown => "not_an_archive",
            Self::Malformed { kind: ArchiveKind::Zip, .. } => "zip_malformed",
            Self::Malformed { .. } => "tar_malformed",
            Self::Confusion { .. } => "zip_confusion",
            Self::Encrypted(_) => "encrypted",
            Self::Link(_) => "link",
            Self::FileType(_) => "file_type",
            Self::TooLarge(_) => "too_large",
            Self::TooManyFiles => "too_many_files",
            Self::Layout(_) => "layout",
            Self::Entry(error) => error.code(),
        }
    }

    /// Creates the error for an invalid path.
    pub(super) fn path(path: &str, problem: PathProblem) -> Self {
        Self::Entry(TreeError::Path { path: path.to_owned(), problem })
    }
}

impl From<TreeError> for ArchiveError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::TooLarge(why) => Self::TooLarge(why),
            error => Self::Entry(error),
        }
    }
}

fn at(entry: Option<&String>) -> String {
    entry.map(|entry| format!("`{}`: ", entry.escape_debug())).unwrap_or_default()
}
