//! One row for each skill: copies in several agents' folders share a row.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use savoir_package::{
    Agent, Tree,
    agents::Scope,
    ledger::{Details, EntryError, LedgerEntry, Origin},
    lock::LockedSource,
    trust::{self, SignatureError, Tier, TrustStore},
};
use serde::Serialize;

use crate::{
    agent_settings::DisabledSkills,
    copies::group_copies,
    error::CommandError,
    installed::{Installed, in_parallel, limit_names, source},
    lookup::sort_by_precedence,
};

const UNSIGNED: &str = "unsigned";

#[derive(Serialize)]
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    path: Cow<'a, str>,
    /// Other folders with the same files.
    copies: Vec<Cow<'a, str>>,
    scopes: BTreeSet<Scope>,
    /// Every agent that sees the skill.
    agents: Vec<&'static str>,
    /// The agents among them that are in use.
    pub(super) in_use: Vec<&'static str>,
    /// Symlinks to the folder.
    links: Vec<Cow<'a, str>>,
    origin: Option<Origin>,
    pub(super) version: Option<String>,
    description: Option<String>,
    source: Option<String>,
    /// The source as the user would type it.
    #[serde(skip)]
    pub(super) short_source: Option<String>,
    tier: Option<Tier>,
    /// `verified`, `community`, `experimental` or `unsigned`.
    pub(super) trust: &'static str,
    /// Agents in use for which the skill is disabled, and `savoir` if Savoir does not offer it.
    pub(super) disabled: Vec<&'static str>,
}

impl Row<'_> {
    pub(super) fn origin(&self) -> &'static str {
        self.origin.as_ref().map_or("plain", Origin::word)
    }

    /// The agents in use; agents for which the skill is disabled are marked.
    pub(super) fn shown_agents(&self) -> String {
        let shown = |id: &&'static str| {
            let mark = if self.disabled.contains(id) { " (off)" } else { "" };
            format!("{id}{mark}")
        };
        let shown: Vec<String> = self.in_use.iter().map(shown).collect();
        limit_names(shown.iter().map(String::as_str))
    }

    pub(super) fn scope(&self) -> &'static str {
        match self.scopes.first() {
            Some(Scope::Project) => "project",
            Some(Scope::System) => "system",
            Some(Scope::User) | None => "user",
        }
    }
}

/// An entry with the result of reading its SKILL.md.
type Read<'a> = (&'a LedgerEntry, Result<Details, EntryError>);

/// The rows of these skills. Entries of the same name must be adjacent.
pub(super) fn rows<'a>(
    entries: Vec<&'a LedgerEntry>,
    installed: &'a Installed,
    store: &TrustStore,
) -> Result<Vec<Row<'a>>, CommandError> {
    let off = DisabledSkills::read(&installed.in_use, installed, &Home::from_environment()?)?;
    let details = in_parallel(&entries, LedgerEntry::details);
    let mut read = entries.into_iter().zip(details).peekable();
    let mut rows = Vec::new();
    while let Some(first) = read.next() {
        let name = first.0.name();
        let mut of_name = vec![first];
        while let Some(next) = read.next_if(|(entry, _)| entry.name() == name) {
            of_name.push(next);
        }
        let groups = groups(of_name, installed).into_iter();
        rows.extend(groups.filter_map(|group| row(group, installed, store, &off)));
    }
    Ok(rows)
}

/// Groups copies of the same skill, in order of precedence.
fn groups<'a>(mut read: Vec<Read<'a>>, installed: &Installed) -> Vec<Vec<Read<'a>>> {
    if read.len() == 1 {
        return vec![read];
    }
    let order = sort_by_precedence(read.iter().map(|(entry, _)| *entry).collect(), installed);
    let mut sorted = Vec::with_capacity(read.len());
    for wanted in order {
        if let Some(at) = read.iter().position(|(entry, _)| std::ptr::eq(*entry, wanted)) {
            sorted.push(read.swap_remove(at));
        }
    }
    group_copies(sorted, |(entry, _)| installed.identity(entry))
}

