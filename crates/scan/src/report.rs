//! Result of a scan: findings and verdict.

use std::fmt;

use savoir_skill::permission::Tier;
use serde::Serialize;

use super::{Rule, rules};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// A habit that helps attackers.
    Low,
    /// Worth a look.
    Medium,
    /// A person should decide.
    High,
    /// Only harmful skills do this.
    Critical,
}

/// Confidence in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Possibly a false positive.
    Low,
    /// Probably correct.
    Medium,
    /// Almost certainly correct.
    High,
}

/// Recommendation for the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing serious was found.
    Allow,
    /// A person should look at it first.
    Review,
    /// It should not be installed.
    Block,
}

macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl $type {
            /// The word that programs read.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words!(Severity: Info = "info", Low = "low", Medium = "medium", High = "high", Critical = "critical");
words!(Confidence: Low = "low", Medium = "medium", High = "high");
words!(Verdict: Allow = "allow", Review = "review", Block = "block");

/// One finding at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that the file violates.
    pub rule: &'static Rule,
    /// The file. A file in an archive is `archive.zip!inside.sh`.
    pub path: String,
    /// Line, starting at one.
    pub line: usize,
    /// Character in the line, starting at one.
    pub column: usize,
    /// The text at this position, on one line, with invisible characters escaped.
    pub excerpt: String,
    /// Severity of this finding.
    pub severity: Severity,
    /// Confidence in this finding.
    pub confidence: Confidence,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
}

impl Finding {
    /// Whether it blocks a skill by itself.
    pub fn blocks(&self) -> bool {
        self.rule.blocks
            && self.severity == Severity::Critical
            && self.confidence == Confidence::High
    }
}

/// Result of scanning one skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The recommendation.
    pub verdict: Verdict,
    /// The findings, sorted by path and position.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(mut findings: Vec<Finding>) -> Self {
        // Of several findings at one position, only the worst is reported.
        findings.sort_by(|a, b| {
            let place = (&a.path, a.line, a.rule.id).cmp(&(&b.path, b.line, b.rule.id));
            place.then(
                (b.severity, b.confidence, a.column).cmp(&(a.severity, a.confidence, b.column)),
            )
        });
        findings.dedup_by(|a, b| (&a.path, a.line, a.rule.id) == (&b.path, b.line, b.rule.id));
        let verdict = verdict(&findings, Severity::High);
        Self { verdict, findings }
    }

    /// Adds a finding that a file was not read.
    pub fn add_unread(&mut self, path: &str, why: &str) {
        let mut findings = std::mem::take(&mut self.findings);
        findings.push(Finding {
            rule: &rules::UNREAD_FILE,
            path: path.to_owned(),
            line: 1,
            column: 1,
            excerpt: String::new(),
            severity: Severity::High,
            confidence: Confidence::High,
            message: why.to_owned(),
        });
        *self = Self::new(findings);
    }

    /// The finding that the verdict rests on, if it is not to allow.
    pub fn reason(&self) -> Option<&Finding> {
        if self.verdict == Verdict::Allow {
            return None;
        }
        let weight = |finding: &&Finding| (finding.blocks(), finding.severity, finding.confidence);
        // Of several that weigh the same, the first one.
        self.findings.iter().rev().max_by_key(weight)
    }

    /// The verdict for a skill that claims this tier: a verified one is held to more.
    pub fn verdict_for(&self, tier: Tier) -> Verdict {
        let known = |finding: &Finding| {
            finding.severity >= Severity::High && finding.confidence == Confidence::High
        };
        match tier {
            Tier::Verified if self.findings.iter().any(known) => Verdict::Block,
            Tier::Verified => verdict(&self.findings, Severity::Medium),
            Tier::Community | Tier::Experimental => self.verdict,
        }
    }
}

/// Only rules that may block can block; findings below `review` are only reported.
fn verdict(findings: &[Finding], review: Severity) -> Verdict {
    if findings.iter().any(Finding::blocks) {
        return Verdict::Block;
    }
    let needs_review =
        |finding: &Finding| finding.severity >= review && finding.confidence > Confidence::Low;
    if findings.iter().any(needs_review) { Verdict::Review } else { Verdict::Allow }
}
