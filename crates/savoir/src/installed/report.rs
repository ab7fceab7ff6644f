//! Formats installed skills as text and as JSON.

use std::{borrow::Cow, fmt::Write as _};

use savoir_package::{
    Agent,
    agents::Scope,
    ledger::{Drift, LedgerEntry, NpxOrigin, Origin, SkillLocation},
};
use serde::Serialize;

use super::{ExaminedSkill, Installed, Locked};

/// Maximum number of agents that are named; the others are counted.
const MAX_NAMED_AGENTS: usize = 2;

/// A skill as JSON.
#[derive(Serialize)]
pub(crate) struct InstalledSkillJson<'a> {
    name: &'a str,
    path: Cow<'a, str>,
    /// The scopes of its folders.
    scopes: Vec<Scope>,
    /// Every agent that sees the skill.
    agents: Vec<&'static str>,
    /// The agents among them that are in use.
    in_use: Vec<&'static str>,
    /// Symlinks to the folder.
    links: Vec<Cow<'a, str>>,
    /// The tool that installed it, from lockfiles and, once it was read, from the skill itself.
    origin: Option<&'a Origin>,
    #[serde(flatten)]
    findings: Option<SkillFindings<'a>>,
}

/// The results of reading a skill.
#[derive(Serialize)]
pub(crate) struct SkillFindings<'a> {
    version: Option<&'a str>,
    description: Option<&'a str>,
    source: Option<Cow<'a, str>>,
    state: &'static str,
    why: Option<String>,
    /// The newer version that the last update check found.
    update: Option<&'a str>,
    /// A notice of the registry, if it yanked, removed or deprecated the version.
    advice: Option<&'a str>,
    /// The day of that notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    advised_on: Option<&'a str>,
    /// Other tools that claim to have installed it.
    claims: &'a [Origin],
    warnings: Vec<String>,
}

impl<'a> InstalledSkillJson<'a> {
    /// The fields that are known without reading the skill.
    pub(crate) fn seen(entry: &'a LedgerEntry, installed: &Installed) -> Self {
        let agents = entry.agents();
        let is_used = |agent: &&&'static Agent| installed.in_use.contains(agent);
        let mut scopes: Vec<Scope> = entry.places().iter().map(SkillLocation::scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let links = entry.places().iter().filter_map(|place| place.link());
        Self {
            name: entry.name(),
            path: entry.path().to_string_lossy(),
            scopes,
            in_use: agents.iter().filter(is_used).map(|agent| agent.id).collect(),
            agents: agents.iter().map(|agent| agent.id).collect(),
            links: links.map(|link| link.to_string_lossy()).collect(),
            origin: entry.recorded(),
            findings: None,
        }
    }

    /// The same with the results of reading the skill.
    pub(crate) fn examined(examined: &'a ExaminedSkill<'a>, installed: &'a Installed) -> Self {
        let findings = SkillFindings::of(examined, installed);
        let origin = examined.origin();
        Self { origin, findings: Some(findings), ..Self::seen(examined.entry, installed) }
    }
}

impl<'a> SkillFindings<'a> {
    fn of(examined: &'a ExaminedSkill<'a>, installed: &'a Installed) -> Self {
        let details = examined.details.as_ref().ok();
        let (state, why) = state(examined);
        let locked = installed.locked_at(examined.entry);
        let warnings = details.iter().flat_map(|details| &details.warnings);
        Self {
            version: details.and_then(|details| details.version.as_deref()),
            description: details.and_then(|details| details.description.as_deref()),
            source: source(examined.origin(), locked),
            state,
            why,
            update: examined.newer.as_deref(),
            advice: examined.advice.as_deref(),
            advised_on: examined.advised_on.as_deref(),
            claims: details.map_or(&[], |details| &details.claims),
            warnings: warnings.map(ToString::to_string).collect(),
        }
    }
}

/// The state of a skill, and the reason if it is broken or unknown.
pub(crate) fn state(examined: &ExaminedSkill<'_>) -> (&'static str, Option<String>) {
    match (&examined.details, &examined.drift) {
        (Err(error), _) => ("broken", Some(error.to_string())),
        (Ok(_), Drift::Unmodified) => ("unmodified", None),
        (Ok(_), Drift::Modified) => ("modified", None),
        (Ok(_), Drift::Unknown(why)) => ("unknown", Some(why.to_string())),
    }
}

/// The source of a skill.
pub(crate) fn source<'a>(
    origin: Option<&'a Origin>,
    locked: Option<&Locked>,
) -> Option<Cow<'a, str>> {
    match origin? {
        Origin::Savoir { .. } => Some(Cow::Owned(locked?.skill.source.to_string())),
        Origin::Npx(npx) => Some(npx_source(npx)),
        Origin::Gh(gh) => {
            let repo = gh.repo.strip_prefix("https://github.com/").unwrap_or(&gh.repo);
            Some(at(repo, gh.pinned.as_deref().or(gh.reference.as_deref())))
        }
        Origin::ClawHub(hub) => Some(match &hub.owner {
            Some(owner) => Cow::Owned(format!("@{owner}/{}", hub.slug)),
            None => Cow::Borrowed(&hub.slug),
        }),
        Origin::Plain => None,
    }
}

fn npx_source(npx: &NpxOrigin) -> Cow<'_, str> {
    at(&npx.source, npx.pinned.as_deref().or(npx.reference.as_deref()))
}

fn at<'a>(source: &'a str, reference: Option<&str>) -> Cow<'a, str> {
    let short = |reference: &str| {
        let known = ["refs/heads/", "refs/tags/"];
        known.iter().find_map(|prefix| reference.strip_prefix(prefix).map(str::to_owned))
    };
    match reference {
        None => Cow::Borrowed(source),
        Some(reference) => {
            let reference = short(reference).unwrap_or_else(|| reference.to_owned());
            Cow::Owned(format!("{source}@{reference}"))
        }
    }
}

/// `claude-code, codex +3`, or a dash.
pub(crate) fn limit_names<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = ids.collect();
    let named = ids.len().min(MAX_NAMED_AGENTS);
    let mut text = ids[..named].join(", ");
    if ids.len() > named {
        // Writing to a string cannot fail.
        let _ = write!(text, " +{}", ids.len() - named);
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Caches the texts of the AGENTS column, because most skills are in the same few folders.
#[derive(Default)]
pub(crate) struct SeenBy<'a> {
    known: Vec<(&'a LedgerEntry, String)>,
}

impl<'a> SeenBy<'a> {
    pub(crate) fn by(&mut self, entry: &'a LedgerEntry, installed: &Installed) -> String {
        let known = self.known.iter().find(|(known, _)| same_folders(known, entry));
        if let Some((_, text)) = known {
            return text.clone();
        }
        let agents = entry.agents();
        let used = agents.iter().filter(|agent| installed.in_use.contains(agent));
        let text = limit_names(used.map(|agent| agent.id));
        self.known.push((entry, text.clone()));
        text
    }
}

fn same_folders(a: &LedgerEntry, b: &LedgerEntry) -> bool {
    let folders = |entry: &LedgerEntry| entry.places().len();
    let pairs = a.places().iter().zip(b.places());
    folders(a) == folders(b) && pairs.into_iter().all(|(a, b)| std::ptr::eq(a.folder(), b.folder()))
}
