//! What becomes of a package that a scan blocks, or that the registry does not take.

use savoir_package::{
    registry::RegistryError,
    scan::{Finding, Verdict},
};
use savoir_skill::digest::sha256_hex;
use serde_json::Value;

use super::{Args, Parcel, page};
use crate::error::CommandError;

/// Findings that are told to a person.
const MOST_TOLD: usize = 10;

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
    let line = |told: CommandError, finding: &&Finding| {
        told.hint(format!("{}; {}", place(finding), finding.rule.fix()))
    };
    let told = worst.iter().take(MOST_TOLD).fold(told, line);
    Err(told
        .hint(format!("see everything with: savoir scan {path}"))
        .hint(cleared(args, parcel, &sha256))
        .hint("once an administrator has cleared it, send it with --despite-scan"))
}

fn place(finding: &Finding) -> String {
    let Finding { path, line, message, rule, .. } = finding;
    format!("{path}:{line}: {message} ({})", rule.id)
}

/// What who does not agree with a scan can do.
fn cleared(args: &Args, parcel: &Parcel, sha256: &str) -> String {
    let appeal = appeal(args, parcel, sha256);
    format!("if the scan is wrong, have the archive cleared: {appeal}")
}

fn appeal(args: &Args, parcel: &Parcel, sha256: &str) -> String {
    let submission = &parcel.submission;
    let version = submission.version.as_ref().map_or_else(|| "0.0.1".into(), ToString::to_string);
    let from = args.registry.as_deref();
    let from = from.map(|registry| format!(" --registry {registry}")).unwrap_or_default();
    let name = &submission.name;
    format!("savoir registry appeal {name}@{version} WHY --sha256 {sha256}{from}")
}

/// What a registry found, line by line.
fn found(error: &RegistryError) -> CommandError {
    let text = |finding: &Value, key: &str| match &finding[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let line = |finding: &Value| {
        let [rule, file, line, message, fix] =
            ["rule", "file", "line", "message", "fix"].map(|key| text(finding, key));
        let place = [file, line].into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(":");
        let words = [place, rule, message].into_iter().filter(|part| !part.is_empty());
        let words = words.collect::<Vec<_>>().join(": ");
        if fix.is_empty() { words } else { format!("{words}; {fix}") }
    };
    let all = error.findings();
    let told = CommandError::refused(error).detail("findings", all.to_vec().into());
    all.iter().take(MOST_TOLD).fold(told, |told, finding| told.hint(line(finding)))
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
