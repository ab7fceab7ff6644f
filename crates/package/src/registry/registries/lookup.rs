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
        Closure, KnownPackages, Name, RegistryError, client::needs,
        known_packages::UnansweredLookup,
    },
};

/// Timeout for a registry whose answer does not change the result.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The names to look up, and where.
pub(in crate::registry) struct Lookup<'a> {
    /// The names to look up.
    pub(in crate::registry) names: BTreeSet<Name>,
    /// The registry that a name must come from.
    pub(in crate::registry) required_registries: &'a BTreeMap<Name, usize>,
    /// The registry that earlier skills of a namespace came from; `None` if there are several, so
    /// that no registry is asked.
    pub(in crate::registry) namespace_registries: &'a BTreeMap<String, Option<usize>>,
    /// Names that no registry is asked about.
    pub(in crate::registry) names_without_registry: &'a BTreeSet<String>,
    /// The names of installed skills, which are available even without a registry.
    pub(in crate::registry) available: &'a BTreeSet<String>,
    /// The installed skills whose version does not change, so that no answer about them is needed.
    pub(in crate::registry) unchanged: &'a BTreeSet<String>,
}

impl Lookup<'_> {
    /// Whether the result does not depend on the answer about these names.
    fn needs_no_answer(&self, names: &[Name]) -> bool {
        names.iter().all(|name| self.unchanged.contains(&name.to_string()))
    }

    /// Waits for an answer; uses a short timeout if the answer is not needed.
    async fn wait_for_answer(
        &self,
        names: &[Name],
        asked: impl Future<Output = Result<Closure, RegistryError>>,
    ) -> Result<Closure, RegistryError> {
        if !self.needs_no_answer(names) {
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
            for (at, names) in
                self.group_by_registry(&lookup, std::mem::take(&mut open), &misses)?
            {
                let fresh = |name: &Name| !known.contains(name) && !misses.contains_key(name);
                let is_here = |name: &Name| {
                    names.contains(name)
                        || fresh(name)
                            && self.first_registry(&lookup, name).is_some_and(|first| first == at)
                };
                let asked = self.at(at).closure_of(&names, &is_here);
                let closure = match lookup.wait_for_answer(&names, asked).await {
                    Ok(closure) => closure,
                    Err(error) => {
                        known.add_unanswered(self.handle_unanswered(&lookup, at, names, error)?);
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
                known.add_unasked(closure.unasked);
            }
            if known.len() + misses.len() > MAX_RESOLVED_SKILLS {
                return Err(RegistryError::TooMany(MAX_RESOLVED_SKILLS));
            }
            let is_asked = |name: &Name| known.was_asked(name);
            open.retain(|name| {
                !is_asked(name) && self.next_registry(&lookup, name, &misses).is_some()
            });
        }
        Ok(known)
    }

    /// Handles a registry that does not answer: an error, unless it was only asked about skills
    /// whose version does not change.
    fn handle_unanswered(
        &self,
        lookup: &Lookup<'_>,
        at: usize,
        names: Vec<Name>,
        error: RegistryError,
    ) -> Result<UnansweredLookup, RegistryError> {
        let registry = self.at(at).address();
        if lookup.needs_no_answer(&names) {
            return Ok(UnansweredLookup { registry, names, why: error.to_string() });
        }
        if self.list[at].is_named {
            return Err(error);
        }
        Err(RegistryError::NoAnswer { registry, names, error: Box::new(error) })
    }

    /// Groups names by the registry that is asked about them next.
    fn group_by_registry(
        &self,
        lookup: &Lookup<'_>,
        names: BTreeSet<Name>,
        misses: &BTreeMap<Name, usize>,
    ) -> Result<BTreeMap<usize, Vec<Name>>, RegistryError> {
        let mut sorted: BTreeMap<usize, Vec<Name>> = BTreeMap::new();
        for name in names {
            let text = name.to_string();
            let is_here =
                lookup.names_without_registry.contains(&text) || lookup.available.contains(&text);
            if self.list.is_empty() && !is_here {
                return Err(RegistryError::None(text));
            }
            if let Some(at) = self.next_registry(lookup, &name, misses) {
                sorted.entry(at).or_default().push(name);
            }
        }
        Ok(sorted)
    }

    fn first_registry(&self, lookup: &Lookup<'_>, name: &Name) -> Option<usize> {
        self.next_registry(lookup, name, &BTreeMap::new())
    }

    /// Returns the registry to ask about a name, after `misses` registries did not know it.
    fn next_registry(
        &self,
        lookup: &Lookup<'_>,
        name: &Name,
        misses: &BTreeMap<Name, usize>,
    ) -> Option<usize> {
        if lookup.names_without_registry.contains(&name.to_string()) {
            return None;
        }
        let home = match (self.owner_position(name.owner()), name.namespace()) {
            (None, Some(namespace)) => lookup.namespace_registries.get(namespace),
            _ => None,
        };
        let route = match (lookup.required_registries.get(name), home) {
            (Some(required), _) => vec![*required],
            (None, Some(home)) => home.iter().copied().collect(),
            (None, None) => self.registries_to_ask(name),
        };
        route.get(misses.get(name).copied().unwrap_or(0)).copied()
    }
}
