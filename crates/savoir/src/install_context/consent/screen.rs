//! The screen that shows what will be installed.

use std::{collections::BTreeSet, ffi::OsStr, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use savoir_lint::words::shorten;
use savoir_package::{
    File,
    install::{CheckedSkill, FileChange, InstallPlan, PlannedChange},
    lock::AddedCapability,
    trust::{Decision, Tier},
};
use savoir_scan::{Finding, Severity};
use savoir_skill::convert::{FieldOutcome, FieldReport};

use super::{OpenSkill, Proposal};
use crate::output;

/// Skills that are described one by one; for more, only totals and notable ones are shown.
const MAX_DESCRIBED_SKILLS: usize = 10;

/// Findings shown per skill.
const MAX_FINDINGS: usize = 10;

/// Names that a line lists.
const MAX_NAMES: usize = 12;

/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// Endings of files that interpreters execute.
const SCRIPTS: [&str; 20] = [
    ".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".rb",
    ".pl", ".php", ".ps1", ".psm1", ".bat", ".cmd", ".vbs", ".lua",
];

pub(super) struct Screen<'a> {
    pub(super) open: &'a [OpenSkill<'a>],
    pub(super) plan: &'a InstallPlan,
    pub(super) proposal: Proposal<'a>,
    pub(super) growth: &'a [AddedCapability],
}

impl Screen<'_> {
    pub(super) fn page(&self) -> String {
        let mut page = String::new();
        if self.open.len() <= MAX_DESCRIBED_SKILLS {
            self.open.iter().for_each(|open| describe(&mut page, open));
        } else {
            self.totals(&mut page);
        }
        self.conversions(&mut page);
        for growth in self.growth {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "{}", output::cell(&growth.to_string()));
        }
        page.push_str(self.proposal.notes);
        page.push_str(&super::super::skipped::page(self.proposal.skipped));
        page
    }

    pub(super) fn question(&self) -> String {
        let verb = self.proposal.verb;
        let agents: BTreeSet<&str> = self.plan.changes().iter().flat_map(agents).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let into =
            if agents.is_empty() { String::new() } else { format!(" for {}", agents.join(", ")) };
        let count = output::plural(self.open.len().max(1), "skill");
        format!("{verb} {count}{into}? [y]es, [N]o: ")
    }

    fn totals(&self, page: &mut String) {
        let all = self.open.len();
        let unsigned = self.open.iter().filter(|open| is_unsigned(open.ready)).count();
        let unknown = self.open.iter().filter(|open| is_by_unknown_key(open.ready)).count();
        let untrusted = match unknown {
            0 => String::new(),
            unknown => format!(", {unknown} signed with keys that you do not trust"),
        };
        let _ = writeln!(page, "{all} skills, {unsigned} of them unsigned{untrusted}");
        let (mut notable, plain): (Vec<&OpenSkill<'_>>, Vec<&OpenSkill<'_>>) =
            self.open.iter().partition(|open| {
                open.before.is_some()
                    || !open.notes.is_empty()
                    || !open.new_scripts.is_empty()
                    || is_notable(open.ready)
            });
        if !plain.is_empty() {
            let names: Vec<&str> =
                plain.iter().map(|open| open.ready.summary.name.as_str()).collect();
            let count = plain.len();
            let _ = writeln!(page, "{count} with instructions only: {}", list_names(&names));
        }
        if !notable.is_empty() {
            let _ = writeln!(page, "{} with scripts, permissions or findings:", notable.len());
        }
        // Skills with findings come first.
        notable.sort_by_key(|open| std::cmp::Reverse(worst(open.ready)));
        for open in notable {
            let name = output::cell(&open.ready.summary.name);
            let before = open.before.as_ref().map(|before| format!("replaces {before}"));
            let scripts = (!open.new_scripts.is_empty())
                .then(|| format!("adds {}", list_names(&open.new_scripts)));
            let remarks = before.into_iter().chain(open.notes.iter().cloned()).chain(scripts);
            let line: Vec<String> = remarks.chain([public_message(open.ready)]).collect();
            let line = line.join("; ");
            let _ = writeln!(page, "  {name}: {}", output::cell(&line));
        }
    }

    /// Appends conversions for agents that cannot read the original.
    fn conversions(&self, page: &mut String) {
        for change in self.plan.changes() {
            let PlannedChange::Converted { name, agent, report } = change else { continue };
            let name = output::cell(name);
            let _ =
                writeln!(page, "{name} is converted for {agent}, which cannot read the original:");
            for field in report.iter().filter(|field| field.how != FieldOutcome::Kept) {
                let _ = writeln!(page, "  {}", output::cell(&conversion_text(field)));
            }
        }
    }
}

