//! The output of `savoir publish`.

use std::{cmp::Reverse, fmt::Write as _};

use savoir_engine::approval::printable;
use savoir_package::{registry::wire::Publication, submission::FoundSignature};
use savoir_scan::{Finding, Report, Verdict};
use savoir_skill::digest::sha256_hex;
use serde_json::{Value, json};

use super::{PublishRequest, rejection::finding_with_fix};
use crate::{error::CommandError, findings, output};

/// A package and its output format.
pub(super) struct PublishReport<'a> {
    pub(super) request: &'a PublishRequest,
    pub(super) json: bool,
}

impl PublishReport<'_> {
    /// Prints what would be published.
    pub(super) fn print_dry_run(&self, registry: Option<&str>) -> Result<(), CommandError> {
        if self.json {
            return output::json(&self.document(registry, &Value::Null));
        }
        output::text(&self.text())?;
        output::note("dry run: nothing was published");
        Ok(())
    }

    /// Prints what was published.
    pub(super) fn print_published(
        &self,
        done: &Publication,
        address: &str,
    ) -> Result<(), CommandError> {
        let way = format!("savoir install {}@{} --registry {address}", done.name, done.version);
        if self.json {
            let mut published = json!(done);
            published["install"] = way.into();
            return output::json(&self.document(Some(address), &published));
        }
        let audit = done.audit.as_ref().map_or("none yet", |audit| audit.verdict.as_str());
        let mut text = String::new();
        line(&mut text, "published", &format!("{} {}", done.name, done.version));
        line(&mut text, "registry", address);
        line(&mut text, "tier", done.security_tier.as_str());
        line(&mut text, "audit", &audit.to_ascii_lowercase());
        if let Some(audit) = done.audit.as_ref().filter(|audit| !is_allowed(&audit.verdict)) {
            push_findings(&mut text, &findings::lines(&audit.findings, findings::line));
        }
        line(&mut text, "install", &way);
        output::text(&text)
    }

    fn document(&self, registry: Option<&str>, published: &Value) -> Value {
        let PublishRequest { submission, filename, bytes, report } = self.request;
        let signatures: Vec<Value> = submission.signatures.iter().map(signature).collect();
        json!({
            "name": submission.name, "version": submission.version,
            "artifact": {
                "filename": filename, "size": bytes.len(), "sha256": sha256_hex(bytes),
                "integrity": submission.integrity,
            },
            "files": submission.files, "dialect": submission.dialect,
            "description": submission.description, "claimed_tier": submission.claimed,
            "permissions": submission.permissions, "tools": submission.tools,
            "dependencies": submission.dependencies, "signatures": signatures,
            "scan": scan_json(report, self.request.verdict()), "warnings": submission.warnings,
            "registry": registry, "published": published,
        })
    }

    /// The package as text.
    pub(super) fn text(&self) -> String {
        let PublishRequest { submission, filename, bytes, .. } = self.request;
        let version = submission.version.as_ref().map(ToString::to_string);
        let version = version.unwrap_or_else(|| "(the registry assigns the version)".to_owned());
        let mut text = String::new();
        line(&mut text, "skill", &format!("{} {version}", submission.name));
        let count = output::plural(submission.files.len(), "file");
        line(&mut text, "archive", &format!("{filename}, {} bytes, {count}", bytes.len()));
        line(&mut text, "sha256", &sha256_hex(bytes));
        line(&mut text, "integrity", &submission.integrity);
        let files = submission.files.iter();
        lines(&mut text, "files", files.map(|file| format!("{}, {} bytes", file.path, file.size)));
        let claimed = submission.claimed.map_or("none", |tier| tier.as_str());
        line(&mut text, "claimed tier", claimed);
        lines(&mut text, "permissions", submission.permissions.iter().cloned());
        lines(&mut text, "needs", submission.dependencies.iter().cloned());
        lines(&mut text, "signed by", submission.signatures.iter().map(by));
        line(&mut text, "scan", self.request.verdict().as_str());
        if self.request.verdict() != Verdict::Allow {
            push_findings(&mut text, &self.findings());
        }
        let warnings = submission.warnings.iter();
        let line_of = |one: &savoir_package::submission::SubmissionFinding| {
            format!("{}:{}: {} ({})", one.file, one.line, one.message, one.rule)
        };
        if !submission.warnings.is_empty() {
            lines(&mut text, "warnings", warnings.map(line_of));
        }
        text
    }

    /// The findings of the local scan, the most severe first.
    fn findings(&self) -> Vec<String> {
        let mut all: Vec<&Finding> = self.request.report.findings.iter().collect();
        all.sort_by_key(|finding| {
            Reverse((finding.blocks(), finding.severity, finding.confidence))
        });
        findings::limit_lines(
            all.into_iter().map(finding_with_fix).collect(),
            "savoir scan PATH shows all",
        )
    }
}

fn is_allowed(verdict: &str) -> bool {
    verdict.eq_ignore_ascii_case(Verdict::Allow.as_str())
}

/// The scan result as JSON.
pub(super) fn scan_json(report: &Report, verdict: Verdict) -> Value {
    let findings = report.findings.iter().map(|one| {
        json!({
            "rule": one.rule.id, "severity": one.severity, "confidence": one.confidence,
            "path": one.path, "line": one.line, "column": one.column, "message": one.message,
            "fix": one.rule.fix(),
        })
    });
    json!({ "verdict": verdict, "findings": findings.collect::<Vec<_>>() })
}

fn signature(found: &FoundSignature) -> Value {
    let record = &found.record;
    json!({
        "kind": record.kind, "key_id": record.key_id, "publisher": record.publisher,
        "holds": found.holds,
    })
}

fn by(found: &FoundSignature) -> String {
    let record = &found.record;
    let publisher = record.publisher.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
    let key = record.key_id.as_deref().unwrap_or("unknown");
    let unknown = if found.holds { "" } else { " (cannot be checked here)" };
    format!("{publisher}{} key {key}{unknown}", record.kind.as_str())
}

fn line(text: &mut String, label: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{label:14} {}", printable(value));
}

/// Appends findings in full, because the user has to act on them.
fn push_findings(text: &mut String, findings: &[String]) {
    for (at, finding) in findings.iter().enumerate() {
        let label = if at == 0 { "findings" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:14} {}", output::cell(finding));
    }
}

fn lines(text: &mut String, label: &str, values: impl Iterator<Item = String>) {
    let mut label = Some(label);
    for value in values {
        line(text, label.take().unwrap_or_default(), &value);
    }
    if let Some(label) = label {
        line(text, label, "none");
    }
}
