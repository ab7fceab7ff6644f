//! Parses the sources that users type, lists the skills of a source, and fetches their files.
//!
//! [`Source::parse`] reads the typed text, without network access. A [`Fetcher`] then lists the
//! skills of a source and fetches one of them as a [`Tree`](crate::Tree). Each [`OfferedSkill`] has
//! a [`PinnedSource`]: its exact origin, with a commit or a digest if there is one, which a lock
//! writes down and reads again.
//!
//! | typed | is |
//! |---|---|
//! | `./pdf`, `../pdf`, `/pdf`, `~/pdf` | a folder, an archive or a Markdown file |
//! | `pdf.zip`, `pdf.skill`, `notes.md` | a file, if it is there |
//! | `owner/repo`, `owner/repo/path@ref` | a repository on GitHub; if a registry is configured, it is asked first |
//! | `gitlab:…`, `codeberg:…`, `bitbucket:…`, `github:…`, `host.tld/owner/repo` | on another host |
//! | `https://host/owner/repo`, `….git`, pages of a folder, `git@host:…`, `ssh://…`, `file://…` | a repository |
//! | `https://…/pdf.zip`, `….md`, `#sha256:…` behind it | a file to download |
//! | `https://site`, `https://site/docs`, `…/.well-known/…/index.json` | the skills of a site |
//! | `pdf`, `pdf@^1.2`, `acme/pdf@^1.2`, `registry:acme/pdf` | a skill of a registry |
//!
//! The prefixes `git+`, `url+`, `well-known+` and `path+` state the kind explicitly, as in a lock.
//! Ambiguous text, such as `pdf` beside a folder of that name, is an error that shows both
//! spellings: a folder never silently replaces a published skill, nor the reverse.
//!
//! No program from a source is run: repositories are never checked out, their files are read as git
//! objects.

mod artifact;
mod boundary;
mod cache;
mod digest;
mod discover;
mod error;
mod fetcher;
mod git;
pub(crate) mod http;
mod layout;
mod local;
mod parse;
mod pasted;
mod pinned;
mod plugin;
mod summary;
mod well_known;

use std::{borrow::Cow, path::PathBuf};

use savoir_skill::version::VersionRange;
use url::Url;

use self::layout::last_part;
use crate::manifest::check_name;

pub(crate) use boundary::Boundary;
pub use cache::{CleanMode, Cleaned, clean};
pub use digest::{Digest, DigestError};
pub use error::{SourceError, TagLocation};
pub use fetcher::{Fetcher, Network, Progress, Settings, Skipped, SourceOffers, Watcher};
pub use git::{Commit, GitUrl};
pub(crate) use git::{HeadQuery, SkillHead};
pub(crate) use parse::HOSTS;
pub use parse::{is_in_local_bare_repository, is_range, is_remote, is_shorthand};
pub use pasted::{PastedCommand, parse_pasted_command};
pub(crate) use pinned::decode;
pub use pinned::{PinnedGitSource, PinnedSource, Reference};
pub use plugin::{ExtraKind, PluginExtra};

/// A source of skills, as the user typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder with a skill, or with folders of skills.
    Folder(PathBuf),
    /// An archive or a Markdown file.
    File(PathBuf),
    /// An archive or a Markdown file to download.
    Url {
        url: Url,
        /// The expected digest of the file.
        digest: Option<Digest>,
    },
    Git(GitSource),
    /// A skill of a registry.
    Registry {
        namespace: Option<String>,
        name: String,
        /// The acceptable versions.
        range: VersionRange,
    },
    /// A site that lists its skills, or the address of such a list.
    WellKnown(Url),
}

/// A repository, and the part of it to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    pub url: GitUrl,
    /// A tag, a branch or a commit; `None` for the default branch.
    pub reference: Option<String>,
    /// A folder or a Markdown file in the repository; `None` for the whole repository.
    pub path: Option<String>,
}

/// A skill that a source offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedSkill {
    /// The name in its SKILL.md, or else the name of its folder or file.
    pub name: String,
    /// The description in its SKILL.md.
    pub description: Option<String>,
    /// The exact origin.
    pub source: PinnedSource,
    /// A digest of the files, if the source has several skills of this name: identical copies in
    /// one source have the same digest.
    pub content: Option<String>,
}

impl OfferedSkill {
    /// Returns the path of the skill's folder in the source, with `/` as separator. The path may
    /// show for which agent or plugin the skill is, as in `.claude/skills/pdf`.
    pub fn location(&self) -> Cow<'_, str> {
        match &self.source {
            PinnedSource::Git(source) => source.path.as_str().into(),
            PinnedSource::Path { path, inside } if inside.is_empty() => path.to_string_lossy(),
            PinnedSource::Path { path, inside } => path.join(inside).display().to_string().into(),
            PinnedSource::Url { inside, .. } => inside.as_str().into(),
            PinnedSource::WellKnown { name, .. } => name.as_str().into(),
        }
    }

    /// Returns the folder name to install the skill under, unless its files say otherwise: its
    /// name, or, if that is a title such as `Site Shots`, the name of the folder that it comes
    /// from.
    pub fn called(&self) -> &str {
        if check_name(&self.name).is_ok() {
            return &self.name;
        }
        let folder = match &self.source {
            PinnedSource::Path { path, inside } if inside.is_empty() => {
                path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
            }
            PinnedSource::Path { inside, .. } | PinnedSource::Url { inside, .. } => {
                last_part(inside)
            }
            PinnedSource::Git(place) => last_part(&place.path),
            PinnedSource::WellKnown { name, .. } => name,
        };
        if check_name(folder).is_ok() { folder } else { &self.name }
    }
}
