//! Implements the client of one registry.

mod accounts;
mod api;
mod artifact;
mod closure;
mod form;
mod team;

use std::{collections::BTreeSet, fmt, path::Path, sync::Arc};

use savoir_skill::version::VersionRange;
use semver::Version;
use tokio::sync::OnceCell;
use url::Url;

use super::{
    Name, Network, RegistryError, Settings, Token,
    cache::{Cache, Cached},
    error::printable,
    http::{RegistryConnection, RegistryRequest, RegistryResponse, ResponseBody},
    wire::{Config, INDEX_VERSION, IndexLine, Lines, ParsedLine, TakenDownLine},
};
use crate::{
    limits::{MAX_PACKAGE_INDEX_BYTES, MAX_VERSIONS},
    lock::LockedSkill,
    source::{
        Progress,
        http::{Http, Reach, shown},
    },
};

pub use api::{Listing, Sort, YankChange};
pub(super) use artifact::tree;
pub use closure::Closure;
pub(super) use closure::needs;

/// A skill in a registry: its versions, each with its dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    lines: Arc<[IndexLine]>,
    taken_down: Arc<[TakenDownLine]>,
}

impl Package {
    fn new(lines: Vec<IndexLine>, gone: Vec<TakenDownLine>) -> Self {
        Self { lines: lines.into(), taken_down: gone.into() }
    }

    /// Returns the record of a version that was taken down; `None` if it was not.
    pub fn find_taken_down(&self, version: &Version) -> Option<&TakenDownLine> {
        self.taken_down.iter().find(|line| line.version == *version)
    }

    /// Returns the record of the highest version in a range that was taken down.
    pub fn find_taken_down_in(&self, range: &VersionRange) -> Option<&TakenDownLine> {
        let gone = self.taken_down.iter().filter(|line| range.matches(&line.version));
        gone.max_by_key(|line| &line.version)
    }

    /// Returns the version that the registry assigns to the next text without frontmatter: a
    /// registry counts them up, and never reuses a number.
    pub fn next_assigned_version(&self) -> Version {
        let versions = self.iter().map(|line| &line.version);
        let all = versions.chain(self.taken_down.iter().map(|line| &line.version));
        let last = all.map(|version| version.patch).max();
        Version::new(0, 0, last.map_or(1, |last| last.saturating_add(1)))
    }

    /// The records of all versions that were taken down.
    pub(super) fn taken_down_versions(&self) -> &[TakenDownLine] {
        &self.taken_down
    }
}

impl std::ops::Deref for Package {
    type Target = [IndexLine];

    fn deref(&self) -> &[IndexLine] {
        &self.lines
    }
}

/// A client of one registry. Clones share their connections and caches.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    connection: RegistryConnection,
    cache: Cache,
    config: OnceCell<KnownConfig>,
}

/// The configuration of a registry, and the hosts that it may refer to.
#[derive(Clone)]
struct KnownConfig {
    config: Config,
    reach: Reach,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.address()).finish()
    }
}

impl Client {
    /// Creates a client for an address, such as `https://skills.example.com/registry`.
    pub fn new(
        settings: Settings,
        address: &str,
        token: Option<Token>,
    ) -> Result<Self, RegistryError> {
        Self::with(settings, Arc::default(), address, token)
    }

    /// Like [`Self::new`], with shared connections.
    pub(super) fn with(
        settings: Settings,
        http: Arc<Http>,
        address: &str,
        token: Option<Token>,
    ) -> Result<Self, RegistryError> {
        let base = parse_address(address)?;
        let cache = Cache::new(&settings.cache, &base);
        let connection = RegistryConnection { settings, http, base, token };
        Ok(Self(Arc::new(Inner { connection, cache, config: OnceCell::new() })))
    }

    /// The address of the registry, as a lock writes it.
    pub fn address(&self) -> String {
        shown(&self.0.connection.base).trim_end_matches('/').to_owned()
    }

    /// Returns a client for the same registry with another token.
    pub fn with_token(&self, token: Token) -> Result<Self, RegistryError> {
        let RegistryConnection { settings, http, base, .. } = &self.0.connection;
        Self::with(settings.clone(), http.clone(), base.as_str(), Some(token))
    }

    /// Returns a client for the same registry that only uses the cache.
    pub(super) fn offline(&self) -> Result<Self, RegistryError> {
        let RegistryConnection { settings, http, base, token } = &self.0.connection;
        let settings = Settings { network: Network::Offline, ..settings.clone() };
        Self::with(settings, http.clone(), base.as_str(), token.clone())
    }

    /// Whether requests are authenticated.
    pub fn has_token(&self) -> bool {
        self.0.connection.token.is_some()
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.connection.settings
    }

