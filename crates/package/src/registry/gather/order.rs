//! Collects the requested and the installed skills under their registry names.

use std::collections::{BTreeMap, BTreeSet};

use savoir_skill::version::{SkillRef, VersionRange};
use semver::Version;

use super::{GatherRequest, folder};
use crate::{
    install::{CheckedSkill, FetchReason},
    lock::LockedSkill,
    manifest::SkillRequirement,
    registry::{Name, Registries, RegistryError},
    resolve::{Root, RootRequest, Update},
    trust::Tier,
};

/// An available copy of a skill: installed, or just fetched from another source.
pub(super) struct InstalledCopy {
    pub(super) version: Version,
    pub(super) tier: Tier,
    pub(super) needs: Vec<SkillRef>,
    pub(super) integrity: String,
    /// The registry that the copy came from.
    pub(super) registry: Option<String>,
    /// Whether `savoir.lock` names the copy.
    locked: bool,
}

/// The requirements and the available copies of skills, by the names under which they are
/// published.
#[derive(Default)]
pub(super) struct GatherInputs {
    pub(super) roots: Vec<Root>,
    /// The available copies, by published name.
    held: BTreeMap<String, Vec<InstalledCopy>>,
    /// The registry that a skill must come from.
    pub(super) bound: BTreeMap<Name, usize>,
    /// The registry that earlier skills of a namespace came from; `None` if there are several.
    pub(super) homes: BTreeMap<String, Option<usize>>,
    /// Names that no registry is asked about, because the skills come from other sources.
    pub(super) local: BTreeSet<String>,
    /// The requirements of `savoir.toml` and of the request, by published name.
    pub(super) wanted: BTreeMap<String, SkillRequirement>,
    /// The requirements of the skills that the user requested by name, as `savoir.toml` will state
    /// them.
    pub(super) asked: BTreeMap<String, SkillRequirement>,
    /// The published names of the required skills, by folder name.
    published: BTreeMap<String, String>,
}

impl GatherInputs {
    pub(super) fn new(
        registries: &mut Registries,
        wish: &GatherRequest<'_>,
    ) -> Result<Self, RegistryError> {
        let mut order = Self::default();
        let unbound = wish.asked.iter().filter(|asked| asked.registry.is_none());
        let nowhere: Vec<(&Name, Option<RegistryError>)> =
            unbound.map(|asked| (&asked.name, registries.client_of(&asked.name).err())).collect();
        order.take_roots(registries, wish)?;
        for (name, locked) in &wish.state.lock.skills {
            order.hold(registries, name, locked)?;
        }
        for ready in wish.arrived {
            order.take_arrived(ready);
        }
        for (name, error) in nowhere {
            order.must_be_asked(registries, name, error)?;
        }
        Ok(order)
    }

    /// Checks that at least one registry can be asked about a name. Otherwise the resolver would
    /// call the name unknown although no registry was asked. `nobody` is the error if no configured
    /// registry serves the name.
    fn must_be_asked(
        &self,
        registries: &Registries,
        name: &Name,
        nobody: Option<RegistryError>,
    ) -> Result<(), RegistryError> {
        let home = name.namespace().and_then(|namespace| self.homes.get(namespace));
        if self.bound.contains_key(name) || registries.owner_of(name).is_some() {
            return Ok(());
        }
        match (home, nobody) {
            (Some(None), _) => Err(RegistryError::SplitNamespace(name.owner().to_owned())),
            (None, Some(nobody)) => Err(nobody),
            _ => Ok(()),
        }
    }

    /// Collects the requirements. A request by name replaces the requirement of `savoir.toml`.
    fn take_roots(
        &mut self,
        registries: &mut Registries,
        wish: &GatherRequest<'_>,
    ) -> Result<(), RegistryError> {
        for asked in &wish.asked {
            let wanted = SkillRequirement::Version {
                range: asked.range.clone(),
                registry: asked.registry.clone(),
                namespace: asked.name.namespace().map(str::to_owned),
            };
            let folder = asked.name.last();
            let name = self.take_root(registries, folder, &wanted, RootRequest::CommandLine)?;
            self.asked.insert(name, wanted);
        }
        for ready in wish.arrived {
            if let FetchReason::Requested(wanted) = &ready.why
                && !self.published.contains_key(&ready.summary.name)
            {
                self.take_root(registries, &ready.summary.name, wanted, RootRequest::CommandLine)?;
            }
        }
        for (folder, wanted) in &wish.state.manifest.skills {
            if !self.published.contains_key(folder) {
                self.take_root(registries, folder, wanted, RootRequest::Manifest)?;
            }
        }
        Ok(())
    }

    fn take_root(
        &mut self,
        registries: &mut Registries,
        folder: &str,
        wanted: &SkillRequirement,
        asker: RootRequest,
    ) -> Result<String, RegistryError> {
        let (mut name, mut versions) = (folder.to_owned(), VersionRange::any());
        if let SkillRequirement::Version { range, registry, namespace } = wanted {
            let published = Name::new(namespace.as_deref(), folder)?;
            (name, versions) = (published.to_string(), range.clone());
            if let Some(registry) = registry {
                let place = registries.place(registry)?;
                registries.check_own(&published, place)?;
                self.settle(&published, place);
                self.bound.insert(published, place);
            }
            self.wanted.insert(name.clone(), wanted.clone());
        } else {
            self.local.insert(name.clone());
        }
        self.published.insert(folder.to_owned(), name.clone());
        let skill = SkillRef { name: name.clone(), range: versions };
        self.roots.push(Root::required(skill, asker));
        Ok(name)
    }

