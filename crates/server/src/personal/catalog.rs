//! Lists and fetches skills from the repositories that administrators configure.
//!
//! Only repositories on GitHub are fetched, and others that the operator allows. Each fetch has a
//! time limit, and the result is cached for a minute.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use savoir_package::{
    Tree,
    limits::MAX_REPOSITORY_BYTES,
    source::{Fetcher, GitSource, GitUrl, OfferedSkill, PinnedSource, Settings, SourceError},
};
use savoir_store::CatalogSource;
use tempfile::TempDir;
use thiserror::Error;
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use url::Url;

use crate::config::CatalogConfig;

/// How long the listing of a source is cached.
const CACHE_LIFETIME: Duration = Duration::from_mins(1);
/// How long an error of a source is cached.
const FAILURE_CACHE_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum sources in the cache.
const MAX_CACHED_SOURCES: usize = 256;

/// The repositories and their cached results.
#[derive(Debug)]
pub(crate) struct Catalog {
    config: CatalogConfig,
    fetcher: Fetcher,
    cache: Mutex<HashMap<CatalogAddress, Arc<AsyncMutex<Option<CacheEntry>>>>>,
    /// The temporary folder for repositories, if the operator configured no folder.
    _temp_folder: Option<TempDir>,
}

/// An address and a Git reference.
type CatalogAddress = (String, Option<String>);
type ListingResult = Result<Arc<[ListedSkill]>, String>;

#[derive(Debug)]
struct CacheEntry {
    fetched_at: Instant,
    result: ListingResult,
}

/// A skill in a repository.
#[derive(Clone, Debug)]
pub(crate) struct ListedSkill {
    pub(crate) offer: OfferedSkill,
    /// The folder in the repository; empty for the root.
    pub(crate) folder: String,
    /// The Git object id of its SKILL.md.
    pub(crate) sha: String,
}

/// Why the files of a skill could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// The source did not respond or returned an error.
    NoAnswer(String),
    /// The files do not form a valid skill.
    Rejected(String),
}

/// A repository that may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    git: GitSource,
    /// The name that is shown: `owner/repo`, or the address.
    pub(crate) name: String,
}

/// Why a repository may not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AddressError {
    #[error("Only https://github.com/owner/repo is accepted, unless the operator allows more")]
    NotAllowed,
    #[error("{0}")]
    Unreadable(String),
}

impl Repository {
    /// The id of a skill of this repository.
    pub(crate) fn skill_id(&self, folder: &str) -> String {
        let reference = self.git.reference.as_deref().unwrap_or("HEAD");
        format!("{}@{reference}:{folder}", self.name)
    }

    /// Returns the name of a skill at the root of the repository.
    pub(crate) fn root_skill_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

impl Catalog {
    pub(crate) fn new(config: CatalogConfig) -> std::io::Result<Self> {
        let temp_folder = match &config.cache {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("savoir-catalog-").tempdir()?),
        };
        let temp_path = temp_folder.as_ref().map(|folder| folder.path().to_owned());
        let cache: PathBuf = temp_path.or_else(|| config.cache.clone()).unwrap_or_default();
        let fetcher = Fetcher::new(Settings {
            git_timeout: config.timeout,
            git_redirects: false,
            max_repository_bytes: MAX_REPOSITORY_BYTES,
            ..Settings::new(cache)
        });
        Ok(Self { config, fetcher, cache: Mutex::default(), _temp_folder: temp_folder })
    }