    /// Returns the address of a path below the registry.
    fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let url = self.0.connection.base.join(path);
        url.map_err(|_| malformed(&self.address(), format!("`{path}` is not part of an address")))
    }

    async fn ask(&self, ask: RegistryRequest) -> Result<RegistryResponse, RegistryError> {
        match self.0.connection.ask(ask).await {
            // Registries send an error code with every refusal. Without one, the server may not be
            // a registry.
            Err(RegistryError::Refused { code: None, status: 400..500, .. })
                if self.has_index("").await == Some(false) =>
            {
                Err(self.not_a_registry().await)
            }
            answer => answer,
        }
    }

    /// Whether a registry index exists at a path below this address; `None` if that cannot be
    /// determined.
    async fn has_index(&self, path: &str) -> Option<bool> {
        let url = self.url(&format!("{path}index/v1/config.json")).ok()?;
        let address = shown(&url);
        match self.0.connection.ask(RegistryRequest::get(url).for_lookup()).await {
            Ok(RegistryResponse::Body(given)) => {
                Some(json::<Config>(&address, &given.bytes).is_ok())
            }
            Ok(RegistryResponse::Missing(_)) => Some(false),
            // A server that refuses with an error code is a registry, for example one that requires
            // a token.
            Err(RegistryError::Refused { code: Some(_), .. }) => Some(true),
            Ok(RegistryResponse::Same(_)) | Err(_) => None,
        }
    }

    /// Returns the error for an address without a registry, with the right address if there is a
    /// registry at `/registry` below it.
    async fn not_a_registry(&self) -> RegistryError {
        let address = self.address();
        let below = self.has_index("registry/").await == Some(true);
        let instead = below.then(|| format!("{address}/registry"));
        RegistryError::NotARegistry { address, instead }
    }

    /// Returns the configuration of the registry.
    pub async fn config(&self) -> Result<Config, RegistryError> {
        Ok(self.known_config().await?.config.clone())
    }

    async fn known_config(&self) -> Result<&KnownConfig, RegistryError> {
        self.0.config.get_or_try_init(|| self.load_config()).await
    }

    async fn load_config(&self) -> Result<KnownConfig, RegistryError> {
        let url = self.url("index/v1/config.json")?;
        let address = shown(&url);
        let cached = self.0.cache.config();
        if self.settings().is_offline() {
            let text = cached.and_then(|cached| cached.text);
            let text = text.ok_or_else(|| RegistryError::Offline(format!("`{address}`")))?;
            return Ok(KnownConfig {
                config: parse_config(&address, &text)?,
                reach: Reach::Public,
            });
        }
        let etag = cached.as_ref().and_then(|cached| cached.etag.clone());
        let (text, reach) =
            match self.ask(RegistryRequest::get(url).if_changed_from(etag).for_lookup()).await? {
                RegistryResponse::Missing(_) => return Err(self.not_a_registry().await),
                RegistryResponse::Same(reach) => (cached.and_then(|cached| cached.text), reach),
                RegistryResponse::Body(ResponseBody { bytes, etag, reach }) => {
                    let text = text(&address, bytes)?;
                    self.0.cache.store_config(&Cached { etag, text: Some(text.clone()) });
                    (Some(text), reach)
                }
            };
        Ok(KnownConfig { config: parse_config(&address, &text.unwrap_or_default())?, reach })
    }

    /// Returns the versions of a skill; `None` if the registry does not know it.
    pub async fn index(&self, name: &Name) -> Result<Option<Package>, RegistryError> {
        Ok(self.index_and_text(name).await?.map(|(package, _)| package))
    }

    /// Returns the versions of a skill, and the text of the index file.
    pub(super) async fn index_and_text(
        &self,
        name: &Name,
    ) -> Result<Option<(Package, String)>, RegistryError> {
        let cached = self.0.cache.index(name);
        if self.settings().is_offline() {
            let what = || RegistryError::Offline(format!("`{name}` of `{}`", self.address()));
            return self.parse_index(name, cached.ok_or_else(what)?.text);
        }
        let url = self.index_url(name)?;
        let address = shown(&url);
        let etag = cached.as_ref().and_then(|cached| cached.etag.clone());
        let ask = RegistryRequest::get(url)
            .if_changed_from(etag)
            .at_most(MAX_PACKAGE_INDEX_BYTES)
            .for_lookup();
        let found = match self.ask(ask).await? {
            RegistryResponse::Same(_) => {
                return self.parse_index(name, cached.and_then(|cached| cached.text));
            }
            RegistryResponse::Missing(_) => {
                // Checks the configuration first, so that a mistyped address is reported as such,
                // and not as an unknown name.
                self.known_config().await?;
                Cached { etag: None, text: None }
            }
            RegistryResponse::Body(given) => {
                Cached { etag: given.etag, text: Some(text(&address, given.bytes)?) }
            }
        };
        let parsed = self.parse_index(name, found.text.clone())?;
        self.0.cache.store_index(name, &found);
        Ok(parsed)
    }

    fn parse_index(
        &self,
        name: &Name,
        text: Option<String>,
    ) -> Result<Option<(Package, String)>, RegistryError> {
        text.map(|text| Ok((self.read_index(name, &text)?, text))).transpose()
    }

    fn index_url(&self, name: &Name) -> Result<Url, RegistryError> {
        self.url(&format!("index/v1/{}", name.index_path()))
    }

    fn read_index(&self, name: &Name, text: &str) -> Result<Package, RegistryError> {
        let address = shown(&self.index_url(name)?);
        let (mut lines, mut gone) = (Vec::new(), Vec::new());
        for (at, reading) in Lines::of(text) {
            let wrong = |why: String| malformed(&address, format!("line {at}: {why}"));
            match reading {
                ParsedLine::Version(line, _) if line.name == *name => lines.push(*line),
                ParsedLine::Gone(line, _) if line.name == *name => gone.push(line),
                ParsedLine::Version(line, _) => {
                    return Err(wrong(format!("it is of `{}`", line.name)));
                }
                ParsedLine::Gone(line, _) => {
                    return Err(wrong(format!("it is of `{}`", line.name)));
                }
                ParsedLine::Unusable(why) => self.report_skipped(&name.to_string(), why),
                ParsedLine::Broken(why) => return Err(wrong(why)),
            }
        }
        check_versions(&address, &lines, &gone)?;
        Ok(Package::new(lines, gone))
    }

    fn report_skipped(&self, name: &str, why: String) {
        self.settings().report_progress(Progress::Skipped { name: name.to_owned(), why });
    }
}

