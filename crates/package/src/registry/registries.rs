//! Manages an ordered list of registries, and decides which of them owns a name.

mod lookup;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Client, KnownPackages, Name, Network, PlainHttp, RegistryError, Release, Settings, Token,
    client::canonical,
    wire::{Attestations, IndexLine},
};
use crate::{Tree, lock::LockedSkill, manifest, source::http::Http, trust::TrustStore};

pub(super) use lookup::Lookup;

/// A configured registry.
#[derive(Clone, Debug)]
pub struct RegistryEntry {
    /// The name in `[registries]`; `None` if only the address is known.
    pub name: Option<String>,
    pub address: String,
    /// The namespaces that belong only to this registry.
    pub namespaces: Vec<String>,
    /// Whether to ask it about namespaces that belong to no registry, in addition to the first
    /// registry that owns none.
    pub fallback: bool,
    /// Whether it was named for one skill only, so that it is not asked about others.
    pub for_one_skill: bool,
    /// The token that authenticates the user.
    pub token: Option<Token>,
    /// Whether it may be contacted over unencrypted HTTP.
    pub plain: PlainHttp,
}

impl RegistryEntry {
    /// A registry of which only the address is known.
    pub fn at(address: &str) -> Self {
        let (name, namespaces, token, plain) = (None, Vec::new(), None, PlainHttp::ThisMachine);
        let (fallback, for_one_skill) = (false, false);
        Self {
            name,
            address: address.to_owned(),
            namespaces,
            fallback,
            for_one_skill,
            token,
            plain,
        }
    }
}

impl From<&manifest::Registry> for RegistryEntry {
    fn from(registry: &manifest::Registry) -> Self {
        let manifest::Registry { name, url, namespaces, fallback, plain } = registry.clone();
        Self { name: Some(name), namespaces, fallback, plain, ..Self::at(&url) }
    }
}

/// An ordered list of registries.
///
/// A name is looked up only in the registry to which its namespace belongs. Other names are looked
/// up in the first registry that owns no namespaces, and then in those that are set as a fallback,
/// in order; the first that knows a name has it. This prevents dependency confusion: another
/// registry cannot offer a skill under a name that the user's own registry does not have, or not
/// yet.
#[derive(Clone, Debug)]
pub struct Registries {
    settings: Settings,
    http: Arc<Http>,
    list: Vec<Registry>,
    tokens: BTreeMap<String, Token>,
    /// The addresses that may be contacted over unencrypted HTTP, in addition to this machine.
    plain: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Registry {
    client: Client,
    names: Vec<String>,
    namespaces: BTreeSet<String>,
    /// Whether it can be the default registry for namespaces that belong to no registry.
    can_be_default: bool,
    /// Whether it is always asked about such namespaces.
    is_fallback: bool,
    /// The position among the configured registries; `None` if it is not configured.
    configured_position: Option<usize>,
    /// Whether the user or `savoir.toml` named it; `false` if only a lock did.
    is_named: bool,
}

impl Registries {
    /// Creates the list in order of priority. Duplicate entries are merged at the first position.
    pub fn new(settings: Settings, entries: Vec<RegistryEntry>) -> Result<Self, RegistryError> {
        let (http, list, tokens) = (Arc::default(), Vec::new(), BTreeMap::new());
        let mut all = Self { settings, http, list, tokens, plain: BTreeSet::new() };
        for entry in entries {
            all.add(entry)?;
        }
        Ok(all)
    }

    /// Adds a registry at the end, unless it is in the list; returns its position.
    fn add(&mut self, entry: RegistryEntry) -> Result<usize, RegistryError> {
        let RegistryEntry { name, address, namespaces, fallback, for_one_skill, token, plain } =
            entry;
        let address = canonical(&address)?;
        let at = self.position(&address);
        for namespace in &namespaces {
            let owner = self.owner_position(namespace);
            if let Some(owner) = owner.filter(|owner| Some(*owner) != at) {
                let (namespace, first) = (namespace.clone(), self.list[owner].client.address());
                return Err(RegistryError::TwoOwners { namespace, first, second: address });
            }
        }
        let at = at.unwrap_or(self.list.len());
        if plain == PlainHttp::Anyone && self.plain.insert(address.clone()) {
            self.recreate_client(&address)?;
        }
        if at == self.list.len() {
            let client = self.new_client(&address)?;
            let (names, namespaces) = (Vec::new(), BTreeSet::new());
            self.list.push(Registry {
                client,
                names,
                namespaces,
                can_be_default: false,
                is_fallback: false,
                configured_position: None,
                is_named: true,
            });
        }
        if let Some(token) = token {
            self.log_in(&address, token)?;
        }
        let next = self.list.iter().filter(|one| one.configured_position.is_some()).count();
        let known = &mut self.list[at];
        known.is_named = true;
        if !for_one_skill {
            known.configured_position.get_or_insert(next);
        }
        known.names.extend(name);
        known.can_be_default |= namespaces.is_empty() && !for_one_skill;
        known.is_fallback |= fallback;
        known.namespaces.extend(namespaces);
        Ok(at)
    }

