//! Stores scan findings of refused uploads for a while, for decisions about appeals.

use std::time::Duration;

use semver::Version;
use serde_json::{Map, Value, json};
use sqlx::AnyConnection;

use super::{PackageName, Registry, RegistryError, appeal::check_digest, version_order::sort_key};
use crate::{StoreError, Timestamp, sql::sql};

/// Prefix of the settings that store findings of refused uploads.
const SETTING_PREFIX: &str = "registry.refused.";
/// How long findings are stored: appeals are made soon after the upload.
const RETENTION: Duration = Duration::from_hours(30 * 24);
/// Maximum number of uploads whose findings are stored; the oldest are removed first.
const MAX_STORED: u64 = 1000;
/// Maximum number of stored findings per upload.
const MAX_FINDINGS: usize = 20;
/// Maximum characters of each text of a finding.
const MAX_TEXT_CHARS: usize = 300;
/// The keys of a finding that are stored.
const STORED_KEYS: [&str; 6] = ["rule", "severity", "file", "line", "message", "fix"];

/// Returns the name of the setting. It contains the package, so that publishers of other packages
/// cannot change the findings.
fn setting_name(sha256: &str, package: &PackageName) -> String {
    format!("{SETTING_PREFIX}{sha256}/{}", package.id())
}

/// Shortens the findings of a report to what is stored.
fn shorten_findings(findings: &Value) -> Value {
    let short = |value: &Value| match value {
        Value::String(text) => text.chars().take(MAX_TEXT_CHARS).collect::<String>().into(),
        Value::Number(_) => value.clone(),
        _ => Value::Null,
    };
    let shorten_one = |finding: &Value| {
        let stored = STORED_KEYS.iter().map(|key| ((*key).to_owned(), short(&finding[*key])));
        stored.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
    };
    let found = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    found.iter().take(MAX_FINDINGS).map(shorten_one).collect::<Vec<Value>>().into()
}

impl Registry<'_> {
    /// Stores the findings of a refused upload, in case its publisher appeals.
    pub async fn note_refused(
        &self,
        package: &PackageName,
        sha256: &str,
        findings: &Value,
    ) -> Result<(), RegistryError> {
        check_digest(sha256)?;
        let now = Timestamp::now();
        let mut work = self.begin().await?;
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(&setting_name(sha256, package))
        .text(&format!("{}{}", stamp(now), shorten_findings(findings)))
        .run(work.connection())
        .await?;
        let all = format!("{SETTING_PREFIX}%");
        sql("DELETE FROM settings WHERE name LIKE $1 AND (value < $2 OR name IN (
                SELECT name FROM settings WHERE name LIKE $1
                ORDER BY value DESC, name LIMIT 100000 OFFSET $3))")
        .text(&all)
        .text(&stamp(now.minus(RETENTION)))
        .count(MAX_STORED)
        .run(work.connection())
        .await?;
        Ok(work.commit().await?)
    }
}

/// Formats a time as digits that sort by time.
fn stamp(time: Timestamp) -> String {
    format!("{:020}", time.micros().max(0))
}

/// Returns what an appeal refers to: the findings of the refused upload or of the version's scan,
/// and the decision of an administrator.
pub(super) async fn known(
    connection: &mut AnyConnection,
    package: &PackageName,
    version: &Version,
    sha256: &str,
) -> Result<Map<String, Value>, StoreError> {
    let row = sql("SELECT scan FROM versions
         WHERE package = $1 AND sort_key = $2 AND sha256 = $3")
    .text(&package.id())
    .bytes(&sort_key(version))
    .text(sha256)
    .optional(&mut *connection)
    .await?;
    let mut known = Map::new();
    if let Some(row) = row {
        let scan = row.maybe_text(0)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let scan = scan.unwrap_or_default();
        known.insert("findings".to_owned(), shorten_findings(&scan["findings"]));
        if scan["judged"].is_object() {
            known.insert("judged".to_owned(), scan["judged"].clone());
        }
        return Ok(known);
    }
    let row = sql("SELECT value FROM settings WHERE name = $1")
        .text(&setting_name(sha256, package))
        .optional(connection)
        .await?;
    let value = row.map(|row| row.text(0)).transpose()?;
    let digits = stamp(Timestamp::now()).len();
    if let Some(text) = value.as_deref().and_then(|value| value.get(digits..)) {
        let findings = serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!([]));
        known.insert("findings".to_owned(), findings);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_findings_are_shortened() {
        let finding = json!({
            "rule": "r", "file": "SKILL.md", "line": 9, "message": "ä".repeat(1000),
            "more": {"x": 1}, "fix": null,
        });
        let kept = shorten_findings(&Value::Array(vec![finding; 100]));
        assert_eq!(kept.as_array().unwrap().len(), MAX_FINDINGS);
        let message = "ä".repeat(MAX_TEXT_CHARS);
        let expected = json!({"rule": "r", "file": "SKILL.md", "line": 9, "message": message});
        assert_eq!(kept[0], expected);
        assert_eq!(shorten_findings(&Value::Null), json!([]));
    }
}
