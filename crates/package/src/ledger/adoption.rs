//! What is needed to adopt a skill that another tool installed.

use std::path::PathBuf;

use super::{Drift, Gh, LedgerEntry, Npx, Origin};
use crate::tree::{Tree, TreeError};

/// What a lock needs to take over a skill where it lies. Nothing is moved or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The name of its folder.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// Where it came from.
    pub source: Source,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// What the lock holds the files to, as they lie there now.
    pub integrity: String,
    /// Whether the files are still those of the source.
    pub drift: Drift,
}

/// Where a skill came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A repository.
    Git {
        /// Its address.
        url: String,
        /// The branch, tag or commit; without one, the default branch.
        reference: Option<String>,
        /// The folder of the skill in it; empty for its root.
        path: String,
        /// The name that git gave to that folder.
        tree_sha: Option<String>,
    },
    /// A registry.
    Registry {
        /// Its address, where it was written down.
        url: Option<String>,
        /// The owner of the skill.
        owner: Option<String>,
        /// The name of the skill.
        slug: String,
        /// The version.
        version: Option<String>,
    },
    /// An address on the web.
    Web(String),
    /// A package of npm that is installed in the project.
    Npm(String),
    /// A folder; that of the skill itself, if nothing is known about where it came from.
    Folder(PathBuf),
}

impl LedgerEntry {
    /// What a lock needs to take over the skill where it lies. The files are read; nothing is moved
    /// or written.
    pub fn adoption(&self) -> Result<Adoption, TreeError> {
        let tree = Tree::read(self.path())?;
        let details = self.details().ok();
        let version = details.as_ref().and_then(|details| details.version.clone());
        let origin = details.map(|details| details.origin);
        let source = match origin.as_ref().or(self.recorded()) {
            Some(Origin::Npx(origin)) => npx_source(origin),
            Some(Origin::Gh(origin)) => gh_source(origin),
            Some(Origin::ClawHub(origin)) => Source::Registry {
                url: origin.registry.clone(),
                owner: origin.owner.clone(),
                slug: origin.slug.clone(),
                version: origin.version.clone(),
            },
            Some(Origin::Savoir { .. } | Origin::Plain) | None => {
                Source::Folder(self.path().to_owned())
            }
        };
        Ok(Adoption {
            name: self.name().to_owned(),
            path: self.path().to_owned(),
            source,
            version,
            integrity: tree.integrity(),
            drift: self.drift(),
        })
    }
}

fn npx_source(origin: &Npx) -> Source {
    let address = || origin.url.clone().unwrap_or_else(|| origin.source.clone());
    let on = |host: &str| match &origin.url {
        Some(url) => url.clone(),
        None if origin.source.contains("://") => origin.source.clone(),
        None => format!("https://{host}/{}.git", origin.source),
    };
    let url = match origin.source_type.as_str() {
        "local" => return Source::Folder(PathBuf::from(&origin.source)),
        "node_modules" => return Source::Npm(origin.source.clone()),
        "github" => on("github.com"),
        "gitlab" => on("gitlab.com"),
        "git" => address(),
        _ => return Source::Web(address()),
    };
    Source::Git {
        url,
        reference: origin.pinned.clone().or_else(|| origin.reference.clone()),
        path: folder_of(origin.path.as_deref().unwrap_or_default()),
        tree_sha: origin.hash.clone().filter(|hash| hash.len() == 40),
    }
}

fn gh_source(origin: &Gh) -> Source {
    let whole = origin.repo.contains("://");
    let url =
        if whole { origin.repo.clone() } else { format!("https://github.com/{}", origin.repo) };
    Source::Git {
        url,
        reference: origin.pinned.clone().or_else(|| origin.reference.clone()),
        path: folder_of(origin.path.as_deref().unwrap_or_default()),
        tree_sha: origin.tree_sha.clone(),
    }
}

/// The folder of the skill whose SKILL.md or folder is at a path.
fn folder_of(path: &str) -> String {
    let folder = path.strip_suffix("SKILL.md").unwrap_or(path);
    folder.trim_matches('/').to_owned()
}
