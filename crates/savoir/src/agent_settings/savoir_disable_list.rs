//! Stores the skills that `savoir mcp` and `savoir chat` do not offer.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use serde::{Deserialize, Serialize};

use super::{put, read};
use crate::error::CommandError;

/// File in the data folder of the user.
const FILE_NAME: &str = "disabled.json";

/// Names of disabled skills: everywhere, and per project.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavoirDisableList {
    #[serde(rename = "user")]
    everywhere: BTreeSet<String>,
    projects: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl SavoirDisableList {
    pub(crate) fn read(home: &Home) -> Result<Self, CommandError> {
        let file = home.data().join(FILE_NAME);
        let Some(text) = read(&file)? else { return Ok(Self::default()) };
        serde_json::from_str(&text).map_err(|error| {
            CommandError::input(format!("{}: {error}", file.display()))
                .with_code("settings-unreadable")
                .hint("fix the file, or remove it to enable every skill")
        })
    }

    pub(crate) fn write(&self, home: &Home) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(self)?;
        put(&home.data_folder("")?.join(FILE_NAME), &format!("{text}\n"))
    }

    pub(crate) fn is_disabled(&self, name: &str, project: Option<&Path>) -> bool {
        let here = project.and_then(|project| self.projects.get(project));
        self.everywhere.contains(name) || here.is_some_and(|names| names.contains(name))
    }

    /// Disables a skill, in a project or everywhere. Returns whether this changed anything.
    pub(crate) fn disable(&mut self, name: &str, project: Option<&Path>) -> bool {
        let names = match project {
            Some(project) => self.projects.entry(project.to_owned()).or_default(),
            None => &mut self.everywhere,
        };
        names.insert(name.to_owned())
    }

    /// Enables a skill again. Returns whether it was disabled there.
    pub(crate) fn enable(&mut self, name: &str, project: Option<&Path>) -> bool {
        let Some(project) = project else { return self.everywhere.remove(name) };
        let Some(names) = self.projects.get_mut(project) else { return false };
        let was_disabled = names.remove(name);
        if names.is_empty() {
            self.projects.remove(project);
        }
        was_disabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabling_in_a_project_does_not_disable_elsewhere() {
        let mut list = SavoirDisableList::default();
        let here = Some(Path::new("/p"));
        assert!(list.disable("pdf", here) && !list.disable("pdf", here));
        assert!(list.is_disabled("pdf", here) && !list.is_disabled("pdf", None));
        assert!(list.disable("mail", None) && list.is_disabled("mail", here));
        assert!(list.enable("pdf", here) && !list.enable("pdf", here));
        assert!(list.enable("mail", None));
        assert_eq!(list, SavoirDisableList::default());
    }
}
