//! `savoir registry appeals`, `clear`, `unclear`, `verdict` and `take-down`: what administrators decide.

use std::{borrow::Cow, collections::HashMap, process::ExitCode};

use savoir_engine::approval::shown;
use savoir_package::registry::{
    Client, Name, RegistryError,
    wire::{Clearance, Judgement, LogEntry, LogQuery, TakeDown as Taking},
};
use serde_json::{Value, json};

use super::{
    common::{Common, Target},
    log::entries,
    tokens::as_person,
};
use crate::{error::CommandError, output, runtime};

/// An administrator: by a password that is asked for, or by a token that says so, which those of `savoir
/// login` do only with `--scope admin`.
#[derive(Debug, clap::Args)]
pub(super) struct Admin {
    /// The address of an administrator's account; the password is asked for, or is the first line of
    /// standard input [default: a token, which must have the scope admin]
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Admin {
    /// Does something at the registry of a skill, or at the one that is meant where none is named.
    pub(super) fn at(
        &self,
        name: Option<&Name>,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        if let Some(email) = &self.email {
            return as_person(email, name, &self.common, work);
        }
        self.common.tell(|| {
            let remote = &self.common.remote;
            let client = name.map_or_else(|| remote.client(), |name| remote.client_of(name))?;
            runtime::block_on(work(&client)).map_err(|error| match error.code().as_deref() {
                Some("forbidden_scope") => error
                    .hint("give your password: --email EMAIL; or once: savoir login --scope admin"),
                _ => error,
            })
        })
    }
}

/// The most entries of the log that are looked through.
const MOST: usize = 10_000;

/// List who does not agree with a scan, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. Look at the archive yourself before you decide: ask the publisher for it, or
savoir install the version, then savoir scan --deep.

Examples:
  savoir registry appeals --email root@example.com
  savoir registry appeals --email root@example.com --json < password.txt

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Appeals {
    /// At most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    admin: Admin,
}

/// Let an archive be published although a scan blocks it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. What is cleared is these bytes and no others, for one skill and no other: the
one for which somebody appealed. It is published with the verdict REVIEW, which everybody sees who
installs it. What was taken down may be published again under a new version; one that is blocked
stays blocked until: savoir registry verdict.

Examples:
  savoir registry clear 5fb8c1… --reason \"it is their own host\" --email root@example.com
  savoir registry clear 5fb8c1… --for acme/pdf --reason \"it is theirs\" --email root@example.com
  savoir registry unclear 5fb8c1… --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Clear {
    /// The SHA-256 of the archive, as the appeal names it
    #[arg(value_name = "DIGEST", value_parser = digest)]
    sha256: String,
    /// Why, for who reads the log
    #[arg(long, value_name = "WHY")]
    reason: String,
    /// The skill that may have it [default: the one for which somebody appealed]
    #[arg(long = "for", value_name = "NAME", value_parser = Name::parse)]
    skill: Option<Name>,
    #[command(flatten)]
    admin: Admin,
}

/// Take a clearance back; what was published stays
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. A version that is published already is blocked with: savoir registry verdict.

Examples:
  savoir registry unclear 5fb8c1… --email root@example.com
  savoir registry unclear 5fb8c1… --for acme/pdf --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Unclear {
    /// The SHA-256 of the archive
    #[arg(value_name = "DIGEST", value_parser = digest)]
    sha256: String,
    /// The skill that may not have it any more [default: all that may]
    #[arg(long = "for", value_name = "NAME", value_parser = Name::parse)]
    skill: Option<Name>,
    #[command(flatten)]
    admin: Admin,
}

/// Decide about a version that is published, whatever a scan found
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators. What a scan found stays beside it, and a later scan does not change it. Nobody
is given a version anew that is blocked.

Examples:
  savoir registry verdict acme/pdf@1.2.0 allow --reason \"a made-up key\" --email root@example.com
  savoir registry verdict acme/pdf@1.2.0 block --reason \"it steals\" --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct Verdict {
    /// Which version
    #[arg(value_name = "NAME@VERSION")]
    target: Target,
    /// What becomes of it
    #[arg(value_name = "VERDICT")]
    decision: Decision,
    /// Why, for who reads the log
    #[arg(long, value_name = "WHY")]
    reason: String,
    #[command(flatten)]
    admin: Admin,
}

