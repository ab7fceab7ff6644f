//! Search, publish and yank through the registry API.

use semver::Version;
use serde::{Serialize, de::DeserializeOwned};
use url::Url;

use super::{
    Client, RegistryError,
    form::{FormPart, build_form},
    json, malformed,
};
use crate::{
    limits::MAX_ADDRESS_BYTES,
    registry::{
        Name,
        http::{RegistryRequest, RegistryResponse},
        wire::{
            Deprecate, Found, PackageDetail, Page, Publish, Published, VersionDetail, Yank,
            YankDone,
        },
    },
    source::http::shown,
    trust::Tier,
};

/// Filters and paging of a list of skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The cursor of the next page.
    pub cursor: Option<String>,
    /// The page size.
    pub per_page: Option<u32>,
    /// Only skills with this tag.
    pub tag: Option<String>,
    /// Only skills with this tier.
    pub tier: Option<Tier>,
    /// Only skills of this author.
    pub author: Option<String>,
    /// Only skills that changed since, as RFC 3339.
    pub updated_since: Option<String>,
    /// The order; by name if `None`.
    pub sort: Option<Sort>,
    /// Whether skills are included whose versions are all yanked.
    pub yanked: YankChange,
    /// Only skills of this namespace.
    pub namespace: Option<String>,
}

/// What happens to skills whose versions are all yanked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum YankChange {
    /// They are left out.
    #[default]
    Without,
    /// They are included, because a lockfile may pin one of their versions.
    With,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Name,
    /// Most recently changed first.
    Recent,
}

impl Sort {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Recent => "recent",
        }
    }
}

impl Client {
    /// Searches for skills; the best matches come first.
    pub async fn search(&self, query: &str) -> Result<Found, RegistryError> {
        self.search_for(query, None).await
    }

    /// Like [`Self::search`], with a page size.
    pub async fn search_for(
        &self,
        query: &str,
        per_page: Option<u32>,
    ) -> Result<Found, RegistryError> {
        self.search_within(query, per_page, &[]).await
    }

    /// Like [`Self::search_for`], for these namespaces only; `_/name` is a skill without namespace.
    /// Older registries ignore the filter.
    pub async fn search_within(
        &self,
        query: &str,
        per_page: Option<u32>,
        namespaces: &[String],
    ) -> Result<Found, RegistryError> {
        let mut url = self.url("api/v1/search")?;
        url.query_pairs_mut().append_pair("q", query);
        if let Some(count) = per_page {
            url.query_pairs_mut().append_pair("per_page", &count.to_string());
        }
        let plain = url.clone();
        let named = namespaces.iter().map(|namespace| ("namespace", namespace));
        url.query_pairs_mut().extend_pairs(named);
        // Servers reject long URLs, and the caller filters the result anyway.
        let fits = url.as_str().len() <= MAX_ADDRESS_BYTES;
        self.get_required(if fits { url } else { plain }).await
    }

    /// Lists skills in a stable order, one page at a time.
    pub async fn list(&self, listing: &Listing) -> Result<Page, RegistryError> {
        let mut url = self.url("api/v1/skills")?;
        let Listing { cursor, per_page, tag, tier, author, .. } = listing.clone();
        let Listing { updated_since, sort, yanked, namespace, .. } = listing.clone();
        let pairs = [
            ("cursor", cursor),
            ("per_page", per_page.map(|count| count.to_string())),
            ("tag", tag),
            ("tier", tier.map(|tier| tier.to_string())),
            ("author", author),
            ("updated_since", updated_since),
            ("sort", sort.map(|sort| sort.as_str().to_owned())),
            ("yanked", (yanked == YankChange::With).then(|| "include".to_owned())),
            ("namespace", namespace),
        ];
        let given = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        url.query_pairs_mut().extend_pairs(given);
        self.get_required(url).await
    }

