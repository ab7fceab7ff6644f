//! Looks up the installed skills of the user who runs a workflow.

use futures::future::BoxFuture;
use savoir_flow::skill_lookup::{LoadError, SkillLookup};
use savoir_skill::Skill;

use crate::{load, lookup::Lookup};

/// Installed skills, looked up as in all commands.
#[derive(Debug)]
pub(super) struct InstalledSkillLookup;

impl InstalledSkillLookup {
    fn find(name: &str) -> Result<Skill, LoadError> {
        let missing = || LoadError { message: format!("Skill '{name}' not found") };
        // A workflow must not read files by path.
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

impl SkillLookup for InstalledSkillLookup {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        Box::pin(async move { Self::find(name) })
    }
}
