//! Runs Bandit, which checks Python code.

use std::time::Instant;

use savoir_package::Tree;
use savoir_sandbox::Network;
use savoir_scan::{Confidence, Severity};
use serde::Deserialize;

use super::{
    CopiedFiles, EngineResult, Scanner, ScannerFailure, missing, not_needed, short_text,
    unknown_file,
};
use crate::vetting::{Options, finding::Finding};

pub(super) const ENGINE_NAME: &str = "bandit";

#[derive(Deserialize)]
struct ScannerReport {
    errors: Vec<Problem>,
    results: Vec<Issue>,
}

#[derive(Deserialize)]
struct Problem {
    filename: String,
    reason: String,
}

#[derive(Deserialize)]
struct Issue {
    filename: String,
    line_number: u32,
    test_id: String,
    #[serde(rename = "issue_severity")]
    severity: String,
    #[serde(rename = "issue_confidence")]
    confidence: String,
    #[serde(rename = "issue_text")]
    text: String,
    more_info: Option<String>,
}

pub(super) fn run(scanner: Option<&Scanner>, tree: &Tree, options: &Options) -> EngineResult {
    let Some(scanner) = scanner else { return missing(ENGINE_NAME) };
    let started = Instant::now();
    match CopiedFiles::of(tree, is_python) {
        Ok(None) => not_needed(ENGINE_NAME, "the package has no Python"),
        Ok(Some(copies)) => scanner.engine(started, run_scanner(scanner, &copies, options)),
        Err(error) => scanner.engine(started, Err(error.to_string().into())),
    }
}

fn is_python(path: &str, bytes: &[u8]) -> Option<&'static str> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let named = ["py", "pyw"].iter().any(|one| one.eq_ignore_ascii_case(extension));
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let script = first.starts_with("#!") && first.contains("python");
    (script || named).then_some("py")
}

fn run_scanner(
    scanner: &Scanner,
    copies: &CopiedFiles,
    options: &Options,
) -> Result<Vec<Finding>, ScannerFailure> {
    let folder = copies.path().map_err(|error| error.to_string())?;
    // Ignore `nosec` comments and default exclusions: the author of a package must not disable
    // checks.
    let words = ["-q", "-r", "--ignore-nosec", "-x", "/nothing", "-f", "json", "."];
    let report: ScannerReport = scanner.run_scanner(&folder, &words, Network::None, options)?;
    findings(report, copies)
}

fn findings(report: ScannerReport, copies: &CopiedFiles) -> Result<Vec<Finding>, ScannerFailure> {
    let mut findings = Vec::new();
    for issue in report.results {
        let Some(path) = copies.original(&issue.filename) else {
            return Err(ScannerFailure { findings, why: unknown_file(&issue.filename) });
        };
        findings.push(finding(&issue, path));
    }
    match report.errors.first() {
        None => Ok(findings),
        Some(Problem { filename, reason }) => {
            let path = copies.original(filename).unwrap_or("a file");
            Err(ScannerFailure { findings, why: format!("{path}: {}", short_text(reason)) })
        }
    }
}

fn finding(issue: &Issue, path: &str) -> Finding {
    let severity = match &*issue.severity {
        "HIGH" => Severity::High,
        "MEDIUM" => Severity::Medium,
        "LOW" => Severity::Low,
        _ => Severity::Info,
    };
    let confidence = match &*issue.confidence {
        "HIGH" => Confidence::High,
        "MEDIUM" => Confidence::Medium,
        _ => Confidence::Low,
    };
    let id = short_text(&issue.test_id);
    let message = short_text(issue.text.trim_end_matches('.'));
    let found = Finding::new(ENGINE_NAME, format!("{ENGINE_NAME}:{id}"), severity, message);
    let found = found.at(Some((path.to_owned(), Some(issue.line_number))));
    let fix = issue.more_info.as_deref().map(|text| format!("see {}", short_text(text)));
    Finding { confidence, fix, ..found }
}

#[cfg(test)]
mod tests {
    use savoir_package::File;
    use serde_json::json;

    use super::*;

    fn copies() -> CopiedFiles {
        let mut tree = Tree::default();
        let file = File { bytes: b"x = 1\n".to_vec(), executable: false };
        tree.add("lib/a.py".into(), file.clone()).unwrap();
        tree.add("a.md".into(), file).unwrap();
        CopiedFiles::of(&tree, is_python).unwrap().unwrap()
    }

    fn issue(file: &str) -> serde_json::Value {
        json!({
            "filename": file, "line_number": 3, "test_id": "B602", "issue_severity": "HIGH",
            "issue_confidence": "LOW", "issue_text": "shell=True\u{1b}[2J.\nmore",
            "more_info": "https://bandit.example/b602", "unknown": [1],
        })
    }

    #[test]
    fn issues_become_findings_of_the_package() {
        let report = json!({ "errors": [], "results": [issue("./file00000.py")] });
        let found = findings(serde_json::from_value(report).unwrap(), &copies());
        let Ok(found) = found else { panic!("it failed") };
        assert_eq!((found[0].rule.as_str(), found[0].severity), ("bandit:B602", Severity::High));
        assert_eq!(found[0].confidence, Confidence::Low);
        assert_eq!((found[0].file.as_deref(), found[0].line), (Some("lib/a.py"), Some(3)));
        assert_eq!(found[0].message, "shell=True[2J. more");
    }

    #[test]
    fn scanner_errors_and_unknown_files_fail() {
        let error = json!([{ "filename": "./file00000.py", "reason": "syntax error" }]);
        for (report, expected) in [
            (json!({ "errors": error, "results": [] }), "lib/a.py: syntax error"),
            (
                json!({ "errors": [], "results": [issue("/etc/passwd")] }),
                "it named a file that is not there: /etc/passwd",
            ),
        ] {
            let Err(trouble) = findings(serde_json::from_value(report).unwrap(), &copies()) else {
                panic!("{expected}");
            };
            assert_eq!(trouble.why, expected);
        }
    }
}
