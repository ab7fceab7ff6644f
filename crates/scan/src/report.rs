//! What the scanner has to say.

use std::fmt;

use savoir_skill::permission::Tier;
use serde::Serialize;

use super::Rule;

/// How much a finding matters.
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
    /// What only harmful skills do.
    Critical,
}

/// How sure the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It may well be something else.
    Low,
    /// It is probably so.
    Medium,
    /// There is hardly another reading.
    High,
}

/// What should become of the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing speaks against it.
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
    /// What was breached.
    pub rule: &'static Rule,
    /// The file; what lies in an archive is `archive.zip!inside.sh`.
    pub path: String,
    /// Its line, from one.
    pub line: usize,
    /// The character in the line, from one.
    pub column: usize,
    /// What stands there, on one line, with everything visible.
    pub excerpt: String,
    /// How much it matters here.
    pub severity: Severity,
    /// How sure that is.
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

/// What was found in one skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What should become of it.
    pub verdict: Verdict,
    /// What was found, by path and place.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(mut findings: Vec<Finding>) -> Self {
        // Of several at one place, the worst is told.
        findings.sort_by(|a, b| {
            let place = (&a.path, a.line, a.rule.id).cmp(&(&b.path, b.line, b.rule.id));
            place.then((b.severity, b.confidence, a.column).cmp(&(
                a.severity,
                a.confidence,
                b.column,
            )))
        });
        findings.dedup_by(|a, b| (&a.path, a.line, a.rule.id) == (&b.path, b.line, b.rule.id));
        let verdict = verdict(&findings, Severity::High);
        Self { verdict, findings }
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

/// Only rules that may block do; what matters less than `review` is only told.
fn verdict(findings: &[Finding], review: Severity) -> Verdict {
    if findings.iter().any(Finding::blocks) {
        return Verdict::Block;
    }
    let held =
        |finding: &Finding| finding.severity >= review && finding.confidence > Confidence::Low;
    if findings.iter().any(held) { Verdict::Review } else { Verdict::Allow }
}
