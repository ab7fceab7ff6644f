//! Collects the requested and the installed skills under their registry names.

use std::collections::{BTreeMap, BTreeSet};

use savoir_skill::version::{SkillRef, VersionRange};
use semver::Version;

use super::{GatherRequest, folder_name};
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
    copies_by_name: BTreeMap<String, Vec<InstalledCopy>>,
    /// The registry that a skill must come from.
    pub(super) required_registries: BTreeMap<Name, usize>,
    /// The registry that earlier skills of a namespace came from; `None` if there are several.
    pub(super) namespace_registries: BTreeMap<String, Option<usize>>,
    /// Names that no registry is asked about, because the skills come from other sources.
    pub(super) names_without_registry: BTreeSet<String>,
    /// The requirements of `savoir.toml` and of the request, by published name.
    pub(super) requirements: BTreeMap<String, SkillRequirement>,
    /// The requirements of the skills that the user requested by name, as `savoir.toml` will state
    /// them.
    pub(super) requested: BTreeMap<String, SkillRequirement>,
    /// The published names of the required skills, by folder name.
    published_names: BTreeMap<String, String>,
}

impl GatherInputs {
    pub(super) fn new(
        registries: &mut Registries,
        request: &GatherRequest<'_>,
    ) -> Result<Self, RegistryError> {
        let mut inputs = Self::default();
        let unbound = request.asked.iter().filter(|asked| asked.registry.is_none());
        let nowhere: Vec<(&Name, Option<RegistryError>)> =
            unbound.map(|asked| (&asked.name, registries.client_of(&asked.name).err())).collect();
        inputs.add_requirements(registries, request)?;
        for (name, locked) in &request.state.lock.skills {
            inputs.add_locked_copy(registries, name, locked)?;
        }
        for ready in request.arrived {
            inputs.add_fetched_copy(ready);
        }
        for (name, error) in nowhere {
            inputs.check_can_be_asked(registries, name, error)?;
        }
        Ok(inputs)
    }

    /// Checks that at least one registry can be asked about a name. Otherwise the resolver would
    /// call the name unknown although no registry was asked. `not_served` is the error if no configured
    /// registry serves the name.
    fn check_can_be_asked(
        &self,
        registries: &Registries,
        name: &Name,
        not_served: Option<RegistryError>,
    ) -> Result<(), RegistryError> {
        let home = name.namespace().and_then(|namespace| self.namespace_registries.get(namespace));
        if self.required_registries.contains_key(name) || registries.owner_of(name).is_some() {
            return Ok(());
        }
        match (home, not_served) {
            (Some(None), _) => Err(RegistryError::SplitNamespace(name.owner().to_owned())),
            (None, Some(not_served)) => Err(not_served),
            _ => Ok(()),
        }
    }

    /// Collects the requirements. A request by name replaces the requirement of `savoir.toml`.
    fn add_requirements(
        &mut self,
        registries: &mut Registries,
        request: &GatherRequest<'_>,
    ) -> Result<(), RegistryError> {
        for asked in &request.asked {
            let requirement = SkillRequirement::Version {
                range: asked.range.clone(),
                registry: asked.registry.clone(),
                namespace: asked.name.namespace().map(str::to_owned),
            };
            let folder = asked.name.last();
            let name =
                self.add_requirement(registries, folder, &requirement, RootRequest::CommandLine)?;
            self.requested.insert(name, requirement);
        }
        for ready in request.arrived {
            if let FetchReason::Requested(requirement) = &ready.why
                && !self.published_names.contains_key(&ready.summary.name)
            {
                self.add_requirement(
                    registries,
                    &ready.summary.name,
                    requirement,
                    RootRequest::CommandLine,
                )?;
            }
        }
        for (folder, requirement) in &request.state.manifest.skills {
            if !self.published_names.contains_key(folder) {
                self.add_requirement(registries, folder, requirement, RootRequest::Manifest)?;
            }
        }
        Ok(())
    }

    fn add_requirement(
        &mut self,
        registries: &mut Registries,
        folder: &str,
        requirement: &SkillRequirement,
        asker: RootRequest,
    ) -> Result<String, RegistryError> {
        let (mut name, mut versions) = (folder.to_owned(), VersionRange::any());
        if let SkillRequirement::Version { range, registry, namespace } = requirement {
            let published = Name::new(namespace.as_deref(), folder)?;
            (name, versions) = (published.to_string(), range.clone());
            if let Some(registry) = registry {
                let place = registries.place(registry)?;
                registries.check_namespace_owner(&published, place)?;
                self.bind_namespace(&published, place);
                self.required_registries.insert(published, place);
            }
            self.requirements.insert(name.clone(), requirement.clone());
        } else {
            self.names_without_registry.insert(name.clone());
        }
        self.published_names.insert(folder.to_owned(), name.clone());
        let skill = SkillRef { name: name.clone(), range: versions };
        self.roots.push(Root::required(skill, asker));
        Ok(name)
    }

