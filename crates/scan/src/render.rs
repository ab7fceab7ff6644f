//! Renders reports as text, JSON and SARIF.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use savoir_lint::{render::uri, visible, visible_json};
use serde_json::{Value, json};
use thiserror::Error;

use super::{Finding, Report, Severity, all_rules};

/// The output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// SARIF 2.1.0, which code scanning services read.
    Sarif,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Sarif];

    /// The identifier that users type.
    pub fn id(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Sarif => "sarif",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The error for an identifier that is not a format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown format `{0}`; expected one of {known}", known = Format::ALL.map(Format::id).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.id() == word);
        found.ok_or_else(|| UnknownFormat(word.to_owned()))
    }
}

/// Renders a report.
pub fn render(report: &Report, format: Format) -> String {
    match format {
        Format::Text => text(report),
        Format::Json => visible_json(&format!("{:#}\n", json(report))).into_owned(),
        Format::Sarif => visible_json(&format!("{:#}\n", sarif(report))).into_owned(),
    }
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let Finding { rule, line, column, severity, confidence, message, excerpt, .. } = finding;
        let path = visible(&finding.path);
        let message = visible(message);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{severity}[{}]: {message}", rule.id);
        let _ = writeln!(out, "  --> {path}:{line}:{column} ({confidence} confidence)");
        if !excerpt.is_empty() {
            let _ = writeln!(out, "   |  {excerpt}");
        }
        let _ = writeln!(out, "   = why: {}", rule.why());
        let _ = writeln!(out, "   = fix: {}\n", rule.fix());
    }
    let count = report.findings.len();
    let findings = if count == 1 { "finding" } else { "findings" };
    let _ = writeln!(out, "verdict: {} ({count} {findings})", report.verdict);
    if let Some(Finding { rule, path, line, message, .. }) = report.reason() {
        let _ = writeln!(out, "  because: {} ({}:{line})", visible(message), visible(path));
        let _ = writeln!(out, "  to change it: {}", first_sentence(&rule.fix()));
    }
    out
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn json(report: &Report) -> Value {
    let findings: Vec<Value> = report.findings.iter().map(finding).collect();
    let reason = report.reason().map(|reason| {
        json!({
            "message": reason.message,
            "path": reason.path,
            "line": reason.line,
            "change": reason.rule.fix(),
        })
    });
    json!({ "verdict": report.verdict, "reason": reason, "findings": findings })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule.id,
        "title": finding.rule.title(),
        "severity": finding.severity,
        "confidence": finding.confidence,
        "blocks": finding.blocks(),
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "excerpt": finding.excerpt,
        "why": finding.rule.why(),
        "fix": finding.rule.fix(),
    })
}

fn sarif(report: &Report) -> Value {
    let rules: Vec<Value> = all_rules()
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.title() },
                "fullDescription": { "text": rule.why() },
                "help": { "text": rule.fix(), "markdown": rule.docs() },
                "defaultConfiguration": { "level": level(rule.severity) },
                "properties": { "blocks": rule.blocks },
            })
        })
        .collect();
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    let driver = json!({ "name": "savoir", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "properties": { "verdict": report.verdict },
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let region = json!({ "startLine": finding.line, "startColumn": finding.column });
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": all_rules().iter().position(|rule| *rule == finding.rule),
        "level": level(finding.severity),
        "message": { "text": format!("{}\nhint: {}", finding.message, finding.rule.fix()) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&finding.path) },
                "region": region,
            },
        }],
        "properties": { "severity": finding.severity, "confidence": finding.confidence },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}
