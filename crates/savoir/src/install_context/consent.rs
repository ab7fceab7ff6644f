//! Asks for consent before skills are installed, with one screen and one question.

mod screen;

use std::{collections::BTreeSet, path::Path};

use savoir_engine::approval::shell_word;
use savoir_package::{
    install::{
        CheckedSkill, FetchReason, FileChange, InstallPlan, InstallQuestion, InstallRefusal,
        PlannedChange,
    },
    lock::{AddedCapability, Capability, Lock, LockedSkill, LockedSource},
    source::{Commit, PinnedSource, Reference},
    trust::{Tier, TrustedSources},
};
use semver::Version;
use serde_json::{Value, json};

use self::screen::Screen;
use super::Skipped;
use crate::{ask, error::CommandError, output};

/// Names that a message lists.
const MAX_LISTED_NAMES: usize = 8;

/// The value of --accept for all new permissions and tools.
const ACCEPT_ALL: &str = "all";

/// Consent from the command line.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Consent")]
pub(crate) struct Consent {
    /// Install what is shown without confirmation
    #[arg(long, short, visible_alias = "allow-experimental", overrides_with = "yes")]
    pub(crate) yes: bool,
    /// Install this skill even if the scan blocks it; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allow_blocked: Vec<String>,
    /// Accept a permission or tool that a new version adds, or `all`; may be repeated
    #[arg(long, value_name = "PERMISSION")]
    accept: Vec<String>,
}

/// The change that a command proposes.
#[derive(Clone, Copy)]
pub(crate) struct Proposal<'a> {
    /// `Install` or `Update`.
    pub(crate) verb: &'static str,
    pub(crate) ready: &'a [CheckedSkill],
    /// Skills that the user agreed to before.
    pub(crate) agreed: &'a Lock,
    /// Sources that the user trusts.
    pub(crate) trusted: &'a TrustedSources,
    pub(crate) skipped: &'a [Skipped],
    /// Whether a user on a terminal is asked even if nothing needs consent.
    pub(crate) always_asks: bool,
    /// More lines for the user, such as a list of changed files.
    pub(crate) notes: &'a str,
}

impl Consent {
    /// Consent to blocked skills only.
    pub(crate) fn to_blocked(names: &[String]) -> Self {
        Self { allow_blocked: names.to_vec(), ..Self::default() }
    }

    /// Whether this was accepted by its name.
    pub(crate) fn accepts(&self, word: &str) -> bool {
        self.accept.iter().any(|accepted| accepted == word || accepted == ACCEPT_ALL)
    }

    /// Shows what a plan installs, and asks once if consent is needed. Returns whether the user
    /// agreed. Without a terminal, returns an error.
    pub(crate) fn ask(
        &self,
        proposal: Proposal<'_>,
        plan: &mut InstallPlan,
    ) -> Result<bool, CommandError> {
        self.accept_growth(plan);
        let growth: Vec<AddedCapability> = plan.added_capabilities().to_vec();
        let open = self.open(proposal, plan);
        let screen = Screen { open: &open, plan, proposal, growth: &growth };
        let page = screen.page();
        let must_ask = !growth.is_empty() || open.iter().any(OpenSkill::needs_consent);
        let is_asked = must_ask || proposal.always_asks && !self.yes && !plan.is_empty();
        if !is_asked || !must_ask && !ask::is_interactive() {
            output::print_to_stderr(&page);
            return Ok(true);
        }
        if !ask::can_ask() {
            output::print_to_stderr(&page);
            return Err(missing_consent_error(&open, &growth));
        }
        let question = format!("{page}\n{}", screen.question());
        if ask::line(&question, &ask::yes_or_no)? != Some(true) {
            return Ok(false);
        }
        accept(plan, ACCEPT_ALL);
        Ok(true)
    }

    /// Shows what a plan would install without asking.
    pub(crate) fn show(&self, proposal: Proposal<'_>, plan: &mut InstallPlan) {
        self.accept_growth(plan);
        let growth: Vec<AddedCapability> = plan.added_capabilities().to_vec();
        let open = self.open(proposal, plan);
        output::print_to_stderr(&Screen { open: &open, plan, proposal, growth: &growth }.page());
    }

