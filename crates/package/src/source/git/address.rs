//! URLs of git repositories.

use std::{fmt, path::PathBuf};

use url::Url;

use crate::source::{SourceError, http};

/// The address of a repository: `https://`, `ssh://`, `file://`, or `user@host:path` in the
/// notation of SSH. It contains no password, and git cannot interpret it as an option.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GitUrl(String);

impl GitUrl {
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let wrong = |why: &str| Err(SourceError::text(text, why));
        let text = text.trim_end_matches('/');
        if text.starts_with('-') || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return wrong("it is not the address of a repository");
        }
        if text.contains(['?', '#']) {
            return wrong("the address of a repository has neither `?` nor `#`");
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return if is_scp(text) {
                Ok(Self(text.to_owned()))
            } else {
                wrong("write `https://`, `ssh://` or `git@host:path`")
            };
        };
        let url = Url::parse(text).map_err(|error| SourceError::text(text, error.to_string()))?;
        match scheme {
            "https" | "http" => http::check(&url)?,
            "ssh" if url.host_str().is_none_or(|host| host.starts_with('-')) => {
                return wrong("it has no host");
            }
            "ssh" if url.password().is_some() => {
                let why = "it contains a password; use a key";
                return Err(SourceError::text(&http::shown(&url), why));
            }
            "ssh" | "file" => {}
            _ => return wrong("write `https://` or `ssh://`"),
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host for messages; for a local repository, its path.
    pub(super) fn host(&self) -> String {
        let host = Url::parse(&self.0).ok().and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| {
            let scp = self.0.split_once('@').and_then(|(_, rest)| rest.split_once(':'));
            scp.map_or(self.0.as_str(), |(host, _)| host).to_owned()
        })
    }

    /// Returns the local path, if it is a repository on this machine.
    pub(super) fn local_path(&self) -> Option<PathBuf> {
        let url = Url::parse(&self.0).ok().filter(|url| url.scheme() == "file")?;
        url.to_file_path().ok()
    }

    /// Returns the protocols that git may use: that of the address, SSH and HTTPS as alternatives,
    /// and that of the rewritten address in the user's settings (`url.….insteadOf`). A server can
    /// never add one.
    pub(super) fn protocols(&self, rewritten: &str) -> String {
        let own = match self.0.split_once("://") {
            Some(("file", _)) => "file",
            Some(("http", _)) => "http",
            _ => "https:ssh",
        };
        let users = match rewritten.split_once("://") {
            Some((scheme @ ("https" | "http" | "ssh" | "git" | "file"), _)) => scheme,
            Some(_) => return own.to_owned(),
            None if rewritten.starts_with('/') => "file",
            // `transport::address` would start a remote helper program.
            None if rewritten.contains("::") => return own.to_owned(),
            None => "ssh",
        };
        if own.split(':').any(|known| known == users) {
            own.to_owned()
        } else {
            format!("{own}:{users}")
        }
    }
}

fn is_scp(text: &str) -> bool {
    let Some((user, rest)) = text.split_once('@') else { return false };
    let Some((host, path)) = rest.split_once(':') else { return false };
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
    };
    is_name(user) && is_name(host) && !path.is_empty() && !path.starts_with('-')
}

impl fmt::Display for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewritten_url_needs_its_protocol() {
        let url = GitUrl::parse("https://host.example/o/r").unwrap();
        for (rewritten, protocols) in [
            ("https://host.example/o/r", "https:ssh"),
            ("git@mirror.example:o/r", "https:ssh"),
            ("http://mirror.example/o/r", "https:ssh:http"),
            ("file:///srv/r.git", "https:ssh:file"),
            ("/srv/r.git", "https:ssh:file"),
            ("ext::sh -c id", "https:ssh"),
            ("foo://x", "https:ssh"),
        ] {
            assert_eq!(url.protocols(rewritten), protocols, "{rewritten}");
        }
        let local = GitUrl::parse("file:///a%20b/r.git").unwrap();
        assert_eq!(local.local_path().unwrap(), PathBuf::from("/a b/r.git"));
        assert_eq!(local.protocols("file:///a%20b/r.git"), "file");
        assert_eq!(url.local_path(), None);
    }
}
