//! Converts stored data to API responses.

use savoir_package::registry::{
    Name,
    wire::{self, Artifact, Audit, FileDigest},
};
use savoir_store::registry::{
    Package, PackageName, PackageVersion, ScanResult, Signature, SignatureState, Signer, Summary,
};
use savoir_store::{StoreError, Timestamp};
use semver::Version;
use serde_json::Value;

use super::{
    error::{RegistryApiError, RegistryResult},
    extract::registry,
};
use crate::app::App;

/// The key in the metadata of a version for the changelog of its publisher.
pub(super) const CHANGELOG: &str = "changelog";

/// The name in the format of the client API.
pub(super) fn name(package: &PackageName) -> RegistryResult<Name> {
    Name::parse(&package.to_string()).map_err(|error| RegistryApiError::failed(&error))
}

/// Summaries of packages, with their download counts.
pub(super) async fn summaries(
    app: &App,
    packages: &[Summary],
) -> RegistryResult<Vec<wire::Summary>> {
    let names: Vec<PackageName> = packages.iter().map(|found| found.package.clone()).collect();
    let downloads = registry(app).downloads_of(&names).await?;
    let attestations = registry(app).attestation_counts(&names).await?;
    let downloads_of = |package: &PackageName| downloads.get(package).copied().unwrap_or(0);
    let to_summary = |found: &Summary| {
        let attestations = attestations.get(&found.package).copied();
        summary(found, downloads_of(&found.package), attestations)
    };
    packages.iter().map(to_summary).collect()
}

fn summary(
    summary: &Summary,
    downloads: u64,
    attestations: Option<u64>,
) -> RegistryResult<wire::Summary> {
    Ok(wire::Summary {
        name: name(&summary.package)?,
        latest_version: summary.latest.as_ref().map(ToString::to_string),
        description: Some(summary.description.clone()),
        author: summary.author.clone(),
        license: summary.license.clone(),
        security_tier: summary.attested,
        tags: summary.tags.clone(),
        homepage: summary.homepage.clone(),
        repository: summary.repository.clone(),
        updated_at: Some(summary.updated_at.to_string()),
        downloads: Some(downloads),
        attestations,
    })
}

/// The publisher of a version: its namespace. Email addresses are never published.
fn publisher(package: &PackageName) -> Option<String> {
    let namespace = package.namespace();
    (!namespace.is_shared()).then(|| namespace.to_string())
}

pub(super) fn detail(
    package: &Package,
    readme: Option<String>,
    downloads: &[(Version, u64)],
    attestations: Option<u64>,
) -> RegistryResult<wire::PackageDetail> {
    let downloads_of = |version: &Version| {
        downloads.iter().find(|(known, _)| known == version).map_or(0, |(_, number)| *number)
    };
    let total: u64 = downloads.iter().map(|(_, number)| *number).sum();
    let whole = || package.summary.deprecated.clone();
    let to_summary = |version: &savoir_store::registry::VersionSummary| wire::VersionSummary {
        version: version.version.clone(),
        published_at: Some(version.published_at.to_string()),
        publisher: publisher(&package.summary.package),
        security_tier: version.attested,
        integrity: Some(version.integrity.clone()),
        size: version.size,
        yanked: version.yanked || version.blocked.is_some(),
        yanked_reason: version.blocked.clone().or_else(|| version.yanked_why.clone()),
        deprecated: version.deprecated.clone().or_else(whole),
        downloads: Some(downloads_of(&version.version)),
    };
    Ok(wire::PackageDetail {
        summary: summary(&package.summary, total, attestations)?,
        readme,
        deprecated: package.summary.deprecated.clone(),
        versions: package.versions.iter().map(to_summary).collect(),
    })
}

pub(super) fn version_detail(
    known: &PackageVersion,
    skill_md: Option<String>,
    signatures: &[Signature],
) -> RegistryResult<wire::VersionDetail> {
    let file = |file: &savoir_store::registry::FileFact| FileDigest {
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        size: file.size,
    };
    // As in the index, a blocked version counts as yanked: it is not offered to new users.
    let blocked = known.why_blocked();
    let yanked_why = known.yanked.as_ref().and_then(|(_, why)| why.clone());
    Ok(wire::VersionDetail {
        name: name(&known.package)?,
        version: known.version.clone(),
        published_at: Some(known.published_at.to_string()),
        publisher: publisher(&known.package),
        security_tier: known.attested,
        claimed_tier: known.claimed,
        yanked: known.yanked.is_some() || blocked.is_some(),
        yanked_reason: blocked.or(yanked_why.filter(|why| !why.is_empty())),
        deprecated: known.deprecated.clone(),
        changelog: known.facts.more.get(CHANGELOG).and_then(Value::as_str).map(str::to_owned),
        manifest: known.facts.manifest.clone(),
        skill_md,
        artifact: artifact(known),
        files: known.facts.files.iter().map(file).collect(),
        signature: signature(signatures),
        audit: known.scan.as_ref().map(|(result, at)| audit(result, *at)),
    })
}

pub(super) fn artifact(known: &PackageVersion) -> Artifact {
    Artifact {
        filename: known.package.filename(&known.version),
        size: known.size,
        sha256: known.sha256.clone(),
        integrity: Some(known.integrity.clone()),
    }
}

/// The record of a publisher signature with an active key, else of any publisher signature.
fn signature(signatures: &[Signature]) -> Option<Value> {
    let publishers = || signatures.iter().filter(|one| one.signer == Signer::Publisher);
    let best = publishers().find(|one| one.state == SignatureState::Active);
    let best = best.or_else(|| publishers().next())?;
    serde_json::from_str(&best.record).ok()
}

/// A scan result in the format of GAIA.
pub(super) fn audit(result: &ScanResult, at: Timestamp) -> Audit {
    let findings = result.report.get("findings").and_then(Value::as_array);
    let engine = result.report.get("engine").and_then(Value::as_str);
    Audit {
        verdict: result.verdict.as_str().to_uppercase(),
        engine: Some(engine.unwrap_or("savoir").to_owned()),
        audited_at: Some(at.to_string()),
        findings: findings.cloned().unwrap_or_default(),
    }
}

/// Text that was validated when it was published.
pub(super) fn text(bytes: Option<bytes::Bytes>) -> Result<Option<String>, StoreError> {
    let damaged = |_| StoreError::Damaged {
        what: "a SKILL.md".to_owned(),
        message: "it is not UTF-8".to_owned(),
    };
    bytes.map(|bytes| String::from_utf8(bytes.into()).map_err(damaged)).transpose()
}
