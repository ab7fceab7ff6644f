//! Getting skills, and checking them before anything is decided.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use savoir_package::{
    Tree,
    lock::Lock,
    shelf::{Arrival, Ready, Why, locked_source},
    source::{Offer, SourceError},
};

use super::Door;
use crate::{error::CommandError, installed::in_parallel};

/// How many skills are fetched at the same time.
const AT_ONCE: usize = 8;

impl Door {
    /// Fetches skills and checks them. They are in the same order.
    pub(crate) fn arrive(&self, wanted: &[(Offer, Why)]) -> Result<Vec<Ready>, CommandError> {
        let fetched = futures::stream::iter(wanted)
            .map(|(offer, _)| self.fetch(offer))
            .buffered(AT_ONCE)
            .try_collect();
        let fetched: Vec<Tree> = self.wait(fetched)?;
        let mut arrivals = Vec::with_capacity(fetched.len());
        for (tree, (offer, why)) in fetched.into_iter().zip(wanted) {
            let source = locked_source(&offer.place, self.shelf.root())?;
            arrivals.push(Arrival {
                tree,
                called: offer.called().to_owned(),
                source,
                why: why.clone(),
            });
        }
        self.check(&arrivals)
    }

    async fn fetch(&self, offer: &Offer) -> Result<Tree, SourceError> {
        self.doing(&format!("fetching {}", offer.name));
        self.fetcher.fetch(offer).await
    }

    /// Checks what arrived, on all processors.
    pub(crate) fn check(&self, arrivals: &[Arrival]) -> Result<Vec<Ready>, CommandError> {
        self.doing("scanning");
        let arrivals: Vec<&Arrival> = arrivals.iter().collect();
        let checked = in_parallel(&arrivals, |arrival| Ready::check(arrival.clone(), &self.trust));
        Ok(checked.into_iter().collect::<Result<_, _>>()?)
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