    /// Accepts the new permissions and tools that the command line names.
    fn accept_growth(&self, plan: &mut InstallPlan) {
        for word in &self.accept {
            accept(plan, word);
        }
    }

    /// The skills that a plan installs or changes, with the open questions about each.
    fn open<'a>(&self, proposal: Proposal<'a>, plan: &InstallPlan) -> Vec<OpenSkill<'a>> {
        let changed: BTreeSet<&str> = plan.changes().iter().filter_map(changed_skill).collect();
        let ready = proposal.ready.iter();
        let ready = ready.filter(|ready| changed.contains(ready.summary.name.as_str()));
        let files = plan.files();
        ready.map(|ready| self.open_one(ready, proposal, &files)).collect()
    }

    fn open_one<'a>(
        &self,
        ready: &'a CheckedSkill,
        proposal: Proposal<'a>,
        files: &[FileChange<'_>],
    ) -> OpenSkill<'a> {
        let trusted = proposal.trusted.covers(&ready.source).map(ToString::to_string);
        let old = proposal.agreed.skills.get(&ready.summary.name);
        let replaced = old.filter(|old| origin(&old.source) != origin(&ready.source));
        let before = replaced.map(|old| old.source.to_string());
        // The user agreed to the version that this one replaces.
        let agreed = old.filter(|_| ready.why == FetchReason::Update);
        let mut questions = ready.questions();
        questions.retain(|question| match question {
            _ if self.yes => false,
            // Findings of the scan need consent even for trusted sources.
            InstallQuestion::Experimental | InstallQuestion::Permission(_) if trusted.is_some() => {
                false
            }
            InstallQuestion::Experimental => {
                agreed.is_none_or(|old| old.tier != Tier::Experimental)
            }
            InstallQuestion::Permission(permission) => {
                agreed.is_none_or(|old| !old.permissions.contains(permission))
                    && !self.accepts(&permission.to_string())
            }
            InstallQuestion::Review(_) => true,
        });
        // The user agreed to an unsigned skill, but not to programs that it did not have.
        let is_unknown_code = agreed.is_some()
            && trusted.is_none()
            && ready.tier == Tier::Experimental
            && !self.yes
            && !self.accepts(ACCEPT_ALL);
        let new_scripts =
            if is_unknown_code { screen::new_scripts(ready, files) } else { Vec::new() };
        let moved = old.and_then(|old| moved_tag(&old.source, &ready.source));
        let lost = old.and_then(|old| lost_signature(old, ready));
        let notes = moved.into_iter().chain(lost).collect();
        OpenSkill { ready, questions, new_scripts, before, notes, trusted }
    }

    /// Skills that the scan blocks and that were not allowed by name, with the reason.
    pub(crate) fn take_blocked(&self, ready: &mut Vec<CheckedSkill>) -> Vec<Skipped> {
        let mut blocked = Vec::new();
        ready.retain(|one| {
            let Some(InstallRefusal::Scan(findings)) = self.blocks(one) else { return true };
            let error = self::blocked_error(&[&one.summary.name], &screen::findings(&findings));
            blocked.push(Skipped::new(&one.summary.name, &one.source.to_string(), error));
            false
        });
        blocked
    }

    /// Refuses skills that the scan blocks.
    pub(crate) fn refuse_blocked(&self, ready: &[CheckedSkill]) -> Result<(), CommandError> {
        let mut names = Vec::new();
        let mut page = String::new();
        for one in ready {
            if let Some(InstallRefusal::Scan(findings)) = self.blocks(one) {
                names.push(one.summary.name.as_str());
                page.push_str(&screen::blocked_skill_text(one, &findings));
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        output::print_to_stderr(&page);
        Err(blocked_error(&names, ""))
    }

    fn blocks(&self, ready: &CheckedSkill) -> Option<InstallRefusal> {
        let allowed = self.allow_blocked.contains(&ready.summary.name);
        ready.refusals().into_iter().next().filter(|_| !allowed)
    }
}

/// Removes skills that would replace installed ones from another source. Installing all skills of a
/// repository must not replace skills of another one.
pub(crate) fn take_replacing(ready: &mut Vec<CheckedSkill>, lock: &Lock) -> Vec<Skipped> {
    let mut taken = Vec::new();
    ready.retain(|one| {
        let name = &one.summary.name;
        let old = lock.skills.get(name).filter(|old| vendor(&old.source) != vendor(&one.source));
        let Some(old) = old else { return true };
        let message = format!("another `{name}` is installed, from {}", old.source);
        let error = CommandError::input(message)
            .with_code("other-source")
            .hint(format!("to replace it, name it: --skill {name}"));
        taken.push(Skipped::new(name, &one.source.to_string(), error));
        false
    });
    taken
}

/// The description of one skill.
pub(crate) fn describe_skill(ready: &CheckedSkill) -> String {
    let mut page = String::new();
    let (questions, new_scripts, notes) = (Vec::new(), Vec::new(), Vec::new());
    let open = OpenSkill { ready, questions, new_scripts, before: None, notes, trusted: None };
    screen::describe(&mut page, &open);
    page
}

/// A skill that a plan installs, and its open questions.
struct OpenSkill<'a> {
    ready: &'a CheckedSkill,
    questions: Vec<InstallQuestion>,
    /// Scripts that an update of an unsigned skill adds.
    new_scripts: Vec<String>,
    /// The source of the skill that it replaces, if different.
    before: Option<String>,
    /// Suspicious changes since the installed version: its tag moved to another commit, or its
    /// signature was removed.
    notes: Vec<String>,
    /// The rule by which the user trusts its source.
    trusted: Option<String>,
}

