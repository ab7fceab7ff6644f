//! `savoir registry appeals`, `clear`, `unclear`, `verdict` and `take-down`, for administrators.

use std::{borrow::Cow, collections::HashMap, process::ExitCode};

use savoir_engine::approval::printable;
use savoir_package::registry::{
    Client, Name, RegistryError,
    wire::{Clearance, Judgement, LogEntry, LogQuery, TakeDown as Taking},
};
use serde_json::{Value, json};

use super::{
    common::{Common, VersionTarget},
    log::entries,
    tokens::with_password_session,
};
use crate::{error::CommandError, output, runtime};

/// Credentials of an administrator: a password, or a token of `savoir login --scope admin`.
#[derive(Debug, clap::Args)]
pub(super) struct Admin {
    /// Email of an administrator; the password is read from the terminal or standard input [default: use
    /// a token, which needs the scope admin]
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Admin {
    /// Runs `work` with the registry of a skill, or with the default registry.
    pub(super) fn at(
        &self,
        name: Option<&Name>,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        if let Some(email) = &self.email {
            return with_password_session(email, name, &self.common, work);
        }
        self.common.print_result(|| {
            let remote = &self.common.remote;
            let client = name.map_or_else(|| remote.client(), |name| remote.client_of(name))?;
            runtime::block_on(work(&client)).map_err(|error| match error.code().as_deref() {
                Some("forbidden_scope") => error.hint(
                    "use your password: --email EMAIL; or get a token: savoir login --scope admin",
                ),
                _ => error,
            })
        })
    }
}

/// Maximum number of log entries that are read.
const MAX_LOG_ENTRIES: usize = 10_000;

/// List appeals against scan results
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. Review the archive before you decide: ask the publisher for it or install the
version, then run `savoir scan --deep`.

Examples:
  savoir registry appeals --email root@example.com
  savoir registry appeals --email root@example.com --json < password.txt

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Appeals {
    /// Maximum number of appeals, newest first
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    admin: Admin,
}

/// Allow an archive to be published although the scan blocks it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. A clearance is only for the archive with this digest, and for one skill: that of
the appeal. The archive is published with the verdict REVIEW, which users see when they install it.
Files that were taken down can be published again as a new version. A published version that is
blocked stays blocked; to change that: savoir registry verdict.

Examples:
  savoir registry clear 5fb8c1… --reason \"it is their own host\" --email root@example.com
  savoir registry clear 5fb8c1… --for acme/pdf --reason \"it is theirs\" --email root@example.com
  savoir registry unclear 5fb8c1… --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Clear {
    /// SHA-256 of the archive, as shown by `savoir registry appeals`
    #[arg(value_name = "DIGEST", value_parser = digest)]
    sha256: String,
    /// Reason, shown in the log
    #[arg(long, value_name = "WHY")]
    reason: String,
    /// Skill that may publish the archive [default: the skill of the appeal]
    #[arg(long = "for", value_name = "NAME", value_parser = Name::parse)]
    skill: Option<Name>,
    #[command(flatten)]
    admin: Admin,
}

/// Revoke a clearance; published versions stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. To block a published version: savoir registry verdict.

Examples:
  savoir registry unclear 5fb8c1… --email root@example.com
  savoir registry unclear 5fb8c1… --for acme/pdf --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Unclear {
    /// SHA-256 of the archive
    #[arg(value_name = "DIGEST", value_parser = digest)]
    sha256: String,
    /// Skill that may no longer publish the archive [default: all skills]
    #[arg(long = "for", value_name = "NAME", value_parser = Name::parse)]
    skill: Option<Name>,
    #[command(flatten)]
    admin: Admin,
}

/// Override the scan verdict of a published version
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. The findings of the scan stay visible, and a later scan does not change the
verdict. New installs skip a blocked version, as if it was yanked.

Examples:
  savoir registry verdict acme/pdf@1.2.0 allow --reason \"a made-up key\" --email root@example.com
  savoir registry verdict acme/pdf@1.2.0 block --reason \"it steals\" --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Verdict {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// New verdict
    #[arg(value_name = "VERDICT")]
    decision: Decision,
    /// Reason, shown in the log
    #[arg(long, value_name = "WHY")]
    reason: String,
    #[command(flatten)]
    admin: Admin,
}

/// Take down a version permanently: nobody can download it any more
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators; publishers can yank. The version number cannot be used again, and the same files
cannot be published under any name until their archive is cleared. Users who have the version are
warned by savoir update, status and install. This cannot be undone.

Example:
  savoir registry take-down acme/pdf@1.2.0 --reason \"it steals\" --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct TakeDown {
    /// The version
    #[arg(value_name = "NAME@VERSION")]
    target: VersionTarget,
    /// Reason, shown to users of the version
    #[arg(long, value_name = "WHY")]
    reason: String,
    #[command(flatten)]
    admin: Admin,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Decision {
    /// No known problems
    Allow,
    /// Users should review it before they install it
    Review,
    /// New installs skip it
    Block,
}

