//! Stores the packages that were looked up in registries, as an index for the resolver.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use super::{
    Name, Package,
    wire::{IndexLine, TakenDownLine},
};
use crate::resolve::{Candidate, Index, IndexError, VersionDependencies};

/// Skills of registries with all their dependencies, and the names that could not be looked up.
#[derive(Clone, Debug, Default)]
pub struct KnownPackages {
    packages: BTreeMap<String, FoundPackage>,
    unasked: BTreeSet<Name>,
    unanswered: Vec<UnansweredLookup>,
}

/// A registry that did not answer about skills for which no answer is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnansweredLookup {
    /// The address of the registry.
    pub(super) registry: String,
    /// The names that it was asked about.
    pub(super) names: Vec<Name>,
    /// The reason why the request failed.
    pub(super) why: String,
}

/// A skill, and the registry that has it.
#[derive(Clone, Debug)]
struct FoundPackage {
    registry: usize,
    package: Package,
}

impl KnownPackages {
    pub(super) fn insert(&mut self, name: &Name, registry: usize, package: Package) {
        self.packages.insert(name.to_string(), FoundPackage { registry, package });
    }

    pub(super) fn add_unasked(&mut self, names: BTreeSet<Name>) {
        self.unasked.extend(names);
    }

    pub(super) fn add_unanswered(&mut self, unanswered: UnansweredLookup) {
        self.unanswered.push(unanswered);
    }

    /// Whether a name was looked up, or cannot be.
    pub(super) fn was_asked(&self, name: &Name) -> bool {
        let mut silent = self.unanswered.iter().flat_map(|one| &one.names);
        self.contains(name) || self.unasked.contains(name) || silent.any(|other| other == name)
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.packages.contains_key(&name.to_string())
    }

    pub(super) fn len(&self) -> usize {
        self.packages.len()
    }

    /// Returns the versions of a skill; none if no registry that may be asked knows it.
    pub fn versions_of(&self, name: &str) -> &[IndexLine] {
        self.packages.get(name).map(|found| &*found.package).unwrap_or_default()
    }

    /// Returns one version of a skill.
    pub fn line(&self, name: &str, version: &Version) -> Option<&IndexLine> {
        self.versions_of(name).iter().find(|line| line.version == *version)
    }

    /// Returns the record of a version that was taken down; `None` if it was not.
    pub fn find_taken_down(&self, name: &str, version: &Version) -> Option<&TakenDownLine> {
        self.packages.get(name)?.package.find_taken_down(version)
    }

    /// Returns the position of the registry that has a skill.
    pub(super) fn registry_of(&self, name: &str) -> Option<usize> {
        self.packages.get(name).map(|found| found.registry)
    }

    /// Returns the versions of a skill that were taken down.
    pub(super) fn taken_down_versions(&self, name: &str) -> &[TakenDownLine] {
        self.packages.get(name).map(|found| found.package.taken_down_versions()).unwrap_or_default()
    }

    /// The registries that did not answer.
    pub(super) fn unanswered(&self) -> &[UnansweredLookup] {
        &self.unanswered
    }

    /// The names that could not be looked up without a network.
    pub fn unasked(&self) -> &BTreeSet<Name> {
        &self.unasked
    }
}

impl From<&IndexLine> for Candidate {
    fn from(line: &IndexLine) -> Self {
        Self { version: line.version.clone(), yanked: line.yanked, tier: line.tier }
    }
}

impl Index for KnownPackages {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        Ok(self.versions_of(name).iter().map(Candidate::from).collect())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        let line = self.line(name, version).ok_or("no such version")?;
        Ok(line.needs().map_or_else(VersionDependencies::Unreadable, VersionDependencies::Skills))
    }

    fn names(&self) -> Vec<String> {
        self.packages.keys().cloned().collect()
    }
}