    /// The repository at an address, if it is allowed.
    pub(crate) fn repository(
        &self,
        address: &str,
        reference: Option<&str>,
    ) -> Result<Repository, AddressError> {
        let reference = reference.filter(|text| !text.is_empty()).map(str::to_owned);
        let url = parse_repository_url(address)?;
        let (address, name, url_reference) = match parse_github_url(&url) {
            Some((name, url_reference)) => {
                (format!("https://github.com/{name}"), name, url_reference)
            }
            None if self.config.allow.iter().any(|allowed| is_allowed_by(allowed, &url)) => {
                let path = url.path().trim_matches('/').trim_end_matches(".git");
                let host = url.host_str().map_or_else(String::new, |host| format!("{host}/"));
                (url.to_string(), format!("{host}{path}"), None)
            }
            None => return Err(AddressError::NotAllowed),
        };
        let url = GitUrl::parse(&address);
        let url = url.map_err(|error| AddressError::Unreadable(error.to_string()))?;
        let git = GitSource { url, reference: reference.or(url_reference), path: None };
        Ok(Repository { git, name })
    }

    /// The skills of a source, or an error.
    pub(crate) async fn list(&self, source: &CatalogSource) -> ListingResult {
        let repository = self.repository(&source.repo_url, source.reference.as_deref());
        let repository = repository.map_err(|error| error.to_string())?;
        let slot = self.cache_slot(&repository);
        let mut cached = slot.lock().await;
        if let Some(entry) = cached.as_ref() {
            let lifetime =
                if entry.result.is_ok() { CACHE_LIFETIME } else { FAILURE_CACHE_LIFETIME };
            if entry.fetched_at.elapsed() < lifetime {
                return entry.result.clone();
            }
        }
        let result = self.fetch_listing(&repository).await;
        *cached = Some(CacheEntry { fetched_at: Instant::now(), result: result.clone() });
        result
    }

    async fn fetch_listing(&self, repository: &Repository) -> ListingResult {
        let fetched = timeout(self.config.timeout, self.fetcher.catalog(&repository.git)).await;
        let offers =
            fetched.map_err(|_| self.timeout_message())?.map_err(|error| error.to_string())?;
        let listed = offers.into_iter().filter_map(|(offer, sha)| {
            let PinnedSource::Git(place) = &offer.source else { return None };
            let folder = place.path.clone();
            Some(ListedSkill { offer, folder, sha: sha? })
        });
        Ok(listed.collect())
    }

    /// Fetches the files of a skill.
    pub(crate) async fn fetch(&self, listed: &ListedSkill) -> Result<Tree, FetchError> {
        let fetched = timeout(self.config.timeout, self.fetcher.fetch(&listed.offer)).await;
        let fetched = fetched.map_err(|_| FetchError::NoAnswer(self.timeout_message()))?;
        fetched.map_err(|error| match error {
            SourceError::NoSkill { .. }
            | SourceError::TooManyFiles(_)
            | SourceError::TooLarge { .. }
            | SourceError::Tree(_) => FetchError::Rejected(error.to_string()),
            error => FetchError::NoAnswer(error.to_string()),
        })
    }

    fn timeout_message(&self) -> String {
        format!("it did not answer within {} seconds", self.config.timeout.as_secs_f64())
    }