/// Checks that each version is listed once, and that there are not too many.
fn check_versions(
    address: &str,
    lines: &[IndexLine],
    gone: &[TakenDownLine],
) -> Result<(), RegistryError> {
    if lines.len() + gone.len() > MAX_VERSIONS {
        return Err(malformed(address, format!("it has more than {MAX_VERSIONS} versions")));
    }
    let mut seen = BTreeSet::new();
    let versions = lines.iter().map(|line| &line.version);
    let mut all = versions.chain(gone.iter().map(|line| &line.version));
    match all.find(|version| !seen.insert(*version)) {
        Some(version) => Err(malformed(address, format!("{version} is there twice"))),
        None => Ok(()),
    }
}

fn malformed(address: &str, why: impl Into<String>) -> RegistryError {
    RegistryError::Malformed { address: address.to_owned(), why: why.into() }
}

fn text(address: &str, bytes: Vec<u8>) -> Result<String, RegistryError> {
    String::from_utf8(bytes).map_err(|_| malformed(address, "it is not UTF-8"))
}

fn parse_config(address: &str, text: &str) -> Result<Config, RegistryError> {
    let config: Config = json(address, text.as_bytes())?;
    if config.version != INDEX_VERSION {
        let address = address.to_owned();
        return Err(RegistryError::Format { address, version: config.version });
    }
    Ok(config)
}

fn json<T: serde::de::DeserializeOwned>(address: &str, bytes: &[u8]) -> Result<T, RegistryError> {
    serde_json::from_slice(bytes).map_err(|error| malformed(address, printable(&error.to_string())))
}

/// Parses the address of a registry, and adds a trailing slash so that paths can be joined to it.
fn parse_address(text: &str) -> Result<Url, RegistryError> {
    let wrong = |why| RegistryError::Address { text: text.to_owned(), why };
    let mut url = Url::parse(text).map_err(|_| wrong("it does not start with https://"))?;
    if !matches!(url.scheme(), "https" | "http") || !url.has_host() {
        return Err(wrong("only https is supported"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it contains a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it contains `?` or `#`"));
    }
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// Returns the cached index line of a locked skill. `installed` is the name of its folder.
pub(crate) fn cached_index_line(
    cache: &Path,
    installed: &str,
    locked: &LockedSkill,
) -> Option<IndexLine> {
    let (address, name) = locked.source.published(installed)?;
    let (base, name) = (parse_address(address).ok()?, Name::parse(name).ok()?);
    let text = Cache::new(cache, &base).index(&name)?.text?;
    let is_locked_version = |line: &IndexLine| {
        line.name == name && line.version == locked.version && line.integrity == locked.integrity
    };
    Lines::of(&text).find_map(|(_, reading)| match reading {
        ParsedLine::Version(line, _) if is_locked_version(&line) => Some(*line),
        _ => None,
    })
}

/// Returns the canonical address of a registry: without a trailing slash.
pub fn canonical(text: &str) -> Result<String, RegistryError> {
    Ok(parse_address(text)?.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_addresses_are_normalized() {
        for text in ["https://X.example/registry", "https://x.example/registry/"] {
            assert_eq!(canonical(text).unwrap(), "https://x.example/registry");
        }
        assert_eq!(canonical("https://x.example").unwrap(), "https://x.example");
        let settings = Settings::new("unused".into());
        let client = Client::new(settings, "https://x.example/a/b", None).unwrap();
        let name = Name::parse("acme/pdf").unwrap();
        let url = client.index_url(&name).unwrap();
        assert_eq!(url.as_str(), "https://x.example/a/b/index/v1/pd/acme/pdf");
        assert_eq!(client.address(), "https://x.example/a/b");
        for bad in ["x.example", "ftp://x.example", "https://me:pw@x.example", "https://x/?a", ""] {
            assert_eq!(canonical(bad).unwrap_err().code(), "invalid_registry", "{bad}");
        }
    }
}
