//! Collects the data that is needed to adopt a skill that another tool installed.

use std::path::PathBuf;

use super::{Drift, GhOrigin, LedgerEntry, NpxOrigin, Origin};
use crate::tree::{Tree, TreeError};

/// The data that a lock needs to adopt a skill in place. Nothing is moved or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The name of the folder.
    pub name: String,
    pub path: PathBuf,
    pub source: Source,
    pub version: Option<String>,
    /// The integrity of the current files.
    pub integrity: String,
    /// Whether the files are still those of the source.
    pub drift: Drift,
}

/// The source of a skill by the records of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Git {
        url: String,
        /// The branch, tag or commit; `None` for the default branch.
        reference: Option<String>,
        /// The folder of the skill in the repository; empty for its root.
        path: String,
        /// The git tree id of that folder.
        tree_sha: Option<String>,
    },
    Registry {
        /// The address, if it was recorded.
        url: Option<String>,
        owner: Option<String>,
        /// The name of the skill in the registry.
        slug: String,
        version: Option<String>,
    },
    Web(String),
    /// An npm package that is installed in the project.
    Npm(String),
    /// A folder: the skill's own folder if its origin is not known.
    Folder(PathBuf),
}

impl LedgerEntry {
    /// Returns the data that a lock needs to adopt the skill in place. Reads the files; moves and
    /// writes nothing.
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

fn npx_source(origin: &NpxOrigin) -> Source {
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

fn gh_source(origin: &GhOrigin) -> Source {
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

/// Returns the folder of a skill from the path of its SKILL.md or its folder.
fn folder_of(path: &str) -> String {
    let folder = path.strip_suffix("SKILL.md").unwrap_or(path);
    folder.trim_matches('/').to_owned()
}
