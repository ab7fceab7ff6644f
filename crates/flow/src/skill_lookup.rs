//! Defines the `SkillLookup` trait, which loads a skill by name.

use std::fmt;

use futures::future::BoxFuture;
use savoir_skill::Skill;
use thiserror::Error;

/// A place with skills, as one person sees it.
pub trait SkillLookup: fmt::Debug + Send + Sync {
    /// The skill of a name.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>>;
}

/// Why a skill cannot be had, in the words of the API.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct LoadError {
    /// The text that clients show.
    pub message: String,
}

/// A place without skills.
#[derive(Clone, Copy, Debug)]
pub struct NoSkills;

impl SkillLookup for NoSkills {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        let message = format!("Skill '{name}' not found");
        Box::pin(async move { Err(LoadError { message }) })
    }
}
