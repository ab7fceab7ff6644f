//! Options that select installed skills.

use std::path::PathBuf;

use clap::ValueEnum;
use savoir_package::{
    Agent,
    agents::{Scope, UnknownAgent},
    ledger::LedgerEntry,
};

use super::{ExaminedSkill, Installed};
use crate::{error::CommandError, lookup::unknown};

/// Filters for installed skills.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Only skills with these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only skills that one of these agents sees, for example claude-code,codex
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = agent)]
    agent: Vec<&'static Agent>,
    /// Only skills that this tool installed
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Option<Installer>,
    /// Only skills of the project, or of the user
    #[arg(long, value_name = "SCOPE")]
    scope: Option<ScopeFilter>,
    /// Only skills of the user, as with --scope user
    #[arg(long, conflicts_with = "scope")]
    user: bool,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
}

/// The tool that installed a skill.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Installer {
    #[value(help = "Installed by Savoir")]
    Savoir,
    #[value(help = "Installed by `npx skills`")]
    Npx,
    #[value(help = "Installed by `gh skill`")]
    Gh,
    #[value(help = "Installed by ClawHub")]
    Clawhub,
    #[value(help = "Unknown, without a record of an installer")]
    Plain,
}

impl Installer {
    fn word(self) -> &'static str {
        match self {
            Self::Savoir => "savoir",
            Self::Npx => "npx",
            Self::Gh => "gh",
            Self::Clawhub => "clawhub",
            Self::Plain => "plain",
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeFilter {
    Project,
    User,
}

fn agent(word: &str) -> Result<&'static Agent, UnknownAgent> {
    Agent::by_id(word)
}

impl Selection {
    /// The selected skills, using only what is known without reading them.
    pub(crate) fn entries<'a>(
        &self,
        installed: &'a Installed,
    ) -> Result<Vec<&'a LedgerEntry>, CommandError> {
        let ledger = &installed.ledger;
        if self.names.is_empty() {
            let is_listed =
                |entry: &&LedgerEntry| self.takes(entry) && !installed.is_own_source(entry);
            return Ok(ledger.entries().iter().filter(is_listed).collect());
        }
        let mut found = Vec::new();
        for name in &self.names {
            let named = ledger.named(name);
            if named.is_empty() && !installed.locked.iter().any(|locked| locked.name == *name) {
                return Err(unknown(name, installed));
            }
            found.extend(named.iter().filter(|entry| self.takes(entry)));
        }
        Ok(found)
    }

    /// The agents in `--agent`.
    pub(crate) fn agents(&self) -> &[&'static Agent] {
        &self.agent
    }

    /// Whether a skill with this name is selected.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|known| known == name)
    }

    /// Whether no agent, origin or scope is selected, so that missing skills count, too.
    pub(crate) fn is_everything(&self) -> bool {
        self.agent.is_empty() && self.origin.is_none() && self.scope().is_none()
    }

    fn scope(&self) -> Option<ScopeFilter> {
        if self.user { Some(ScopeFilter::User) } else { self.scope }
    }

    fn takes(&self, entry: &LedgerEntry) -> bool {
        let scope = self.scope().is_none_or(|wanted| {
            entry.places().iter().any(|place| match wanted {
                ScopeFilter::Project => place.scope() == Scope::Project,
                ScopeFilter::User => place.scope() == Scope::User,
            })
        });
        let is_wanted = |agent: &Agent| self.agent.iter().any(|wanted| wanted.id == agent.id);
        let seen = || entry.places().iter().any(|place| place.agents().any(is_wanted));
        scope && (self.agent.is_empty() || seen())
    }

    /// Whether the origin of a skill is selected.
    pub(crate) fn takes_origin(&self, examined: &ExaminedSkill<'_>) -> bool {
        self.takes_word(examined.origin().map_or("plain", |origin| origin.word()))
    }

    /// The same for the word of an origin.
    pub(crate) fn takes_word(&self, word: &str) -> bool {
        self.origin.is_none_or(|way| way.word() == word)
    }
}
