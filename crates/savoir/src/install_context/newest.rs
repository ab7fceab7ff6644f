//! Finds newer versions of skills in their sources.

use std::collections::{BTreeMap, BTreeSet};

use futures::future;
use savoir_package::{
    InstallFailure,
    install::{
        CheckedSkill, FetchReason, FetchedSkill, LockMismatch, State, locked_source,
        requirement_for,
        updates::{self, Availability, LatestError},
    },
    lock::{LockedSkill, LockedSource},
    manifest::SkillRequirement,
    registry,
    resolve::Update,
    source::{GitSource, OfferedSkill, PinnedSource, Reference, Source, SourceError, TagLocation},
};
use savoir_skill::version::SkillRef;

use super::{Consent, FetchedSkills, InstallContext, RegistryArgs, Skipped};
use crate::{error::CommandError, output};

impl InstallContext {
    /// Checks every locked skill for updates.
    pub(crate) fn check_updates(
        &self,
        state: &State,
        ask: &RegistryArgs,
    ) -> Result<BTreeMap<String, Availability>, CommandError> {
        let is_published =
            |locked: &LockedSkill| matches!(locked.source, LockedSource::Registry(_));
        let elsewhere = updates::check_sources(&self.fetcher, self.skill_set.root(), state);
        if !state.lock.skills.values().any(is_published) {
            return Ok(self.wait(elsewhere));
        }
        let registries = self.registries(state, ask)?;
        let published = registry::check_registries(&registries, state);
        let (mut found, published) = self.wait(future::join(elsewhere, published));
        found.extend(published);
        Ok(found)
    }

    /// As [`Self::check_updates`], for those of these skills that come from registries.
    pub(crate) fn look_at(
        &self,
        state: &State,
        mut names: BTreeSet<String>,
        ask: &RegistryArgs,
    ) -> Result<BTreeMap<String, Availability>, CommandError> {
        names.retain(|name| {
            let source = state.lock.skills.get(name).map(|locked| &locked.source);
            matches!(source, Some(LockedSource::Registry(_)))
        });
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let registries = self.registries(state, ask)?;
        Ok(self.wait(registry::check_registries_for(&registries, state, &names)))
    }

    /// Fetches skills that the lock does not have, or has from another source.
    pub(crate) fn missing(
        &self,
        differences: &[LockMismatch],
        state: &State,
        ask: &RegistryArgs,
    ) -> Result<Vec<CheckedSkill>, CommandError> {
        let mut requested = Vec::new();
        let (mut published, mut unlocked) = (false, false);
        for one in differences {
            published |= matches!(one, LockMismatch::Need { .. });
            // The lock names the registry that has other versions.
            unlocked |= matches!(one, LockMismatch::Range { .. });
            if let LockMismatch::Missing { name, requirement: wanted }
            | LockMismatch::Source { name, requirement: wanted, .. } = one
            {
                if matches!(wanted, SkillRequirement::Version { .. }) {
                    unlocked = true;
                    continue;
                }
                let offer = self.newest(name, wanted)?;
                requested.push((name.clone(), offer, FetchReason::Requested(wanted.clone())));
            }
        }
        let mut ready = self.named(requested, state)?;
        // Skills that the lock does not have are resolved; without a registry that is an error.
        if unlocked || published && self.registries(state, ask)?.clients().next().is_some() {
            ready.extend(self.gather(state, &ready, Vec::new(), Update::Nothing, ask)?);
        }
        Ok(ready)
    }

