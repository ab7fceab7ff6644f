//! Defines the `SkillLookup` trait, which loads a skill by name.

use std::fmt;

use futures::future::BoxFuture;
use savoir_skill::Skill;
use thiserror::Error;

/// A collection of skills, as one user sees it.
pub trait SkillLookup: fmt::Debug + Send + Sync {
    /// Loads the skill with a name.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>>;
}

/// Why a skill cannot be loaded, with the message of the API.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct LoadError {
    /// The message that clients show.
    pub message: String,
}

/// A collection without skills.
#[derive(Clone, Copy, Debug)]
pub struct NoSkills;

impl SkillLookup for NoSkills {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        let message = format!("Skill '{name}' not found");
        Box::pin(async move { Err(LoadError { message }) })
    }
}
