//! Runs pip-audit, which checks pinned packages for known vulnerabilities.

use std::{fs, time::Instant};

use savoir_package::Tree;
use savoir_sandbox::{HostGrant, HostPattern, MethodGroup, Network, Scheme};
use savoir_scan::Severity;
use serde::Deserialize;

use super::{EngineResult, Scanner, ScannerFailure, missing, not_needed, short_text};
use crate::vetting::{Audit, Options, decoy_environment, finding::Finding};

pub(super) const ENGINE_NAME: &str = "pip-audit";

/// Maximum number of packages that are checked.
const MAX_PINNED_PACKAGES: usize = 200;

#[derive(Deserialize)]
struct ScannerReport {
    dependencies: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Option<String>,
    #[serde(default)]
    vulns: Vec<KnownVulnerability>,
    skip_reason: Option<String>,
}

#[derive(Deserialize)]
struct KnownVulnerability {
    id: String,
    #[serde(default)]
    fix_versions: Vec<String>,
    #[serde(default)]
    description: String,
}

/// A package with an exact version, and the place that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PinnedPackage {
    name: String,
    version: String,
    file: String,
    line: Option<u32>,
}

pub(super) fn run(scanner: Option<&Scanner>, tree: &Tree, options: &Options) -> EngineResult {
    let Some(scanner) = scanner else { return missing(ENGINE_NAME) };
    let pinned = pinned(tree);
    if pinned.is_empty() {
        return not_needed(ENGINE_NAME, "the package pins no Python packages");
    }
    let Audit::Service(service) = &options.audit else {
        return not_needed(ENGINE_NAME, "no vulnerability service is configured");
    };
    let started = Instant::now();
    scanner.engine(started, run_scanner(scanner, &pinned, service, options))
}

/// Packages that `requirements.txt` and SKILL.md pin to one version.
fn pinned(tree: &Tree) -> Vec<PinnedPackage> {
    let file = "requirements.txt";
    let text = tree.get(file).map(|found| String::from_utf8_lossy(&found.bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let line_number = u32::try_from(index + 1).ok();
        parse(line).map(|(name, version)| (name, version, file, line_number))
    });
    let reading = decoy_environment::reading(tree).ok();
    let declared = reading.map(|reading| reading.skill.requirements.python_packages);
    let declared = declared.unwrap_or_default();
    let declared = declared
        .iter()
        .filter_map(|text| parse(text).map(|(name, version)| (name, version, "SKILL.md", None)));
    let mut all: Vec<PinnedPackage> = Vec::new();
    for (name, version, file, line) in lines.chain(declared).take(MAX_PINNED_PACKAGES) {
        if !all.iter().any(|one| one.name == name && one.version == version) {
            all.push(PinnedPackage { name, version, file: file.to_owned(), line });
        }
    }
    all
}

/// Parses `name==version`. Rejects everything that pip would read as an option or a path.
fn parse(line: &str) -> Option<(String, String)> {
    let line = line.split(['#', ';']).next().unwrap_or_default();
    let line = line.split(" --hash").next().unwrap_or_default().trim().trim_end_matches('\\');
    let (name, version) = line.split_once("==")?;
    let name = name.split('[').next().unwrap_or_default().trim().to_ascii_lowercase();
    let version = version.trim();
    let word = |text: &str, more: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(|char| char.is_ascii_alphanumeric() || more.contains(char))
    };
    (word(&name, "-_.") && word(version, ".+-_!")).then(|| (name, version.to_owned()))
}

