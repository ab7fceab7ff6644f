//! Finds the latest version of a skill of `savoir.toml`.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::digest::hex;
use thiserror::Error;
use url::Url;

use crate::{
    lock::LockedSource,
    manifest::{Revision, SkillRequirement},
    source::{Fetcher, GitSource, GitUrl, OfferedSkill, PinnedSource, Source, SourceError},
};

/// Why no latest version was found.
#[derive(Debug, Error)]
pub enum LatestError {
    /// The source cannot be reached.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The skill is from a registry; [`crate::registry`] handles those.
    #[error("`{0}` comes from a registry, and registries are not asked for updates yet")]
    Registry(String),
    /// The skill is in another folder of the repository now.
    #[error("`{name}` moved in `{url}`, from `{from}` to `{to}`")]
    Moved {
        name: String,
        url: GitUrl,
        /// The old folder; `.` for the root.
        from: String,
        /// The new folder; `.` for the root.
        to: String,
    },
    /// The source no longer has the skill.
    #[error("`{place}` no longer has a skill `{name}`")]
    Gone { name: String, place: String },
    /// The skill at this path has another name now.
    #[error("the skill `{name}` of `{place}` calls itself `{calls}` now")]
    Renamed {
        /// The name in `savoir.toml`.
        name: String,
        place: String,
        calls: String,
    },
}

impl LatestError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Source(error) => error.code(),
            Self::Registry(_) => "no_registry",
            Self::Moved { .. } => "moved",
            Self::Gone { .. } => "gone",
            Self::Renamed { .. } => "renamed",
        }
    }

    /// A suggestion to solve the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(_) | Self::Registry(_) => None,
            Self::Moved { to, .. } => Some(match to.as_str() {
                "." => "take its `path` out of savoir.toml, and look at what changed".to_owned(),
                to => format!("write `path = \"{to}\"` in savoir.toml, and look at what changed"),
            }),
            Self::Gone { name, place } => Some(format!(
                "it may have another name now: savoir install {place} --list; keep what is \
                 installed, or remove it: savoir remove {name}"
            )),
            Self::Renamed { name, calls, .. } => {
                Some(format!("write `{calls}` instead of `{name}` in savoir.toml"))
            }
        }
    }
}

/// Finds the latest version of a skill of the `savoir.toml` in the folder `root`.
pub async fn find_latest(
    fetcher: &Fetcher,
    root: &Path,
    name: &str,
    wanted: &SkillRequirement,
) -> Result<OfferedSkill, LatestError> {
    if matches!(wanted, SkillRequirement::Version { .. }) {
        return Err(LatestError::Registry(name.to_owned()));
    }
    let source = source_of(root, wanted, None)?;
    match (list_offers(fetcher, &source).await, &source) {
        (Ok(offers), _) => pick_offer(name, &source, offers),
        (
            Err(error @ (SourceError::NoPathInside { .. } | SourceError::NoSkill { .. })),
            Source::Git(git),
        ) if git.path.is_some() => Err(find_moved(fetcher, name, git, error).await),
        (Err(error), _) => Err(error.into()),
    }
}

/// Finds the new folder of a skill that is no longer at its path.
async fn find_moved(
    fetcher: &Fetcher,
    name: &str,
    git: &GitSource,
    error: SourceError,
) -> LatestError {
    let whole = Source::Git(GitSource { path: None, ..git.clone() });
    let Ok(offers) = fetcher.offers(&whole).await else { return error.into() };
    let found = offers.into_iter().find(|offer| offer.called() == name);
    match found.map(|offer| offer.source) {
        Some(PinnedSource::Git(place)) => LatestError::Moved {
            name: name.to_owned(),
            url: git.url.clone(),
            from: display_path(git.path.as_deref().unwrap_or_default()),
            to: display_path(&place.path),
        },
        _ => LatestError::Gone { name: name.to_owned(), place: git.url.to_string() },
    }
}

fn display_path(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}

/// Returns the source to search. The lock shows whether an address is a file or a list.
pub(super) fn source_of(
    root: &Path,
    wanted: &SkillRequirement,
    locked: Option<&LockedSource>,
) -> Result<Source, SourceError> {
    match wanted {
        SkillRequirement::Version { range, .. } => Err(SourceError::Registry(range.to_string())),
        SkillRequirement::Path(path) => {
            let path: std::path::PathBuf = root.join(path).components().collect();
            let place = PinnedSource::Path { path: path.clone(), inside: String::new() };
            if path.exists() { Ok(place.source()) } else { Err(SourceError::NoPath(path)) }
        }
        SkillRequirement::Git { url, at, path } => Ok(Source::Git(GitSource {
            url: GitUrl::parse(url)?,
            reference: match at {
                Revision::Default => None,
                Revision::Rev(name) => Some(name.clone()),
                Revision::Tag(name) => Some(format!("refs/tags/{name}")),
                Revision::Branch(name) => Some(format!("refs/heads/{name}")),
            },
            path: path.clone(),
        })),
        SkillRequirement::Url { url, integrity } => {
            let wrong = |error: url::ParseError| SourceError::Text {
                text: url.clone(),
                why: error.to_string(),
            };
            let address = Url::parse(url).map_err(wrong)?;
            let list = matches!(locked, Some(LockedSource::WellKnown(_)))
                || address.path().ends_with("/index.json");
            if list {
                return Ok(Source::WellKnown(address));
            }
            let digest = integrity.as_deref().and_then(digest);
            Ok(Source::Url { url: address, digest })
        }
    }
}

/// Parses the digest in an integrity.
fn digest(integrity: &str) -> Option<crate::source::Digest> {
    let bytes = STANDARD.decode(integrity.strip_prefix("sha256-")?).ok()?;
    format!("sha256:{}", hex(&bytes)).parse().ok()
}

/// Lists the skills of a source. A web page may belong to a site with a well-known index.
pub(super) async fn list_offers(
    fetcher: &Fetcher,
    source: &Source,
) -> Result<Vec<OfferedSkill>, SourceError> {
    match (fetcher.offers(source).await, source) {
        (Err(page @ SourceError::Page { .. }), Source::Url { url, digest: None }) => {
            fetcher.offers(&Source::WellKnown(url.clone())).await.map_err(|_| page)
        }
        (offers, _) => offers,
    }
}

/// Picks the skill with a name from the skills of a source.
pub(super) fn pick_offer(
    name: &str,
    source: &Source,
    offers: Vec<OfferedSkill>,
) -> Result<OfferedSkill, LatestError> {
    let place = describe_source(source);
    let wanted = match source {
        Source::Git(git) => git.path.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let lies_there = |offer: &OfferedSkill| matches!(&offer.source, PinnedSource::Git(place) if place.path == wanted && !wanted.is_empty());
    let only = offers.len() == 1;
    let mut other_name = None;
    for offer in offers {
        if offer.called() == name {
            return Ok(offer);
        }
        if only || lies_there(&offer) {
            other_name = Some(offer.name);
        }
    }
    let name = name.to_owned();
    Err(match other_name {
        Some(calls) => LatestError::Renamed { name, place, calls },
        None => LatestError::Gone { name, place },
    })
}

fn describe_source(source: &Source) -> String {
    match source {
        Source::Folder(path) | Source::File(path) => path.display().to_string(),
        Source::Url { url, .. } | Source::WellKnown(url) => url.to_string(),
        Source::Git(git) => git.url.to_string(),
        Source::Registry { name, .. } => name.clone(),
    }
}