    /// Returns the cache slot of a repository. It is locked during a fetch, so that concurrent
    /// requests for the same repository wait for one fetch.
    fn cache_slot(&self, repository: &Repository) -> Arc<AsyncMutex<Option<CacheEntry>>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_SOURCES {
            cache.clear();
        }
        let key = (repository.git.url.to_string(), repository.git.reference.clone());
        Arc::clone(cache.entry(key).or_default())
    }

    /// Clears the cache, so that a change of the sources takes effect immediately.
    pub(crate) fn clear_cache(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn parse_repository_url(address: &str) -> Result<Url, AddressError> {
    let unreadable =
        || AddressError::Unreadable("It is not the address of a repository".to_owned());
    let text = address.trim();
    let url = if text.starts_with('/') {
        Url::from_file_path(text).map_err(|()| unreadable())?
    } else {
        Url::parse(text).map_err(|_| unreadable())?
    };
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && !url.path().contains('%')
        && !url.path().split('/').any(|part| matches!(part, "." | ".."));
    if plain { Ok(url) } else { Err(unreadable()) }
}

/// Returns `owner/repo` and the branch or tag in a GitHub URL.
fn parse_github_url(url: &Url) -> Option<(String, Option<String>)> {
    let is_github =
        url.scheme() == "https" && url.host_str() == Some("github.com") && url.port().is_none();
    let mut parts = url.path().trim_matches('/').split('/');
    let (owner, repo) = (parts.next()?, parts.next()?);
    let repo = repo.strip_suffix(".git").unwrap_or(repo);
    let is_valid = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let rest: Vec<&str> = parts.collect();
    let url_reference = match rest.as_slice() {
        [] => None,
        ["tree", reference @ ..] if !reference.is_empty() => Some(reference.join("/")),
        _ => return None,
    };
    (is_github && is_valid(owner) && is_valid(repo))
        .then(|| (format!("{owner}/{repo}"), url_reference))
}

/// Whether an entry of the operator's list allows a URL.
fn is_allowed_by(allowed: &str, url: &Url) -> bool {
    let Ok(allowed) = parse_repository_url(allowed) else { return false };
    let same = allowed.scheme() == url.scheme()
        && allowed.host_str() == url.host_str()
        && allowed.port_or_known_default() == url.port_or_known_default();
    let allowed_path = allowed.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(allowed_path);
    same && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(allow: &[&str]) -> Catalog {
        let allow = allow.iter().map(|text| (*text).to_owned()).collect();
        Catalog::new(CatalogConfig { allow, ..CatalogConfig::default() }).unwrap()
    }

    #[test]
    fn only_github_is_allowed_by_default() {
        let catalog = catalog(&[]);
        for (address, name, reference) in [
            ("https://github.com/acme/skills", "acme/skills", None),
            ("https://github.com/acme/skills.git", "acme/skills", None),
            ("https://github.com/acme/skills/tree/v1/x", "acme/skills", Some("v1/x")),
        ] {
            let found = catalog.repository(address, None).unwrap();
            assert_eq!((found.name.as_str(), found.git.reference.as_deref()), (name, reference));
            assert_eq!(found.git.url.as_str(), "https://github.com/acme/skills");
        }
        let found = catalog.repository("https://github.com/acme/skills/tree/v1", Some("v2"));
        assert_eq!(found.unwrap().skill_id("pdf"), "acme/skills@v2:pdf");
        for address in [
            "http://github.com/acme/skills",
            "https://github.com.evil.org/acme/skills",
            "https://github.com@evil.org/acme/skills",
            "https://user:pw@github.com/acme/skills",
            "https://github.com:444/acme/skills",
            "https://github.com/acme",
            "https://github.com/acme/skills/issues/1",
            "https://github.com/../skills",
            "https://github.com/acme/skills?x=1",
            "https://gitlab.com/acme/skills",
            "https://169.254.169.254/acme/skills",
            "ssh://git@github.com/acme/skills",
            "git@github.com:acme/skills.git",
            "file:///etc",
            "/etc",
            "ext::sh -c id",
            "--upload-pack=x",
            "",
        ] {
            assert!(catalog.repository(address, None).is_err(), "{address}");
        }
    }

    #[test]
    fn repositories_that_the_operator_allows_are_accepted() {
        let catalog = catalog(&["/srv/skills", "https://git.example.org/team/"]);
        for address in [
            "/srv/skills/a.git",
            "file:///srv/skills",
            "https://git.example.org/team/x",
            "https://github.com/acme/skills",
        ] {
            assert!(catalog.repository(address, None).is_ok(), "{address}");
        }
        for address in [
            "/srv/skills-2/a",
            "/srv/skills/../secret",
            "file:///srv/skills/%2e%2e/secret",
            "https://git.example.org/other/x",
            "https://git.example.org:8443/team/x",
            "http://git.example.org/team/x",
        ] {
            assert!(catalog.repository(address, None).is_err(), "{address}");
        }
    }
}
