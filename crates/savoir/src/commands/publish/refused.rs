//! What becomes of a package that a scan blocks, or that the registry does not take.

use savoir_package::{
    registry::RegistryError,
    scan::{Finding, Verdict},
};
use savoir_skill::digest::sha256_hex;
use semver::Version;

use super::{Args, Parcel, home, page};
use crate::{
    error::CommandError,
    findings::{self, MOST_TOLD},
    runtime,
};

/// Refuses what the scan here blocks, unless the registry is to decide.
pub(super) fn refuse_blocked(args: &Args, parcel: &Parcel) -> Result<(), CommandError> {
    if parcel.verdict() != Verdict::Block || args.despite_scan {
        return Ok(());
    }
    let findings = &parcel.report.findings;
    let worst: Vec<&Finding> = findings.iter().filter(|finding| finding.blocks()).collect();
    let worst = if worst.is_empty() { findings.iter().collect() } else { worst };
    let path = args.path.display();
    let message = match worst.first() {
        Some(first) => format!("{path}: the scan blocks it: {}", place(first)),
        None => format!("{path}: the scan blocks it"),
    };
    let sha256 = sha256_hex(&parcel.bytes);
    let told = CommandError::refused(message)
        .named("audit_blocked")
        .detail("scan", page::scanned(&parcel.report, parcel.verdict()))
        .detail("sha256", sha256.clone().into());
    let told = worst.iter().take(MOST_TOLD).fold(told, |told, finding| told.hint(whole(finding)));
    Err(told
        .hint(format!("see everything with: savoir scan {path}"))
        .hint(cleared(args, parcel, &sha256))
        .hint("once an administrator has cleared it, send it with --despite-scan"))
}

fn place(finding: &Finding) -> String {
    let Finding { path, line, message, rule, .. } = finding;
    format!("{path}:{line}: {message} ({})", rule.id)
}

/// A finding with the way out.
pub(super) fn whole(finding: &Finding) -> String {
    format!("{}; {}", place(finding), finding.rule.fix())
}

/// What who does not agree with a scan can do.
fn cleared(args: &Args, parcel: &Parcel, sha256: &str) -> String {
    let appeal = appeal(args, parcel, sha256);
    format!("if the scan is wrong, have the archive cleared: {appeal}")
}

fn appeal(args: &Args, parcel: &Parcel, sha256: &str) -> String {
    let submission = &parcel.submission;
    let version = submission.version.clone().or_else(|| counted(args, parcel));
    let version = version.map_or_else(|| "VERSION".to_owned(), |version| version.to_string());
    let from = args.registry.as_deref();
    let from = from.map(|registry| format!(" --registry {registry}")).unwrap_or_default();
    let name = &submission.name;
    format!("savoir registry appeal {name}@{version} WHY --sha256 {sha256}{from}")
}

/// The number that its registry counts a text as, if it can be asked.
fn counted(args: &Args, parcel: &Parcel) -> Option<Version> {
    let client = home(args, parcel).ok()?;
    let name = &parcel.submission.name;
    let index = runtime::block_on(async { Ok(client.index(name).await?) });
    Some(index.ok()?.unwrap_or_default().next_counted())
}

/// What a registry found, line by line.
fn found(error: &RegistryError) -> CommandError {
    let all = error.findings();
    let told = CommandError::refused(error).detail("findings", all.to_vec().into());
    all.iter().take(MOST_TOLD).fold(told, |told, finding| told.hint(findings::line(finding)))
}

/// What the registry says no to.
pub(super) fn not_taken(
    error: RegistryError,
    address: &str,
    args: &Args,
    parcel: &Parcel,
) -> CommandError {
    let code = error.code().to_owned();
    match code.as_str() {
        "unauthorized" => CommandError::refused(&error)
            .hint(format!("log in again: savoir login --registry {address}")),
        "forbidden_scope" if parcel.submission.name.is_anonymous() => {
            CommandError::refused(&error).hint("call it what nobody else calls theirs: --name NAME")
        }
        "forbidden_scope" => CommandError::refused(&error)
            .hint("publish under a name or a namespace of yours: --namespace NAMESPACE"),
        "audit_blocked"
        | "audit_tier_not_cleared"
        | "audit_review_required"
        | "audit_required"
        | "audit_stale" => {
            let sha256 = sha256_hex(&parcel.bytes);
            let told = found(&error).hint("look at it yourself: savoir scan --deep PATH");
            let cleared = cleared(args, parcel, &sha256);
            told.hint(cleared).detail("sha256", sha256.into())
        }
        "taken_down" => {
            let sha256 = sha256_hex(&parcel.bytes);
            let appeal = appeal(args, parcel, &sha256);
            CommandError::refused(&error)
                .hint(format!("if that was wrong, have the archive cleared: {appeal}"))
                .detail("sha256", sha256.into())
        }
        "version_exists" => {
            CommandError::findings(&error).hint("raise `version` in SKILL.md and publish again")
        }
        _ => return error.into(),
    }
    .named(code)
}