    /// Adds the installed copy of the lock, unless the requirements ask for another skill or
    /// another registry.
    fn add_locked_copy(
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
        if self.published_names.get(installed).is_some_and(is_other) {
            return Ok(());
        }
        let from_registry = self.requirements.contains_key(name);
        let parsed = Name::parse(name).ok();
        let required = parsed.as_ref().and_then(|name| self.required_registries.get(name));
        let required = required.map(|place| registries.at(*place));
        // The registry that owns the name also decides about installed copies.
        let home = required.or_else(|| registries.owner_of(parsed.as_ref()?));
        let moved = match &registry {
            Some(registry) => home.is_some_and(|home| home.address() != *registry),
            None => from_registry,
        };
        if moved {
            return Ok(());
        }
        match &registry {
            None => _ = self.names_without_registry.insert(name.to_owned()),
            Some(registry) => self.bind_to_registry_of_lock(registries, name, registry)?,
        }
        let copy = InstalledCopy {
            version: locked.version.clone(),
            tier: locked.tier,
            needs: locked.dependencies.clone(),
            integrity: locked.integrity.clone(),
            registry,
            locked: true,
        };
        self.copies_by_name.insert(name.to_owned(), vec![copy]);
        Ok(())
    }

    /// Binds a name and its namespace to the registry that the installed copy came from. No other
    /// registry can take the name over later: neither one that is configured to be asked earlier,
    /// nor one configured by a user who never configured this registry. Only the registry that owns
    /// the namespace can.
    fn bind_to_registry_of_lock(
        &mut self,
        registries: &mut Registries,
        name: &str,
        registry: &str,
    ) -> Result<(), RegistryError> {
        let Ok(name) = Name::parse(name) else { return Ok(()) };
        let place = registries.position_of_locked(registry)?;
        if registries.check_namespace_owner(&name, place).is_ok() {
            self.bind_namespace(&name, place);
            self.required_registries.entry(name).or_insert(place);
        }
        Ok(())
    }

    /// Whether a requirement names the registry of a skill.
    pub(super) fn names_registry(&self, name: &str) -> bool {
        matches!(
            self.requirements.get(name),
            Some(SkillRequirement::Version { registry: Some(_), .. })
        )
    }

    fn bind_namespace(&mut self, name: &Name, place: usize) {
        let Some(namespace) = name.namespace() else { return };
        let home = self.namespace_registries.entry(namespace.to_owned()).or_insert(Some(place));
        if *home != Some(place) {
            *home = None;
        }
    }

    fn add_fetched_copy(&mut self, ready: &CheckedSkill) {
        let installed = &ready.summary.name;
        let (registry, name) = match ready.source.published(installed) {
            Some((registry, name)) => (Some(registry.to_owned()), name),
            None => (None, installed.as_str()),
        };
        if self.requested.contains_key(name) {
            return;
        }
        if registry.is_none() {
            self.names_without_registry.insert(name.to_owned());
        }
        let copies = self.copies_by_name.entry(name.to_owned()).or_default();
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
        let held = self.copies_by_name.keys().map(String::as_str);
        let copies = self.copies_by_name.values().flatten();
        let needs = copies.flat_map(|copy| &copy.needs).map(|need| need.name.as_str());
        let all = roots
            .chain(held)
            .chain(needs)
            .filter(|name| !self.names_without_registry.contains(*name));
        all.filter_map(|name| Name::parse(name).ok()).collect()
    }

    pub(super) fn copies(&self, name: &str) -> &[InstalledCopy] {
        self.copies_by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn find_copy(&self, name: &str, version: &Version) -> Option<&InstalledCopy> {
        self.copies(name).iter().find(|copy| copy.version == *version)
    }

    pub(super) fn names_with_copies(&self) -> impl Iterator<Item = &String> {
        self.copies_by_name.keys()
    }

    /// Whether the lock has a copy of the skill from the required source.
    pub(super) fn has_locked_copy(&self, name: &str) -> bool {
        self.copies(name).iter().any(|copy| copy.locked)
    }

    /// The locked versions, by published name.
    pub(super) fn locked_versions(&self) -> BTreeMap<String, Version> {
        let locked = self.copies_by_name.iter().filter_map(|(name, copies)| {
            let copy = copies.iter().find(|copy| copy.locked)?;
            Some((name.clone(), copy.version.clone()))
        });
        locked.collect()
    }

    /// Returns the skills whose locked version stays, whatever registries answer.
    pub(super) fn names_that_stay(&self, update: &Update) -> BTreeSet<String> {
        let freed = self.with_published_names(update);
        let is_free = |name: &String| match &freed {
            Update::Nothing => false,
            Update::Skills(names) => names.contains(name),
            Update::All => true,
        };
        let held = self.copies_by_name.keys().filter(|name| self.has_locked_copy(name));
        let kept = held.filter(|name| !is_free(name) && !self.requested.contains_key(*name));
        kept.cloned().collect()
    }

    /// Translates the folder names of an update to published names.
    pub(super) fn with_published_names(&self, update: &Update) -> Update {
        let Update::Skills(folders) = update else { return update.clone() };
        let all = self.copies_by_name.keys().filter(|name| folders.contains(folder_name(name)));
        Update::Skills(all.cloned().collect())
    }
}
