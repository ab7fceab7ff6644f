//! The source of a locked skill, written as one string.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::{manifest::is_absolute, path, registry::Name, source::decode};

/// The source of a locked skill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockedSource {
    /// `registry+URL`, followed by `#namespace/name` if the skill has a namespace.
    Registry(String),
    /// `git+URL#commit`, followed by `:path` if the skill is not at the root.
    Git {
        /// The address of the repository.
        url: String,
        /// The full commit id.
        commit: String,
        /// The folder of the skill.
        path: Option<String>,
    },
    /// `path+relative`, relative to the folder of the lock.
    Path(String),
    /// `url+URL`
    Url(String),
    /// `well-known+URL` of a site that lists its skills.
    WellKnown(String),
    /// `adopted+relative`, followed by `#origin` if it is known. The skill was found in an agent's
    /// folder, and these exact files exist nowhere else.
    Adopted {
        /// The folder, relative to that of the lock.
        path: String,
        /// The source from which another tool installed it, such as `clawhub:pdf@1.2.0`.
        from: Option<String>,
    },
}

impl LockedSource {
    /// Whether it is an adopted skill from a source that Savoir cannot fetch from.
    pub fn is_out_of_reach(&self) -> bool {
        let Self::Adopted { from: Some(from), .. } = self else { return false };
        ["clawhub:", "npm:"].iter().any(|kind| from.starts_with(kind))
    }

    /// Describes where an adopted skill came from.
    pub fn adopted_from(&self) -> Option<String> {
        let Self::Adopted { from: Some(from), .. } = self else { return None };
        Some(match from.split_once(':') {
            Some(("clawhub", skill)) => format!("ClawHub (`{skill}`)"),
            Some(("npm", package)) => format!("npm (`{package}`)"),
            _ => format!("`{from}`"),
        })
    }
}

impl fmt::Display for LockedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(url) => write!(f, "registry+{url}"),
            Self::Git { url, commit, path: None } => write!(f, "git+{url}#{commit}"),
            Self::Git { url, commit, path: Some(path) } => write!(f, "git+{url}#{commit}:{path}"),
            Self::Path(path) => write!(f, "path+{path}"),
            Self::Url(url) => write!(f, "url+{url}"),
            Self::WellKnown(url) => write!(f, "well-known+{url}"),
            Self::Adopted { path, from: None } => write!(f, "adopted+{path}"),
            Self::Adopted { path, from: Some(from) } => write!(f, "adopted+{path}#{from}"),
        }
    }
}

impl LockedSource {
    /// Creates the source of a skill in a registry.
    pub fn registry(address: &str, name: &Name) -> Self {
        Self::Registry(match name.namespace() {
            Some(_) => format!("{address}#{name}"),
            None => address.to_owned(),
        })
    }

    /// Returns the registry of a skill and its full name there. `installed` is the name of its
    /// folder.
    pub fn published<'a>(&'a self, installed: &'a str) -> Option<(&'a str, &'a str)> {
        let Self::Registry(text) = self else { return None };
        Some(text.split_once('#').unwrap_or((text, installed)))
    }
}

/// Why a text is not a source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceProblem {
    /// The prefix is not a known kind of source.
    #[error("`{0}` is not a source such as registry+https://skills.example.com")]
    Kind(String),
    /// The path is absolute, so it is only valid on one machine.
    #[error("`{0}` is a path of one machine, and a lock is for all")]
    Absolute(String),
    /// The commit is missing.
    #[error("`{0}` has no commit of 40 or 64 hexadecimal digits")]
    Commit(String),
    /// The path leads out of the repository.
    #[error("`{0}` is not a folder of a repository")]
    Folder(String),
}

impl FromStr for LockedSource {
    type Err = SourceProblem;

    fn from_str(text: &str) -> Result<Self, SourceProblem> {
        let unknown = || SourceProblem::Kind(text.to_owned());
        let (kind, rest) = text.split_once('+').ok_or_else(unknown)?;
        if rest.is_empty() || rest.contains(|c: char| c.is_control() || c == '\\') {
            return Err(unknown());
        }
        if is_absolute(rest) {
            return Err(SourceProblem::Absolute(rest.to_owned()));
        }
        // Check the decoded path, because that is what will be used.
        if matches!(kind, "path" | "adopted") && is_absolute(&decode(rest)) {
            return Err(SourceProblem::Absolute(rest.to_owned()));
        }
        let owned = rest.to_owned();
        match kind {
            "registry" => Ok(Self::Registry(owned)),
            "path" => Ok(Self::Path(owned)),
            "url" => Ok(Self::Url(owned)),
            "well-known" => Ok(Self::WellKnown(owned)),
            "adopted" => {
                let (path, from) = rest.split_once('#').unwrap_or((rest, ""));
                let from = Some(from.to_owned()).filter(|from| !from.is_empty());
                Ok(Self::Adopted { path: path.to_owned(), from })
            }
            "git" => git(rest),
            _ => Err(unknown()),
        }
    }
}