/// How a field is converted, as text.
pub(crate) fn conversion_text(field: &FieldReport) -> String {
    let why = if field.why.is_empty() { String::new() } else { format!(" ({})", field.why) };
    let to = field.to.as_deref().unwrap_or_default();
    match (field.how, &field.from) {
        (FieldOutcome::Dropped, _) => format!("{} is dropped{why}", field.field),
        (_, None) => format!("{} is added{why}", field.field),
        (FieldOutcome::Moved, Some(from)) => format!("{from} becomes {to}{why}"),
        (FieldOutcome::Approximated, Some(from)) => {
            format!("{from} becomes {to}, approximately{why}")
        }
        (FieldOutcome::Kept, Some(from)) => format!("{from} is kept{why}"),
    }
}

fn agents(change: &PlannedChange) -> Vec<&str> {
    match change {
        PlannedChange::New { agents, .. } => agents.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Appends the description of one skill.
pub(super) fn describe(page: &mut String, open: &OpenSkill<'_>) {
    let ready = open.ready;
    heading(page, ready);
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(page, "  {name:10} {}", output::cell(value));
    };
    let description = ready.summary.description.trim();
    if !description.is_empty() {
        field("does", &shorten(description, MAX_DESCRIPTION_CHARS));
    }
    field("from", &ready.source.to_string());
    if let Some(before) = &open.before {
        field("replaces", before);
    }
    for note in &open.notes {
        field("warning", note);
    }
    field("signed", &signature_text(ready));
    if let Some(rule) = &open.trusted {
        field("trusted", &format!("you trust {rule}"));
    }
    let rights = rights(ready);
    if !rights.is_empty() {
        field("may", &rights.join(", "));
    }
    if !ready.summary.tools.is_empty() {
        field("uses", &uses(ready).join(", "));
    }
    if runs_commands_when_loaded(ready) {
        field("runs", "commands when Claude Code loads it (lines with !`…`)");
    }
    field("files", &files(ready));
    if !open.new_scripts.is_empty() {
        field("adds", &list_names(&open.new_scripts));
    }
    for warning in &ready.summary.warnings {
        field("warning", &format!("SKILL.md:{}: {}", warning.line, warning.message));
    }
    let found = shown_findings(ready);
    if !found.is_empty() {
        field("scan", ready.report.verdict.as_str());
        append_findings(page, &found);
    }
}

fn heading(page: &mut String, ready: &CheckedSkill) {
    let bold = Style::new().bold();
    let title = format!("{} {}", ready.summary.name, ready.summary.written_version());
    let _ = writeln!(page, "{bold}{}{bold:#}", output::cell(title.trim_end()));
}

/// A blocked skill with its findings.
pub(super) fn blocked_skill_text(ready: &CheckedSkill, findings: &[Finding]) -> String {
    let mut page = String::new();
    heading(&mut page, ready);
    let findings: Vec<&Finding> = findings.iter().collect();
    append_findings(&mut page, &findings);
    page
}

/// The most severe finding, in one line.
pub(super) fn findings(findings: &[Finding]) -> String {
    let findings: Vec<&Finding> = findings.iter().collect();
    worst_first(&findings)
        .first()
        .map(|worst| format!(": {}:{}: {}", worst.path, worst.line, worst.message))
        .unwrap_or_default()
}

/// Notable facts about a skill, in one line.
fn public_message(ready: &CheckedSkill) -> String {
    let mut parts = Vec::new();
    let found = shown_findings(ready);
    if let Some(worst) = worst_first(&found).first() {
        let count = output::plural(found.len(), "finding");
        let (verdict, severity) = (ready.report.verdict, worst.severity);
        let place = format!("{}:{}", worst.path, worst.line);
        parts.push(format!("scan {verdict}, {count}, {severity} {place} {}", worst.message));
    }
    let scripts = scripts(ready);
    if scripts > 0 {
        parts.push(output::plural(scripts, "script"));
    }
    let rights = rights(ready);
    if !rights.is_empty() {
        parts.push(format!("may {}", rights.join(", ")));
    }
    if !ready.summary.tools.is_empty() {
        // The list is never shortened.
        parts.push(format!("uses {}", uses(ready).join(", ")));
    }
    if runs_commands_when_loaded(ready) {
        parts.push("runs commands when it is loaded".to_owned());
    }
    let warnings = ready.summary.warnings.len();
    if warnings > 0 {
        parts.push(output::plural(warnings, "warning"));
    }
    parts.join("; ")
}

fn is_notable(ready: &CheckedSkill) -> bool {
    let summary = &ready.summary;
    scripts(ready) > 0
        || !rights(ready).is_empty()
        || !summary.tools.is_empty()
        || runs_commands_when_loaded(ready)
        || !summary.warnings.is_empty()
        || !shown_findings(ready).is_empty()
}

/// The tools of a skill. A field that agents obey is shown with its value.
fn uses(ready: &CheckedSkill) -> Vec<String> {
    let fields = ready.summary.obeyed_fields();
    let shown = |word: &String| {
        let (field, text) = fields.iter().find(|(field, _)| {
            word.strip_prefix(field.as_str()).is_some_and(|mark| mark.starts_with(':'))
        })?;
        Some(format!("{field} {}", shorten(text, MAX_DESCRIPTION_CHARS)))
    };
    ready.summary.tools.iter().map(|word| shown(word).unwrap_or_else(|| word.clone())).collect()
}

/// Whether Claude Code executes commands in the text when it loads the skill.
fn runs_commands_when_loaded(ready: &CheckedSkill) -> bool {
    let text = ready.summary.text();
    let is_start = |at: usize| text[..at].chars().next_back().is_none_or(char::is_whitespace);
    text.contains("```!") || text.match_indices("!`").any(|(at, _)| is_start(at))
}

fn worst(ready: &CheckedSkill) -> Option<Severity> {
    shown_findings(ready).iter().map(|finding| finding.severity).max()
}

/// The permissions that a skill asks for.
fn rights(ready: &CheckedSkill) -> Vec<String> {
    let rights = ready.decisions().into_iter().filter_map(|(permission, decision)| {
        let how = match decision {
            Decision::NotNeeded => return None,
            _ if permission.refusal().is_some() => " (refused in every run)",
            Decision::Auto => "",
            Decision::Prompt => " (asks you)",
            Decision::Sandboxed => " (in the sandbox)",
        };
        Some(format!("{permission}{how}"))
    });
    rights.collect()
}

fn is_unsigned(ready: &CheckedSkill) -> bool {
    ready.attestation.signed.is_none()
}

fn is_by_unknown_key(ready: &CheckedSkill) -> bool {
    ready.attestation.signed.as_ref().is_some_and(|signer| signer.role.is_none())
}

fn signature_text(ready: &CheckedSkill) -> String {
    match &ready.attestation.signed {
        Some(signer) if signer.role.is_some() => {
            let tier = match ready.tier {
                Tier::Experimental if ready.summary.claimed == Some(Tier::Experimental) => {
                    ", experimental because SKILL.md claims no higher tier"
                }
                Tier::Experimental => "",
                Tier::Community => ", community",
                Tier::Verified => ", verified",
            };
            format!("by {}{tier}", signer.publisher)
        }
        Some(signer) if signer.publisher.is_empty() => {
            format!("with the key {}, which you do not trust", signer.key_id)
        }
        Some(signer) if !signer.trusted_for.is_empty() => {
            let names = list_names(&signer.trusted_for);
            format!("by {}, whose key you trust only for {names}", signer.publisher)
        }
        Some(signer) if !ready.attestation.left_out.is_empty() => {
            let files = list_names(&ready.attestation.left_out);
            format!("by {}, but not all files: without {files}", signer.publisher)
        }
        Some(signer) => format!("by {}, whose key you do not trust", signer.publisher),
        None if !ready.attestation.unchecked.is_empty() => {
            "no: its signature is invalid or by an unknown key".to_owned()
        }
        None => "no: unsigned".to_owned(),
    }
}

fn files(ready: &CheckedSkill) -> String {
    let count = output::plural(ready.tree.files().len(), "file");
    match scripts(ready) {
        0 => format!("{count}, no scripts"),
        scripts => format!("{count}, {}", output::plural(scripts, "script")),
    }
}

fn scripts(ready: &CheckedSkill) -> usize {
    ready.tree.files().filter(|(path, file)| is_script(path, file)).count()
}

/// The scripts of a skill that its installed copies do not have.
pub(super) fn new_scripts(ready: &CheckedSkill, files: &[FileChange<'_>]) -> Vec<String> {
    let name = Some(OsStr::new(ready.summary.name.as_str()));
    let is_new = |path: &str| {
        let mut changes = files.iter().filter(|file| file.folder.file_name() == name);
        changes.any(|file| file.path == path && file.before.is_none())
    };
    let scripts = ready.tree.files().filter(|(path, file)| is_script(path, file));
    scripts.filter(|(path, _)| is_new(path)).map(|(path, _)| path.to_owned()).collect()
}

fn is_script(path: &str, file: &File) -> bool {
    let path = path.to_ascii_lowercase();
    file.executable
        || SCRIPTS.iter().any(|end| path.ends_with(end))
        || file.bytes.starts_with(b"#!")
}

fn shown_findings(ready: &CheckedSkill) -> Vec<&Finding> {
    ready.report.findings.iter().filter(|finding| finding.severity >= Severity::Medium).collect()
}

/// Sorts findings so that the first is the one that `savoir scan` gives as the reason.
fn worst_first<'a>(findings: &[&'a Finding]) -> Vec<&'a Finding> {
    let mut findings = findings.to_vec();
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.blocks(), finding.severity, finding.confidence))
    });
    findings
}

