//! Defines the `Library` trait, which lists, opens and saves skills for an agent.

mod folders;
mod prepare;
mod summary_cache;

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use savoir_engine::structured::{self, PrepareError};
use savoir_skill::{Dialect, Skill, dialect::skillrt::SkillrtRunError, name::shorten_name};
use thiserror::Error;

pub use self::{
    folders::FolderLibrary,
    prepare::{PreparedSkill, apply_access_fields, prepare_skill},
    summary_cache::{SkillFileState, SummaryCache},
};
use crate::preamble::{Candidate, UnusableSkill};
use savoir_lint::words::nearest;

/// Maximum size of a file of a skill that a model may read.
pub const MAX_SERVED_FILE_BYTES: u64 = 256 * 1024;

/// The note for a skill that stands for a tool of an MCP server.
const MCP_TOOL_NOTE: &str = "This skill stands for a tool of an MCP server, which Savoir does not \
    call. Call the tool yourself if you have that server; otherwise tell the user.";

/// A collection of skills, as one user sees it, without disabled skills.
pub trait Library: fmt::Debug + Send + Sync {
    /// All skills that a model may use, for the list in its system prompt.
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>>;

    /// Skills that exist but cannot be used, and why.
    fn unusable(&self) -> BoxFuture<'_, Result<Vec<UnusableSkill>, LibraryError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Opens a skill for a model.
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>>;

    /// The paths of the other files of a skill that [`Self::read`] can read, with `/`.
    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>>;

    /// Names of skills that include all that the user may choose.
    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>>;

    /// Opens a skill that the user chose, even if models may not call it.
    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>>;

    /// Reads a text file of a skill, by a path that was checked with [`resource_path`].
    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>>;

    /// Records that a skill is used.
    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;

    /// A number that changes when skills are added, changed or removed; none if changes are not
    /// tracked.
    fn edition(&self) -> Option<u64> {
        None
    }

    /// Stores a draft that is not offered until the user has reviewed it; returns its location.
    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>>;
}

/// The caller of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledBy {
    /// A model on its own initiative.
    Model,
    /// The user, by choosing it.
    Person,
}

impl CalledBy {
    /// Checks that this caller may call the skill.
    pub fn check(self, skill: &Skill) -> Result<(), LibraryError> {
        let (may, reason) = match self {
            Self::Model => (skill.policy.model_invocable, "it says that only people call it"),
            Self::Person => (
                skill.policy.user_invocable,
                "it says that only models call it; one loads it with use_skill",
            ),
        };
        if may == Some(false) {
            return Err(LibraryError::NotCallable { name: skill.name.clone(), reason });
        }
        Ok(())
    }
}

/// An opened skill.
#[derive(Clone, Debug)]
pub struct Opened {
    pub skill: Skill,
    /// A note about format errors in the skill.
    pub note: Option<String>,
}

impl Opened {
    /// Checks that this machine can run the skill. Returns a note if it lacks something without
    /// which the skill may still be of use.
    pub fn check_ready(&self) -> Result<Option<String>, LibraryError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match structured::check_ready(&self.skill, &path) {
            Ok(()) => Ok(None),
            Err(PrepareError::Runtime(SkillrtRunError::McpTool)) => {
                Ok(Some(MCP_TOOL_NOTE.to_owned()))
            }
            // skillrt wants such a skill to fail before anything is done.
            Err(error) if self.skill.dialect == Dialect::SKILLRT => Err(LibraryError::NotReady {
                name: self.skill.name.clone(),
                code: error.code(),
                reason: error.to_string(),
            }),
            Err(error) => {
                Ok(Some(format!("On this machine, {error}. Tell the user if a step needs them.")))
            }
        }
    }
}

/// A skill that a model wrote, checked but not yet reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    /// The text of its SKILL.md.
    pub text: String,
}

/// An error of a library, worded so that a model can act on it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// There is no such skill.
    #[error("there is no skill `{}`; {}", shorten_name(name), instead(near.as_deref()))]
    Unknown { name: String, near: Option<String> },
    /// The skill exists but cannot be read.
    #[error("the skill `{name}` cannot be used: {reason}")]
    Broken { name: String, reason: String },
    /// The skill cannot be run on this machine.
    #[error("the skill `{name}` cannot be used here: {reason}")]
    NotReady { name: String, code: &'static str, reason: String },
    /// The caller may not call the skill.
    #[error("the skill `{name}` cannot be used: {reason}")]
    NotCallable { name: String, reason: &'static str },
    /// The path leads out of the skill.
    #[error(
        "`{}` is not a path inside the skill; use one of its resources as it is written",
        shorten_name(path)
    )]
    Outside { path: String },
    /// The skill has no such file.
    #[error("the skill `{name}` has no file `{}`; use_skill lists its files", shorten_name(path))]
    NoFile { name: String, path: String },
    /// The file is a symlink.
    #[error("{}", link(path, *outside))]
    Link { path: String, outside: bool },
    /// The file is too large.
    #[error("`{path}` has {size} bytes, at most {MAX_SERVED_FILE_BYTES} can be read")]
    TooLarge { path: String, size: u64 },
    /// The file is not UTF-8 text, or has a NUL byte.
    #[error("`{path}` is not text: it has a NUL byte, or bytes that are not UTF-8")]
    NoText { path: String },
    /// A draft has errors, so it is not stored.
    #[error("the skill is not kept: {reason}")]
    Draft { reason: String },
    /// The library itself failed.
    #[error("the skills cannot be read now: {reason}")]
    Failed { reason: String },
}

impl LibraryError {
    /// Creates the error for a name that is not among `names`.
    pub fn unknown<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let near = nearest(name, names).map(str::to_owned);
        Self::Unknown { name: name.to_owned(), near }
    }

    /// The stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown-skill",
            Self::Broken { .. } => "broken-skill",
            Self::NotCallable { .. } => "not-callable",
            Self::NotReady { code, .. } => code,
            Self::Outside { .. } => "path-outside-skill",
            Self::NoFile { .. } | Self::Link { .. } => "no-such-file",
            Self::TooLarge { .. } => "file-too-large",
            Self::NoText { .. } => "file-not-text",
            Self::Draft { .. } => "draft-refused",
            Self::Failed { .. } => "library-failed",
        }
    }
}

/// The message for a symlink that is not read.
fn link(path: &str, outside: bool) -> String {
    if outside {
        format!("`{path}` is a link that leads outside the skill; only files inside are read")
    } else {
        format!("`{path}` is a link, and links are not followed; read the file that it leads to")
    }
}

/// The suggestion for a skill that does not exist.
fn instead(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "find one with search_skills".to_owned(),
    }
}

/// Normalizes a path inside a skill: removes `.` and doubled slashes. A path that leads out
/// textually is refused; the code that opens the file checks symlinks.
pub fn resource_path(path: &str) -> Result<String, LibraryError> {
    let outside = || LibraryError::Outside { path: path.to_owned() };
    if path.starts_with('/') || path.contains(['\\', '\0', ':']) || path.len() > 1024 {
        return Err(outside());
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(outside()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Err(outside()) } else { Ok(parts.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert_eq!(resource_path("references/a.md").unwrap(), "references/a.md");
        assert_eq!(resource_path("./a//b/.").unwrap(), "a/b");
        let long = "x/".repeat(600);
        for path in ["", ".", "..", "a/../b", "../x", "/etc/passwd", "a\\b", "c:x", "a\0b", &long] {
            assert_eq!(resource_path(path).unwrap_err().code(), "path-outside-skill", "{path:?}");
        }
    }
}