/// Take a version away for good, so that nobody gets it any more
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For administrators; others yank. Its number stays taken, and nobody may publish the same files
again, under whatever name, until their archive is cleared. Who has it installed hears of it from
savoir update, status and install. It cannot be undone.

Example:
  savoir registry take-down acme/pdf@1.2.0 --reason \"it steals\" --email root@example.com

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 wrong password.")]
pub(super) struct TakeDown {
    /// Which version
    #[arg(value_name = "NAME@VERSION")]
    target: Target,
    /// Why, for everybody who has it
    #[arg(long, value_name = "WHY")]
    reason: String,
    #[command(flatten)]
    admin: Admin,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Decision {
    /// Nothing speaks against it
    Allow,
    /// Who installs it should look at it first
    Review,
    /// Nobody gets it any more who does not have it
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

/// A digest as registries write it.
fn digest(text: &str) -> Result<String, String> {
    let small_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(small_hex) {
        return Ok(text.to_owned());
    }
    Err("write the SHA-256 of the archive in 64 small hexadecimal digits".to_owned())
}

/// An appeal, and whether its archive may be published now.
struct Appealed<'a> {
    entry: &'a LogEntry,
    cleared: bool,
}

impl Appeals {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        self.admin.at(None, async |client| {
            let acts = ["appealed", "cleared", "uncleared"].map(str::to_owned).to_vec();
            let query = LogQuery { acts, ..LogQuery::default() };
            let entries = entries(client, query, MOST).await?;
            let mut appeals = appeals(&entries);
            appeals.truncate(self.limit as usize);
            let rows: Vec<[Cow<'_, str>; 6]> = appeals.iter().map(Appealed::row).collect();
            let text = match rows.as_slice() {
                [] => "nobody appealed\n".to_owned(),
                rows => {
                    output::table(["WHEN", "WHO", "SKILL", "CLEARED", "DIGEST", "MESSAGE"], rows)
                }
            };
            let text = text + &appeals.iter().map(Appealed::found).collect::<String>();
            let items: Vec<Value> = appeals.iter().map(Appealed::json).collect();
            Ok((json!({ "appeals": items }), text))
        })
    }
}

/// The appeals of a log that has the newest first, with what the last word about their bytes is: for
/// their skill, or, as older programs noted it, for all.
fn appeals(entries: &[LogEntry]) -> Vec<Appealed<'_>> {
    let mut decided: HashMap<(&str, Option<&str>), (usize, bool)> = HashMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.act != "appealed") {
        let key = (said(entry, "sha256"), entry.name.as_deref());
        decided.entry(key).or_insert((at, entry.act == "cleared"));
    }
    let appeals = entries.iter().filter(|entry| entry.act == "appealed");
    appeals
        .map(|entry| {
            let words = [entry.name.as_deref(), None].map(|name| (said(entry, "sha256"), name));
            let last = words.iter().filter_map(|key| decided.get(key)).min_by_key(|(at, _)| *at);
            Appealed { entry, cleared: last.is_some_and(|(_, cleared)| *cleared) }
        })
        .collect()
}

fn said<'a>(entry: &'a LogEntry, key: &str) -> &'a str {
    said_in(&entry.details, key)
}