impl OpenSkill<'_> {
    fn needs_consent(&self) -> bool {
        !self.questions.is_empty() || !self.new_scripts.is_empty()
    }
}

/// Digits of a commit to show.
const COMMIT_DIGITS: usize = 7;

/// The note that the tag of an installed skill moved.
fn moved_tag(old: &LockedSource, new: &LockedSource) -> Option<String> {
    let git = |source: &LockedSource| match PinnedSource::parse(&source.to_string(), Path::new("."))
    {
        Ok(PinnedSource::Git(place)) => Some(place),
        _ => None,
    };
    let (old, new) = (git(old)?, git(new)?);
    let short = |commit: &Commit| commit.as_str()[..COMMIT_DIGITS].to_owned();
    match (&old.reference, &new.reference) {
        (Some(Reference::Tag(tag)), Some(Reference::Tag(now)))
            if tag == now && old.url == new.url && old.commit != new.commit =>
        {
            let (from, to) = (short(&old.commit), short(&new.commit));
            Some(format!("tag {tag} moved from {from} to {to}"))
        }
        _ => None,
    }
}

/// The note that the installed version was signed and the new one is not.
fn lost_signature(old: &LockedSkill, ready: &CheckedSkill) -> Option<String> {
    let key = old.signature.as_ref().filter(|_| ready.attestation.signed.is_none())?;
    let by = old.signer.as_deref().filter(|signer| !signer.is_empty()).unwrap_or(key);
    let version = if old.version == Version::new(0, 0, 0) {
        "what is installed".to_owned()
    } else {
        old.version.to_string()
    };
    Some(format!("{version} was signed by {by}, and this version is not signed"))
}

/// The name of a skill that a change installs or replaces.
fn changed_skill(change: &PlannedChange) -> Option<&str> {
    match change {
        PlannedChange::New { name, .. } | PlannedChange::Updated { name, .. } => Some(name),
        _ => None,
    }
}

/// The owner of a skill: repositories may move skills to other folders.
fn vendor(source: &LockedSource) -> String {
    match source {
        // The query names a branch or a tag.
        LockedSource::Git { url, .. } => url.split('?').next().unwrap_or_default().to_owned(),
        other => origin(other),
    }
}