    /// Fetches newer versions of locked skills, including dependencies. Unchanged skills are not
    /// returned. With [`OnFailure::Skip`] a skill that fails does not stop the others.
    pub(crate) fn newer(
        &self,
        names: &[String],
        state: &State,
        failed: OnFailure,
        consent: &Consent,
        ask: &RegistryArgs,
    ) -> Result<FetchedSkills, CommandError> {
        let (mut requested, mut published) = (Vec::new(), BTreeSet::new());
        let mut skipped = Vec::new();
        for name in names {
            let locked = state.lock.skills.get(name);
            if locked.is_some_and(|locked| matches!(locked.source, LockedSource::Registry(_))) {
                published.insert(name.clone());
                continue;
            }
            if locked.is_none() && !state.manifest.skills.contains_key(name) {
                return Err(InstallFailure::NotInstalled(name.clone()).into());
            }
            match self.newer_one(name, state, consent) {
                Ok(Some(offer)) => requested.push((name.clone(), offer, FetchReason::Update)),
                Ok(None) => {}
                Err(error) if failed == OnFailure::Skip => skipped.push(skip(name, state, error)),
                Err(error) => return Err(error),
            }
        }
        let only_published = published.len() == names.len();
        let mut arrived = self.named_some(requested, state)?;
        if failed == OnFailure::Stop
            && let Some(first) = arrived.skipped.pop()
        {
            return Err(first.error);
        }
        skipped.append(&mut arrived.skipped);
        let mut ready = arrived.ready;
        if !published.is_empty() {
            let update = Update::Skills(published.clone());
            match self.gather(state, &ready, Vec::new(), update, ask) {
                Ok(more) => ready.extend(more),
                // A skill with a forged signature stops everything.
                Err(error) if failed == OnFailure::Stop || only_published || error.is_refusal() => {
                    return Err(error);
                }
                Err(error) => {
                    let each = published.iter().map(|name| skip(name, state, error.clone()));
                    skipped.extend(each);
                }
            }
        }
        let (mut changed, store) = (Vec::new(), self.skill_set.store());
        for one in ready {
            let name = &one.summary.name;
            // A registry may contain the same files as two versions, and remove one of them.
            let unchanged = state.lock.skills.get(name).filter(|locked| {
                locked.integrity == one.tree.integrity() && locked.version == one.summary.version
            });
            let Some(locked) = unchanged else {
                changed.push(one);
                continue;
            };
            let is_published = matches!(locked.source, LockedSource::Registry(_));
            if !is_published && !store.has(&locked.integrity) && self.is_absent(name, locked)? {
                let error = not_stored(name, locked);
                if failed == OnFailure::Stop {
                    return Err(error);
                }
                skipped.push(skip(name, state, error));
            }
        }
        Ok(FetchedSkills { ready: changed, skipped })
    }

