//! Provides the resolver with an index of registry versions and installed versions.

use std::collections::BTreeSet;

use savoir_skill::version::SkillRef;
use semver::Version;

use super::{
    KnownPackages,
    inputs::{GatherInputs, InstalledCopy},
};
use crate::{
    registry::{
        Network,
        error::printable,
        wire::{IndexLine, TakenDownLine},
    },
    resolve::{Candidate, Explanation, Index, IndexError, Root, Update, VersionDependencies},
};

/// How many versions that were taken down the hints list per skill.
const MAX_GONE_VERSIONS: usize = 3;

pub(super) struct GatherIndex<'a> {
    pub(super) known: &'a KnownPackages,
    pub(super) inputs: &'a GatherInputs,
    pub(super) network: Network,
}

impl GatherIndex<'_> {
    /// Returns the registry's record of a version that it took down.
    pub(super) fn find_taken_down(&self, name: &str, version: &Version) -> Option<&TakenDownLine> {
        self.known
            .find_taken_down(name, version)
            .filter(|_| !self.inputs.names_without_registry.contains(name))
    }

    /// Returns the index line of a version, and the position of its registry.
    pub(super) fn find_published(
        &self,
        name: &str,
        version: &Version,
    ) -> Option<(&IndexLine, usize)> {
        if self.inputs.names_without_registry.contains(name) {
            return None;
        }
        Some((self.known.line(name, version)?, self.known.registry_of(name)?))
    }

    /// Whether a version can only be used by those who have it installed: it was taken down,
    /// yanked, or is unknown to its registry.
    fn is_withdrawn(&self, name: &str, version: &Version) -> bool {
        self.find_taken_down(name, version).is_some()
            || self.find_published(name, version).is_some_and(|(line, _)| line.yanked)
            || self.is_missing(name, version)
    }

    /// Whether a registry has the skill but, by its index, never had this version. Only checked
    /// online, since a cached index may be older than the version.
    fn is_missing(&self, name: &str, version: &Version) -> bool {
        self.network == Network::Online
            && !self.inputs.names_without_registry.contains(name)
            && self.known.registry_of(name).is_some()
            && self.known.line(name, version).is_none()
            && self.known.find_taken_down(name, version).is_none()
    }

    /// Whether an installed copy is a candidate for the resolver. If the user requests the skill by
    /// name again, only versions that the registry has are candidates. A copy that the registry
    /// does not know must also match the ranges of all requirements.
    fn is_candidate(&self, name: &str, copy: &InstalledCopy) -> bool {
        let is_asked = self.inputs.requested.contains_key(name);
        if self.find_taken_down(name, &copy.version).is_some() {
            return !is_asked;
        }
        let matches_range =
            |root: &Root| root.skill.range.resolve(std::slice::from_ref(&copy.version)).is_some();
        let mut roots = self.inputs.roots.iter().filter(|root| root.skill.name == name);
        !self.is_missing(name, &copy.version) || !is_asked && roots.all(matches_range)
    }

    /// Returns the update without skills whose installed version was withdrawn, so that they stay;
    /// `None` if there are no such skills.
    pub(super) fn update_without_withdrawn(&self, update: &Update) -> Option<Update> {
        let all: BTreeSet<String> = match update {
            Update::Nothing => return None,
            Update::Skills(names) => names.clone(),
            Update::All => self.inputs.names_with_copies().cloned().collect(),
        };
        let stays = |name: &&String| {
            let mut copies = self.inputs.copies(name).iter();
            copies.any(|copy| self.is_withdrawn(name, &copy.version))
        };
        let rest: BTreeSet<String> = all.iter().filter(|name| !stays(name)).cloned().collect();
        (rest.len() < all.len()).then_some(Update::Skills(rest))
    }

    /// Returns the highest version, and the registry, of a skill that the explanation mentions and
    /// of which every version was taken down.
    pub(super) fn find_fully_taken_down(
        &self,
        why: &Explanation,
    ) -> Option<(&TakenDownLine, usize)> {
        let names = self.known.names().into_iter().filter(|name| mentions(why, name));
        let mut gone = names.filter(|name| self.index_lines(name).is_empty()).filter_map(|name| {
            let highest =
                self.taken_down_versions(&name).iter().max_by_key(|gone| &gone.version)?;
            Some((highest, self.known.registry_of(&name)?))
        });
        gone.next()
    }

    /// Returns hints about the skills in an explanation: versions that were taken down, and
    /// registries that did not answer.
    pub(super) fn hints(&self, why: &Explanation) -> Vec<String> {
        let mut hints = Vec::new();
        for name in self.known.names().into_iter().filter(|name| mentions(why, name)) {
            let mut gone: Vec<&TakenDownLine> = self.taken_down_versions(&name).iter().collect();
            gone.sort_by(|one, other| other.version.cmp(&one.version));
            hints.extend(gone.into_iter().take(MAX_GONE_VERSIONS).map(taken_down_hint));
        }
        for one in self.known.unanswered() {
            if one.names.iter().any(|name| mentions(why, &name.to_string())) {
                hints.push(format!("{} gave no answer: {}", one.registry, one.why));
            }
        }
        hints
    }

    fn taken_down_versions(&self, name: &str) -> &[TakenDownLine] {
        if self.inputs.names_without_registry.contains(name) {
            &[]
        } else {
            self.known.taken_down_versions(name)
        }
    }

    fn index_lines(&self, name: &str) -> &[IndexLine] {
        if self.inputs.names_without_registry.contains(name) {
            &[]
        } else {
            self.known.versions_of(name)
        }
    }
}

impl Index for GatherIndex<'_> {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let copies = self.inputs.copies(name);
        let held =
            copies.iter().filter(|copy| self.is_candidate(name, copy)).map(|copy| Candidate {
                version: copy.version.clone(),
                yanked: self.is_withdrawn(name, &copy.version),
                tier: copy.tier,
            });
        let lines = self.index_lines(name).iter();
        let others = lines.filter(|line| copies.iter().all(|copy| copy.version != line.version));
        Ok(held.chain(others.map(Candidate::from)).collect())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        if let Some(copy) = self.inputs.find_copy(name, version) {
            let needs: Vec<SkillRef> = copy.needs.clone();
            return Ok(VersionDependencies::Skills(needs));
        }
        self.known.dependencies(name, version)
    }

    fn names(&self) -> Vec<String> {
        self.known.names().into_iter().chain(self.inputs.names_with_copies().cloned()).collect()
    }
}

fn mentions(why: &Explanation, name: &str) -> bool {
    let name = format!("`{name}`");
    why.sentences.iter().any(|sentence| sentence.contains(&name))
}

fn taken_down_hint(gone: &TakenDownLine) -> String {
    let reason = gone.withdrawn_reason.as_deref().map(printable);
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("`{}` {} was taken down by its registry{reason}", gone.name, gone.version)
}
