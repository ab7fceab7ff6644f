//! What `savoir.toml` asks for, as it can be had now.

use std::collections::{BTreeMap, BTreeSet};

use futures::future;
use savoir_package::{
    ShelfError,
    lock::{LockedSkill, LockedSource},
    manifest::Wanted,
    registry,
    resolve::Update,
    shelf::{
        Ready, Stale, State, Why,
        updates::{self, Availability, NewestError},
        wanted,
    },
    source::{GitSource, Offer, Place, Reference, Source, SourceError, TagNow},
};

use super::{Ask, Consent, Door};
use crate::{error::CommandError, output};

impl Door {
    /// Finds out for every locked skill whether there is something newer.
    pub(crate) fn look(
        &self,
        state: &State,
        ask: &Ask,
    ) -> Result<BTreeMap<String, Availability>, CommandError> {
        let is_published =
            |locked: &LockedSkill| matches!(locked.source, LockedSource::Registry(_));
        let elsewhere = updates::look(&self.fetcher, self.shelf.root(), state);
        if !state.lock.skills.values().any(is_published) {
            return Ok(self.wait(elsewhere));
        }
        let registries = self.registries(state, ask)?;
        let published = registry::look(&registries, state);
        let (mut found, published) = self.wait(future::join(elsewhere, published));
        found.extend(published);
        Ok(found)
    }

    /// The same for some skills, as far as they are locked from registries.
    pub(crate) fn look_at(
        &self,
        state: &State,
        mut names: BTreeSet<String>,
        ask: &Ask,
    ) -> Result<BTreeMap<String, Availability>, CommandError> {
        names.retain(|name| {
            let source = state.lock.skills.get(name).map(|locked| &locked.source);
            matches!(source, Some(LockedSource::Registry(_)))
        });
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let registries = self.registries(state, ask)?;
        Ok(self.wait(registry::look_at(&registries, state, &names)))
    }

    /// Fetches what the lock is missing, or has from elsewhere.
    pub(crate) fn missing(
        &self,
        differences: &[Stale],
        state: &State,
        ask: &Ask,
    ) -> Result<Vec<Ready>, CommandError> {
        let mut asked = Vec::new();
        let (mut published, mut unlocked) = (false, false);
        for one in differences {
            published |= matches!(one, Stale::Need { .. });
            // The lock knows who can be asked for another version.
            unlocked |= matches!(one, Stale::Range { .. });
            if let Stale::Missing { name, wanted } | Stale::Source { name, wanted, .. } = one {
                if matches!(wanted, Wanted::Version { .. }) {
                    unlocked = true;
                    continue;
                }
                let offer = self.newest(name, wanted)?;
                asked.push((name.clone(), offer, Why::Asked(wanted.clone())));
            }
        }
        let mut ready = self.named(asked, state)?;
        // What `savoir.toml` wants and the lock does not have is looked for, or nobody knows where.
        if unlocked || published && self.registries(state, ask)?.clients().next().is_some() {
            ready.extend(self.gather(state, &ready, Vec::new(), Update::Nothing, ask)?);
        }
        Ok(ready)
    }

    /// Fetches newer ones of locked skills: those that `savoir.toml` names, and those that others
    /// need. What is the same as what is installed is left out.
    pub(crate) fn newer(
        &self,
        names: &[String],
        state: &State,
        consent: &Consent,
        ask: &Ask,
    ) -> Result<Vec<Ready>, CommandError> {
        let (mut asked, mut published) = (Vec::new(), BTreeSet::new());
        for name in names {
            let locked = state.lock.skills.get(name);
            if locked.is_some_and(|locked| matches!(locked.source, LockedSource::Registry(_))) {
                published.insert(name.clone());
                continue;
            }
            if let Some(locked) = locked {
                if self.lies_at_home(name, locked)? {
                    output::note(&format!("`{name}` is its own source, so nothing is newer"));
                    continue;
                }
                let kept = self.shelf.store().has(&locked.integrity);
                if !kept && self.shelf.installed(name, locked)?.is_none() {
                    let (name, version) = (name.clone(), locked.version.clone());
                    return Err(ShelfError::NotKept { name, version }.into());
                }
            }
            let wanted = match (state.manifest.skills.get(name), locked) {
                (Some(wanted), _) => wanted.clone(),
                (None, Some(locked)) => self.as_locked(locked)?,
                (None, None) => return Err(ShelfError::NotInstalled(name.clone()).into()),
            };
            let offer = self.newest(name, &wanted)?;
            if let Some(moved) = locked.and_then(|locked| self.moved(locked, &offer))
                && !consent.accepts(&format!("tag:{}", moved.1))
            {
                let hint = format!("if the new commit is what you want: --accept tag:{}", moved.1);
                return Err(CommandError::from(moved.0).hint(hint));
            }
            asked.push((name.clone(), offer, Why::Newer));
        }
        let mut ready = self.named(asked, state)?;
        if !published.is_empty() {
            let update = Update::Skills(published);
            ready.extend(self.gather(state, &ready, Vec::new(), update, ask)?);
        }
        ready.retain(|ready| {
            let locked = state.lock.skills.get(&ready.card.name);
            // A registry may count the same text twice, and take one of the two down.
            locked.is_none_or(|locked| {
                locked.integrity != ready.tree.integrity() || locked.version != ready.card.version
            })
        });
        Ok(ready)
    }