    /// Adds the installed copy of the lock, unless the requirements ask for another skill or
    /// another registry.
    fn hold(
        &mut self,
        registries: &mut Registries,
        installed: &str,
        locked: &LockedSkill,
    ) -> Result<(), RegistryError> {
        let (registry, name) = match locked.source.published(installed) {
            Some((registry, name)) => (Some(registry.to_owned()), name),
            None => (None, installed),
        };
        let is_other = |published: &String| published != name;
        if self.published.get(installed).is_some_and(is_other) {
            return Ok(());
        }
        let from_registry = self.wanted.contains_key(name);
        let parsed = Name::parse(name).ok();
        let bound = parsed.as_ref().and_then(|name| self.bound.get(name));
        let bound = bound.map(|place| registries.at(*place));
        // The registry that owns the name also decides about installed copies.
        let home = bound.or_else(|| registries.owner_of(parsed.as_ref()?));
        let moved = match &registry {
            Some(registry) => home.is_some_and(|home| home.address() != *registry),
            None => from_registry,
        };
        if moved {
            return Ok(());
        }
        match &registry {
            None => _ = self.local.insert(name.to_owned()),
            Some(registry) => self.stay(registries, name, registry)?,
        }
        let copy = InstalledCopy {
            version: locked.version.clone(),
            tier: locked.tier,
            needs: locked.dependencies.clone(),
            integrity: locked.integrity.clone(),
            registry,
            locked: true,
        };
        self.held.insert(name.to_owned(), vec![copy]);
        Ok(())
    }

    /// Binds a name and its namespace to the registry that the installed copy came from. No other
    /// registry can take the name over later: neither one that is configured to be asked earlier,
    /// nor one configured by a user who never configured this registry. Only the registry that owns
    /// the namespace can.
    fn stay(
        &mut self,
        registries: &mut Registries,
        name: &str,
        registry: &str,
    ) -> Result<(), RegistryError> {
        let Ok(name) = Name::parse(name) else { return Ok(()) };
        let place = registries.place_of_lock(registry)?;
        if registries.check_own(&name, place).is_ok() {
            self.settle(&name, place);
            self.bound.entry(name).or_insert(place);
        }
        Ok(())
    }

    /// Whether a requirement names the registry of a skill.
    pub(super) fn is_named(&self, name: &str) -> bool {
        matches!(self.wanted.get(name), Some(SkillRequirement::Version { registry: Some(_), .. }))
    }

    fn settle(&mut self, name: &Name, place: usize) {
        let Some(namespace) = name.namespace() else { return };
        let home = self.homes.entry(namespace.to_owned()).or_insert(Some(place));
        if *home != Some(place) {
            *home = None;
        }
    }

    fn take_arrived(&mut self, ready: &CheckedSkill) {
        let installed = &ready.summary.name;
        let (registry, name) = match ready.source.published(installed) {
            Some((registry, name)) => (Some(registry.to_owned()), name),
            None => (None, installed.as_str()),
        };
        if self.asked.contains_key(name) {
            return;
        }
        if registry.is_none() {
            self.local.insert(name.to_owned());
        }
        let copies = self.held.entry(name.to_owned()).or_default();
        if ready.why != FetchReason::IfNeeded {
            copies.clear();
        }
        if copies.iter().all(|copy| copy.version != ready.summary.version) {
            copies.push(InstalledCopy {
                version: ready.summary.version.clone(),
                tier: ready.tier,
                needs: ready.summary.needs.clone(),
                integrity: ready.tree.integrity(),
                registry,
                locked: false,
            });
        }
    }

    /// Returns all names that registries are asked about.
    pub(super) fn names(&self) -> BTreeSet<Name> {
        let roots = self.roots.iter().map(|root| root.skill.name.as_str());
        let held = self.held.keys().map(String::as_str);
        let copies = self.held.values().flatten();
        let needs = copies.flat_map(|copy| &copy.needs).map(|need| need.name.as_str());
        let all = roots.chain(held).chain(needs).filter(|name| !self.local.contains(*name));
        all.filter_map(|name| Name::parse(name).ok()).collect()
    }

    pub(super) fn copies(&self, name: &str) -> &[InstalledCopy] {
        self.held.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn copy(&self, name: &str, version: &Version) -> Option<&InstalledCopy> {
        self.copies(name).iter().find(|copy| copy.version == *version)
    }

    pub(super) fn held_names(&self) -> impl Iterator<Item = &String> {
        self.held.keys()
    }

    /// Whether the lock has a copy of the skill from the required source.
    pub(super) fn is_held(&self, name: &str) -> bool {
        self.copies(name).iter().any(|copy| copy.locked)
    }

    /// The locked versions, by published name.
    pub(super) fn locked(&self) -> BTreeMap<String, Version> {
        let locked = self.held.iter().filter_map(|(name, copies)| {
            let copy = copies.iter().find(|copy| copy.locked)?;
            Some((name.clone(), copy.version.clone()))
        });
        locked.collect()
    }

    /// Returns the skills whose locked version stays, whatever registries answer.
    pub(super) fn settled(&self, update: &Update) -> BTreeSet<String> {
        let freed = self.freed(update);
        let is_free = |name: &String| match &freed {
            Update::Nothing => false,
            Update::Skills(names) => names.contains(name),
            Update::All => true,
        };
        let held = self.held.keys().filter(|name| self.is_held(name));
        let kept = held.filter(|name| !is_free(name) && !self.asked.contains_key(*name));
        kept.cloned().collect()
    }

    /// Translates the folder names of an update to published names.
    pub(super) fn freed(&self, update: &Update) -> Update {
        let Update::Skills(folders) = update else { return update.clone() };
        let all = self.held.keys().filter(|name| folders.contains(folder(name)));
        Update::Skills(all.cloned().collect())
    }
}
