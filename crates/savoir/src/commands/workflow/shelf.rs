//! The skills of the person who runs a workflow.

use futures::future::BoxFuture;
use savoir_engine::{
    Home,
    shelf::{LoadError, Shelf},
};
use savoir_skill::Skill;

use crate::{load, target};

/// Skills in the folders where every command looks for names.
#[derive(Debug)]
pub(super) struct FolderShelf {
    home: Home,
}

impl FolderShelf {
    pub(super) fn new(home: Home) -> Self {
        Self { home }
    }

    fn find(&self, name: &str) -> Result<Skill, LoadError> {
        let missing = || LoadError { message: format!("Skill '{name}' not found") };
        // A name is a name: a workflow must not reach files by a path.
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
            return Err(missing());
        }
        let mut folders = target::shelves(&self.home).into_iter().map(|shelf| shelf.join(name));
        let folder = folders.find(|folder| folder.is_dir()).ok_or_else(missing)?;
        let refuse = |error: crate::error::CommandError| LoadError { message: error.to_string() };
        let loaded = load::load(&folder, None).map_err(refuse)?;
        load::require_usable(&loaded).map_err(refuse)?;
        Ok(loaded.reading.skill)
    }
}

impl Shelf for FolderShelf {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        Box::pin(async move { self.find(name) })
    }
}
