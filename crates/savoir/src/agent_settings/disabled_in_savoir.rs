//! Stores the skills that `savoir mcp` and `savoir chat` do not offer.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use serde::{Deserialize, Serialize};

use super::{put, read};
use crate::error::CommandError;

/// Name of the file in the data folder of the user.
const FILE: &str = "disabled.json";

/// Names of disabled skills: everywhere, and in one project.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DisabledInSavoir {
    user: BTreeSet<String>,
    projects: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl DisabledInSavoir {
    pub(crate) fn read(home: &Home) -> Result<Self, CommandError> {
        let file = home.data().join(FILE);
        let Some(text) = read(&file)? else { return Ok(Self::default()) };
        serde_json::from_str(&text).map_err(|error| {
            CommandError::input(format!("{}: {error}", file.display()))
                .named("settings-unreadable")
                .hint("fix the file, or remove it to enable every skill")
        })
    }

    pub(crate) fn write(&self, home: &Home) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(self)?;
        put(&home.data_folder("")?.join(FILE), &format!("{text}\n"))
    }

    pub(crate) fn has(&self, name: &str, project: Option<&Path>) -> bool {
        let here = project.and_then(|project| self.projects.get(project));
        self.user.contains(name) || here.is_some_and(|names| names.contains(name))
    }

    /// Disables a skill, in a project or everywhere. Returns whether this changed anything.
    pub(crate) fn disable(&mut self, name: &str, project: Option<&Path>) -> bool {
        let names = match project {
            Some(project) => self.projects.entry(project.to_owned()).or_default(),
            None => &mut self.user,
        };
        names.insert(name.to_owned())
    }

    /// Enables a skill again. Returns whether it was disabled there.
    pub(crate) fn enable(&mut self, name: &str, project: Option<&Path>) -> bool {
        let Some(project) = project else { return self.user.remove(name) };
        let Some(names) = self.projects.get_mut(project) else { return false };
        let was = names.remove(name);
        if names.is_empty() {
            self.projects.remove(project);
        }
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_apart_from_the_rest() {
        let mut disabled = DisabledInSavoir::default();
        let here = Some(Path::new("/p"));
        assert!(disabled.disable("pdf", here) && !disabled.disable("pdf", here));
        assert!(disabled.has("pdf", here) && !disabled.has("pdf", None));
        assert!(disabled.disable("mail", None) && disabled.has("mail", here));
        assert!(disabled.enable("pdf", here) && !disabled.enable("pdf", here));
        assert!(disabled.enable("mail", None));
        assert_eq!(disabled, DisabledInSavoir::default());
    }
}
