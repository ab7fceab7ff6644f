//! What a person must know and agree to before a skill is installed.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use savoir_engine::approval::shell_word;
use savoir_package::{
    lock::{Growth, Lock, LockedSource, Wish},
    scan::{Finding, Severity},
    shelf::{Plan, Question, Ready, Refusal, Why},
    trust::{Decision, Tier},
};
use serde_json::{Value, json};

use crate::{ask, error::CommandError, output};

/// Skills that are shown one by one; of more, only those with something to say.
const SHOWN: usize = 8;

/// Findings that are shown of one skill.
const FINDINGS: usize = 10;

/// What was agreed to beforehand.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "What you agree to")]
pub(crate) struct Consent {
    /// Skills that nobody vouches for
    #[arg(long)]
    pub(crate) allow_experimental: bool,
    /// What the tier does not give without asking, and what the scan wants a person to look at
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// This skill although the scan blocks it; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_blocked: Vec<String>,
    /// This permission or tool, which a new version wants and the old one did not; may be repeated
    #[arg(long, value_name = "WORD")]
    accept: Vec<String>,
}

impl Consent {
    /// Only to skills that the scan blocks.
    pub(crate) fn to_blocked(names: &[String]) -> Self {
        Self { allow_blocked: names.to_vec(), ..Self::default() }
    }

    /// Whether this was accepted by its name.
    pub(crate) fn accepts(&self, word: &str) -> bool {
        self.accept.iter().any(|accepted| accepted == word)
    }

    /// Shows what arrived and asks where something must be asked; refuses where nobody can answer.
    pub(crate) fn to(&self, ready: &[Ready], lock: &Lock) -> Result<(), CommandError> {
        self.refuse(ready)?;
        let open: Vec<Open<'_>> = ready.iter().map(|one| self.open(one, lock)).collect();
        let asked: Vec<&Open<'_>> = open.iter().filter(|open| !open.questions.is_empty()).collect();
        let page = page(&open);
        if asked.is_empty() {
            output::aside(&page);
            return Ok(());
        }
        if !ask::can_ask() {
            output::aside(&page);
            return Err(unasked(&asked));
        }
        let count = output::plural(open.len(), "skill");
        let question = format!("{page}\nInstall {count}? [y]es, [N]o: ");
        match ask::line(&question, &ask::yes_or_no)? {
            Some(true) => Ok(()),
            _ => Err(CommandError::refused("it was not agreed to").named("not_agreed")),
        }
    }

    /// What the scan blocks is not asked about: whoever wants it all the same names it.
    pub(crate) fn refuse(&self, ready: &[Ready]) -> Result<(), CommandError> {
        let is_blocked = |ready: &&Ready| {
            !ready.refusals().is_empty() && !self.allow_blocked.contains(&ready.card.name)
        };
        let blocked: Vec<&Ready> = ready.iter().filter(is_blocked).collect();
        if blocked.is_empty() {
            return Ok(());
        }
        let mut page = String::new();
        for ready in &blocked {
            for Refusal::Scan(findings) in ready.refusals() {
                heading(&mut page, ready);
                tell_findings(&mut page, &findings);
            }
        }
        output::aside(&page);
        let names: Vec<&str> = blocked.iter().map(|ready| ready.card.name.as_str()).collect();
        let message = format!("the scan blocks {}: nothing was changed", quoted(&names));
        Err(CommandError::refused(message)
            .named("blocked")
            .hint("`savoir scan` shows everything that was found, and why it matters")
            .hint(format!("if you are sure that it is harmless: --allow-blocked {}", names[0])))
    }

    fn open<'a>(&self, ready: &'a Ready, lock: &Lock) -> Open<'a> {
        let mut questions = ready.questions();
        // What was agreed to for the version that it takes the place of is not asked again.
        let old = lock.skills.get(&ready.card.name).filter(|_| ready.why == Why::Newer);
        questions.retain(|question| match question {
            Question::Experimental => {
                !self.allow_experimental && old.is_none_or(|old| old.tier != Tier::Experimental)
            }
            Question::Permission(permission) => {
                !self.yes && old.is_none_or(|old| !old.permissions.contains(permission))
            }
            Question::Review(_) => !self.yes,
        });
        let place = |source: &LockedSource| {
            let text = source.to_string();
            text.split('#').next().unwrap_or_default().to_owned()
        };
        let old = lock.skills.get(&ready.card.name);
        let before = old.map(|old| place(&old.source)).filter(|old| *old != place(&ready.source));
        Open { ready, questions, before }
    }

    /// Accepts what new versions want more than the old ones, as far as that was named.
    pub(crate) fn accept(&self, plan: &mut Plan) -> Result<(), CommandError> {
        let wanted: Vec<Growth> = plan.growth().to_vec();
        for word in &self.accept {
            plan.accept(word);
        }
        if plan.growth().is_empty() {
            return Ok(());
        }
        let text: Vec<String> = plan.growth().iter().map(ToString::to_string).collect();
        let words: Vec<String> = wanted
            .iter()
            .map(|growth| match &growth.wish {
                Wish::Permission(permission) => permission.to_string(),
                Wish::Tool(tool) => tool.clone(),
            })
            .map(|word| format!("--accept {}", shell_word(&word)))
            .collect();
        Err(CommandError::refused(text.join("\n"))
            .named("wants_more")
            .hint("nothing was changed; look at the new version before you give it more")
            .hint(format!("to accept all of it: {}", words.join(" "))))
    }
}

/// A skill, and what nobody answered yet.
struct Open<'a> {
    ready: &'a Ready,
    questions: Vec<Question>,
    /// Where the skill came from whose place it takes, if that was elsewhere.
    before: Option<String>,
}

