//! The `Library` trait: lists, opens and saves skills for an agent.

mod folders;
mod served;

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use savoir_skill::{Skill, name::shorten_name};
use thiserror::Error;

pub use self::{
    folders::Folders,
    served::{Served, guard, serve},
};
use crate::disclosure::{Candidate, Unusable};
use savoir_lint::words::nearest;

/// Bytes of a file of a skill that a model may read.
pub const MAX_SERVED_FILE_BYTES: u64 = 256 * 1024;

/// A place with skills, as one person sees it. Skills that are disabled are not there.
pub trait Library: fmt::Debug + Send + Sync {
    /// All skills, for whoever tells a model which there are.
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>>;

    /// Those that are there and cannot be given to a model, and why.
    fn unusable(&self) -> BoxFuture<'_, Result<Vec<Unusable>, LibraryError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// One of them, whole.
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>>;

    /// The paths of the other files of one that [`Self::read`] reads, with `/`.
    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>>;

    /// The names of the skills among which are all that a person may choose.
    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>>;

    /// One that a person chose, whole: also one that no model may call.
    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>>;

    /// A text file of one, by a path that was checked with [`resource_path`].
    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>>;

    /// Notes that one is used.
    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;

    /// A number that is another one after skills came, changed or went; nothing where nobody looks out
    /// for that.
    fn edition(&self) -> Option<u64> {
        None
    }

    /// Keeps a draft where nobody is offered it until a person looked at it; tells where.
    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>>;
}

/// Who calls a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledBy {
    /// A model, by itself.
    Model,
    /// A person, who chose it.
    Person,
}

impl CalledBy {
    /// Lets a skill be called, or says why not.
    pub fn check(self, skill: &Skill) -> Result<(), LibraryError> {
        let (may, reason) = match self {
            Self::Model => (skill.policy.model_invocable, "it says that only people call it"),
            Self::Person => (
                skill.policy.user_invocable,
                "it says that only models call it; one loads it with use_skill",
            ),
        };
        if may == Some(false) {
            return Err(LibraryError::Broken {
                name: skill.name.clone(),
                reason: reason.to_owned(),
            });
        }
        Ok(())
    }
}

/// A skill that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The skill.
    pub skill: Skill,
    /// What is wrong with its form.
    pub note: Option<String>,
}

/// A skill that a model wrote, checked and not yet looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Its handle.
    pub name: String,
    /// Its SKILL.md.
    pub text: String,
}

/// Why a library does not give what was asked for, in words that a model can act on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// There is no such skill.
    #[error("there is no skill `{}`; {}", shorten_name(name), instead(near.as_deref()))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The one that was probably meant.
        near: Option<String>,
    },
    /// It is there and cannot be read.
    #[error("the skill `{name}` cannot be used: {reason}")]
    Broken {
        /// The skill.
        name: String,
        /// Why.
        reason: String,
    },
    /// The path leads elsewhere.
    #[error(
        "`{}` is not a path inside the skill; use one of its resources as it is written",
        shorten_name(path)
    )]
    Outside {
        /// The path that was given.
        path: String,
    },
    /// The skill has no such file.
    #[error(
        "the skill `{name}` has no file `{}`; its resources are told by use_skill",
        shorten_name(path)
    )]
    NoFile {
        /// The skill.
        name: String,
        /// The path.
        path: String,
    },
    /// The file is a link.
    #[error("{}", link(path, *outside))]
    Link {
        /// The path.
        path: String,
        /// Whether it leads out of the skill.
        outside: bool,
    },
    /// The file is too large.
    #[error("`{path}` has {size} bytes, at most {MAX_SERVED_FILE_BYTES} can be read")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
    },
    /// The file is no text.
    #[error("`{path}` is no text in UTF-8")]
    NoText {
        /// The path.
        path: String,
    },
    /// A draft is not good enough to be kept.
    #[error("the skill is not kept: {reason}")]
    Draft {
        /// What is wrong with it.
        reason: String,
    },
    /// The library itself failed.
    #[error("the skills cannot be read now: {reason}")]
    Failed {
        /// Why.
        reason: String,
    },
}

impl LibraryError {
    /// There is no skill of a name among those that there are.
    pub fn unknown<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let near = nearest(name, names).map(str::to_owned);
        Self::Unknown { name: name.to_owned(), near }
    }

    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown-skill",
            Self::Broken { .. } => "broken-skill",
            Self::Outside { .. } => "path-outside-skill",
            Self::NoFile { .. } | Self::Link { .. } => "no-such-file",
            Self::TooLarge { .. } => "file-too-large",
            Self::NoText { .. } => "file-not-text",
            Self::Draft { .. } => "draft-refused",
            Self::Failed { .. } => "library-failed",
        }
    }
}

/// Why a link is not read.
fn link(path: &str, outside: bool) -> String {
    if outside {
        format!("`{path}` is a link that leads outside the skill; only files inside are read")
    } else {
        format!("`{path}` is a link, and links are not followed; read the file that it leads to")
    }
}

/// What to ask for instead of a skill that is not there.
fn instead(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "find one with search_skills".to_owned(),
    }
}

/// A path inside a skill, without `.` and doubled slashes. What leads out of it is refused by its
/// letters; whoever opens the file sees to links.
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
