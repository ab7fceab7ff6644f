//! Runs detect-secrets, which finds secrets in files.

use std::{collections::BTreeMap, time::Instant};

use savoir_package::Tree;
use savoir_sandbox::Network;
use savoir_scan::Severity;
use serde::Deserialize;

use super::{
    CopiedFiles, EngineResult, Scanner, ScannerFailure, missing, not_needed, short_text,
    unknown_file,
};
use crate::vetting::{Options, finding::Finding};

pub(super) const ENGINE_NAME: &str = "detect-secrets";

/// Plugins that guess: a digest looks like a key, a parameter is called `password`.
const ENTROPY_PLUGINS: [&str; 4] = [
    "Base64 High Entropy String", "Hex High Entropy String", "Secret Keyword",
    "Basic Auth Credentials",
];

/// Extensions that detect-secrets parses in a special way; all others are read as text.
const SCANNED_EXTENSIONS: [&str; 10] =
    ["py", "js", "ts", "sh", "json", "yml", "yaml", "toml", "ini", "md"];

#[derive(Deserialize)]
struct ScannerReport {
    results: BTreeMap<String, Vec<Secret>>,
}

#[derive(Deserialize)]
struct Secret {
    #[serde(rename = "type")]
    kind: String,
    line_number: u32,
}

pub(super) fn run(scanner: Option<&Scanner>, tree: &Tree, options: &Options) -> EngineResult {
    let Some(scanner) = scanner else { return missing(ENGINE_NAME) };
    let started = Instant::now();
    match CopiedFiles::of(tree, kind) {
        Ok(None) => not_needed(ENGINE_NAME, "the package has no text"),
        Ok(Some(copies)) => scanner.engine(started, run_scanner(scanner, &copies, options)),
        Err(error) => scanner.engine(started, Err(error.to_string().into())),
    }
}

fn kind(path: &str, bytes: &[u8]) -> Option<&'static str> {
    let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = SCANNED_EXTENSIONS.into_iter().find(|kind| kind.eq_ignore_ascii_case(extension));
    is_text.then(|| known.unwrap_or("txt"))
}

fn run_scanner(
    scanner: &Scanner,
    copies: &CopiedFiles,
    options: &Options,
) -> Result<Vec<Finding>, ScannerFailure> {
    let folder = copies.path().map_err(|error| error.to_string())?;
    // Secrets are not tested at their service, and comments cannot hide one.
    let allowed = "detect_secrets.filters.allowlist.is_line_allowlisted";
    let words = ["-c", "1", "scan", "--all-files", "--no-verify", "--disable-filter", allowed, "."];
    let report: ScannerReport = scanner.run_scanner(&folder, &words, Network::None, options)?;
    findings(report, copies)
}

fn findings(report: ScannerReport, copies: &CopiedFiles) -> Result<Vec<Finding>, ScannerFailure> {
    let mut findings = Vec::new();
    for (name, secrets) in report.results {
        let Some(path) = copies.original(&name) else {
            return Err(ScannerFailure { findings, why: unknown_file(&name) });
        };
        findings.extend(secrets.iter().map(|secret| finding(secret, path)));
    }
    Ok(findings)
}

fn finding(secret: &Secret, path: &str) -> Finding {
    let kind = short_text(&secret.kind);
    let guess = ENTROPY_PLUGINS.contains(&&*kind);
    let severity = if guess { Severity::Medium } else { Severity::High };
    let id = kind.to_ascii_lowercase().replace(' ', "-");
    let message = format!("this looks like a secret: {kind}");
    Finding::new(ENGINE_NAME, format!("{ENGINE_NAME}:{id}"), severity, message)
        .at(Some((path.to_owned(), Some(secret.line_number))))
        .with_fix("take it out, and make it invalid where it is valid")
}

#[cfg(test)]
mod tests {
    use savoir_package::File;

    use super::*;

    #[test]
    fn kinds_by_name_and_content() {
        assert_eq!(kind("a/b.PY", b"x"), Some("py"));
        assert_eq!(kind("package-lock.json", b"{}"), Some("json"));
        assert_eq!(kind("LICENSE", b"x"), Some("txt"));
        assert_eq!(kind("a.png", b"\x89PNG\0"), None);
    }

    #[test]
    fn entropy_findings_have_low_severity() {
        let mut tree = Tree::default();
        let file = File { bytes: b"x".to_vec(), executable: false };
        tree.add("a.txt".into(), file).unwrap();
        let copies = CopiedFiles::of(&tree, kind).unwrap().unwrap();
        let report = r#"{"results": {"file00000.txt": [
            {"type": "GitHub Token", "line_number": 1},
            {"type": "Secret Keyword", "line_number": 2}]}}"#;
        let Ok(found) = findings(serde_json::from_str(report).unwrap(), &copies) else {
            panic!("it failed");
        };
        let rules: Vec<_> = found.iter().map(|one| (one.rule.as_str(), one.severity)).collect();
        assert_eq!(
            rules,
            [
                ("detect-secrets:github-token", Severity::High),
                ("detect-secrets:secret-keyword", Severity::Medium)
            ]
        );
        let other = r#"{"results": {"../x": []}}"#;
        assert!(findings(serde_json::from_str(other).unwrap(), &copies).is_err());
    }
}
