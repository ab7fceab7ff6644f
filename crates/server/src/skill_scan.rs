//! Scans skills that are stored or uploaded, and explains the findings.

use std::iter;

use savoir_scan::{Finding, Report};
use savoir_skill::dialect::agent_flow::without_owner;
use savoir_store::Resource;
use serde::Serialize;
use utoipa::ToSchema;

/// Maximum findings in one answer.
const MAX_FINDINGS: usize = 100;

/// A finding of the scan, explained.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillScanFinding)]
pub(crate) struct FindingView {
    rule: &'static str,
    /// `info`, `low`, `medium`, `high` or `critical`
    severity: &'static str,
    /// `low`, `medium` or `high`
    confidence: &'static str,
    /// Whether this finding blocks the skill.
    blocks: bool,
    file: String,
    line: usize,
    message: String,
    /// The text at this position, on one line.
    excerpt: String,
    /// Why the finding matters.
    why: String,
    /// How the author can fix it.
    fix: String,
}

impl FindingView {
    fn new(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.id,
            severity: finding.severity.as_str(),
            confidence: finding.confidence.as_str(),
            blocks: finding.blocks(),
            file: finding.path.clone(),
            line: finding.line,
            message: finding.message.clone(),
            excerpt: finding.excerpt.clone(),
            why: finding.rule.why(),
            fix: finding.rule.fix(),
        }
    }
}

/// Scans a skill: its SKILL.md and its other files. Takes time: call it on a blocking thread.
pub(crate) fn scan(text: &str, resources: &[Resource]) -> Report {
    let text = without_owner(text);
    let others = resources.iter().map(|resource| (resource.path.as_str(), &*resource.bytes));
    savoir_scan::scan(&iter::once(("SKILL.md", text.as_bytes())).chain(others).collect())
}

/// The findings of a scan, at most 100, the most severe first.
pub(crate) fn explain(report: &Report) -> Vec<FindingView> {
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.blocks(), finding.severity, finding.confidence))
    });
    findings.into_iter().take(MAX_FINDINGS).map(FindingView::new).collect()
}
