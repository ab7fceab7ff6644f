//! Errors of installing, updating and removing skills.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use savoir_skill::convert::ConvertError;
use thiserror::Error;

use crate::{
    ContentError, FileError, StoreError, SummaryError, TreeError,
    agents::UnknownAgent,
    gaia_lock::GaiaLockError,
    lock::{AddedCapability, LockError, SourceProblem},
    manifest::Scope,
    resolve::{IndexError, ResolveError},
};

/// An error while installing, updating or removing skills. Except for `HalfDone`, nothing was
/// changed.
#[derive(Debug, Error)]
pub enum InstallFailure {
    /// `savoir.lock` cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// `savoir.toml` cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// `skill-lock.json` of GAIA cannot be read or written.
    #[error(transparent)]
    Gaia(#[from] GaiaLockError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files of a folder cannot be those of a skill.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// No set of versions satisfies all requirements.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The lock or the user names an unknown agent.
    #[error(transparent)]
    Agent(#[from] UnknownAgent),
    /// A source cannot be written into a lock.
    #[error(transparent)]
    Source(#[from] SourceProblem),
    /// The stored files of a skill are not a valid skill.
    #[error("`{name}`: {error}")]
    SkillSummary { name: String, error: SummaryError },
    /// A skill cannot be converted to the dialect of an agent.
    #[error("`{name}` cannot be written for {agent}: {error}")]
    Convert { name: String, agent: &'static str, error: ConvertError },
    /// An agent has no skill folder in this scope.
    #[error("{agent} has no folder for the skills of a {scope}")]
    NoFolder { agent: &'static str, scope: Scope },
    /// A folder of a project leads out of it through a link.
    #[error("{} is a link to {}, which is outside of the project", path.display(), to.display())]
    Outside { path: PathBuf, to: PathBuf },
    /// `savoir.toml` requires a skill under a name that differs from its own.
    #[error("`{key}` in savoir.toml is a skill that calls itself `{name}`")]
    Renamed {
        /// The name in `savoir.toml`.
        key: String,
        name: String,
    },
    /// The folder of an adopted skill no longer exists, and the skill cannot be fetched again.
    #[error("`{name}` was adopted{} in {path}, which no longer exists", from_origin(.from.as_deref()))]
    Adopted { name: String, path: String, from: Option<String> },
    /// No agent is known to install a skill for.
    #[error("no agent is named for `{0}`, and none was found")]
    NoAgents(String),
    /// A skill is not installed.
    #[error("`{0}` is not installed here")]
    NotInstalled(String),
    /// Target folders exist that Savoir did not write.
    #[error("{} not installed by savoir", exists_phrase(.0))]
    Occupied(Vec<PathBuf>),
    /// Folders were edited since Savoir wrote them.
    #[error("{} edited after the installation", was_phrase(.0))]
    Edited(Vec<PathBuf>),
    /// A folder is not replaced, because its content could not be restored.
    #[error("{} is not replaced, since it could not be restored: {why}", path.display())]
    Unkeepable { path: PathBuf, why: String },
    /// The files of a locked skill are neither in the store nor where they were installed.
    #[error("the files of `{name}` {version} are not stored on this machine")]
    NotKept { name: String, version: semver::Version },
    /// A skill cannot be fetched again.
    #[error("`{name}` cannot be fetched again: {error}")]
    Fetch { name: String, error: IndexError },
    /// The fetched files differ from the lock.
    #[error("`{name}` is not what the lock says: its files are {found} instead of {locked}")]
    Integrity { name: String, locked: String, found: String },
    /// The lock has a skill under a name that is not its own.
    #[error("savoir.lock says that `{locked}` is a skill whose own name is `{written}`")]
    OtherName { locked: String, written: String },
    /// New versions request capabilities that the user has not accepted.
    #[error("{}", capability_lines(.0))]
    MoreCapabilities(Vec<AddedCapability>),
    /// Another program changed the skill set since the plan was made.
    #[error("another program changed the skills of {} at the same time", .0.display())]
    Moved(PathBuf),
    /// A program crashed while it changed the skill set.
    #[error("a change of the skills of {} was interrupted", .0.display())]
    Unfinished(PathBuf),
    /// There is no change to undo.
    #[error("there is no change of {} to undo", .0.display())]
    NothingToUndo(PathBuf),
    /// A record of the journal is damaged.
    #[error("{}: {why}", path.display())]
    Journal { path: PathBuf, why: String },
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// A change failed, and so did restoring the old content.
    #[error("{error}; the change could not be undone: {back}")]
    HalfDone { error: Box<Self>, back: Box<Self> },
}

impl InstallFailure {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lock(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Gaia(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Tree(error) => error.code(),
            Self::Resolve(error) => error.code(),
            Self::SkillSummary { error, .. } => error.code(),
            Self::Agent(_) => "unknown_agent",
            Self::Source(_) => "source",
            Self::Convert { .. } => "not_convertible",
            Self::NoFolder { .. } => "no_folder",
            Self::Outside { .. } => "outside",
            Self::Renamed { .. } => "renamed",
            Self::Adopted { .. } => "adopted_gone",
            Self::NoAgents(_) => "no_agents",
            Self::NotInstalled(_) => "not_installed",
            Self::Occupied(_) => "occupied",
            Self::Edited(_) => "edited",
            Self::Unkeepable { .. } => "not_replaced",
            Self::NotKept { .. } => "not_kept",
            Self::Fetch { .. } => "fetch",
            Self::Integrity { .. } => "integrity",
            Self::OtherName { .. } => "other-name",
            Self::MoreCapabilities(_) => "wants_more",
            Self::Moved(_) => "changed_meanwhile",
            Self::Unfinished(_) => "unfinished",
            Self::NothingToUndo(_) => "nothing_to_undo",
            Self::Journal { .. } => "corrupt_journal",
            Self::Io { .. } => "io",
            Self::HalfDone { .. } => "half_done",
        }
    }

    /// A suggestion to solve the error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Lock(LockError::File(error)) | Self::File(error) => {
                error.hint().or_else(|| self.io_hint())
            }
            Self::Resolve(error) => error.hints().first().map(String::as_str),
            Self::Gaia(_) => Some("fix or remove that file, which GAIA reads"),
            Self::Occupied(_) => {
                Some("move it away, or replace it with --force; savoir undo restores it")
            }
            Self::Edited(_) => Some("use --force to discard these edits"),
            Self::Unkeepable { .. } => Some("move it away"),
            Self::NotKept { .. } => Some("run savoir sync, which fetches them again"),
            Self::Outside { .. } => {
                Some("make it a folder of the project, or use --follow-links if you made the link")
            }
            Self::Integrity { .. } => Some(
                "restore savoir.lock, or review what the source has now and accept it: savoir update",
            ),
            Self::Renamed { .. } => Some("write the name that the skill calls itself"),
            Self::OtherName { .. } => {
                Some("remove its lines from savoir.lock, and install the skill again")
            }
            Self::Adopted { .. } => Some(
                "put the folder back, install the skill from elsewhere, or remove it with savoir remove",
            ),
            Self::MoreCapabilities(_) => {
                Some("accept each by its name, or stay with the old version")
            }
            Self::Moved(_) => Some("run the command again"),
            Self::Unfinished(_) => Some("run savoir sync, which repairs it"),
            Self::Journal { .. } => Some("remove its folder, and run savoir sync"),
            Self::HalfDone { .. } => Some("run savoir sync once the cause is removed"),
            _ => self.io_hint(),
        }
    }

    fn io_hint(&self) -> Option<&str> {
        let (Self::Io { error, .. }
        | Self::Store(StoreError::Io { error, .. })
        | Self::File(FileError::Io { error, .. })
        | Self::Lock(LockError::File(FileError::Io { error, .. }))
        | Self::Tree(TreeError::Io { error, .. })) = self
        else {
            return None;
        };
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some("make room on the disk; nothing was changed")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Some("check the permissions of this path; nothing was changed")
            }
            _ => None,
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    pub(super) fn summary(name: &str) -> impl FnOnce(SummaryError) -> Self + use<> {
        let name = name.to_owned();
        move |error| Self::SkillSummary { name, error }
    }
}

impl From<ContentError> for InstallFailure {
    fn from(content_error: ContentError) -> Self {
        Self::File(content_error.into())
    }
}

fn from_origin(origin: Option<&str>) -> String {
    origin.map(|origin| format!(" from {origin}")).unwrap_or_default()
}

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}

fn exists_phrase(paths: &[PathBuf]) -> String {
    let verb = if paths.len() == 1 { "exists and was" } else { "exist and were" };
    format!("{} {verb}", listed(paths))
}

fn was_phrase(paths: &[PathBuf]) -> String {
    format!("{} {}", listed(paths), if paths.len() == 1 { "was" } else { "were" })
}

fn capability_lines(growth: &[AddedCapability]) -> String {
    growth.iter().enumerate().fold(String::new(), |mut text, (at, growth)| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{growth}", if at == 0 { "" } else { "\n" });
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_cannot_be_written_has_a_hint() {
        let hint = |kind: io::ErrorKind| {
            let failed = InstallFailure::io(Path::new("p"))(kind.into());
            failed.hint().map(str::to_owned)
        };
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let hint = hint(kind).unwrap_or_default();
            assert!(hint.starts_with("check the permissions"), "{kind}: {hint}");
        }
        assert!(hint(io::ErrorKind::StorageFull).is_some());
        assert_eq!(hint(io::ErrorKind::Interrupted), None);
    }
}
