//! Parses a rule about sources, and decides which sources it covers.

use std::{fmt, str::FromStr};

use thiserror::Error;
use url::Url;

use crate::{
    lock::LockedSource,
    registry::{canonical, is_namespace},
    source::HOSTS,
};

/// A source, as people name it in `savoir trust add` and in a policy.
///
/// | Rule | Covers |
/// |---|---|
/// | `github:anthropics` | every repository of that owner on github.com |
/// | `github:anthropics/skills` | that repository |
/// | `gitlab:…`, `codeberg:…`, `bitbucket:…` | the same on those hosts; GitLab has subgroups, too |
/// | `git:host/path` | repositories on that host whose path starts with those parts |
/// | `registry:https://host/registry#acme` | the skills `acme/…` of that registry |
/// | `registry:https://host/registry` | all skills of that registry |
/// | `local` | folders and files of this machine; only in a policy |
#[derive(Clone, Debug)]
pub struct SourceRule {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Git(Repository),
    Registry { address: String, namespace: Option<String> },
    Local,
}

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` is not a source to trust: {why}", text.escape_debug())]
pub struct RuleError {
    text: String,
    why: String,
}

impl RuleError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        "trusted_source"
    }
}

/// A repository or a part of a host, normalized for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    /// In lower case, with `:port` if it is not the default port.
    host: String,
    /// The components of the path, without `.git`; in lower case on hosts that ignore case.
    parts: Vec<String>,
}

impl SourceRule {
    /// Parses a rule that a user may trust.
    pub fn parse_trusted(text: &str) -> Result<Self, RuleError> {
        let rule: Self = text.parse()?;
        match rule.kind {
            // Trusting all folders would mean trusting whatever is cloned or unpacked there.
            Kind::Local => Err(error(text, "folders of this machine are not trusted as a whole")),
            _ => Ok(rule),
        }
    }

    /// Whether the rule covers a source. See
    /// [`TrustedSources::covers`](super::TrustedSources::covers) for the sources that may be
    /// passed.
    pub fn covers(&self, source: &LockedSource) -> bool {
        match (&self.kind, source) {
            (Kind::Git(rule), LockedSource::Git { url, .. }) => {
                let (address, query) = url.split_once('?').unwrap_or((url, ""));
                // Hosts serve commits of forks under the address of the original.
                !query.split('&').any(|part| part.starts_with("rev="))
                    && Repository::fetched(address).is_some_and(|found| rule.contains(&found))
            }
            (Kind::Registry { address, namespace }, LockedSource::Registry(text)) => {
                let (found, name) = text.split_once('#').unwrap_or((text, ""));
                canonical(found).is_ok_and(|found| found == *address)
                    && namespace.as_deref().is_none_or(|namespace| {
                        name.split_once('/').is_some_and(|(first, _)| first == namespace)
                    })
            }
            (Kind::Local, LockedSource::Path(_) | LockedSource::Adopted { .. }) => true,
            (Kind::Local, LockedSource::Git { url, .. }) => url.starts_with("file:"),
            _ => false,
        }
    }

    /// Whether the rule covers this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }
}

impl FromStr for SourceRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text == "local" {
            return Ok(Self { text: text.to_owned(), kind: Kind::Local });
        }
        let (word, rest) = text.split_once(':').ok_or_else(|| error(text, FORMS))?;
        let kind = match word {
            "registry" => registry(text, rest)?,
            "git" => Kind::Git(on_any_host(text, rest)?),
            word => {
                let host = HOSTS.iter().find(|(known, _)| *known == word);
                let (word, host) = host.ok_or_else(|| error(text, FORMS))?;
                Kind::Git(on_known_host(text, word, host, rest)?)
            }
        };
        Ok(Self { text: written(word, &kind), kind })
    }
}

const FORMS: &str = "write `github:owner`, `github:owner/repo`, `gitlab:group`, `git:host/path` or \
                     `registry:https://host/registry#namespace`";

fn error(text: &str, why: impl Into<String>) -> RuleError {
    RuleError { text: text.to_owned(), why: why.into() }
}

/// Formats the rule as it is stored.
fn written(word: &str, kind: &Kind) -> String {
    match kind {
        Kind::Local => "local".to_owned(),
        Kind::Registry { address, namespace: None } => format!("registry:{address}"),
        Kind::Registry { address, namespace: Some(name) } => format!("registry:{address}#{name}"),
        Kind::Git(Repository { host, parts }) if word == "git" => {
            let mut whole = vec![host.as_str()];
            whole.extend(parts.iter().map(String::as_str));
            format!("git:{}", whole.join("/"))
        }
        Kind::Git(Repository { parts, .. }) => format!("{word}:{}", parts.join("/")),
    }
}