    /// Returns a skill with its versions.
    pub async fn detail(&self, name: &Name) -> Result<PackageDetail, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}"))?;
        let unknown = || RegistryError::Unknown { name: name.clone(), registry: self.address() };
        let detail: PackageDetail = self.for_lookup(url.clone()).await?.ok_or_else(unknown)?;
        check_name(&url, name, &detail.summary.name)?;
        Ok(detail)
    }

    /// Returns a version of a skill.
    pub async fn version(
        &self,
        name: &Name,
        version: &Version,
    ) -> Result<VersionDetail, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}/{version}"))?;
        let unknown = || RegistryError::no_version(name, version, self.address());
        let detail: VersionDetail = self.for_lookup(url.clone()).await?.ok_or_else(unknown)?;
        check_name(&url, name, &detail.name)?;
        Ok(detail)
    }

    /// Publishes a skill. Redirects to other servers are not followed.
    pub async fn publish(&self, publish: &Publish) -> Result<Published, RegistryError> {
        let part = |name, text: &'_ Option<String>| {
            text.as_ref().map(|text| (name, None, text.clone().into_bytes()))
        };
        let artifact = ("artifact", Some(&*publish.filename), publish.artifact.clone());
        let parts = [
            Some(artifact),
            part("namespace", &publish.namespace),
            part("name", &publish.name),
            part("version", &publish.version),
            part("skill", &publish.skill),
            part("changelog", &publish.changelog),
            part("audit", &publish.audit),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let parts: Vec<FormPart<'_>> =
            parts.iter().map(|(name, file, bytes)| FormPart { name, file: *file, bytes }).collect();
        let form = build_form(&parts);
        self.post(self.url("api/v1/skills")?, form.kind, form.bytes).await
    }

    /// Yanks a version, or reverts that.
    pub async fn yank(
        &self,
        name: &Name,
        version: &Version,
        yank: &Yank,
    ) -> Result<YankDone, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}/{version}/yank"))?;
        self.judge(RegistryRequest::post(url, JSON, to_json(yank)?)).await
    }

    /// Sets or removes the deprecation message of a version, or of all versions.
    pub async fn deprecate(
        &self,
        name: &Name,
        version: Option<&Version>,
        deprecate: &Deprecate,
    ) -> Result<(), RegistryError> {
        let version = version.map(|version| format!("/{version}")).unwrap_or_default();
        self.post_change(&format!("api/v1/skills/{name}{version}/deprecate"), deprecate).await
    }

    async fn post_change(&self, path: &str, what: &impl Serialize) -> Result<(), RegistryError> {
        let ask = RegistryRequest::post(self.url(path)?, JSON, to_json(what)?);
        self.ask(ask).await.map(drop)
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        url: Url,
    ) -> Result<Option<T>, RegistryError> {
        let address = shown(&url);
        self.read(&address, RegistryRequest::get(url)).await
    }

    async fn for_lookup<T: DeserializeOwned>(&self, url: Url) -> Result<Option<T>, RegistryError> {
        let address = shown(&url);
        self.read(&address, RegistryRequest::get(url).for_lookup()).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        address: &str,
        ask: RegistryRequest,
    ) -> Result<Option<T>, RegistryError> {
        match self.ask(ask).await? {
            RegistryResponse::Body(given) => json(address, &given.bytes).map(Some),
            RegistryResponse::Same(_) | RegistryResponse::Missing(_) => Ok(None),
        }
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: Url,
        kind: impl Into<String>,
        body: Vec<u8>,
    ) -> Result<T, RegistryError> {
        let address = shown(&url);
        match self.ask(RegistryRequest::post(url, kind, body)).await? {
            RegistryResponse::Body(given) => json(&address, &given.bytes),
            RegistryResponse::Same(_) | RegistryResponse::Missing(_) => {
                Err(self.no_api_error().await)
            }
        }
    }

    /// Requests a URL that every registry server has. A registry of static files has none, which is
    /// reported as such.
    pub(super) async fn get_required<T: DeserializeOwned>(
        &self,
        url: Url,
    ) -> Result<T, RegistryError> {
        let address = shown(&url);
        match self.read(&address, RegistryRequest::get(url).must_exist()).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) | Err(RegistryError::Refused { status: 404 | 410, code: None, .. }) => {
                Err(self.no_api_error().await)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the error for a registry of static files, or for a server that is not a registry.
    async fn no_api_error(&self) -> RegistryError {
        match self.known_config().await {
            Ok(_) => RegistryError::FilesOnly(self.address()),
            Err(error) => error,
        }
    }
}

pub(super) const JSON: &str = "application/json";

pub(super) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, RegistryError> {
    serde_json::to_vec(value).map_err(|error| malformed("the question", error.to_string()))
}

/// Checks that a response is about the requested skill.
fn check_name(url: &Url, asked: &Name, found: &Name) -> Result<(), RegistryError> {
    if asked == found {
        return Ok(());
    }
    Err(malformed(&shown(url), format!("it is about `{found}`")))
}