fn run_scanner(
    scanner: &Scanner,
    pinned: &[PinnedPackage],
    service: &str,
    options: &Options,
) -> Result<Vec<Finding>, ScannerFailure> {
    let failed = |error: std::io::Error| error.to_string();
    let folder = tempfile::Builder::new().prefix("savoir-scanner-").tempdir().map_err(failed)?;
    let place = folder.path().canonicalize().map_err(failed)?;
    let lines: Vec<String> =
        pinned.iter().map(|one| format!("{}=={}", one.name, one.version)).collect();
    fs::write(place.join("requirements.txt"), lines.join("\n")).map_err(failed)?;
    let words = [
        "-r", "requirements.txt", "--no-deps", "--disable-pip", "--progress-spinner", "off",
        "--cache-dir", "/tmp/cache", "--vulnerability-service", "pypi", "-f", "json",
    ];
    let host: HostPattern = service.parse().map_err(|error| format!("{service}: {error}"))?;
    let network = Network::Hosts(vec![HostGrant {
        host,
        scheme: Some(Scheme::Https),
        port: None,
        path: String::new(),
        methods: MethodGroup::Read,
        allow_private_addresses: false,
    }]);
    let report: ScannerReport = scanner.run_scanner(&place, &words, network, options)?;
    findings(&report, pinned)
}

fn findings(
    report: &ScannerReport,
    pinned: &[PinnedPackage],
) -> Result<Vec<Finding>, ScannerFailure> {
    let mut findings = Vec::new();
    for package in &report.dependencies {
        let Some(known) = pinned.iter().find(|one| one.name == package.name.to_ascii_lowercase())
        else {
            let why = format!(
                "it named a package that is not asked about: {}",
                short_text(&package.name)
            );
            return Err(ScannerFailure { findings, why });
        };
        if let Some(reason) = &package.skip_reason {
            return Err(ScannerFailure { findings, why: short_text(reason) });
        }
        let version = package.version.as_deref().unwrap_or(&known.version);
        for hole in &package.vulns {
            let id = short_text(&hole.id);
            let about = short_text(&hole.description);
            let message =
                format!("{} {} has a known hole: {about}", known.name, short_text(version));
            let found =
                Finding::new(ENGINE_NAME, format!("{ENGINE_NAME}:{id}"), Severity::High, message);
            let fix = hole
                .fix_versions
                .first()
                .map(|fixed| format!("use {}=={}", known.name, short_text(fixed)));
            let found = found.at(Some((known.file.clone(), known.line)));
            findings.push(Finding { fix, ..found });
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use savoir_package::File;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_plain_pins_are_asked_about() {
        for (line, expected) in [
            ("Requests==2.31.0", Some(("requests", "2.31.0"))),
            ("a[b]==1.0 ; python_version > '3'", Some(("a", "1.0"))),
            ("a==1.0 --hash=sha256:00 \\", Some(("a", "1.0"))),
            ("a==1.0 # why", Some(("a", "1.0"))),
            ("a>=1.0", None),
            ("a==1.*", None),
            ("-r other==1", None),
            ("--index-url==https://x", None),
            ("https://x/a==1", None),
            ("a==1 b==2", None),
        ] {
            let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn vulnerabilities_become_findings() {
        let mut tree = Tree::default();
        let bytes = b"x\njinja2==2.4.1\n".to_vec();
        tree.add("requirements.txt".into(), File { bytes, executable: false }).unwrap();
        let pinned = pinned(&tree);
        assert_eq!((pinned.len(), pinned[0].line), (1, Some(2)));
        let hole = json!({ "id": "PYSEC-2014-8", "fix_versions": ["2.7.2"], "aliases": [], "description": "It\nleaks" });
        let report = json!({ "dependencies": [{ "name": "Jinja2", "version": "2.4.1", "vulns": [hole] }], "fixes": [] });
        let Ok(found) = findings(&serde_json::from_value(report).unwrap(), &pinned) else {
            panic!("it failed");
        };
        assert_eq!(found[0].rule, "pip-audit:PYSEC-2014-8");
        assert_eq!(found[0].message, "jinja2 2.4.1 has a known hole: It leaks");
        assert_eq!(found[0].fix.as_deref(), Some("use jinja2==2.7.2"));
        for other in [
            json!([{ "name": "else", "vulns": [] }]),
            json!([{ "name": "jinja2", "skip_reason": "no" }]),
        ] {
            let report = json!({ "dependencies": other });
            assert!(findings(&serde_json::from_value(report).unwrap(), &pinned).is_err());
        }
    }
}
