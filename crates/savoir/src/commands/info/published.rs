//! `savoir info` for a skill in a registry.

use std::{collections::BTreeSet, fmt::Write as _, process::ExitCode};

use savoir_package::{
    SkillSummary,
    registry::{
        Client, Name, Network, Package, RegistryError,
        wire::{Attestations, Audit, IndexLine, PublishedAttestation, VersionDetail},
    },
    trust::{
        Tier, TrustStore,
        evaluation::{self, EvaluationOutcome},
    },
};
use savoir_skill::version::VersionRange;
use serde_json::{Value, json};

use super::super::{show::Page, verify::describe_current};
use crate::{
    error::CommandError, findings, installed::Installed, output, remote::Remote, runtime,
    trust::trust_store_for_run,
};

/// Most versions and changelog lines that are printed; `--json` has all.
const MAX_PRINTED_LINES: usize = 20;

/// Who signed a version whose signature does not count.
const UNREGISTERED_KEY: &str = "a key that is not registered in this registry";

pub(super) struct PublishedRef {
    name: Name,
    range: VersionRange,
}

impl PublishedRef {
    /// Parses `NAME` or `NAME@RANGE`; `None` if no published skill can have the name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, range) = match text.split_once('@') {
            Some((name, range)) => (name, VersionRange::parse(range).ok()?),
            None => (text, VersionRange::any()),
        };
        Some(Self { name: Name::parse(name).ok()?, range })
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }
}

/// The registry that `savoir install` would use: that of the namespace, even if only a lockfile
/// names it. `None` if no registry is configured.
pub(super) fn home(
    wanted: &PublishedRef,
    remote: &Remote,
    network: Network,
    installed: &Installed,
) -> Result<Option<Result<Client, CommandError>>, CommandError> {
    let registries = remote.all(network)?;
    if registries.owner_of(&wanted.name).is_none()
        && let Some(address) = locked_home(&wanted.name, installed)
    {
        return Ok(Some(registries.named(&address).map_err(CommandError::from)));
    }
    let is_any = registries.clients().next().is_some();
    Ok(is_any.then(|| remote.client_on(network, &wanted.name)))
}

/// The registry of the installed skills of a namespace, if it is the same for all.
fn locked_home(name: &Name, installed: &Installed) -> Option<String> {
    let namespace = name.namespace()?;
    let published = installed.locked.iter().filter_map(|one| one.skill.source.published(&one.name));
    let of_it = published.filter(|(_, name)| {
        Name::parse(name).is_ok_and(|known| known.namespace() == Some(namespace))
    });
    let homes: BTreeSet<&str> = of_it.map(|(address, _)| address).collect();
    homes.first().filter(|_| homes.len() == 1).map(|&address| address.to_owned())
}

/// One version of a skill, and the list of all versions.
struct PublishedDetails {
    registry: String,
    line: IndexLine,
    package: Package,
    /// Read from the files of the skill if the registry does not return it.
    description: String,
    /// `None` for a static mirror, which has only files.
    detail: Option<VersionDetail>,
    attestations: Result<Attestations, String>,
    trust: TrustStore,
}