impl Decision {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Review => "review",
            Self::Block => "block",
        }
    }
}

fn digest(text: &str) -> Result<String, String> {
    let small_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(small_hex) {
        return Ok(text.to_owned());
    }
    Err("write the SHA-256 of the archive as 64 lower-case hexadecimal digits".to_owned())
}

/// An appeal, and whether its archive is cleared.
struct AppealEntry<'a> {
    entry: &'a LogEntry,
    cleared: bool,
}

impl Appeals {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        self.admin.at(None, async |client| {
            let acts = ["appealed", "cleared", "uncleared"].map(str::to_owned).to_vec();
            let query = LogQuery { acts, ..LogQuery::default() };
            let entries = entries(client, query, MAX_LOG_ENTRIES).await?;
            let mut appeals = appeals(&entries);
            appeals.truncate(self.limit as usize);
            let rows: Vec<[Cow<'_, str>; 6]> = appeals.iter().map(AppealEntry::row).collect();
            let text = match rows.as_slice() {
                [] => "no appeals\n".to_owned(),
                rows => output::table(
                    ["TIME", "ACCOUNT", "SKILL", "CLEARED", "DIGEST", "MESSAGE"],
                    rows,
                ),
            };
            let text = text + &appeals.iter().map(AppealEntry::findings_text).collect::<String>();
            let items: Vec<Value> = appeals.iter().map(AppealEntry::json).collect();
            Ok((json!({ "appeals": items }), text))
        })
    }
}

/// The appeals of a log that is sorted from new to old, each with the last decision about its
/// archive. A decision is for one skill or, in entries of older versions, for all skills.
fn appeals(entries: &[LogEntry]) -> Vec<AppealEntry<'_>> {
    let mut decided: HashMap<(&str, Option<&str>), (usize, bool)> = HashMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.act != "appealed") {
        let key = (entry_text(entry, "sha256"), entry.name.as_deref());
        decided.entry(key).or_insert((at, entry.act == "cleared"));
    }
    let appeals = entries.iter().filter(|entry| entry.act == "appealed");
    appeals
        .map(|entry| {
            let words =
                [entry.name.as_deref(), None].map(|name| (entry_text(entry, "sha256"), name));
            let last = words.iter().filter_map(|key| decided.get(key)).min_by_key(|(at, _)| *at);
            AppealEntry { entry, cleared: last.is_some_and(|(_, cleared)| *cleared) }
        })
        .collect()
}

fn entry_text<'a>(entry: &'a LogEntry, key: &str) -> &'a str {
    decision_in_log(&entry.details, key)
}

fn decision_in_log<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A finding as one line: place, rule and message.
fn finding(finding: &Value) -> String {
    let line = finding["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let place = format!("{}{line}", decision_in_log(finding, "file"));
    let parts =
        [place.as_str(), decision_in_log(finding, "rule"), decision_in_log(finding, "message")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

impl AppealEntry<'_> {
    fn who(&self) -> String {
        match &self.entry.actor {
            Value::String(email) => email.clone(),
            Value::Null => "unknown".to_owned(),
            other => format!("account {other}"),
        }
    }

    fn skill(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}@{}", part(&self.entry.name), part(&self.entry.version))
    }

    fn row(&self) -> [Cow<'_, str>; 6] {
        let cell = |text: &str| Cow::Owned(output::cell(text).into_owned());
        [
            cell(self.entry.at.as_deref().unwrap_or_default()),
            cell(&self.who()),
            cell(&self.skill()),
            if self.cleared { "yes".into() } else { "no".into() },
            cell(entry_text(self.entry, "sha256")),
            cell(entry_text(self.entry, "message")),
        ]
    }

    /// The findings, printed below the table.
    fn findings_text(&self) -> String {
        let findings = self.entry.details["findings"].as_array();
        let lines = findings.into_iter().flatten().map(finding);
        let judged = decision_in_log(&self.entry.details["judged"], "reason");
        let judged = (!judged.is_empty()).then(|| format!("an administrator: {judged}"));
        let lines = judged.into_iter().chain(lines).map(|line| format!("  {}\n", printable(&line)));
        let mut lines: String = lines.collect();
        if lines.is_empty() && !self.entry.details["findings"].is_array() {
            lines.push_str(
                "  this archive was not refused in the last 30 days; ask the publisher for it\n",
            );
        }
        if lines.is_empty() { lines } else { format!("\n{}:\n{lines}", printable(&self.skill())) }
    }

    fn json(&self) -> Value {
        json!({
            "at": self.entry.at, "who": self.entry.actor, "name": self.entry.name,
            "version": self.entry.version, "sha256": entry_text(self.entry, "sha256"),
            "message": entry_text(self.entry, "message"), "cleared": self.cleared,
            "findings": self.entry.details["findings"], "judged": self.entry.details["judged"],
        })
    }
}

impl Clear {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        self.admin.at(self.skill.as_ref(), async |client| {
            let package = self.skill.as_ref().map(ToString::to_string);
            let clearance = Clearance { reason: self.reason.clone(), package: package.clone() };
            let cleared = client.clear(&self.sha256, &clearance).await;
            let cleared = cleared.map_err(|error| self.with_appeal_hint(error))?;
            let name = cleared.name.or(package);
            let value = json!({ "sha256": self.sha256, "cleared": true, "name": name });
            let for_skill = name.map(|name| format!(" for `{}`", printable(&name)));
            let for_skill = for_skill.unwrap_or_default();
            Ok((value, format!("cleared {}{for_skill}\n", self.sha256)))
        })
    }
}