fn said_in<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A finding as a line: where it is, which rule, and what it says.
fn finding(finding: &Value) -> String {
    let line = finding["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let place = format!("{}{line}", said_in(finding, "file"));
    let parts = [place.as_str(), said_in(finding, "rule"), said_in(finding, "message")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

impl Appealed<'_> {
    fn who(&self) -> String {
        match &self.entry.actor {
            Value::String(email) => email.clone(),
            Value::Null => "somebody".to_owned(),
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
            cell(said(self.entry, "sha256")),
            cell(said(self.entry, "message")),
        ]
    }

    /// What speaks against it, below the table.
    fn found(&self) -> String {
        let findings = self.entry.details["findings"].as_array();
        let lines = findings.into_iter().flatten().map(finding);
        let judged = said_in(&self.entry.details["judged"], "reason");
        let judged = (!judged.is_empty()).then(|| format!("an administrator: {judged}"));
        let lines = judged.into_iter().chain(lines).map(|line| format!("  {}\n", shown(&line)));
        let mut lines: String = lines.collect();
        if lines.is_empty() && !self.entry.details["findings"].is_array() {
            lines.push_str("  no such archive was refused here in the last 30 days: ask for it\n");
        }
        if lines.is_empty() { lines } else { format!("\n{}:\n{lines}", shown(&self.skill())) }
    }

    fn json(&self) -> Value {
        json!({
            "at": self.entry.at, "who": self.entry.actor, "name": self.entry.name,
            "version": self.entry.version, "sha256": said(self.entry, "sha256"),
            "message": said(self.entry, "message"), "cleared": self.cleared,
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
            let cleared = cleared.map_err(|error| self.explained(error))?;
            let name = cleared.name.or(package);
            let value = json!({ "sha256": self.sha256, "cleared": true, "name": name });
            let whose = name.map(|name| format!(", as `{}` alone", shown(&name)));
            let whose = whose.unwrap_or_default();
            Ok((value, format!("{} may be published now{whose}\n", self.sha256)))
        })
    }
}

impl Clear {
    /// The way out if nobody appealed, or several did.
    fn explained(&self, error: RegistryError) -> CommandError {
        let unclear = self.skill.is_none() && error.code() == "invalid_request";
        let told = CommandError::from(error);
        if unclear { told.hint("name the skill: --for NAME") } else { told }
    }
}

impl Unclear {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        self.admin.at(self.skill.as_ref(), async |client| {
            client.unclear(&self.sha256, self.skill.as_ref()).await?;
            let value = json!({ "sha256": self.sha256, "cleared": false, "name": self.skill });
            let whose = self.skill.as_ref().map(|name| format!(" as `{name}`"));
            let whose = whose.unwrap_or_default();
            Ok((value, format!("{} may not be published any more{whose}\n", self.sha256)))
        })
    }
}

impl Verdict {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let Target { name, version } = &self.target;
        let verdict = self.decision.as_str();
        self.admin.at(Some(name), async |client| {
            let judgement = Judgement { verdict: verdict.to_owned(), reason: self.reason.clone() };
            let judged = client.judge_version(name, version, &judgement).await?;
            let (tier, same) = (judged.security_tier, judged.same_content);
            let value = json!({
                "name": name, "version": version.to_string(), "verdict": verdict, "tier": tier,
                "same_content": same,
            });
            let text = format!("`{name}` {version}: {verdict}, and its tier is {tier}\n");
            Ok((value, text + &also(&same)))
        })
    }
}

impl TakeDown {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let Target { name, version } = &self.target;
        self.admin.at(Some(name), async |client| {
            let taking = Taking { why: self.reason.clone() };
            let same = client.take_down(name, version, &taking).await?.same_content;
            let value = json!({
                "name": name, "version": version.to_string(), "withdrawn": true,
                "same_content": same,
            });
            Ok((value, format!("`{name}` {version} is taken down for good\n{}", also(&same))))
        })
    }
}

/// What else has the files of a version that was taken down.
fn also(same: &[String]) -> String {
    if same.is_empty() {
        return String::new();
    }
    let names: Vec<String> = same.iter().map(|other| shown(other)).collect();
    format!("the same files are still given as:\n  {}\n", names.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts() {
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
