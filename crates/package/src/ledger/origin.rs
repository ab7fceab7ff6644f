//! The origin of an installed skill.

use serde::Serialize;

use crate::agents::Scope;

/// How a skill was installed on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Origin {
    /// By Savoir.
    Savoir {
        /// The integrity that the lock pins.
        integrity: Option<String>,
    },
    /// By `npx skills`.
    Npx(NpxOrigin),
    /// By `gh skill`.
    Gh(GhOrigin),
    /// By ClawHub.
    ClawHub(ClawHubOrigin),
    /// By hand, or by an unknown tool: no ledger names it.
    Plain,
}

impl Origin {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Savoir { .. } => "savoir",
            Self::Npx(_) => "npx",
            Self::Gh(_) => "gh",
            Self::ClawHub(_) => "clawhub",
            Self::Plain => "plain",
        }
    }
}

/// The record of `npx skills` about a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NpxOrigin {
    /// The source, such as `owner/repository`; for a folder, an absolute path.
    pub source: String,
    /// The kind of source: `github`, `gitlab`, `git`, `local`, `well-known`, …
    pub source_type: String,
    pub url: Option<String>,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The path of SKILL.md in the source.
    pub path: Option<String>,
    /// The hash of the installed files.
    pub hash: Option<String>,
    /// The reference that `gh skill` pinned in the same ledger.
    pub pinned: Option<String>,
    /// Whether it comes from the ledger of the project or of the user.
    pub scope: Scope,
}

/// The data that `gh skill` writes into the frontmatter of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GhOrigin {
    /// The address of the repository.
    pub repo: String,
    /// The branch or tag, such as `refs/heads/main`.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The git tree id of the skill's folder.
    pub tree_sha: Option<String>,
    /// The folder in the repository.
    pub path: Option<String>,
    /// The pinned reference.
    pub pinned: Option<String>,
}

/// The record of ClawHub about a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClawHubOrigin {
    /// The name in the registry.
    pub slug: String,
    /// The owner in the registry.
    pub owner: Option<String>,
    /// The installed version.
    pub version: Option<String>,
    /// The address of the registry; `None` until the file in the skill's folder is read.
    pub registry: Option<String>,
    /// The hash of the installed files; `None` until the file in the skill's folder is read.
    pub fingerprint: Option<String>,
    /// Whether updates are disabled.
    pub pinned: bool,
}
