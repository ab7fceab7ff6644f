//! The origin of an installed skill.

use serde::Serialize;

use crate::agents::Scope;

/// How a skill came to the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Origin {
    /// Savoir put it there.
    Savoir {
        /// What its lock holds the skill to.
        integrity: Option<String>,
    },
    /// `npx skills` put it there.
    Npx(NpxOrigin),
    /// `gh skill` put it there.
    Gh(GhOrigin),
    /// ClawHub put it there.
    ClawHub(ClawHubOrigin),
    /// Someone put it there, and no ledger names it.
    Plain,
}

impl Origin {
    /// The word for it.
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

/// What `npx skills` wrote down about a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NpxOrigin {
    /// Where the skill came from, such as `owner/repository`; a folder is an absolute path.
    pub source: String,
    /// What kind of source that is: `github`, `gitlab`, `git`, `local`, `well-known`, …
    pub source_type: String,
    /// The address of the source.
    pub url: Option<String>,
    /// The branch, tag or commit.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The path of SKILL.md in the source.
    pub path: Option<String>,
    /// The hash of the skill as it was installed.
    pub hash: Option<String>,
    /// What `gh skill` pinned it to in the same ledger.
    pub pinned: Option<String>,
    /// Whose ledger it stands in.
    pub scope: Scope,
}

/// What `gh skill` wrote into the frontmatter of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GhOrigin {
    /// The address of the repository.
    pub repo: String,
    /// The branch or tag, such as `refs/heads/main`.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The name that git gives to the skill's folder.
    pub tree_sha: Option<String>,
    /// The folder in the repository.
    pub path: Option<String>,
    /// What it is pinned to.
    pub pinned: Option<String>,
}

/// What ClawHub wrote down about a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClawHubOrigin {
    /// Its name in the registry.
    pub slug: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// The version that was installed.
    pub version: Option<String>,
    /// The address of the registry; known once the skill's own file was read.
    pub registry: Option<String>,
    /// The hash of the skill as it was installed; known once the skill's own file was read.
    pub fingerprint: Option<String>,
    /// Whether it is to stay at its version.
    pub pinned: bool,
}