fn unasked(asked: &[&Open<'_>]) -> CommandError {
    let is_experimental = |open: &&&Open<'_>| open.questions.contains(&Question::Experimental);
    let names: Vec<&str> = asked.iter().map(|open| open.ready.card.name.as_str()).collect();
    let experimental: Vec<&str> =
        asked.iter().filter(is_experimental).map(|open| open.ready.card.name.as_str()).collect();
    let others = asked
        .iter()
        .any(|open| open.questions.iter().any(|question| *question != Question::Experimental));
    let mut refused = if experimental.is_empty() {
        let message = format!("{} must be agreed to, and nobody can be asked", quoted(&names));
        CommandError::refused(message).named("not_agreed")
    } else {
        let message = format!("nobody vouches for {}", quoted(&experimental));
        CommandError::refused(message)
            .named("experimental")
            .hint("if you trust where it comes from: --allow-experimental")
    };
    if others {
        refused = refused.hint("to agree to what is shown above: --yes");
    }
    refused
}

fn quoted(names: &[&str]) -> String {
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    match shown.as_slice() {
        [] | [_] => shown.concat(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Everything that a person should know.
fn page(open: &[Open<'_>]) -> String {
    let mut page = String::new();
    let is_told = |open: &&Open<'_>| {
        open.ready.decisions().iter().any(|(_, decision)| *decision == Decision::Prompt)
            || open.ready.report.findings.iter().any(is_shown)
    };
    let all = open.len() <= SHOWN;
    for open in open.iter().filter(|open| all || is_told(open)) {
        tell(&mut page, open);
    }
    let silent: Vec<&str> = open
        .iter()
        .filter(|open| !all && !is_told(open))
        .map(|open| open.ready.card.name.as_str())
        .collect();
    if !silent.is_empty() {
        let nobody = open.iter().filter(|open| open.ready.tier == Tier::Experimental).count();
        let nobody = format!("; nobody vouches for {nobody} of {}", open.len());
        let nobody = if nobody.starts_with("; nobody vouches for 0") { "" } else { &nobody };
        // Writing to a string cannot fail.
        let names = output::cell(&quoted(&silent)).into_owned();
        let _ = writeln!(page, "the scan found nothing that matters in {names}{nobody}");
    }
    page
}

fn heading(page: &mut String, ready: &Ready) {
    let bold = Style::new().bold();
    let card = &ready.card;
    let version = card.written_version();
    let title = format!("{} {version}", card.name);
    let _ = writeln!(page, "{bold}{}{bold:#}", output::cell(title.trim_end()));
}

fn tell(page: &mut String, open: &Open<'_>) {
    let ready = open.ready;
    heading(page, ready);
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(page, "  {name:12} {}", output::cell(value));
    };
    field("does", ready.card.description.trim());
    field("comes from", &ready.source.to_string());
    if let Some(before) = &open.before {
        field("came from", before);
    }
    field("vouched for", &vouched(ready));
    for (permission, decision) in ready.decisions() {
        let how = match decision {
            Decision::Auto => "",
            Decision::Prompt => "  (asks you)",
            Decision::Sandboxed => "  (with limits)",
            Decision::NotNeeded => continue,
        };
        field("may", &format!("{permission}{how}"));
    }
    if !ready.card.tools.is_empty() {
        field("uses", &ready.card.tools.join(", "));
    }
    let findings: Vec<Finding> =
        ready.report.findings.iter().filter(|finding| is_shown(finding)).cloned().collect();
    if !findings.is_empty() {
        let _ = writeln!(page, "  {:12} {}", "scan", ready.report.verdict);
        tell_findings(page, &findings);
    }
}

fn is_shown(finding: &Finding) -> bool {
    finding.severity >= Severity::Medium
}

/// Who vouches for a skill, in words.
fn vouched(ready: &Ready) -> String {
    match &ready.attestation.signed {
        Some(signer) if signer.role.is_some() => {
            format!("by {}: {}", signer.publisher, ready.tier)
        }
        Some(_) => format!("by a key that is not trusted here: {}", ready.tier),
        None => format!("by nobody: {}", Tier::Experimental),
    }
}

fn tell_findings(page: &mut String, findings: &[Finding]) {
    for finding in findings.iter().take(FINDINGS) {
        let style = if finding.severity >= Severity::High {
            AnsiColor::Red.on_default()
        } else {
            AnsiColor::Yellow.on_default()
        };
        let place = format!("{}:{}", finding.path, finding.line);
        let (severity, rule) = (finding.severity, finding.rule.id);
        let (place, message) = (output::cell(&place), output::cell(&finding.message));
        let _ = writeln!(page, "    {style}{severity}{style:#} {place}: {message} [{rule}]");
    }
    if findings.len() > FINDINGS {
        let _ = writeln!(page, "    and {} more", findings.len() - FINDINGS);
    }
}

/// What arrived, for programs.
pub(crate) fn json(ready: &Ready) -> Value {
    let decisions = ready.decisions();
    let permissions = decisions.iter().map(|(permission, decision)| {
        json!({ "permission": permission.to_string(), "decision": decision })
    });
    json!({
        "name": ready.card.name,
        "version": ready.card.version.to_string(),
        "description": ready.card.description,
        "dialect": ready.card.dialect,
        "source": ready.source.to_string(),
        "integrity": ready.tree.integrity(),
        "tier": ready.tier,
        "claimed_tier": ready.card.claimed,
        "signed": ready.attestation.signed,
        "permissions": permissions.collect::<Vec<_>>(),
        "tools": ready.card.tools,
        "scan": { "verdict": ready.report.verdict, "findings": ready.report.findings.len() },
    })
}