fn registry(text: &str, rest: &str) -> Result<Kind, RuleError> {
    let (address, namespace) = match rest.split_once('#') {
        Some((address, namespace)) => (address, Some(namespace)),
        None => (rest, None),
    };
    let namespace = namespace.map(|name| name.strip_suffix("/*").unwrap_or(name).to_owned());
    if namespace.as_deref().is_some_and(|name| !is_namespace(name)) {
        return Err(error(text, "what follows `#` is not a namespace"));
    }
    let address = canonical(address).map_err(|why| error(text, why.to_string()))?;
    Ok(Kind::Registry { address, namespace })
}

fn on_known_host(text: &str, word: &str, host: &str, rest: &str) -> Result<Repository, RuleError> {
    let rest = rest.strip_suffix("/*").unwrap_or(rest);
    let parts = parts(host, rest)
        .filter(|parts| !parts.is_empty())
        .ok_or_else(|| error(text, format!("write `{word}:owner` or `{word}:owner/repo`")))?;
    if parts.len() > 2 && word != "gitlab" {
        let why = "folders of a repository cannot be trusted on their own";
        return Err(error(text, format!("{why}; write `{word}:{}/{}`", parts[0], parts[1])));
    }
    Ok(Repository { host: host.to_owned(), parts })
}

fn on_any_host(text: &str, rest: &str) -> Result<Repository, RuleError> {
    let usage = "write `git:host/path`, such as `git:git.acme.example/skills`";
    // A URL parser would drop such a part, so that the rule would cover the whole host.
    if rest.contains("://") || rest.contains(['@', '#', '?', '\\']) {
        return Err(error(text, usage));
    }
    let url = Url::parse(&format!("https://{rest}")).map_err(|_| error(text, usage))?;
    let written = rest.split_once('/').map_or("", |(_, path)| path);
    let host = authority(&url, 443).ok_or_else(|| error(text, usage))?;
    let parts = parts(&host, written).ok_or_else(|| error(text, usage))?;
    if parts.is_empty() && is_public(&host) {
        let why = format!("everyone can have a repository on {host}; name an owner");
        return Err(error(text, why));
    }
    Ok(Repository { host, parts })
}

/// Whether anyone can have repositories on a host.
fn is_public(host: &str) -> bool {
    HOSTS.iter().any(|(_, known)| *known == host)
}

impl Repository {
    /// Parses the address that git used. `None` for addresses that are never trusted: files of this
    /// machine, unauthenticated connections, and unusual paths.
    fn fetched(address: &str) -> Option<Self> {
        let (host, path) = match address.split_once("://") {
            Some(("https", _)) => {
                let url = Url::parse(address).ok()?;
                let plain = url.username().is_empty() && url.password().is_none();
                (authority(&url, 443).filter(|_| plain)?, path_as_written(address)?)
            }
            Some(("ssh", _)) => {
                let url = Url::parse(address).ok()?;
                // Other accounts of the same machine have other folders.
                let plain = url.username() == "git" && url.password().is_none();
                (authority(&url, 22).filter(|_| plain)?, path_as_written(address)?)
            }
            Some(_) => return None,
            None => {
                let (host, path) = address.strip_prefix("git@")?.split_once(':')?;
                let url = Url::parse(&format!("ssh://{host}/")).ok()?;
                (authority(&url, 22)?, path.strip_prefix('/').unwrap_or(path).to_owned())
            }
        };
        let parts = parts(&host, &path).filter(|parts| !parts.is_empty())?;
        // Wikis are repositories that strangers may be allowed to write to.
        let is_wiki = parts.last().is_some_and(|name| name.to_ascii_lowercase().ends_with(".wiki"));
        let is_owner_alone = is_public(&host) && parts.len() < 2;
        (!is_wiki && !is_owner_alone).then_some(Self { host, parts })
    }

    fn contains(&self, found: &Self) -> bool {
        self.host == found.host && found.parts.starts_with(&self.parts)
    }
}

/// Returns the host in lower case, with the port unless it is the default one.
fn authority(url: &Url, usual: u16) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    match url.port() {
        Some(port) if port != usual => Some(format!("{host}:{port}")),
        _ => Some(host).filter(|host| !host.is_empty()),
    }
}

/// Returns the path of an address before `..` is resolved, so that paths with such parts can be
/// rejected.
fn path_as_written(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    Some(rest.split_once('/')?.1.to_owned())
}

/// Returns the components of a path if each of them is an ordinary name.
fn parts(host: &str, path: &str) -> Option<Vec<String>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.strip_suffix(".git").unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    let is_ordinary = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.chars().all(|c| c == '.') && part.chars().all(plain)
    };
    let ignores_case = is_public(host);
    path.split('/')
        .map(|part| {
            let part = is_ordinary(part).then_some(part)?;
            Some(if ignores_case { part.to_ascii_lowercase() } else { part.to_owned() })
        })
        .collect()
}

impl fmt::Display for SourceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Two rules are equal if they cover the same sources, however they were written.
impl PartialEq for SourceRule {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for SourceRule {}