    /// Whether no agent has a folder of a locked skill, so that there are no edits to merge.
    fn is_absent(&self, name: &str, locked: &LockedSkill) -> Result<bool, CommandError> {
        for id in &locked.agents {
            let agent = super::agent(id).map_err(CommandError::input)?;
            if self.skill_set.agent_folder(agent)?.join(name).symlink_metadata().is_ok() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The current version at the source of a skill; nothing if it is installed from its own folder.
    fn newer_one(
        &self,
        name: &str,
        state: &State,
        consent: &Consent,
    ) -> Result<Option<OfferedSkill>, CommandError> {
        let locked = state.lock.skills.get(name);
        if let Some(locked) = locked {
            if self.is_own_source(name, locked)? {
                output::note(&no_other_source(name));
                return Ok(None);
            }
            let is_stored = self.skill_set.store().has(&locked.integrity);
            if !is_stored
                && self.skill_set.installed(name, locked)?.is_none()
                && !self.is_absent(name, locked)?
            {
                return Err(not_stored(name, locked));
            }
        }
        let wanted = match (state.manifest.skills.get(name), locked) {
            (Some(wanted), _) => wanted.clone(),
            (None, Some(locked)) => self.dependency_entry(locked)?,
            (None, None) => return Err(InstallFailure::NotInstalled(name.to_owned()).into()),
        };
        let offer = self.newest(name, &wanted)?;
        if let Some(moved) = locked.and_then(|locked| self.moved_tag(locked, &offer))
            && !consent.accepts(&format!("tag:{}", moved.1))
        {
            let hint = format!("if the new commit is what you want: --accept tag:{}", moved.1);
            return Err(CommandError::from(moved.0).hint(hint));
        }
        Ok(Some(offer))
    }

    /// The skill of this name at its source in `savoir.toml`.
    fn newest(&self, name: &str, wanted: &SkillRequirement) -> Result<OfferedSkill, CommandError> {
        self.doing(&format!("looking for {name}"));
        Ok(self.wait(updates::find_latest(&self.fetcher, self.skill_set.root(), name, wanted))?)
    }

    /// Fetches skills that must have these names, and their dependencies. One that fails is an error.
    fn named(
        &self,
        requested: Vec<(String, OfferedSkill, FetchReason)>,
        state: &State,
    ) -> Result<Vec<CheckedSkill>, CommandError> {
        let FetchedSkills { ready, skipped } = self.named_some(requested, state)?;
        match skipped.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(ready),
        }
    }

    /// As [`Self::named`]. One that fails does not stop the others.
    fn named_some(
        &self,
        requested: Vec<(String, OfferedSkill, FetchReason)>,
        state: &State,
    ) -> Result<FetchedSkills, CommandError> {
        let mut names = BTreeMap::new();
        for (name, offer, _) in &requested {
            let source = locked_source(&offer.source, self.skill_set.root())?;
            names.insert(source.to_string(), name.clone());
        }
        let offers: Vec<(OfferedSkill, FetchReason)> =
            requested.into_iter().map(|(_, offer, why)| (offer, why)).collect();
        let is_unchanged = |fetched: &FetchedSkill| {
            let name = names.get(&fetched.source.to_string());
            let locked = name.and_then(|name| state.lock.skills.get(name));
            locked.is_some_and(|locked| {
                let is_locked = |need: &SkillRef| state.lock.skills.contains_key(&need.name);
                fetched.is_unchanged(locked)
                    && self.skill_set.store().has(&locked.integrity)
                    && locked.dependencies.iter().all(is_locked)
            })
        };
        let FetchedSkills { mut ready, mut skipped } = self.fetch_unless(&offers, is_unchanged)?;
        for failed in &mut skipped {
            if let Some(name) = names.get(&failed.source) {
                failed.name.clone_from(name);
            }
        }
        ready.retain(|one| {
            let source = one.source.to_string();
            let Some(key) = names.get(&source).filter(|name| **name != one.summary.name) else {
                return true;
            };
            let (key, name) = (key.clone(), one.summary.name.clone());
            let error = InstallFailure::Renamed { key: key.clone(), name };
            skipped.push(Skipped::new(&key, &source, error));
            false
        });
        for (offer, _) in &offers {
            if lacks_needs(&ready, state) {
                let around = self.skills_in_same_folder(&offer.source)?;
                ready = self.with_needs(ready, &around, &state.lock)?;
            }
        }
        self.done();
        Ok(FetchedSkills { ready, skipped })
    }

    /// Whether the source of a skill is its own folder for an agent.
    pub(crate) fn is_own_source(
        &self,
        name: &str,
        locked: &LockedSkill,
    ) -> Result<bool, CommandError> {
        for id in &locked.agents {
            let agent = super::agent(id).map_err(CommandError::input)?;
            let folder = self.skill_set.agent_folder(agent)?.join(name);
            if self.skill_set.is_source(&locked.source, &folder) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The skills in the same folder of a source.
    fn skills_in_same_folder(
        &self,
        place: &PinnedSource,
    ) -> Result<Vec<OfferedSkill>, CommandError> {
        let source = match place {
            PinnedSource::Git(git) => {
                let Source::Git(source) = place.source() else { return Ok(Vec::new()) };
                let path = git.path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
                Source::Git(GitSource { path, ..source })
            }
            PinnedSource::Path { path, inside } if inside.is_empty() => match path.parent() {
                Some(folder) => Source::Folder(folder.to_owned()),
                None => return Ok(Vec::new()),
            },
            place => place.source(),
        };
        Ok(self.wait(self.fetcher.offers(&source))?)
    }

    /// The entry that a dependency would have in `savoir.toml`.
    fn dependency_entry(&self, locked: &LockedSkill) -> Result<SkillRequirement, CommandError> {
        let root = self.skill_set.root();
        Ok(requirement_for(&PinnedSource::parse(&locked.source.to_string(), root)?, root))
    }

    /// The tag that moved since a skill was locked, with the error.
    fn moved_tag(
        &self,
        locked: &LockedSkill,
        offer: &OfferedSkill,
    ) -> Option<(SourceError, String)> {
        let old = PinnedSource::parse(&locked.source.to_string(), self.skill_set.root()).ok()?;
        let (PinnedSource::Git(old), PinnedSource::Git(new)) = (old, &offer.source) else {
            return None;
        };
        match (&old.reference, &new.reference) {
            (Some(Reference::Tag(tag)), Some(Reference::Tag(now)))
                if tag == now && old.commit != new.commit =>
            {
                let (url, tag) = (old.url, tag.clone());
                let (locked, location) = (old.commit, TagLocation::At(new.commit.clone()));
                let moved_tag = tag.clone();
                Some((SourceError::TagMoved { url, tag, locked, location }, moved_tag))
            }
            _ => None,
        }
    }
}

/// What happens to other skills if one cannot be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// None is updated.
    Stop,
    /// They are updated.
    Skip,
}

fn skip(name: &str, state: &State, error: CommandError) -> Skipped {
    let source = state.lock.skills.get(name).map(|locked| locked.source.to_string());
    Skipped::new(name, &source.unwrap_or_default(), error)
}

/// Whether a dependency is neither fetched nor installed.
pub(crate) fn lacks_needs(ready: &[CheckedSkill], state: &State) -> bool {
    let known = |name: &str| {
        state.lock.skills.contains_key(name) || ready.iter().any(|one| one.summary.name == name)
    };
    ready.iter().flat_map(|ready| &ready.summary.needs).any(|need| !known(&need.name))
}

fn not_stored(name: &str, locked: &LockedSkill) -> CommandError {
    let (name, version) = (name.to_owned(), locked.version.clone());
    InstallFailure::NotKept { name, version }.into()
}

impl From<LatestError> for CommandError {
    fn from(error: LatestError) -> Self {
        let (code, hint) = (error.code(), error.hint());
        let failed = match error {
            LatestError::Source(error) => Self::from(error),
            error => Self::findings(error).with_code(code),
        };
        hint.into_iter().fold(failed, Self::hint)
    }
}

/// The note about a skill that was installed from its own folder.
pub(crate) fn no_other_source(name: &str) -> String {
    format!("`{name}` has no source besides its folder, so it cannot be updated")
}