    /// The skill of this name, where `savoir.toml` says that it comes from.
    fn newest(&self, name: &str, wanted: &Wanted) -> Result<Offer, CommandError> {
        self.doing(&format!("looking for {name}"));
        Ok(self.wait(updates::newest(&self.fetcher, self.shelf.root(), name, wanted))?)
    }

    /// Fetches skills that must be called so, and what they need.
    fn named(
        &self,
        asked: Vec<(String, Offer, Why)>,
        state: &State,
    ) -> Result<Vec<Ready>, CommandError> {
        let names: Vec<String> = asked.iter().map(|(name, ..)| name.clone()).collect();
        let offers: Vec<(Offer, Why)> =
            asked.into_iter().map(|(_, offer, why)| (offer, why)).collect();
        let mut ready = self.arrive(&offers)?;
        for (name, ready) in names.iter().zip(&ready) {
            if ready.card.name != *name {
                let (key, name) = (name.clone(), ready.card.name.clone());
                return Err(ShelfError::Renamed { key, name }.into());
            }
        }
        for (offer, _) in &offers {
            if lacks_needs(&ready, state) {
                let around = self.around(&offer.place)?;
                ready = self.with_needs(ready, &around, &state.lock)?;
            }
        }
        self.done();
        Ok(ready)
    }

    /// Whether an agent's folder is where a skill comes from.
    fn lies_at_home(&self, name: &str, locked: &LockedSkill) -> Result<bool, CommandError> {
        for id in &locked.agents {
            let agent = super::agent(id).map_err(CommandError::input)?;
            let folder = self.shelf.agent_folder(agent)?.join(name);
            if self.shelf.is_source(&locked.source, &folder) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The skills that lie where a skill lies.
    fn around(&self, place: &Place) -> Result<Vec<Offer>, CommandError> {
        let source = match place {
            Place::Git(git) => {
                let Source::Git(source) = place.source() else { return Ok(Vec::new()) };
                let path = git.path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
                Source::Git(GitSource { path, ..source })
            }
            Place::Path { path, inside } if inside.is_empty() => match path.parent() {
                Some(folder) => Source::Folder(folder.to_owned()),
                None => return Ok(Vec::new()),
            },
            place => place.source(),
        };
        Ok(self.wait(self.fetcher.offers(&source))?)
    }

    /// What a skill that only others need would be in `savoir.toml`.
    fn as_locked(&self, locked: &LockedSkill) -> Result<Wanted, CommandError> {
        let root = self.shelf.root();
        Ok(wanted(&Place::parse(&locked.source.to_string(), root)?, root))
    }

    /// Whether a tag was moved since a skill was locked, and which.
    fn moved(&self, locked: &LockedSkill, offer: &Offer) -> Option<(SourceError, String)> {
        let old = Place::parse(&locked.source.to_string(), self.shelf.root()).ok()?;
        let (Place::Git(old), Place::Git(new)) = (old, &offer.place) else { return None };
        match (&old.reference, &new.reference) {
            (Some(Reference::Tag(tag)), Some(Reference::Tag(now)))
                if tag == now && old.commit != new.commit =>
            {
                let (url, tag) = (old.url, tag.clone());
                let (locked, now) = (old.commit, TagNow::At(new.commit.clone()));
                let told = tag.clone();
                Some((SourceError::TagMoved { url, tag, locked, now }, told))
            }
            _ => None,
        }
    }
}

/// Whether skills need something that is neither here nor installed.
pub(crate) fn lacks_needs(ready: &[Ready], state: &State) -> bool {
    let known = |name: &str| {
        state.lock.skills.contains_key(name) || ready.iter().any(|one| one.card.name == name)
    };
    ready.iter().flat_map(|ready| &ready.card.needs).any(|need| !known(&need.name))
}

impl From<NewestError> for CommandError {
    fn from(error: NewestError) -> Self {
        let (code, hint) = (error.code(), error.hint());
        let failed = match error {
            NewestError::Source(error) => Self::from(error),
            error => Self::findings(error).named(code),
        };
        hint.into_iter().fold(failed, Self::hint)
    }
}
