//! Results of vetting: findings, engine runs and the verdict.

use std::{fmt::Write as _, time::Instant};

use savoir_scan::{self as scan, Confidence, Severity, Verdict};
use savoir_skill::permission::Tier;
use serde::Serialize;

/// The name of the built-in scanner.
pub(super) const SCAN_ENGINE: &str = "scan";

/// The result of vetting a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VettingReport {
    /// What the registry should do with the package.
    pub verdict: Verdict,
    /// All findings, the worst first.
    pub findings: Vec<Finding>,
    /// All engines, with their outcome.
    pub engines: Vec<EngineRun>,
}

/// One finding of one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub engine: &'static str,
    /// The rule. Rules of external programs begin with the name of the program: `bandit:B602`.
    pub rule: String,
    pub severity: Severity,
    /// How sure the engine is.
    pub confidence: Confidence,
    /// Whether this finding alone blocks a package.
    pub blocks: bool,
    /// The file in the package, if known.
    pub file: Option<String>,
    /// The line, starting at one.
    pub line: Option<u32>,
    /// The problem, in one sentence without a full stop.
    pub message: String,
    /// How to fix the problem, if known.
    pub fix: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineRun {
    pub name: &'static str,
    /// The version of the engine, if known.
    pub version: Option<String>,
    #[serde(flatten)]
    pub outcome: EngineOutcome,
    pub milliseconds: u64,
}

/// How the run of an engine ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "why")]
pub enum EngineOutcome {
    /// The engine ran to its end.
    Ran,
    /// The engine is not installed.
    Missing,
    /// The engine did not run to its end, with the reason.
    Failed(String),
    /// The engine had nothing to do, with the reason.
    NotNeeded(String),
}

impl EngineOutcome {
    /// The name in JSON output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Missing => "missing",
            Self::Failed(_) => "failed",
            Self::NotNeeded(_) => "not-needed",
        }
    }
}

impl EngineRun {
    pub(super) fn new(name: &'static str, outcome: EngineOutcome) -> Self {
        Self { name, version: None, outcome, milliseconds: 0 }
    }

    pub(super) fn failed(name: &'static str, why: impl Into<String>) -> Self {
        Self::new(name, EngineOutcome::Failed(why.into()))
    }

    pub(super) fn not_needed(name: &'static str, why: &str) -> Self {
        Self::new(name, EngineOutcome::NotNeeded(why.to_owned()))
    }

    pub(super) fn ran(name: &'static str, version: Option<String>, started: Instant) -> Self {
        Self { version, ..Self::new(name, EngineOutcome::Ran) }.since(started)
    }

    #[must_use]
    pub(super) fn since(self, started: Instant) -> Self {
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Self { milliseconds, ..self }
    }
}

impl Finding {
    pub(super) fn new(
        engine: &'static str,
        rule: impl Into<String>,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self {
            engine,
            rule: rule.into(),
            severity,
            confidence: Confidence::High,
            blocks: false,
            file: None,
            line: None,
            message: message.into(),
            fix: None,
        }
    }

    /// Converts a finding of the built-in scanner.
    pub(super) fn scanned(found: &scan::Finding) -> Self {
        Self {
            confidence: found.confidence,
            blocks: found.blocks(),
            file: Some(found.path.clone()),
            line: u32::try_from(found.line).ok(),
            fix: Some(found.rule.fix()),
            ..Self::new(SCAN_ENGINE, found.rule.id, found.severity, &found.message)
        }
    }

    #[must_use]
    pub(super) fn at(mut self, place: Option<(String, Option<u32>)>) -> Self {
        if let Some((file, line)) = place {
            (self.file, self.line) = (Some(file), line);
        }
        self
    }

    #[must_use]
    pub(super) fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    #[must_use]
    pub(super) fn blocking(self) -> Self {
        Self { blocks: true, severity: Severity::Critical, ..self }
    }
}

impl VettingReport {
    /// Sorts the findings and computes the verdict.
    pub(super) fn new(mut findings: Vec<Finding>, engines: Vec<EngineRun>) -> Self {
        let key = |one: &Finding| {
            let place = (one.file.clone(), one.line);
            (std::cmp::Reverse((one.blocks, one.severity)), one.engine, place, one.rule.clone())
        };
        findings.sort_by(|a, b| (key(a), &a.message).cmp(&(key(b), &b.message)));
        findings.dedup();
        let mut vetted = Self { verdict: Verdict::Allow, findings, engines };
        vetted.verdict = vetted.verdict_for(Tier::Community);
        vetted
    }

    /// The verdict for a package of this tier. The limits for verified packages are stricter: a
    /// finding that sends other packages to review can block a verified one.
    pub fn verdict_for(&self, tier: Tier) -> Verdict {
        let any = |severity: Severity, confidence: Confidence| {
            self.findings.iter().any(|one| one.severity >= severity && one.confidence >= confidence)
        };
        let verified = tier == Tier::Verified;
        if self.findings.iter().any(|one| one.blocks)
            || verified && any(Severity::High, Confidence::High)
        {
            return Verdict::Block;
        }
        let held = if verified { Severity::Medium } else { Severity::High };
        let failed = self.engines.iter().any(|run| matches!(run.outcome, EngineOutcome::Failed(_)));
        if failed || any(held, Confidence::Medium) { Verdict::Review } else { Verdict::Allow }
    }

    /// The result in one sentence.
    pub fn summary(&self) -> String {
        let count = self.findings.len();
        let findings = if count == 1 { "finding" } else { "findings" };
        let names = |word: &str| -> Vec<&str> {
            let runs = self.engines.iter().filter(|run| run.outcome.as_str() == word);
            runs.map(|run| run.name).collect()
        };
        let mut text =
            format!("{}: {count} {findings} by {}", self.verdict, names("ran").join(", "));
        for (word, said) in [("failed", "failed"), ("missing", "not installed")] {
            let names = names(word);
            if !names.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(text, "; {said}: {}", names.join(", "));
            }
        }
        text
    }
}
