//! Provides the resolver with an index of the skill versions that can be installed: fetched ones
//! and locked ones.

use std::collections::BTreeMap;

use savoir_skill::version::SkillRef;
use semver::Version;

use super::{CheckedSkill, FetchReason};
use crate::{
    lock::{Lock, LockedSkill},
    resolve::{Candidate, Index, IndexError, VersionDependencies},
};

/// One available version of a skill.
pub(super) struct AvailableVersion<'a> {
    pub(super) locked: LockedSkill,
    /// The fetched skill; `None` if the version is only locked.
    pub(super) ready: Option<&'a CheckedSkill>,
}

/// The available versions of skills, by folder name.
pub(super) struct AvailableSkills<'a>(BTreeMap<String, Vec<AvailableVersion<'a>>>);

impl<'a> AvailableSkills<'a> {
    pub(super) fn new(lock: &Lock, ready: &'a [CheckedSkill]) -> Self {
        let mut copies: BTreeMap<String, Vec<AvailableVersion<'a>>> = BTreeMap::new();
        for (name, locked) in &lock.skills {
            let copy = AvailableVersion { locked: locked.clone(), ready: None };
            copies.insert(name.clone(), vec![copy]);
        }
        for ready in ready {
            let known = copies.entry(ready.summary.name.clone()).or_default();
            match &ready.why {
                // A requested skill or an update replaces all other versions.
                FetchReason::Requested(_) | FetchReason::Update => known.clear(),
                FetchReason::IfNeeded
                    if known.iter().any(|copy| copy.is(&ready.summary.version)) =>
                {
                    continue;
                }
                FetchReason::IfNeeded => {}
            }
            known.push(AvailableVersion { locked: ready.locked(), ready: Some(ready) });
        }
        Self(copies)
    }

    pub(super) fn remove_version(
        &mut self,
        name: &str,
        version: &Version,
    ) -> Option<AvailableVersion<'a>> {
        let copies = self.0.get_mut(name)?;
        let at = copies.iter().position(|copy| copy.is(version))?;
        Some(copies.swap_remove(at))
    }

    fn copies(&self, name: &str) -> &[AvailableVersion<'a>] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

impl AvailableSkills<'_> {
    /// Replaces the published name of a dependency by the name of its folder.
    fn installed(&self, need: &SkillRef) -> SkillRef {
        let folder = folder(&need.name);
        let has_published_name = |copy: &AvailableVersion<'_>| {
            copy.locked.source.published(folder).is_some_and(|(_, name)| name == need.name)
        };
        let mut need = need.clone();
        if folder != need.name && self.copies(folder).iter().any(has_published_name) {
            folder.clone_into(&mut need.name);
        }
        need
    }
}

/// Returns the folder name of a skill: the last part of its published name.
pub(super) fn folder(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl AvailableVersion<'_> {
    fn is(&self, version: &Version) -> bool {
        self.locked.version == *version
    }
}

impl Index for AvailableSkills<'_> {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let candidates = self.copies(name).iter().map(|copy| Candidate {
            version: copy.locked.version.clone(),
            yanked: false,
            tier: copy.locked.tier,
        });
        Ok(candidates.collect())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        let copy = self.copies(name).iter().find(|copy| copy.is(version));
        let needs = copy.ok_or("no such version")?.locked.dependencies.iter();
        Ok(VersionDependencies::Skills(needs.map(|need| self.installed(need)).collect()))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
