//! The skills of the person who runs a workflow.

use futures::future::BoxFuture;
use savoir_engine::shelf::{LoadError, Shelf};
use savoir_skill::Skill;

use crate::{load, lookup::Lookup};

/// Installed skills, found as every command finds them.
#[derive(Debug)]
pub(super) struct FolderShelf;

impl FolderShelf {
    fn find(name: &str) -> Result<Skill, LoadError> {
        let missing = || LoadError { message: format!("Skill '{name}' not found") };
        // A name is a name: a workflow must not reach files by a path.
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
            return Err(missing());
        }
        let refuse = |error: crate::error::CommandError| LoadError { message: error.to_string() };
        let found = Lookup::open(None).map_err(refuse)?.find(name).ok_or_else(missing)?;
        let loaded = load::load(&found.path, None).map_err(refuse)?;
        load::require_usable(&loaded).map_err(refuse)?;
        Ok(loaded.reading.skill)
    }
}

impl Shelf for FolderShelf {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        Box::pin(async move { Self::find(name) })
    }
}
