//! `savoir registry yank`, `unyank`, `deprecate`, `rescan`, `appeal` and `request-audit`.

use std::process::ExitCode;

use savoir_engine::approval::printable;
use savoir_package::registry::wire;
use serde_json::json;

use super::common::{Common, OneOrAll, VersionTarget};
use crate::{error::CommandError, findings, output};

/// Yank a version: existing installs keep working, new installs skip it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  savoir registry yank acme/pdf@1.2.0 --reason \"it leaks\"

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Yank {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// Reason, shown to users of the version
    #[arg(long, value_name = "WHY")]
    reason: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Undo the yank of a version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  savoir registry unyank acme/pdf@1.2.0

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Unyank {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    #[command(flatten)]
    common: Common,
}

/// Mark a version or all versions of a skill as deprecated
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir registry deprecate acme/pdf@1.2.0 \"use 1.2.1\"
  savoir registry deprecate acme/pdf \"use acme/paper\"           all versions, including later ones
  savoir registry deprecate acme/pdf@1.2.0 --undo

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Deprecate {
    /// The version; without one, all versions
    #[arg(value_name = "NAME[@VERSION]")]
    target: OneOrAll,
    /// Message for users who install it
    #[arg(value_name = "MESSAGE", required_unless_present = "undo", conflicts_with = "undo")]
    message: Option<String>,
    /// Remove the deprecation
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    common: Common,
}

/// Scan a published version again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  savoir registry rescan acme/pdf@1.2.0

Exit codes: 1 it is blocked, or the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Rescan {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    #[command(flatten)]
    common: Common,
}

/// Ask an administrator to review the scan result of a version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir registry appeal acme/pdf@1.2.0 \"the key in the test is made up\"
  savoir registry appeal acme/pdf@1.2.0 \"it is our own host\" --sha256 5fb8…  (not published)

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Appeal {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// Why the verdict is wrong
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// SHA-256 of the archive if it was refused; the error message has it
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Ask the auditors of a registry to review a version, for the tier `verified`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  savoir registry request-audit acme/pdf@1.2.0 --message \"the code is at https://example.com\"

Administrators find the request in the audit log: savoir registry log. A version becomes `verified`
when an auditor signs it: savoir registry sign.

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct RequestAudit {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// What an auditor should know
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Yank {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        yank(&self.common, &self.target, true, self.reason.clone())
    }
}

impl Unyank {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        yank(&self.common, &self.target, false, None)
    }
}

fn yank(
    common: &Common,
    target: &VersionTarget,
    yanked: bool,
    reason: Option<String>,
) -> Result<ExitCode, CommandError> {
    common.with(target, async |client| {
        let VersionTarget { name, version } = target;
        let done = client.yank(name, version, &wire::Yank { yanked, reason }).await?;
        let now = match &done.blocked {
            _ if yanked => "is yanked".to_owned(),
            Some(why) => format!("stays blocked: {}", printable(why)),
            None => "is no longer yanked".to_owned(),
        };
        let mut value = json!({ "name": name, "version": version.to_string(), "yanked": yanked });
        if let Some(why) = done.blocked {
            value["blocked"] = why.into();
        }
        Ok((value, format!("`{name}` {version} {now}\n")))
    })
}

impl Deprecate {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let Self { target: OneOrAll { name, version }, message, common, .. } = self;
        common.with_skill(name, async |client| {
            let deprecate = wire::Deprecate { message: message.clone() };
            client.deprecate(name, version.as_ref(), &deprecate).await?;
            let now = if message.is_some() { "is deprecated" } else { "is no longer deprecated" };
            let version = version.as_ref().map(ToString::to_string);
            let which = version.as_deref().unwrap_or("(all versions)");
            let text = format!("`{name}` {which} {now}\n");
            Ok((json!({ "name": name, "version": version, "deprecated": message }), text))
        })
    }
}

impl Rescan {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let VersionTarget { name, version } = &self.target;
        let mut blocked = false;
        let done = self.common.with(&self.target, async |client| {
            let judged = client.rescan(name, version).await?;
            let verdict = judged.audit.as_ref().map(|audit| audit.verdict.as_str());
            blocked = verdict.is_some_and(|verdict| verdict.eq_ignore_ascii_case("block"));
            let text = match &judged.audit {
                Some(audit) => {
                    let found = output::plural(audit.findings.len(), "finding");
                    let lines = findings::lines(&audit.findings, findings::line);
                    let head = format!("`{name}` {version}: {}, {found}", audit.verdict);
                    [vec![head], lines].concat().join("\n  ") + "\n"
                }
                None => format!("`{name}` {version} will be scanned\n"),
            };
            let value =
                json!({ "name": name, "version": version.to_string(), "audit": judged.audit });
            Ok((value, text))
        })?;
        Ok(if blocked { ExitCode::from(1) } else { done })
    }
}

impl Appeal {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let VersionTarget { name, version } = &self.target;
        self.common.with(&self.target, async |client| {
            let appeal =
                wire::Appeal { message: self.message.clone(), sha256: self.sha256.clone() };
            client.appeal(name, version, &appeal).await?;
            let value = json!({ "name": name, "version": version.to_string(), "appealed": true });
            Ok((value, format!("sent the appeal for `{name}` {version}\n")))
        })
    }
}

impl RequestAudit {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let VersionTarget { name, version } = &self.target;
        self.common.with(&self.target, async |client| {
            let request = wire::AuditRequest { message: self.message.clone() };
            client.request_audit(name, version, &request).await?;
            let value = json!({ "name": name, "version": version.to_string(), "requested": true });
            Ok((value, format!("asked for an audit of `{name}` {version}\n")))
        })
    }
}
