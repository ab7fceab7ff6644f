//! What can be chosen: what registries have, and what is there already.

use savoir_skill::version::SkillRef;
use semver::Version;

use super::{Known, order::Order};
use crate::{
    registry::wire::{GoneLine, IndexLine},
    resolve::{Candidate, Index, IndexError, Needs},
};

pub(super) struct Shop<'a> {
    pub(super) known: &'a Known,
    pub(super) order: &'a Order,
}

impl Shop<'_> {
    /// What a registry says of a version that it took down.
    pub(super) fn gone(&self, name: &str, version: &Version) -> Option<&GoneLine> {
        self.known.gone(name, version).filter(|_| !self.order.local.contains(name))
    }

    /// A version as its registry describes it, and the place of that registry.
    pub(super) fn published(&self, name: &str, version: &Version) -> Option<(&IndexLine, usize)> {
        if self.order.local.contains(name) {
            return None;
        }
        Some((self.known.line(name, version)?, self.known.registry_of(name)?))
    }

    fn lines(&self, name: &str) -> &[IndexLine] {
        if self.order.local.contains(name) { &[] } else { self.known.versions_of(name) }
    }
}

impl Index for Shop<'_> {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let copies = self.order.copies(name);
        let held = copies.iter().map(|copy| Candidate {
            version: copy.version.clone(),
            yanked: self.published(name, &copy.version).is_some_and(|(line, _)| line.yanked),
            tier: copy.tier,
        });
        let lines = self.lines(name).iter();
        let others = lines.filter(|line| copies.iter().all(|copy| copy.version != line.version));
        Ok(held.chain(others.map(Candidate::from)).collect())
    }

    fn dependencies(&self, name: &str, version: &Version) -> Result<Needs, IndexError> {
        if let Some(copy) = self.order.copy(name, version) {
            let needs: Vec<SkillRef> = copy.needs.clone();
            return Ok(Needs::Skills(needs));
        }
        self.known.dependencies(name, version)
    }

    fn names(&self) -> Vec<String> {
        self.known.names().into_iter().chain(self.order.held_names().cloned()).collect()
    }
}
