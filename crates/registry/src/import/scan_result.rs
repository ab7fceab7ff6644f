//! Converts scan reports to the scan results that the registry stores.

use savoir_scan::{self as scan, Report, Verdict};
use savoir_store::registry::{ScanResult, ScanVerdict};
use serde_json::{Value, json};

pub(super) fn scan_result_from_report(report: &Report) -> ScanResult {
    let verdict = match report.verdict {
        Verdict::Allow => ScanVerdict::Allow,
        Verdict::Review => ScanVerdict::Review,
        Verdict::Block => ScanVerdict::Block,
    };
    let text = scan::render::render(report, scan::render::Format::Json);
    let mut report_json: Value = serde_json::from_str(&text).unwrap_or_default();
    let engine = format!("savoir {}", env!("CARGO_PKG_VERSION"));
    let summary = format!("{} with {} findings", verdict, report.findings.len());
    let report = json!({
        "engine": engine, "summary": summary, "findings": report_json["findings"].take(),
    });
    ScanResult { verdict, report }
}
