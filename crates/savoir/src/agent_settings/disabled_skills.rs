//! Checks which skills are disabled in agents and in Savoir itself.

use std::path::{Path, PathBuf};

use savoir_engine::Home;
use savoir_package::{Agent, ledger::LedgerEntry};

use super::{DisableSetting, SavoirDisableList, switch::DisableRules};
use crate::{error::CommandError, installed::Installed};

/// The disabled skills of some agents and of Savoir.
#[derive(Debug)]
pub(crate) struct DisabledSkills {
    agents: Vec<(&'static Agent, DisableRules)>,
    savoir_list: SavoirDisableList,
    project: Option<PathBuf>,
}

impl DisabledSkills {
    /// Reads the settings of these agents.
    pub(crate) fn read(
        agents: &[&'static Agent],
        installed: &Installed,
        home: &Home,
    ) -> Result<Self, CommandError> {
        let project = installed.project();
        let root = project.unwrap_or(Path::new("."));
        let rules = |agent: &&'static Agent| {
            Some((*agent, DisableSetting::of(agent)?.rules(installed.home(), root)))
        };
        Ok(Self {
            agents: agents.iter().filter_map(rules).collect(),
            savoir_list: SavoirDisableList::read(home)?,
            project: project.map(Path::to_owned),
        })
    }

    /// The agents that have disabled a skill in these folders.
    pub(crate) fn agents<'a>(
        &'a self,
        name: &'a str,
        folders: &'a [PathBuf],
    ) -> impl Iterator<Item = &'static Agent> + 'a {
        let off = self.agents.iter().filter(|(_, rules)| rules.has(name, folders.iter().cloned()));
        off.map(|(agent, _)| *agent)
    }

    /// Whether the skill is disabled in Savoir.
    pub(crate) fn is_disabled_in_savoir(&self, name: &str) -> bool {
        self.savoir_list.is_disabled(name, self.project.as_deref())
    }

    /// Whether Savoir offers a skill to models. If agents are given, one of them must see it;
    /// otherwise it must not be one that an agent brings for itself.
    pub(crate) fn offers(&self, wanted: &[&'static Agent], entry: &LedgerEntry) -> bool {
        if self.is_disabled_in_savoir(entry.name()) {
            return false;
        }
        if wanted.is_empty() {
            return !is_built_into_agent(entry);
        }
        let folders = [entry.path().to_owned()];
        let is_off = |agent: &Agent| self.agents(entry.name(), &folders).any(|off| off == agent);
        let is_seen_by = |wanted: &Agent| {
            entry.places().iter().any(|place| place.agents().any(|agent| agent.id == wanted.id))
        };
        wanted.iter().any(|agent| is_seen_by(agent) && !is_off(agent))
    }
}

/// Whether a skill is part of an agent: Codex writes its own ones into `.system`.
fn is_built_into_agent(entry: &LedgerEntry) -> bool {
    let parent = entry.path().parent().and_then(Path::file_name);
    parent.is_some_and(|name| name == ".system")
}
