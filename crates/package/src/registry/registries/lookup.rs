//! Looks up many names in the registries that own them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::timeout;

use super::Registries;
use crate::{
    limits::MAX_RESOLVED_SKILLS,
    registry::{
        Closure, KnownPackages, Name, RegistryError, client::needs, known_packages::Unanswered,
    },
};

/// Timeout for a registry whose answer does not change the result.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The names to look up, and where.
pub(in crate::registry) struct Lookup<'a> {
    /// The names to look up.
    pub(in crate::registry) names: BTreeSet<Name>,
    /// The registry that a name must come from.
    pub(in crate::registry) bound: &'a BTreeMap<Name, usize>,
    /// The registry that earlier skills of a namespace came from; `None` if there are several, so
    /// that no registry is asked.
    pub(in crate::registry) homes: &'a BTreeMap<String, Option<usize>>,
    /// Names that no registry is asked about.
    pub(in crate::registry) local: &'a BTreeSet<String>,
    /// The names of installed skills, which are available even without a registry.
    pub(in crate::registry) held: &'a BTreeSet<String>,
    /// The installed skills whose version does not change, so that no answer about them is needed.
    pub(in crate::registry) settled: &'a BTreeSet<String>,
}

impl Lookup<'_> {
    /// Whether the result does not depend on the answer about these names.
    fn can_do_without(&self, names: &[Name]) -> bool {
        names.iter().all(|name| self.settled.contains(&name.to_string()))
    }

    /// Waits for an answer; uses a short timeout if the answer is not needed.
    async fn patient(
        &self,
        names: &[Name],
        asked: impl Future<Output = Result<Closure, RegistryError>>,
    ) -> Result<Closure, RegistryError> {
        if !self.can_do_without(names) {
            return asked.await;
        }
        let late = |_| Err(RegistryError::Late(LOOKUP_TIMEOUT.as_secs()));
        timeout(LOOKUP_TIMEOUT, asked).await.unwrap_or_else(late)
    }
}

impl Registries {
    pub(in crate::registry) async fn look_up(
        &self,
        lookup: Lookup<'_>,
    ) -> Result<KnownPackages, RegistryError> {
        let mut known = KnownPackages::default();
        let mut open = lookup.names.clone();
        // The number of registries that do not know a name.
        let mut misses: BTreeMap<Name, usize> = BTreeMap::new();
        while !open.is_empty() {
            for (at, names) in self.sorted(&lookup, std::mem::take(&mut open), &misses)? {
                let fresh = |name: &Name| !known.has(name) && !misses.contains_key(name);
                let is_here = |name: &Name| {
                    names.contains(name)
                        || fresh(name) && self.first(&lookup, name).is_some_and(|first| first == at)
                };
                let asked = self.at(at).closure_of(&names, &is_here);
                let closure = match lookup.patient(&names, asked).await {
                    Ok(closure) => closure,
                    Err(error) => {
                        known.leave_unanswered(self.unanswered(&lookup, at, names, error)?);
                        continue;
                    }
                };
                for name in &names {
                    if !closure.packages.contains_key(name) && !closure.unasked.contains(name) {
                        *misses.entry(name.clone()).or_default() += 1;
                        open.insert(name.clone());
                    }
                }
                for (name, package) in closure.packages {
                    open.extend(needs(&package));
                    known.insert(&name, at, package);
                }
                known.leave_unasked(closure.unasked);
            }
            if known.len() + misses.len() > MAX_RESOLVED_SKILLS {
                return Err(RegistryError::TooMany(MAX_RESOLVED_SKILLS));
            }
            let is_asked = |name: &Name| known.was_asked(name);
            open.retain(|name| !is_asked(name) && self.next(&lookup, name, &misses).is_some());
        }
        Ok(known)
    }

    /// Handles a registry that does not answer: an error, unless it was only asked about skills
    /// whose version does not change.
    fn unanswered(
        &self,
        lookup: &Lookup<'_>,
        at: usize,
        names: Vec<Name>,
        error: RegistryError,
    ) -> Result<Unanswered, RegistryError> {
        let registry = self.at(at).address();
        if lookup.can_do_without(&names) {
            return Ok(Unanswered { registry, names, why: error.to_string() });
        }
        if self.list[at].is_named {
            return Err(error);
        }
        Err(RegistryError::NoAnswer { registry, names, error: Box::new(error) })
    }

    /// Groups names by the registry that is asked about them next.
    fn sorted(
        &self,
        lookup: &Lookup<'_>,
        names: BTreeSet<Name>,
        misses: &BTreeMap<Name, usize>,
    ) -> Result<BTreeMap<usize, Vec<Name>>, RegistryError> {
        let mut sorted: BTreeMap<usize, Vec<Name>> = BTreeMap::new();
        for name in names {
            let text = name.to_string();
            let is_here = lookup.local.contains(&text) || lookup.held.contains(&text);
            if self.list.is_empty() && !is_here {
                return Err(RegistryError::None(text));
            }
            if let Some(at) = self.next(lookup, &name, misses) {
                sorted.entry(at).or_default().push(name);
            }
        }
        Ok(sorted)
    }

    fn first(&self, lookup: &Lookup<'_>, name: &Name) -> Option<usize> {
        self.next(lookup, name, &BTreeMap::new())
    }

    /// Returns the registry to ask about a name, after `misses` registries did not know it.
    fn next(
        &self,
        lookup: &Lookup<'_>,
        name: &Name,
        misses: &BTreeMap<Name, usize>,
    ) -> Option<usize> {
        if lookup.local.contains(&name.to_string()) {
            return None;
        }
        let home = match (self.owner(name.owner()), name.namespace()) {
            (None, Some(namespace)) => lookup.homes.get(namespace),
            _ => None,
        };
        let route = match (lookup.bound.get(name), home) {
            (Some(bound), _) => vec![*bound],
            (None, Some(home)) => home.iter().copied().collect(),
            (None, None) => self.route(name),
        };
        route.get(misses.get(name).copied().unwrap_or(0)).copied()
    }
}
