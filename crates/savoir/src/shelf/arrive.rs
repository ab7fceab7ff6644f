//! Getting skills, and checking them before anything is decided.

use std::collections::BTreeSet;

use savoir_package::{
    Agent, Tree,
    lock::{Lock, LockedSkill},
    shelf::{Arrival, Ready, Why, locked_source},
    source::Offer,
};

use super::Door;
use crate::{error::CommandError, output};

impl Door {
    /// Fetches skills and checks them. They are in the same order.
    pub(crate) fn arrive(&self, wanted: &[(Offer, Why)]) -> Result<Vec<Ready>, CommandError> {
        self.doing(&format!("fetching {}", output::plural(wanted.len(), "skill")));
        let offers: Vec<Offer> = wanted.iter().map(|(offer, _)| offer.clone()).collect();
        let fetched = self.wait(self.fetcher.fetch_all(&offers)).into_iter();
        let fetched: Vec<Tree> = fetched.collect::<Result<_, _>>()?;
        let mut arrivals = Vec::with_capacity(fetched.len());
        for (tree, (offer, why)) in fetched.into_iter().zip(wanted) {
            let source = locked_source(&offer.place, self.shelf.root())?;
            arrivals.push(Arrival {
                tree,
                called: offer.called().to_owned(),
                source,
                why: why.clone(),
                counted: None,
            });
        }
        self.doing("scanning");
        let checked = Ready::check_all(arrivals, &self.trust).into_iter();
        Ok(checked.collect::<Result<_, _>>()?)
    }

    /// A skill that lies where it would be installed is somebody's own: removing it later would
    /// remove the original.
    pub(crate) fn refuse_own_folders(
        &self,
        ready: &[Ready],
        agents: &[&'static Agent],
    ) -> Result<(), CommandError> {
        for ready in ready {
            let name = &ready.card.name;
            for agent in agents {
                let folder = self.shelf.agent_folder(agent)?.join(name);
                if self.shelf.is_source(&ready.source, &folder) {
                    let message = format!("`{name}` lies already where {} looks", agent.title);
                    return Err(CommandError::input(message)
                        .named("lies_there")
                        .hint(format!("take it under the lock as it is: savoir adopt {name}")));
                }
            }
        }
        Ok(())
    }

    /// Checks a locked skill as if it came for the first time.
    pub(crate) fn as_arrived(
        &self,
        name: &str,
        locked: &LockedSkill,
        tree: Tree,
    ) -> Result<Ready, CommandError> {
        let (called, source) = (name.to_owned(), locked.source.clone());
        let (why, counted) = (Why::Newer, Some(locked.version.clone()));
        Ok(Ready::check(Arrival { tree, called, source, why, counted }, &self.trust)?)
    }

    /// The part of a lock that somebody agreed to on this machine. The rest may be anybody's words.
    pub(crate) fn agreed(&self, lock: &Lock) -> Lock {
        let mut agreed = lock.clone();
        let store = self.shelf.store();
        agreed.skills.retain(|_, locked| store.has(&locked.integrity));
        agreed
    }

    /// Refuses a kept skill whose signature does not hold any more.
    pub(crate) fn check_signature(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<(), CommandError> {
        if locked.signature.is_none() {
            return Ok(());
        }
        let Ok(Some(tree)) = self.shelf.store().get(&locked.integrity) else { return Ok(()) };
        self.as_arrived(name, locked, tree).map(drop)
    }

    /// Adds the skills that others need and that their source has, too.
    pub(crate) fn with_needs(
        &self,
        mut ready: Vec<Ready>,
        offers: &[Offer],
        lock: &Lock,
    ) -> Result<Vec<Ready>, CommandError> {
        loop {
            let known: BTreeSet<&str> =
                ready.iter().map(|ready| ready.card.name.as_str()).collect();
            let needs = ready.iter().flat_map(|ready| &ready.card.needs);
            let missing: BTreeSet<&str> = needs
                .map(|need| need.name.as_str())
                .filter(|name| !known.contains(name) && !lock.skills.contains_key(*name))
                .collect();
            let offered = offers.iter().filter(|offer| missing.contains(offer.name.as_str()));
            let spare: Vec<(Offer, Why)> =
                offered.map(|offer| (offer.clone(), Why::Spare)).collect();
            if spare.is_empty() {
                return Ok(ready);
            }
            let before = ready.len();
            ready.extend(self.arrive(&spare)?);
            // An offer may call itself something else once its files are read.
            if !ready[before..].iter().any(|one| missing_name(&spare, &one.card.name)) {
                return Ok(ready);
            }
        }
    }
}

fn missing_name(spare: &[(Offer, Why)], name: &str) -> bool {
    spare.iter().any(|(offer, _)| offer.name == name)
}

/// A name that two of them have: only one can be installed.
pub(crate) fn duplicate(ready: &[Ready]) -> Option<CommandError> {
    let mut names = BTreeSet::new();
    let twice = ready.iter().find(|ready| !names.insert(&ready.card.name))?;
    let name = &twice.card.name;
    let from: Vec<String> = ready
        .iter()
        .filter(|ready| ready.card.name == *name)
        .map(|ready| ready.source.to_string())
        .collect();
    let message = format!("there are two skills `{name}`: {}", from.join(" and "));
    Some(CommandError::input(message).named("two_of_one_name").hint("install one of them"))
}