pub(super) fn run(
    wanted: &PublishedRef,
    client: &Client,
    remote: &Remote,
    as_json: bool,
) -> Result<ExitCode, CommandError> {
    let known = runtime::block_on(async { Ok(ask(client, wanted).await?) })?;
    if as_json {
        output::json(&known.json())?;
    } else {
        output::text(&output::sanitize(&known.page(remote)))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(client: &Client, wanted: &PublishedRef) -> Result<PublishedDetails, RegistryError> {
    let unknown =
        || RegistryError::Unknown { name: wanted.name.clone(), registry: client.address() };
    let package = client.index(&wanted.name).await?.ok_or_else(unknown)?;
    let fits = package.iter().filter(|line| wanted.range.matches(&line.version));
    let none = || match package.find_taken_down_in(&wanted.range) {
        Some(gone) => RegistryError::taken_down(gone, client.address()),
        None => RegistryError::NoFit {
            name: wanted.name.clone(),
            range: wanted.range.to_string(),
            registry: client.address(),
        },
    };
    let rank =
        |line: &&IndexLine| (!line.yanked, line.version.pre.is_empty(), line.version.clone());
    let line = fits.max_by_key(rank).ok_or_else(none)?.clone();
    let (description, detail) = match client.version(&wanted.name, &line.version).await {
        Ok(detail) => (detail_text(&detail, "description"), Some(detail)),
        // A static mirror has only files.
        Err(RegistryError::NoVersion(_)) => {
            let tree = client.download(&line).await?;
            let summary = SkillSummary::read(&tree, line.name.last());
            (summary.map(|summary| summary.description).unwrap_or_default(), None)
        }
        Err(error) => return Err(error),
    };
    let trust = trust_store_for_run().unwrap_or_default();
    let attestations = client.attestations_of(&line, &trust).await;
    let attestations = attestations.map_err(|error| error.to_string());
    let registry = client.address();
    Ok(PublishedDetails { registry, line, package, description, detail, attestations, trust })
}

/// A text field of the frontmatter.
fn detail_text(detail: &VersionDetail, key: &str) -> String {
    detail.manifest.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl PublishedDetails {
    fn json(&self) -> Value {
        let versions = self.package.iter().rev().map(|line| {
            json!({
                "version": line.version.to_string(), "tier": line.earned(),
                "claimed_tier": line.claimed, "yanked": line.yanked,
                "yanked_reason": line.yanked_reason, "deprecated": line.deprecated, "published_at": line.published_at,
                "signer": line.signer,
            })
        });
        json!({
            "registry": self.registry,
            "published": self.line,
            "tier": self.tier(),
            "claimed_tier": self.line.claimed,
            "description": self.description,
            "detail": self.detail,
            "attestations": self.attestations.as_ref().map(|found| &found.items).ok(),
            "attestations_disagree": self.attestations.as_ref().map(|found| found.disagree).ok(),
            "attestations_error": self.attestations.as_ref().err(),
            "versions": versions.collect::<Vec<_>>(),
        })
    }

    fn page(&self, remote: &Remote) -> String {
        let (line, detail) = (&self.line, self.detail.as_ref());
        let says = |key| detail.map(|detail| detail_text(detail, key)).unwrap_or_default();
        let mut page = Page::default();
        page.field("name", &line.name.to_string());
        page.field("version", &line.version.to_string());
        page.field("registry", &self.registry);
        self.warnings(&mut page);
        page.field("description", &self.description);
        page.field("author", &says("author"));
        page.field("license", &says("license"));
        let tags = detail.and_then(|detail| detail.manifest.get("tags")?.as_array());
        let tags = tags.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        page.field("tags", &tags.join(", "));
        page.field("homepage", &says("homepage"));
        page.field("repository", &says("repository"));
        page.field("published", line.published_at.as_deref().unwrap_or_default());
        let publisher = detail.and_then(|detail| detail.publisher.as_deref());
        page.field("publisher", publisher.unwrap_or_default());
        let changelog = detail.and_then(|detail| detail.changelog.as_deref());
        page.field("changelog", &changes(changelog.unwrap_or_default()));
        page.field("registry tier", self.tier().as_str());
        page.field("claimed tier", &self.claimed_tier_text());
        let unknown_key = detail.is_some_and(|detail| detail.signature.is_some());
        let nobody = if unknown_key { UNREGISTERED_KEY } else { "nobody" };
        let signer = line.signer.as_deref().unwrap_or(nobody);
        // A skill without a namespace has its own publishers.
        let alone = signer.strip_prefix("_/").map(|name| format!("the publishers of {name}"));
        page.field("signed by", alone.as_deref().unwrap_or(signer));
        page.list("permissions", or_none(&line.permissions));
        page.list("tools", or_none(&line.tools));
        page.list("needs", or_none(&line.dependencies));
        match detail.map(|detail| detail.audit.as_ref()) {
            Some(Some(audit)) => print_audit(audit, &mut page),
            Some(None) => page.field("scan", "none yet"),
            None => page.field("scan", "unknown: this registry is a static mirror"),
        }
        self.evaluations(&mut page);
        page.field("archive", &output::plural(usize::try_from(line.size).unwrap_or(0), "byte"));
        page.field("integrity", &line.integrity);
        self.versions(&mut page);
        page.field("install", &self.install(remote));
        page.text
    }

    /// The tier that it earned, as `search` and `publish` print it.
    fn tier(&self) -> Tier {
        self.detail.as_ref().map_or(self.line.earned(), |detail| detail.security_tier)
    }

    /// The claimed tier, if it differs from the earned one.
    fn claimed_tier_text(&self) -> String {
        match (self.line.claimed, self.tier()) {
            (Some(claimed), earned) if claimed > earned => {
                format!("{claimed}, but not earned: {}", self.missing_for_next_tier())
            }
            (Some(claimed), earned) if claimed < earned => {
                format!("{claimed}, which limits its trust")
            }
            _ => String::new(),
        }
    }

    /// Why the tier is not higher.
    fn missing_for_next_tier(&self) -> String {
        let Some(detail) = &self.detail else { return "this registry is a static mirror".into() };
        let verdict = detail.audit.as_ref().map(|audit| &audit.verdict);
        match (self.tier(), &self.line.signer, &detail.signature, verdict) {
            (Tier::Verified | Tier::Community, ..) => "no auditor of the registry signed it".into(),
            (_, None, None, _) => "it is unsigned".into(),
            // A registered key does not help before the findings are resolved.
            (_, _, Some(_), Some(verdict)) if !verdict.eq_ignore_ascii_case("allow") => {
                format!("the scan of the registry says {verdict}")
            }
            (_, None, Some(_), _) => {
                let team = self.line.name.namespace().unwrap_or(self.line.name.last());
                format!(
                    "the key that signed it is not registered for `{team}`: savoir registry keys add"
                )
            }
            (_, _, _, None) => "the registry has not scanned it yet".into(),
            (_, _, _, Some(verdict)) => format!("the scan of the registry says {verdict}"),
        }
    }

    fn warnings(&self, page: &mut Page) {
        if self.line.yanked {
            page.field("yanked", "existing installs keep working, new installs skip this version");
            page.field("reason", self.line.yanked_reason.as_deref().unwrap_or_default());
        }
        let deprecated = self.detail.as_ref().and_then(|detail| detail.deprecated.as_deref());
        let deprecated = deprecated.or(self.line.deprecated.as_deref());
        page.field("deprecated", deprecated.unwrap_or_default());
    }

    /// Who measured the version. Each attester is shown by itself; the signatures are checked with
    /// the keys of this machine.
    fn evaluations(&self, page: &mut Page) {
        let attestations = match &self.attestations {
            Ok(attestations) => attestations,
            Err(why) => return page.field("evaluated", &format!("could not be fetched: {why}")),
        };
        let name = self.line.name.last();
        let describe = |one: &PublishedAttestation| {
            let bytes = one.statement.to_string();
            match evaluation::check(bytes.as_bytes(), &self.line.integrity, &self.trust) {
                EvaluationOutcome::Current(signed) => {
                    let date = signed.evaluation.finished.get(..10).unwrap_or_default();
                    format!("{}, {date}", describe_current(&signed, name))
                }
                EvaluationOutcome::OtherFiles => "other files than these".to_owned(),
                EvaluationOutcome::Broken { reason, .. } => format!("invalid: {reason}"),
            }
        };
        let disagree = "the evaluations disagree: compare their models and cases".to_owned();
        let disagree = attestations.disagree.then_some(disagree);
        page.list("evaluated", attestations.items.iter().map(describe).chain(disagree));
    }

    fn versions(&self, page: &mut Page) {
        let shown = |line: &IndexLine| {
            let mut text = line.version.to_string();
            if line.yanked {
                text.push_str(", yanked");
                if let Some(reason) = &line.yanked_reason {
                    // Writing to a string cannot fail.
                    let _ = write!(text, " ({})", output::cell(reason));
                }
            }
            if line.deprecated.is_some() {
                text.push_str(", deprecated");
            }
            text
        };
        let mut lines: Vec<&IndexLine> = self.package.iter().collect();
        lines.sort_by(|one, other| other.version.cmp(&one.version));
        let more = lines.len().saturating_sub(MAX_PRINTED_LINES);
        let more = (more > 0).then(|| format!("and {more} more: see --json"));
        page.list("versions", lines.into_iter().take(MAX_PRINTED_LINES).map(shown).chain(more));
    }

    fn install(&self, remote: &Remote) -> String {
        let IndexLine { name, version, .. } = &self.line;
        // A pre-release is only installed by its exact version.
        let range =
            if version.pre.is_empty() { format!("^{version}") } else { version.to_string() };
        let from = remote.registry.as_deref();
        let from = from.map(|registry| format!(" --registry {registry}")).unwrap_or_default();
        format!("savoir install {name}@{range}{from}")
    }
}

/// The first lines of the changelog.
fn changes(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    match lines.len().saturating_sub(MAX_PRINTED_LINES) {
        0 => lines.join("\n"),
        more => {
            format!("{}\nand {more} more lines: see --json", lines[..MAX_PRINTED_LINES].join("\n"))
        }
    }
}

fn or_none(items: &[String]) -> impl Iterator<Item = String> {
    let none = items.is_empty().then(|| "none".to_owned());
    items.iter().cloned().chain(none)
}

fn print_audit(audit: &Audit, page: &mut Page) {
    let when = audit.audited_at.as_deref().map(|when| format!(" on {when}")).unwrap_or_default();
    let who = audit.engine.as_deref().map(|who| format!(" by {who}")).unwrap_or_default();
    page.field("scan", &format!("{}{who}{when}", audit.verdict));
    page.list("findings", findings::lines(&audit.findings, finding).into_iter());
}

/// A finding with its severity.
fn finding(finding: &Value) -> String {
    let grave = findings::finding_text(finding, &["severity", "level"]);
    let line = findings::line(finding);
    if grave.is_empty() { line } else { format!("{}  {line}", output::cell(&grave)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_references_are_parsed() {
        let wanted = PublishedRef::parse("acme/pdf@^1.2").unwrap();
        assert_eq!(
            (wanted.name.to_string(), wanted.range.to_string()),
            ("acme/pdf".into(), "^1.2".into())
        );
        assert!(PublishedRef::parse("pdf").unwrap().range.is_any());
        for text in ["./pdf", "Pdf", "pdf@not a range", ".claude/skills/pdf", ""] {
            assert!(PublishedRef::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn long_changelogs_are_cut() {
        assert_eq!(changes("\none\ntwo\n"), "one\ntwo");
        let text = changes(&"line\n".repeat(MAX_PRINTED_LINES + 3));
        assert!(text.ends_with("line\nand 3 more lines: see --json"), "{text}");
    }

    #[test]
    fn findings_of_any_shape() {
        let one = json!({"severity": "high", "code": "S1", "message": "It deletes files.", "path": "a.py"});
        assert_eq!(finding(&one), "high  a.py: S1: It deletes files.");
        assert_eq!(finding(&json!("plain")), "\"plain\"");
    }
}
