//! Stores scan findings of refused uploads for a while, for decisions about appeals.

use std::time::Duration;

use semver::Version;
use serde_json::{Map, Value, json};
use sqlx::AnyConnection;

use super::{PackageName, Registry, RegistryError, appeal::check_digest, version_order::sort_key};
use crate::{StoreError, Timestamp, sql::sql};

/// How the settings begin that say what was found in bytes that were refused.
const SETTING_PREFIX: &str = "registry.refused.";
/// How long it is kept: whoever appeals does so soon.
const RETENTION: Duration = Duration::from_hours(30 * 24);
/// Of how many uploads it is kept; the oldest go first.
const MAX_STORED: u64 = 1000;
/// Findings of one upload that are kept.
const MAX_FINDINGS: usize = 20;
/// Characters of each text of a finding.
const MAX_TEXT_CHARS: usize = 300;
/// What a finding says that helps to decide.
const STORED_KEYS: [&str; 6] = ["rule", "severity", "file", "line", "message", "fix"];

/// The name of the setting: a publisher of another package does not change what is shown.
fn setting(sha256: &str, package: &PackageName) -> String {
    format!("{SETTING_PREFIX}{sha256}/{}", package.id())
}

/// The findings of a report, as many and as long as they are kept.
fn brief(findings: &Value) -> Value {
    let short = |value: &Value| match value {
        Value::String(text) => text.chars().take(MAX_TEXT_CHARS).collect::<String>().into(),
        Value::Number(_) => value.clone(),
        _ => Value::Null,
    };
    let one = |finding: &Value| {
        let said = STORED_KEYS.iter().map(|key| ((*key).to_owned(), short(&finding[*key])));
        said.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
    };
    let found = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    found.iter().take(MAX_FINDINGS).map(one).collect::<Vec<Value>>().into()
}

impl Registry<'_> {
    /// Notes what was found in bytes that were refused, in case somebody appeals.
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
        .text(&setting(sha256, package))
        .text(&format!("{}{}", stamp(now), brief(findings)))
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

/// A time as digits that are sorted as it is.
fn stamp(time: Timestamp) -> String {
    format!("{:020}", time.micros().max(0))
}

/// What is known of bytes that somebody appeals about: what was found when they were refused, or
/// when the version was scanned, and what an administrator made of it.
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
        known.insert("findings".to_owned(), brief(&scan["findings"]));
        if scan["judged"].is_object() {
            known.insert("judged".to_owned(), scan["judged"].clone());
        }
        return Ok(known);
    }
    let row = sql("SELECT value FROM settings WHERE name = $1")
        .text(&setting(sha256, package))
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
        let kept = brief(&Value::Array(vec![finding; 100]));
        assert_eq!(kept.as_array().unwrap().len(), MAX_FINDINGS);
        let message = "ä".repeat(MAX_TEXT_CHARS);
        let expected = json!({"rule": "r", "file": "SKILL.md", "line": 9, "message": message});
        assert_eq!(kept[0], expected);
        assert_eq!(brief(&Value::Null), json!([]));
    }
}
