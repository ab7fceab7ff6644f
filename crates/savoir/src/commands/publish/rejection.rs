//! Errors for packages that the local scan blocks or the registry rejects.

use savoir_package::registry::RegistryError;
use savoir_scan::{Finding, Verdict};
use savoir_skill::digest::sha256_hex;
use semver::Version;

use super::{Args, PublishRequest, home, report};
use crate::{
    error::CommandError,
    findings::{self, MAX_PRINTED_FINDINGS},
    runtime,
};

/// Refuses a package that the local scan blocks, unless --despite-scan is set.
pub(super) fn refuse_blocked(args: &Args, request: &PublishRequest) -> Result<(), CommandError> {
    if request.verdict() != Verdict::Block || args.despite_scan {
        return Ok(());
    }
    let findings = &request.report.findings;
    let worst: Vec<&Finding> = findings.iter().filter(|finding| finding.blocks()).collect();
    let worst = if worst.is_empty() { findings.iter().collect() } else { worst };
    let path = args.path.display();
    let message = match worst.first() {
        Some(first) => format!("{path}: the scan blocks it: {}", place(first)),
        None => format!("{path}: the scan blocks it"),
    };
    let sha256 = sha256_hex(&request.bytes);
    let error_with_hints = CommandError::refused(message)
        .with_code("audit_blocked")
        .detail("scan", report::scan_json(&request.report, request.verdict()))
        .detail("sha256", sha256.clone().into());
    let error_with_hints = worst
        .iter()
        .take(MAX_PRINTED_FINDINGS)
        .fold(error_with_hints, |error_with_hints, finding| {
            error_with_hints.hint(finding_with_fix(finding))
        });
    Err(error_with_hints
        .hint(format!("to see all findings: savoir scan {path}"))
        .hint(appeal_hint(args, request, &sha256))
        .hint("after an administrator cleared it, publish it with --despite-scan"))
}

fn place(finding: &Finding) -> String {
    let Finding { path, line, message, rule, .. } = finding;
    format!("{path}:{line}: {message} ({})", rule.id)
}

/// A finding with its fix.
pub(super) fn finding_with_fix(finding: &Finding) -> String {
    format!("{}; {}", place(finding), finding.rule.fix())
}

/// The hint for a user who disagrees with the scan.
fn appeal_hint(args: &Args, request: &PublishRequest, sha256: &str) -> String {
    let appeal = appeal(args, request, sha256);
    format!("if the scan is wrong, appeal: {appeal}")
}

fn appeal(args: &Args, request: &PublishRequest, sha256: &str) -> String {
    let submission = &request.submission;
    let version = submission.version.clone().or_else(|| next_assigned_version(args, request));
    let version = version.map_or_else(|| "VERSION".to_owned(), |version| version.to_string());
    let from = args.registry.as_deref();
    let from = from.map(|registry| format!(" --registry {registry}")).unwrap_or_default();
    let name = &submission.name;
    format!("savoir registry appeal {name}@{version} WHY --sha256 {sha256}{from}")
}

/// The next version that the registry assigns to a text, if it can be reached.
fn next_assigned_version(args: &Args, request: &PublishRequest) -> Option<Version> {
    let client = home(args, request).ok()?;
    let name = &request.submission.name;
    let index = runtime::block_on(async { Ok(client.index(name).await?) });
    Some(index.ok()?.unwrap_or_default().next_assigned_version())
}

/// The error of the registry, with its findings as hints.
fn registry_error_with_findings(error: &RegistryError) -> CommandError {
    let all = error.findings();
    let error_with_hints = CommandError::refused(error).detail("findings", all.to_vec().into());
    all.iter().take(MAX_PRINTED_FINDINGS).fold(error_with_hints, |error_with_hints, finding| {
        error_with_hints.hint(findings::line(finding))
    })
}

/// The error of the registry, with hints.
pub(super) fn registry_rejection(
    error: RegistryError,
    address: &str,
    args: &Args,
    request: &PublishRequest,
) -> CommandError {
    let code = error.code().to_owned();
    match code.as_str() {
        "unauthorized" => CommandError::refused(&error)
            .hint(format!("log in again: savoir login --registry {address}")),
        "forbidden_scope" if request.submission.name.is_anonymous() => {
            CommandError::refused(&error).hint("use a name that is not taken: --name NAME")
        }
        "forbidden_scope" if error.reason() == Some("reserved_prefix") => {
            CommandError::refused(&error)
                .hint("rename the skill: change `name` in SKILL.md, and the name of its folder")
        }
        "forbidden_scope" => CommandError::refused(&error)
            .hint("publish under a name or in a namespace that you own: --namespace NAMESPACE"),
        "audit_blocked"
        | "audit_tier_not_cleared"
        | "audit_review_required"
        | "audit_required"
        | "audit_stale" => {
            let sha256 = sha256_hex(&request.bytes);
            let error_with_hints = registry_error_with_findings(&error)
                .hint("scan it yourself: savoir scan --deep PATH");
            let cleared = appeal_hint(args, request, &sha256);
            error_with_hints.hint(cleared).detail("sha256", sha256.into())
        }
        "taken_down" => {
            let sha256 = sha256_hex(&request.bytes);
            let appeal = appeal(args, request, &sha256);
            CommandError::refused(&error)
                .hint(format!("if it was taken down by mistake, appeal: {appeal}"))
                .detail("sha256", sha256.into())
        }
        "version_exists" => {
            CommandError::findings(&error).hint("raise `version` in SKILL.md and publish again")
        }
        _ => return error.into(),
    }
    .with_code(code)
}