/// Appends findings, the most severe first, so that others cannot push them off the screen.
fn append_findings(page: &mut String, findings: &[&Finding]) {
    let findings = worst_first(findings);
    for finding in findings.iter().take(MAX_FINDINGS) {
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
    if findings.len() > MAX_FINDINGS {
        let _ = writeln!(page, "    and {} more", findings.len() - MAX_FINDINGS);
    }
}

fn list_names(names: &[impl AsRef<str>]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(MAX_NAMES).map(|name| name.as_ref().to_owned()).collect();
    if names.len() > MAX_NAMES {
        shown.push(format!("and {} more", names.len() - MAX_NAMES));
    }
    output::cell(&shown.join(", ")).into_owned()
}

#[cfg(test)]
mod tests {
    use savoir_scan::{Confidence, Report, Verdict};

    use super::*;

    #[test]
    fn first_finding_is_the_reason_of_the_scan() {
        let finding = |line: usize, severity: Severity, confidence: Confidence| Finding {
            rule: savoir_scan::rule("concealment").unwrap(),
            path: "SKILL.md".into(),
            line,
            column: 1,
            excerpt: String::new(),
            severity,
            confidence,
            message: format!("message {line}"),
        };
        let findings = vec![
            finding(3, Severity::Medium, Confidence::High),
            finding(5, Severity::High, Confidence::Medium),
            finding(7, Severity::High, Confidence::High),
            finding(9, Severity::High, Confidence::High),
        ];
        assert_eq!(super::findings(&findings), ": SKILL.md:7: message 7");
        let report = Report { verdict: Verdict::Review, findings };
        let all: Vec<&Finding> = report.findings.iter().collect();
        assert_eq!(worst_first(&all)[0], report.reason().unwrap());
    }
}
