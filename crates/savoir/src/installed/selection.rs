//! Which of the installed skills a person asks for.

use std::path::PathBuf;

use clap::ValueEnum;
use savoir_package::{
    Agent,
    agents::{Scope, UnknownAgent},
    ledger::Entry,
};

use super::{Examined, Installed};
use crate::{error::CommandError, lookup::unknown};

/// Which skills.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Only skills of these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only what one of these agents sees, such as claude-code,codex
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = agent)]
    agent: Vec<&'static Agent>,
    /// Only what came this way
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Option<Way>,
    /// Only what belongs to the project, or to the user
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Whose>,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
}

/// How a skill came to the machine.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Way {
    #[value(help = "Savoir put it there")]
    Savoir,
    #[value(help = "`npx skills` did")]
    Npx,
    #[value(help = "`gh skill` did")]
    Gh,
    #[value(help = "ClawHub did")]
    Clawhub,
    #[value(help = "Nobody wrote down who did")]
    Plain,
}

impl Way {
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
enum Whose {
    Project,
    User,
}

fn agent(word: &str) -> Result<&'static Agent, UnknownAgent> {
    Agent::by_id(word)
}

impl Selection {
    /// The skills that are asked for, as far as that is known without reading them.
    pub(crate) fn entries<'a>(
        &self,
        installed: &'a Installed,
    ) -> Result<Vec<&'a Entry>, CommandError> {
        let ledger = &installed.ledger;
        if self.names.is_empty() {
            return Ok(ledger.entries().iter().filter(|entry| self.takes(entry)).collect());
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

    /// The agents that were named.
    pub(crate) fn agents(&self) -> &[&'static Agent] {
        &self.agent
    }

    /// Whether a skill is asked for that is known by its name alone.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|known| known == name)
    }

    /// Whether a skill of this agent and scope is asked for that is nowhere on the disk.
    pub(crate) fn is_everything(&self) -> bool {
        self.agent.is_empty() && self.origin.is_none() && self.scope.is_none()
    }

    fn takes(&self, entry: &Entry) -> bool {
        let scope = self.scope.is_none_or(|whose| {
            entry.places().iter().any(|place| match whose {
                Whose::Project => place.scope() == Scope::Project,
                Whose::User => place.scope() == Scope::User,
            })
        });
        let is_wanted = |agent: &Agent| self.agent.iter().any(|wanted| wanted.id == agent.id);
        let seen = || entry.places().iter().any(|place| place.agents().any(is_wanted));
        scope && (self.agent.is_empty() || seen())
    }

    /// Whether a skill came the way that is asked for.
    pub(crate) fn takes_origin(&self, examined: &Examined<'_>) -> bool {
        self.takes_word(examined.origin().map_or("plain", |origin| origin.word()))
    }

    /// The same for the word of an origin.
    pub(crate) fn takes_word(&self, word: &str) -> bool {
        self.origin.is_none_or(|way| way.word() == word)
    }
}