impl Clear {
    /// Adds a hint if there is no appeal, or if there are several.
    fn with_appeal_hint(&self, error: RegistryError) -> CommandError {
        let unclear = self.skill.is_none() && error.code() == "invalid_request";
        let error = CommandError::from(error);
        if unclear { error.hint("name the skill: --for NAME") } else { error }
    }
}

impl Unclear {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        self.admin.at(self.skill.as_ref(), async |client| {
            client.unclear(&self.sha256, self.skill.as_ref()).await?;
            let value = json!({ "sha256": self.sha256, "cleared": false, "name": self.skill });
            let for_skill = self.skill.as_ref().map(|name| format!(" for `{name}`"));
            let for_skill = for_skill.unwrap_or_default();
            Ok((value, format!("revoked the clearance of {}{for_skill}\n", self.sha256)))
        })
    }
}

impl Verdict {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let VersionTarget { name, version } = &self.target;
        let verdict = self.decision.as_str();
        self.admin.at(Some(name), async |client| {
            let judgement = Judgement { verdict: verdict.to_owned(), reason: self.reason.clone() };
            let judged = client.judge_version(name, version, &judgement).await?;
            let (tier, same) = (judged.security_tier, judged.same_content);
            let value = json!({
                "name": name, "version": version.to_string(), "verdict": verdict, "tier": tier,
                "same_content": same,
            });
            let text = format!("`{name}` {version}: {verdict}, tier {tier}\n");
            Ok((value, text + &other_versions_text(&same)))
        })
    }
}

impl TakeDown {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let VersionTarget { name, version } = &self.target;
        self.admin.at(Some(name), async |client| {
            let taking = Taking { why: self.reason.clone() };
            let same = client.take_down(name, version, &taking).await?.same_content;
            let value = json!({
                "name": name, "version": version.to_string(), "withdrawn": true,
                "same_content": same,
            });
            Ok((value, format!("`{name}` {version} is taken down\n{}", other_versions_text(&same))))
        })
    }
}

/// Lists other versions with the same files.
fn other_versions_text(same: &[String]) -> String {
    if same.is_empty() {
        return String::new();
    }
    let names: Vec<String> = same.iter().map(|other| printable(other)).collect();
    format!(
        "these versions have the same files and are still available:\n  {}\n",
        names.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_decision_counts() {
        let entry = |act: &str, sha256: &str| -> LogEntry {
            serde_json::from_value(json!({"act": act, "details": {"sha256": sha256}})).unwrap()
        };
        let newest_first = [
            entry("appealed", "a"),
            entry("uncleared", "b"),
            entry("cleared", "a"),
            entry("cleared", "b"),
            entry("appealed", "b"),
            entry("appealed", "c"),
        ];
        let found: Vec<bool> = appeals(&newest_first).iter().map(|appeal| appeal.cleared).collect();
        assert_eq!(found, [true, false, false]);
        let of = |act: &str, name: Option<&str>| -> LogEntry {
            let details = json!({"sha256": "a"});
            serde_json::from_value(json!({"act": act, "name": name, "details": details})).unwrap()
        };
        let newest_first = [
            of("cleared", Some("acme/x")),
            of("appealed", Some("evil/x")),
            of("appealed", Some("acme/x")),
        ];
        let found: Vec<bool> = appeals(&newest_first).iter().map(|appeal| appeal.cleared).collect();
        assert_eq!(found, [false, true], "it is for one skill");
    }

    #[test]
    fn digests_are_written_in_one_way() {
        assert!(digest(&"0f".repeat(32)).is_ok());
        for wrong in ["", "5fb8", &"0F".repeat(32), &"g".repeat(64)] {
            assert!(digest(wrong).is_err(), "{wrong}");
        }
    }
}
