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

/// Which skills are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at once.
    pub per_page: Option<u32>,
    /// Only those with this word.
    pub tag: Option<String>,
    /// Only those that are trusted so far.
    pub tier: Option<Tier>,
    /// Only those that this one wrote.
    pub author: Option<String>,
    /// Only those that changed since, as RFC 3339 writes a time.
    pub updated_since: Option<String>,
    /// In which order; by name if nothing is said.
    pub sort: Option<Sort>,
    /// Whether those are listed, too, that were withdrawn as a whole.
    pub yanked: YankChange,
    /// Only those of this namespace.
    pub namespace: Option<String>,
}

/// What becomes of skills of which every version was withdrawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum YankChange {
    /// They are left out.
    #[default]
    Without,
    /// They are listed, too: who has them in a lock can have them.
    With,
}

/// In which order skills are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// By name.
    Name,
    /// Those that changed last first.
    Recent,
}

impl Sort {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Recent => "recent",
        }
    }
}

impl Client {
    /// Skills that fit some words, the best first.
    pub async fn search(&self, query: &str) -> Result<Found, RegistryError> {
        self.search_for(query, None).await
    }

    /// As [`Self::search`], with so many at once as the registry gives.
    pub async fn search_for(
        &self,
        query: &str,
        per_page: Option<u32>,
    ) -> Result<Found, RegistryError> {
        self.search_within(query, per_page, &[]).await
    }

    /// As [`Self::search_for`], of these namespaces alone; `_/name` is a skill that has none. Registries
    /// that do not know the filter find others, too.
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
        // Nobody reads an address that is too long, and the filter is not all.
        let fits = url.as_str().len() <= MAX_ADDRESS_BYTES;
        self.get_required(if fits { url } else { plain }).await
    }

    /// Skills in an order that stays, a page at a time.
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

    /// A skill with its versions.
    pub async fn detail(&self, name: &Name) -> Result<PackageDetail, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}"))?;
        let unknown = || RegistryError::Unknown { name: name.clone(), registry: self.address() };
        let detail: PackageDetail = self.for_lookup(url.clone()).await?.ok_or_else(unknown)?;
        check_name(&url, name, &detail.summary.name)?;
        Ok(detail)
    }

    /// A version of a skill.
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

    /// Publishes a skill. It is never sent to anybody but this registry.
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

    /// Withdraws a version, or gives it back.
    pub async fn yank(
        &self,
        name: &Name,
        version: &Version,
        yank: &Yank,
    ) -> Result<YankDone, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}/{version}/yank"))?;
        self.judge(RegistryRequest::post(url, JSON, to_json(yank)?)).await
    }

    /// Tells people to use something else than a version, or than all of them, or takes that back.
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

    /// What every registry has that has a program behind it. A program says why it does not give it.
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

    /// Files alone cannot search, list or publish; and what is no registry cannot do anything.
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

/// An answer about something else would be believed to be about this.
fn check_name(url: &Url, asked: &Name, found: &Name) -> Result<(), RegistryError> {
    if asked == found {
        return Ok(());
    }
    Err(malformed(&shown(url), format!("it is about `{found}`")))
}