/// A source without the commit or digest: the same for every version of a skill, and different for
/// another folder of the same repository.
fn origin(source: &LockedSource) -> String {
    match source {
        LockedSource::Git { url, path, .. } => {
            format!("git+{url}:{}", path.as_deref().unwrap_or_default())
        }
        LockedSource::Url(text) => {
            let (address, exact) = text.split_once('#').unwrap_or((text, ""));
            // `sha256:…`, and the folder in the archive behind another colon.
            format!("url+{address}:{}", exact.splitn(3, ':').nth(2).unwrap_or_default())
        }
        LockedSource::WellKnown(text) => {
            let (address, exact) = text.split_once('#').unwrap_or((text, ""));
            format!("well-known+{address}#{}", exact.split(':').next().unwrap_or_default())
        }
        LockedSource::Adopted { path, .. } => format!("adopted+{path}"),
        LockedSource::Registry(_) | LockedSource::Path(_) => source.to_string(),
    }
}

fn accept(plan: &mut InstallPlan, word: &str) {
    if word != ACCEPT_ALL {
        plan.accept(word);
        return;
    }
    let words: Vec<String> = plan.added_capabilities().iter().map(right).collect();
    for word in words {
        plan.accept(&word);
    }
}

/// A new permission or tool, as a value of `--accept`.
fn right(growth: &AddedCapability) -> String {
    match &growth.capability {
        Capability::Permission(permission) => permission.to_string(),
        Capability::Tool(tool) => tool.clone(),
    }
}

fn blocked_error(names: &[&str], findings: &str) -> CommandError {
    let message = format!("the scan blocks {}{findings}", quote_names(names));
    let failed = CommandError::refused(message).with_code("blocked");
    let failed = failed.hint("`savoir scan` shows every finding and why it matters");
    failed.hint(format!("to install it anyway: --allow-blocked {}", names.join(",")))
}

/// The error if there is no terminal: the open questions and the missing flags.
fn missing_consent_error(open: &[OpenSkill<'_>], growth: &[AddedCapability]) -> CommandError {
    let unanswered: Vec<&OpenSkill<'_>> = open.iter().filter(|open| open.needs_consent()).collect();
    let names: Vec<&str> = unanswered.iter().map(|open| open.ready.summary.name.as_str()).collect();
    let mut flags = Vec::new();
    let failed = if growth.is_empty() {
        let only_scripts = unanswered.iter().all(|open| open.questions.is_empty());
        let reason = if only_scripts { ", because it adds scripts" } else { "" };
        let message = format!("installing {} needs your consent{reason}", quote_names(&names));
        CommandError::refused(message).with_code("not_agreed")
    } else {
        let lines: Vec<String> = growth.iter().map(ToString::to_string).collect();
        flags.push(match growth {
            [one] => format!("--accept {}", shell_word(&right(one))),
            _ => format!("--accept {ACCEPT_ALL}"),
        });
        CommandError::refused(lines.join("\n")).with_code("wants_more")
    };
    if !names.is_empty() {
        flags.insert(0, "--yes".to_owned());
    }
    let hint = format!("nothing was changed; to agree to what is shown, add: {}", flags.join(" "));
    failed.hint(hint)
}

fn quote_names(names: &[&str]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(MAX_LISTED_NAMES).map(|name| format!("`{name}`")).collect();
    if names.len() > MAX_LISTED_NAMES {
        shown.push(format!("{} more", names.len() - MAX_LISTED_NAMES));
    }
    match shown.as_slice() {
        [] | [_] => shown.concat(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A skill as JSON.
pub(crate) fn json(ready: &CheckedSkill) -> Value {
    let decisions = ready.decisions();
    let permissions = decisions.iter().map(|(permission, decision)| {
        json!({ "permission": permission.to_string(), "decision": decision })
    });
    let warnings =
        ready.summary.warnings.iter().map(
            |found| json!({ "rule": found.rule, "message": found.message, "line": found.line }),
        );
    json!({
        "name": ready.summary.name,
        "version": ready.summary.version.to_string(),
        "description": ready.summary.description,
        "dialect": ready.summary.dialect,
        "source": ready.source.to_string(),
        "integrity": ready.tree.integrity(),
        "tier": ready.tier,
        "claimed_tier": ready.summary.claimed,
        "signed": ready.attestation.signed,
        "permissions": permissions.collect::<Vec<_>>(),
        "tools": ready.summary.tools,
        "scan": { "verdict": ready.report.verdict, "findings": ready.report.findings.len() },
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