    /// Sets the token for a registry, wherever its address is configured: here, in `savoir.toml`,
    /// or in a lock.
    pub fn log_in(&mut self, address: &str, token: Token) -> Result<(), RegistryError> {
        let address = canonical(address)?;
        self.tokens.insert(address.clone(), token);
        self.recreate_client(&address)
    }

    /// Recreates the client of a registry after its settings changed.
    fn recreate_client(&mut self, address: &str) -> Result<(), RegistryError> {
        let client = self.new_client(address)?;
        for known in self.list.iter_mut().filter(|known| known.client.address() == address) {
            known.client = client.clone();
        }
        Ok(())
    }

    fn new_client(&self, address: &str) -> Result<Client, RegistryError> {
        let token = self.tokens.get(address).cloned();
        let mut settings = self.settings.clone();
        if self.plain.contains(address) {
            settings.plain = PlainHttp::Anyone;
        }
        Client::with(settings, self.http.clone(), address, token)
    }

    /// Whether no registry is configured, and there is no token for any.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.tokens.is_empty()
    }

    /// Returns the registry that has a skill: the only one that may be asked about it, else the
    /// first that knows it, else the first.
    pub async fn registry_of(&self, name: &Name) -> Result<Client, RegistryError> {
        let first = self.client_of(name)?;
        if self.registries_to_ask(name).len() == 1 {
            return Ok(first.clone());
        }
        Ok(self.find(name).await?.unwrap_or_else(|| first.clone()))
    }

    /// Returns the first registry that knows a skill, of those that may be asked about it.
    pub async fn find(&self, name: &Name) -> Result<Option<Client>, RegistryError> {
        for at in self.registries_to_ask(name) {
            if self.at(at).index(name).await?.is_some() {
                return Ok(Some(self.at(at).clone()));
            }
        }
        Ok(None)
    }

    /// Whether registries may be contacted.
    pub(super) fn network(&self) -> Network {
        self.settings.network
    }