/// The row of a group of copies; it shows the first folder.
fn row<'a>(
    group: Vec<Read<'a>>,
    installed: &'a Installed,
    store: &TrustStore,
    off: &DisabledSkills,
) -> Option<Row<'a>> {
    let mut scopes = BTreeSet::new();
    let mut agents: Vec<&'static Agent> = Vec::new();
    let (mut paths, mut links) = (Vec::new(), Vec::new());
    for (entry, _) in &group {
        paths.push(entry.path().to_string_lossy());
        let new = entry.agents().into_iter().filter(|agent| !agents.contains(agent));
        let new: Vec<_> = new.collect();
        agents.extend(new);
        for place in entry.places() {
            scopes.insert(place.scope());
            links.extend(place.link().map(Path::to_string_lossy));
        }
    }
    agents.sort_by_key(|agent| agent.id);
    let folders: Vec<PathBuf> = group.iter().map(|(entry, _)| entry.path().to_owned()).collect();
    let (entry, details) = group.into_iter().next()?;
    let details = details.ok();
    let locked = installed.locked_at(entry);
    let tier = locked.map(|locked| locked.skill.tier);
    let origin = details.as_ref().map(|details| details.origin.clone());
    let origin = origin.or_else(|| entry.recorded().cloned());
    let full = source(origin.as_ref(), locked).map(Cow::into_owned);
    let short = locked.map(|locked| short(&locked.skill.source)).or_else(|| full.clone());
    let by_lock = || {
        let version = locked.map(|locked| locked.skill.version.to_string())?;
        (version != "0.0.0").then_some(version)
    };
    let version = details.as_ref().and_then(|details| details.version.clone()).or_else(by_lock);
    let trust = match locked {
        // Anyone can edit a lockfile, so a tier above the lowest is checked against the signatures.
        Some(locked)
            if locked.skill.signature.is_some() && locked.skill.tier > Tier::Experimental =>
        {
            attested_tier(entry, version.as_deref(), store)
        }
        Some(locked) if locked.skill.signature.is_some() => locked.skill.tier.as_str(),
        Some(_) => UNSIGNED,
        None => attested_tier(entry, version.as_deref(), store),
    };
    let mut paths = paths.into_iter();
    let in_use = agents.iter().filter(|agent| installed.in_use.contains(agent));
    let in_use: Vec<&'static str> = in_use.map(|agent| agent.id).collect();
    let disabled = off.agents(entry.name(), &folders).map(|agent| agent.id);
    let disabled = disabled.filter(|id| in_use.contains(id));
    let disabled =
        disabled.chain(off.is_disabled_in_savoir(entry.name()).then_some("savoir")).collect();
    Some(Row {
        name: entry.name(),
        path: paths.next().unwrap_or_default(),
        copies: paths.collect(),
        scopes,
        disabled,
        in_use,
        agents: agents.iter().map(|agent| agent.id).collect(),
        links,
        origin,
        version,
        description: details.and_then(|details| details.description),
        source: full,
        short_source: short,
        tier,
        trust,
    })
}

/// The tier that the signatures in the folder attest.
fn attested_tier(entry: &LedgerEntry, version: Option<&str>, store: &TrustStore) -> &'static str {
    if !trust::is_signed(entry.path()) {
        return UNSIGNED;
    }
    let Ok(tree) = Tree::read(entry.path()) else { return "unreadable" };
    match trust::attest(&tree, entry.name(), version.unwrap_or_default(), store) {
        Ok(attestation) => attestation.tier.as_str(),
        Err(SignatureError::Revoked { .. }) => "revoked key",
        Err(_) => "wrong signature",
    }
}

/// A source as `savoir install` takes it.
fn short(source: &LockedSource) -> String {
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest).to_owned()
    };
    match source {
        LockedSource::Git { url, commit, path } => {
            let (url, query) = url.split_once('?').unwrap_or((url, ""));
            let place = match url.strip_prefix("https://github.com/") {
                Some(repository) => format!("github:{}", repository.trim_end_matches(".git")),
                None => url.strip_prefix("https://").unwrap_or(url).to_owned(),
            };
            let path = path.as_deref().map(|path| format!("/{path}")).unwrap_or_default();
            let reference = match query.split_once('=') {
                Some(("rev", _)) => format!("@{commit}"),
                Some((_, name)) => format!("@{name}"),
                None => String::new(),
            };
            format!("{place}{path}{reference}")
        }
        LockedSource::Registry(address) => match address.split_once('#') {
            Some((address, name)) => format!("{} {name}", host(address)),
            None => host(address),
        },
        LockedSource::WellKnown(address) => host(address),
        LockedSource::Path(text)
        | LockedSource::Url(text)
        | LockedSource::Adopted { from: Some(text), .. }
        | LockedSource::Adopted { path: text, from: None } => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use savoir_package::source::Source;

    use super::*;

    #[test]
    fn sources_are_shown_in_short_form() {
        let commit = "0123456789".repeat(4);
        for (text, shown) in [
            (
                format!("git+https://github.com/acme/skills#{commit}:skills/pdf"),
                "github:acme/skills/skills/pdf",
            ),
            (
                format!("git+https://github.com/acme/skills.git?tag=v1#{commit}:pdf"),
                "github:acme/skills/pdf@v1",
            ),
            (format!("git+https://git.example.com/s.git#{commit}"), "git.example.com/s.git"),
            (
                format!("git+file:///srv/git/s.git?branch=next#{commit}:skills/pdf"),
                "file:///srv/git/s.git/skills/pdf@next",
            ),
            ("path+../elsewhere/pdf".to_owned(), "../elsewhere/pdf"),
            ("registry+https://skills.example.com/registry".to_owned(), "skills.example.com"),
            (
                "registry+https://skills.example.com/registry#acme/pdf".to_owned(),
                "skills.example.com acme/pdf",
            ),
            ("well-known+https://docs.example.com/x".to_owned(), "docs.example.com"),
            ("adopted+./x#clawhub:pdf@1.2.0".to_owned(), "clawhub:pdf@1.2.0"),
        ] {
            assert_eq!(short(&text.parse().expect("a source")), shown);
            if text.starts_with("git+") {
                let read = Source::parse(shown, Path::new("/")).expect("it can be pasted");
                assert!(matches!(read, Source::Git(_)), "{read:?}");
            }
        }
    }
}
