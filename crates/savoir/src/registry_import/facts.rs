//! What the registry keeps of a version, and what was found in it, as its routes keep it.

use savoir_package::{
    archive::{self, ArchiveError},
    registry::wire::FileDigest,
    scan::{self, Report, Verdict},
    submission::Submission,
};
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{Facts, FileFact, ScanResult, ScanVerdict};
use serde_json::{Map, Value, json};

/// Characters of a skill's text that are searched.
const SEARCHED: usize = 4000;

pub(super) fn facts(from: &Submission) -> Result<Facts, ArchiveError> {
    let file = |file: &FileDigest| FileFact {
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        size: file.size,
    };
    let excerpt: String = from.body.chars().take(SEARCHED).collect();
    let mut more = Map::new();
    more.insert("excerpt".to_owned(), excerpt.into());
    // What other tools are given has no folder.
    let plain = sha256_hex(&archive::pack_plain(&from.tree)?);
    more.insert("plain_sha256".to_owned(), plain.into());
    Ok(Facts {
        description: from.description.clone(),
        tags: from.tags.clone(),
        author: from.author.clone(),
        license: from.license.clone(),
        homepage: from.homepage.clone(),
        repository: from.repository.clone(),
        dialect: from.dialect.clone(),
        needs: from.dependencies.clone(),
        permissions: from.permissions.clone(),
        tools: from.tools.clone(),
        files: from.files.iter().map(file).collect(),
        manifest: from.manifest.clone(),
        more,
    })
}

/// What a scan came to, as it is kept.
pub(super) fn result(report: &Report) -> ScanResult {
    let verdict = match report.verdict {
        Verdict::Allow => ScanVerdict::Allow,
        Verdict::Review => ScanVerdict::Review,
        Verdict::Block => ScanVerdict::Block,
    };
    let text = scan::render::render(report, scan::render::Format::Json);
    let mut told: Value = serde_json::from_str(&text).unwrap_or_default();
    let engine = format!("savoir {}", env!("CARGO_PKG_VERSION"));
    let summary = format!("{} with {} findings", verdict, report.findings.len());
    let report = json!({
        "engine": engine, "summary": summary, "findings": told["findings"].take(),
    });
    ScanResult { verdict, report }
}