/// Splits at the last `#`, because git addresses have no fragment.
fn git(text: &str) -> Result<LockedSource, SourceProblem> {
    let no_commit = || SourceProblem::Commit(text.to_owned());
    let (url, rest) = text.rsplit_once('#').ok_or_else(no_commit)?;
    let (commit, folder) = match rest.split_once(':') {
        Some((commit, folder)) => (commit, Some(folder)),
        None => (rest, None),
    };
    let full = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
    if !full || url.is_empty() {
        return Err(no_commit());
    }
    if let Some(folder) = folder.filter(|folder| path::check_in_repository(folder).is_err()) {
        return Err(SourceProblem::Folder(folder.to_owned()));
    }
    let (url, commit) = (url.to_owned(), commit.to_owned());
    Ok(LockedSource::Git { url, commit, path: folder.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_round_trip() {
        let commit = "a".repeat(40);
        for text in [
            "registry+https://skills.example.com/registry".to_owned(),
            "registry+https://skills.example.com/registry#acme/pdf".to_owned(),
            format!("git+https://example.com/s.git#{commit}"),
            format!("git+git@example.com:s.git#{commit}:skills/a b"),
            format!("git+https://example.com/s#{commit}:.claude/skills/a"),
            "path+../shared/notes".to_owned(),
            "url+https://example.com/a+b.zip".to_owned(),
            "well-known+https://example.com".to_owned(),
            "adopted+./.claude/skills/notes".to_owned(),
            "adopted+./skills/pdf#clawhub:pdf@1.2.0".to_owned(),
            "adopted+./skills/pdf#git+https://example.com/s.git#pdf".to_owned(),
        ] {
            assert_eq!(text.parse::<LockedSource>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn adopted_source_is_described() {
        let from = |text: &str| text.parse::<LockedSource>().unwrap().adopted_from();
        assert_eq!(from("adopted+./x#clawhub:pdf@1.2.0").unwrap(), "ClawHub (`pdf@1.2.0`)");
        assert_eq!(from("adopted+./x#npm:@a/b").unwrap(), "npm (`@a/b`)");
        assert_eq!(from("adopted+./x#https://x.example").unwrap(), "`https://x.example`");
        assert_eq!(from("adopted+./x"), None);
        assert_eq!(from("path+./x"), None);
        let far = |text: &str| text.parse::<LockedSource>().unwrap().is_out_of_reach();
        assert!(far("adopted+./x#clawhub:pdf") && far("adopted+./x#npm:pdf"));
        assert!(!far("adopted+./x#git+https://x.example") && !far("adopted+./clawhub:x"));
    }

    #[test]
    fn registry_names_are_parsed() {
        let (flat, deep) = (Name::parse("pdf").unwrap(), Name::parse("acme/pdf").unwrap());
        for (name, text) in [(flat, "registry+https://x"), (deep, "registry+https://x#acme/pdf")] {
            let source = LockedSource::registry("https://x", &name);
            assert_eq!(source.to_string(), text);
            assert_eq!(source.published("pdf"), Some(("https://x", name.to_string().as_str())));
        }
        assert_eq!(LockedSource::Path("x".into()).published("pdf"), None);
    }

    #[test]
    fn invalid_sources_are_rejected() {
        let problem = |text: &str| text.parse::<LockedSource>().unwrap_err();
        assert!(matches!(problem("https://x"), SourceProblem::Kind(_)));
        assert!(matches!(problem("ftp+x"), SourceProblem::Kind(_)));
        assert!(matches!(problem("path+"), SourceProblem::Kind(_)));
        assert!(matches!(problem("path+a\nb"), SourceProblem::Kind(_)));
        for text in [
            "path+/srv/a", "path+~/a", "path+C:/a", "git+/srv/a#x", "adopted+/a", "path+%2Fetc",
            "path+%7e/a", "adopted+%2fa",
        ] {
            assert!(matches!(problem(text), SourceProblem::Absolute(_)), "{text}");
        }
        assert!(matches!(problem("git+https://x"), SourceProblem::Commit(_)));
        assert!(matches!(problem("git+https://x#main"), SourceProblem::Commit(_)));
        let climbing = format!("git+https://x#{}:../y", "b".repeat(40));
        assert!(matches!(problem(&climbing), SourceProblem::Folder(_)));
    }
}