    /// All registries in order.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.list.iter().map(|registry| &registry.client)
    }

    /// All registries in order, with their names in `[registries]`.
    pub fn named_clients(&self) -> impl Iterator<Item = (Option<&str>, &Client)> {
        self.list.iter().map(|known| (known.names.first().map(String::as_str), &known.client))
    }

    /// Returns the registry in which a name is published and looked up first.
    pub fn client_of(&self, name: &Name) -> Result<&Client, RegistryError> {
        let at = self.registries_to_ask(name).first().copied();
        let not_served = || {
            if self.list.is_empty() {
                return RegistryError::None(name.to_string());
            }
            RegistryError::NobodyAsked(name.clone())
        };
        Ok(self.at(at.ok_or_else(not_served)?))
    }

    /// Returns the registry to which the namespace of a name belongs, if one is configured.
    pub fn owner_of(&self, name: &Name) -> Option<&Client> {
        self.owner_position(name.owner()).map(|at| self.at(at))
    }

    /// Returns the namespaces of a registry that only serves these.
    pub fn only_namespaces(&self, client: &Client) -> Option<&BTreeSet<String>> {
        let known = self.position(&client.address()).map(|at| &self.list[at])?;
        let is_bounded =
            !known.namespaces.is_empty() && !known.can_be_default && !known.is_fallback;
        is_bounded.then_some(&known.namespaces)
    }

    /// Returns the registry with a name in `[registries]`, or with an address.
    pub fn named(&self, text: &str) -> Result<Client, RegistryError> {
        let mut all = self.clone();
        let at = all.place(text)?;
        Ok(all.list.swap_remove(at).client)
    }

    /// Like [`Self::named`], but returns a position; adds an address that is not configured.
    pub(super) fn place(&mut self, text: &str) -> Result<usize, RegistryError> {
        let is_called = |known: &Registry| known.names.iter().any(|name| name == text);
        if let Some(at) = self.list.iter().position(is_called) {
            return Ok(at);
        }
        if !text.contains("://") {
            let known = self.list.iter().flat_map(|known| known.names.clone()).collect();
            return Err(RegistryError::NoSuchRegistry { name: text.to_owned(), known });
        }
        let address = canonical(text)?;
        if let Some(at) = self.position(&address) {
            return Ok(at);
        }
        self.add(RegistryEntry { for_one_skill: true, ..RegistryEntry::at(text) })
    }

    /// Returns the position of a registry that a lock names. Other skills are not looked up in it.
    pub(super) fn position_of_locked(&mut self, address: &str) -> Result<usize, RegistryError> {
        if let Some(at) = self.position(&canonical(address)?) {
            return Ok(at);
        }
        let at = self.place(address)?;
        self.list[at].is_named = false;
        Ok(at)
    }

    /// Returns the position of the registry with a canonical address.
    pub(super) fn position(&self, address: &str) -> Option<usize> {
        self.list.iter().position(|known| known.client.address() == address)
    }

    pub(super) fn at(&self, place: usize) -> &Client {
        &self.list[place].client
    }

    /// Returns the position of the registry that owns a namespace.
    fn owner_position(&self, namespace: &str) -> Option<usize> {
        self.list.iter().position(|known| known.namespaces.contains(namespace))
    }

    /// Checks that the namespace of a skill does not belong to another registry.
    pub(super) fn check_namespace_owner(
        &self,
        name: &Name,
        place: usize,
    ) -> Result<(), RegistryError> {
        match self.owner_position(name.owner()) {
            Some(owner) if owner != place => Err(RegistryError::NotItsOwn {
                name: name.clone(),
                owner: self.at(owner).address(),
                other: self.at(place).address(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the registries in which a name is looked up, in order.
    fn registries_to_ask(&self, name: &Name) -> Vec<usize> {
        if let Some(owner) = self.owner_position(name.owner()) {
            return vec![owner];
        }
        let asked = self.default_registries();
        if !asked.is_empty() {
            return asked;
        }
        // No registry is configured for the name; dependencies may be in a registry that the user
        // named for another skill.
        let is_wanted = |one: &Registry| one.namespaces.is_empty() && one.is_named;
        self.list.iter().position(is_wanted).into_iter().collect()
    }

    /// Returns the registries for namespaces that belong to no registry, in order.
    fn default_registries(&self) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.list.len()).collect();
        positions.retain(|at| self.list[*at].configured_position.is_some());
        positions.sort_by_key(|at| self.list[*at].configured_position);
        let open = positions.iter().copied().find(|at| self.list[*at].can_be_default);
        positions.retain(|at| Some(*at) == open || self.list[*at].is_fallback);
        positions
    }

    /// A hint how to use a registry that is not asked about namespaces without an owner.
    pub const UNUSED_REGISTRY_HINT: &str =
        "give --registry, or write its name into the `namespaces` of that registry";

    /// Returns the registries that could be asked about namespaces without an owner, but are not.
    pub fn unused(&self) -> impl Iterator<Item = String> {
        let asked = self.default_registries();
        let open = (0..self.list.len()).filter(|at| self.list[*at].can_be_default);
        open.filter(move |at| !asked.contains(at)).map(|at| self.at(at).address())
    }

    /// Looks up skills with all dependencies of any version, each in the registry that it belongs
    /// to.
    pub async fn prefetch(&self, names: &[Name]) -> Result<KnownPackages, RegistryError> {
        let (names, nothing) = (names.iter().cloned().collect(), BTreeSet::new());
        let lookup = Lookup {
            names,
            required_registries: &BTreeMap::new(),
            namespace_registries: &BTreeMap::new(),
            names_without_registry: &nothing,
            available: &nothing,
            unchanged: &nothing,
        };
        self.look_up(lookup).await
    }

    /// Returns the registry of a locked skill and its name there; fails if the name belongs to
    /// another registry.
    pub(super) fn check_locked(
        &self,
        installed: &str,
        locked: &LockedSkill,
    ) -> Result<(Client, Name), RegistryError> {
        let published = locked.source.published(installed);
        let (address, name) =
            published.ok_or_else(|| RegistryError::NotFromARegistry(installed.to_owned()))?;
        let (client, name) = (self.named(address)?, Name::parse(name)?);
        match self.owner_of(&name).filter(|one| one.address() != client.address()) {
            Some(owner) => {
                let (owner, other) = (owner.address(), client.address());
                Err(RegistryError::NotItsOwn { name, owner, other })
            }
            None => Ok((client, name)),
        }
    }

    /// Fetches a locked skill again from its registry, and compares it with the lock. `installed`
    /// is the name of its folder.
    pub async fn fetch_locked(
        &self,
        installed: &str,
        locked: &LockedSkill,
    ) -> Result<Tree, RegistryError> {
        let (client, name) = self.check_locked(installed, locked)?;
        let package = client.index(&name).await?;
        let unknown = || RegistryError::Unknown { name: name.clone(), registry: client.address() };
        let package = package.ok_or_else(unknown)?;
        if let Some(gone) = package.find_taken_down(&locked.version) {
            return Err(RegistryError::taken_down(gone, client.address()));
        }
        let line = package.iter().find(|line| line.version == locked.version);
        let line = line
            .ok_or_else(|| RegistryError::no_version(&name, &locked.version, client.address()))?;
        check_integrity(&client, line, &locked.integrity)?;
        client.download_signed(line).await
    }

    /// The signed evaluations that the registry of a locked skill has of its version, unchecked.
    pub async fn fetch_attestations(
        &self,
        installed: &str,
        locked: &LockedSkill,
        trust: &TrustStore,
    ) -> Result<Attestations, RegistryError> {
        let (client, name) = self.check_locked(installed, locked)?;
        let package = client.index(&name).await?;
        let lines = package.as_ref().into_iter().flat_map(|package| package.iter());
        match lines.into_iter().find(|line| line.version == locked.version) {
            Some(line) => client.attestations_of(line, trust).await,
            None => Ok(Attestations::default()),
        }
    }
}

/// Checks that a version in the registry has the integrity of the lock.
pub(super) fn check_integrity(
    client: &Client,
    line: &IndexLine,
    locked: &str,
) -> Result<(), RegistryError> {
    if line.integrity == locked {
        return Ok(());
    }
    Err(RegistryError::Changed {
        of: Box::new(Release::new(&line.name, &line.version, client.address())),
        locked: locked.to_owned(),
        found: line.integrity.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, address: &str, namespaces: &[&str], fallback: bool) -> RegistryEntry {
        let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
        RegistryEntry {
            name: Some(name.into()),
            namespaces,
            fallback,
            ..RegistryEntry::at(address)
        }
    }

    fn registries(entries: Vec<RegistryEntry>) -> Result<Registries, RegistryError> {
        Registries::new(Settings::new("unused".into()), entries)
    }

    fn registries_to_ask(registries: &Registries, name: &str) -> Vec<String> {
        let route = registries.registries_to_ask(&Name::parse(name).unwrap());
        route.into_iter().map(|at| registries.at(at).address()).collect()
    }

    #[test]
    fn namespace_routes_to_its_registry() {
        let all = registries(vec![
            entry("a", "https://a", &[], false),
            entry("b", "https://b", &["acme", "notes"], false),
            entry("c", "https://c", &[], true),
        ])
        .unwrap();
        assert_eq!(registries_to_ask(&all, "acme/pdf"), ["https://b"]);
        assert_eq!(
            registries_to_ask(&all, "notes"),
            ["https://b"],
            "a name is a namespace of its own"
        );
        assert_eq!(registries_to_ask(&all, "other/notes"), ["https://a", "https://c"]);
        assert_eq!(registries_to_ask(&all, "pdf"), ["https://a", "https://c"]);
        assert_eq!(all.client_of(&Name::parse("acme/x").unwrap()).unwrap().address(), "https://b");
        let none = registries(Vec::new()).unwrap();
        let error = none.client_of(&Name::parse("pdf").unwrap()).unwrap_err();
        assert_eq!(error.code(), "no_registry");
    }

    #[test]
    fn one_default_registry_gets_unowned_names() {
        let set = |fallbacks: [bool; 3]| {
            registries(vec![
                entry("work", "https://work", &["acme"], fallbacks[0]),
                entry("public", "https://public", &[], fallbacks[1]),
                entry("other", "https://other", &[], fallbacks[2]),
            ])
            .unwrap()
        };
        let strict = set([false, false, false]);
        assert_eq!(registries_to_ask(&strict, "world/pubthing"), ["https://public"]);
        assert_eq!(registries_to_ask(&strict, "acme/pdf"), ["https://work"]);
        assert_eq!(strict.unused().collect::<Vec<_>>(), ["https://other"]);
        let wide = set([false, false, true]);
        assert_eq!(registries_to_ask(&wide, "world/pubthing"), ["https://public", "https://other"]);
        assert_eq!(wide.unused().count(), 0);
        assert_eq!(
            registries_to_ask(&set([true, false, false]), "pdf"),
            ["https://work", "https://public"]
        );
        assert_eq!(registries_to_ask(&set([false, true, false]), "pdf"), ["https://public"]);
    }

    #[test]
    fn registry_named_for_one_skill_keeps_position() {
        let named = RegistryEntry { for_one_skill: true, ..RegistryEntry::at("https://other") };
        let all = registries(vec![
            named,
            entry("public", "https://public", &[], false),
            entry("other", "https://other", &[], false),
        ])
        .unwrap();
        assert_eq!(all.clients().next().unwrap().address(), "https://other");
        assert_eq!(registries_to_ask(&all, "inner"), ["https://public"]);
        assert_eq!(all.unused().collect::<Vec<_>>(), ["https://other"]);
        // A registry that only a lock names is not asked about other skills, even if there is no
        // other.
        let mut work = registries(vec![entry("work", "https://work", &["acme"], false)]).unwrap();
        work.position_of_locked("https://b").unwrap();
        assert!(registries_to_ask(&work, "helper").is_empty());
    }

    #[test]
    fn namespaced_registry_is_asked_about_others_only_as_fallback() {
        let set =
            |fallback| registries(vec![entry("a", "https://a", &["acme"], fallback)]).unwrap();
        let name = Name::parse("world/x").unwrap();
        let error = set(false).client_of(&name).unwrap_err();
        assert_eq!(error.code(), "no_registry");
        for words in ["`world/x`", "`namespaces`", "`fallback = true`", "--registry"] {
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
        assert_eq!(registries_to_ask(&set(true), "world/x"), ["https://a"]);
        // A registry that the user named for one skill is asked about others only if there is no
        // other.
        let mut all = set(true);
        all.place("https://b").unwrap();
        assert_eq!(registries_to_ask(&all, "world/x"), ["https://a"]);
        let mut all = set(false);
        all.place("https://a/").unwrap();
        assert!(registries_to_ask(&all, "world/x").is_empty());
        all.place("https://b").unwrap();
        assert_eq!(registries_to_ask(&all, "world/x"), ["https://b"]);
    }

    #[test]
    fn duplicate_registries_are_merged() {
        let twice = registries(vec![
            entry("a", "https://a/", &["x"], false),
            entry("b", "https://b", &[], false),
            entry("c", "https://a", &["x", "y"], true),
        ])
        .unwrap();
        assert_eq!(twice.clients().count(), 2);
        assert_eq!(registries_to_ask(&twice, "y/z"), ["https://a"]);
        assert_eq!(twice.named("c").unwrap().address(), "https://a");
        let error = registries(vec![
            entry("a", "https://a", &["x"], false),
            entry("b", "https://b", &["x"], false),
        ]);
        assert_eq!(error.unwrap_err().code(), "namespace_conflict");
    }

    #[test]
    fn plain_http_needs_permission() {
        let plain =
            RegistryEntry { plain: PlainHttp::Anyone, ..entry("b", "http://b/", &[], false) };
        let first = entry("a", "http://b", &[], false);
        let all = registries(vec![first, entry("c", "http://c", &[], false), plain]).unwrap();
        let plain = |text: &str| all.named(text).unwrap().settings().plain;
        assert_eq!((plain("a"), plain("http://b/")), (PlainHttp::Anyone, PlainHttp::Anyone));
        assert_eq!(
            (plain("c"), plain("http://d")),
            (PlainHttp::ThisMachine, PlainHttp::ThisMachine)
        );
        let titles: Vec<_> = all.named_clients().map(|(name, _)| name.unwrap()).collect();
        assert_eq!(titles, ["a", "c"]);
    }

    #[test]
    fn registries_by_name_and_by_address() {
        let all = registries(vec![entry("a", "https://a", &["acme"], false)]).unwrap();
        assert_eq!(all.named("a").unwrap().address(), "https://a");
        assert_eq!(all.named("https://other/x/").unwrap().address(), "https://other/x");
        let error = all.named("b").unwrap_err();
        assert_eq!(error.code(), "unknown_registry");
        assert_eq!(error.to_string(), "there is no registry `b`; there are `a`");
        let mut all = all;
        let place = all.place("https://other").unwrap();
        let name = Name::parse("acme/pdf").unwrap();
        assert_eq!(all.check_namespace_owner(&name, place).unwrap_err().code(), "wrong_registry");
        assert!(all.check_namespace_owner(&name, 0).is_ok());
        assert!(all.check_namespace_owner(&Name::parse("pdf").unwrap(), place).is_ok());
    }
}
