//! Builds the package index that lists and resolvers read, stored in the row of a package.
//!
//! The index of a package is a line of JSON for each version, the highest first. It is updated in
//! the transaction that changes a version, so that serving it reads one row.

use savoir_skill::{
    digest::sha256_hex,
    permission::{Tier, effective},
};
use semver::Version;
use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;

use super::{
    PackageName, RegistryTransaction, RowLock, ScanVerdict, VersionFacts,
    facts::{read_name, read_tier, read_version, tier_number},
    version_order::sort_key,
};
use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, Value, insert_rows, sql},
};

/// The setting that stores the progress of [`rebuild_withdrawn`]: the last package, or all.
const RENEWED_SETTING: &str = "registry.renewed";
/// The value for "all"; no package has this name.
const ALL_PACKAGES: &str = "all";
/// Packages that are updated in one transaction.
const RENEW_BATCH: u64 = 100;

/// The part of a line that never changes, stored with the version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VersionEntry {
    pub(super) version: String,
    pub(super) integrity: String,
    pub(super) sha256: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) permissions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) allowed_tools: Vec<String>,
    pub(super) published_at: String,
}

impl VersionEntry {
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One line of the index of a package: the data of a version that a resolver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexLine {
    /// The name of the package.
    pub name: String,
    pub version: String,
    /// The hash that lockfiles pin.
    pub integrity: String,
    /// SHA-256 of the archive, in hexadecimal digits.
    pub sha256: String,
    /// The size of the archive in bytes.
    pub size: u64,
    /// The file name of the archive.
    pub filename: String,
    /// The skills that this version depends on, as `name@range`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// The permissions that the skill declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// The tools of the skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The tools of the agent that it may use without asking, as `allowed-tools` lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// The time of publication, RFC 3339.
    pub published_at: String,
    /// The effective tier: the attested one, but at most the claimed one.
    pub tier: String,
    /// The tier that the publisher claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
    /// The tier that scan and signatures attest.
    pub attested: String,
    /// The owner whose registered key signed the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// Whether the version is yanked: existing installs keep working, new installs skip it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub yanked: bool,
    /// The reason of the yank, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The number of its signed evaluations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attestations: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The index line of a withdrawn version, so that users who installed it can be warned. It has no
/// digests, so that clients that do not know such lines skip it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenDownLine {
    /// The name of the package.
    pub name: String,
    pub version: String,
    /// Always true.
    pub withdrawn: bool,
    /// The reason that the administrator wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_reason: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct WithdrawnVersion {
    pub(super) version: Version,
    pub(super) why: Option<String>,
}

impl WithdrawnVersion {
    fn line(&self, package: &PackageName) -> TakenDownLine {
        TakenDownLine {
            name: package.to_string(),
            version: self.version.to_string(),
            withdrawn: true,
            withdrawn_reason: self.why.clone().filter(|why| !why.is_empty()),
        }
    }
}

/// The data of a version that is not withdrawn, from which the row of its package is computed.
#[derive(Clone, Debug)]
pub(super) struct LiveVersion {
    pub(super) version: Version,
    pub(super) entry: VersionEntry,
    pub(super) claimed: Option<Tier>,
    pub(super) attested: Tier,
    pub(super) yanked: bool,
    pub(super) yanked_why: Option<String>,
    pub(super) deprecated: Option<String>,
    pub(super) attestations: u64,
}

impl LiveVersion {
    /// Reads the columns `version, entry, claimed, attested, yanked_at, deprecated, verdict,
    /// yanked_why`, the report of a scan that blocks, and the number of signed evaluations. A blocked version is treated as yanked,
    /// so that new installs skip it.
    fn read(row: &Row) -> Result<Self, StoreError> {
        let entry = row.text(1)?;
        let blocked = row.maybe_text(6)?.as_deref() == Some(ScanVerdict::Block.as_str());
        let report = row.maybe_text(8)?.and_then(|text| serde_json::from_str(&text).ok());
        let said = row.maybe_text(7)?.filter(|why| !why.is_empty());
        Ok(Self {
            version: read_version(&row.text(0)?)?,
            entry: serde_json::from_str(&entry).map_err(|error| StoreError::Damaged {
                what: "the index of a version".to_owned(),
                message: error.to_string(),
            })?,
            claimed: row.maybe_number(2)?.map(read_tier).transpose()?,
            attested: read_tier(row.number(3)?)?,
            yanked: row.maybe_number(4)?.is_some() || blocked,
            // The reason of the block takes precedence over the publisher's own reason.
            yanked_why: report.as_ref().filter(|_| blocked).and_then(why_blocked).or(said),
            deprecated: row.maybe_text(5)?,
            attestations: row.count(9)?,
        })
    }

    fn line(&self, package: &PackageName, deprecated: Option<&str>) -> IndexLine {
        let entry = self.entry.clone();
        let tier = self.claimed.map_or(self.attested, |claimed| effective(claimed, self.attested));
        // A tier above experimental is only attested with a publisher's key.
        let signed = self.attested != Tier::Experimental;
        IndexLine {
            name: package.to_string(),
            filename: package.filename(&self.version),
            version: entry.version,
            integrity: entry.integrity,
            sha256: entry.sha256,
            size: entry.size,
            dependencies: entry.dependencies,
            permissions: entry.permissions,
            tools: entry.tools,
            allowed_tools: entry.allowed_tools,
            published_at: entry.published_at,
            tier: tier.as_str().to_owned(),
            claimed: self.claimed.map(|tier| tier.as_str().to_owned()),
            signer: signed.then(|| package.owner_scope().to_string()),
            attested: self.attested.as_str().to_owned(),
            yanked: self.yanked,
            yanked_reason: self.yanked_why.clone(),
            deprecated: self.deprecated.as_deref().or(deprecated).map(ToOwned::to_owned),
            attestations: self.attestations,
        }
    }
}

/// Why a version is blocked: the reason of an administrator, or the summary of the scan.
pub(super) fn why_blocked(report: &serde_json::Value) -> Option<String> {
    let said = [&report["judged"]["reason"], &report["summary"]];
    said.into_iter().find_map(|said| said.as_str()).map(ToOwned::to_owned)
}

/// The version that is installed when none is named: the highest release that is not yanked, or the
/// highest pre-release if there is no release. `versions` must be sorted, the highest first.
pub(super) fn latest(versions: &[LiveVersion]) -> Option<&LiveVersion> {
    let good = || versions.iter().filter(|version| !version.yanked);
    good().find(|live| live.version.pre.is_empty()).or_else(|| good().next())
}

/// The index of a package, and an entity tag that changes with it.
pub(super) fn index_text(
    package: &PackageName,
    versions: &[LiveVersion],
    gone: &[WithdrawnVersion],
    deprecated: Option<&str>,
) -> (String, String) {
    let live = versions.iter().map(|live| {
        let line = serde_json::to_string(&live.line(package, deprecated));
        (&live.version, line.unwrap_or_default())
    });
    let gone = gone.iter().map(|gone| {
        (&gone.version, serde_json::to_string(&gone.line(package)).unwrap_or_default())
    });
    let mut lines: Vec<(&Version, String)> = live.chain(gone).collect();
    lines.sort_by(|(a, _), (b, _)| b.cmp_precedence(a));
    let mut text = String::new();
    for (_, line) in lines {
        text.push_str(&line);
        text.push('\n');
    }
    let tag = sha256_hex(text.as_bytes())[..32].to_owned();
    (text, tag)
}

/// The tags for the search: sorted, without duplicates.
pub(super) fn tags(facts: &VersionFacts) -> Vec<String> {
    let mut tags: Vec<String> = facts.tags.iter().map(|tag| tag.trim().to_owned()).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

async fn live_versions(
    connection: &mut AnyConnection,
    id: &str,
) -> Result<Vec<LiveVersion>, StoreError> {
    let rows = sql("SELECT version, entry, claimed, attested, yanked_at, deprecated, verdict,
            yanked_why, CASE WHEN verdict = 'block' THEN scan END,
            (SELECT COUNT(*) FROM attestations a
             WHERE a.package = versions.package AND a.sort_key = versions.sort_key
                AND a.removed_at IS NULL)
         FROM versions
         WHERE package = $1 AND withdrawn_at IS NULL ORDER BY sort_key DESC")
    .text(id)
    .all(connection)
    .await?;
    rows.iter().map(LiveVersion::read).collect()
}

async fn withdrawn_versions(
    connection: &mut AnyConnection,
    id: &str,
) -> Result<Vec<WithdrawnVersion>, StoreError> {
    let rows = sql("SELECT version, withdrawn_why FROM versions
         WHERE package = $1 AND withdrawn_at IS NOT NULL ORDER BY sort_key DESC")
    .text(id)
    .all(connection)
    .await?;
    let gone = |row: &Row| {
        Ok(WithdrawnVersion { version: read_version(&row.text(0)?)?, why: row.maybe_text(1)? })
    };
    rows.iter().map(gone).collect()
}

/// Updates the row of a package from its versions. The caller has locked the row.
pub(super) async fn renew(
    connection: &mut AnyConnection,
    package: &PackageName,
    now: Timestamp,
) -> Result<(), StoreError> {
    let id = package.id();
    let versions = live_versions(&mut *connection, &id).await?;
    let gone = withdrawn_versions(&mut *connection, &id).await?;
    let row = sql("SELECT deprecated, tags FROM packages WHERE id = $1")
        .text(&id)
        .one(&mut *connection)
        .await?;
    let (deprecated, old_tags) = (row.maybe_text(0)?, row.text(1)?);
    let (text, tag) = index_text(package, &versions, &gone, deprecated.as_deref());
    let latest = latest(&versions);
    let facts = match latest {
        Some(latest) => facts_of(&mut *connection, &id, &latest.version).await?,
        None => VersionFacts::default(),
    };
    let tags = tags(&facts);
    let new_tags = serde_json::Value::from(tags.clone()).to_string();
    sql("UPDATE packages SET updated_at = $2, latest = $3, tier = $4, description = $5, author = $6,
            license = $7, homepage = $8, repository = $9, tags = $10, index_text = $11,
            index_tag = $12
         WHERE id = $1")
    .text(&id)
    .time(now)
    .maybe_text(latest.map(|latest| latest.version.to_string()).as_deref())
    .number(tier_number(latest.map_or(Tier::Experimental, |latest| latest.attested)))
    .text(&facts.description)
    .maybe_text(facts.author.as_deref())
    .maybe_text(facts.license.as_deref())
    .maybe_text(facts.homepage.as_deref())
    .maybe_text(facts.repository.as_deref())
    .text(&new_tags)
    .text(&text)
    .text(&tag)
    .run(&mut *connection)
    .await?;
    let tags = (old_tags != new_tags).then_some(tags);
    put_tags(connection, &id, tags, now).await
}

/// Updates, once, the indexes of packages with withdrawn versions, which older releases left out.
/// Several processes may do it concurrently; each continues where another one stopped.
pub(crate) async fn rebuild_withdrawn(database: &Database) -> Result<(), StoreError> {
    while database.settings().get(RENEWED_SETTING).await?.as_deref() != Some(ALL_PACKAGES) {
        let (transaction, kind) = (database.begin().await?, database.kind());
        rebuild_batch(RegistryTransaction { transaction, kind }).await?;
    }
    Ok(())
}

async fn rebuild_batch(mut work: RegistryTransaction) -> Result<(), StoreError> {
    // Other processes wait for this row lock.
    let row = sql("INSERT INTO settings (name, value) VALUES ($1, '')
         ON CONFLICT (name) DO UPDATE SET value = settings.value RETURNING value");
    let after = row.text(RENEWED_SETTING).one(work.connection()).await?.text(0)?;
    if after == ALL_PACKAGES {
        return work.commit().await;
    }
    let rows = sql("SELECT DISTINCT package FROM versions
         WHERE withdrawn_at IS NOT NULL AND package > $1 ORDER BY package LIMIT $2")
    .text(&after)
    .count(RENEW_BATCH)
    .all(work.connection())
    .await?;
    let mut last = ALL_PACKAGES.to_owned();
    for row in &rows {
        last = row.text(0)?;
        match rebuild_text(&mut work, &last).await {
            // A damaged row is reported when it is requested; it must not prevent the start.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(package = last, %error, "an index could not be renewed");
            }
            renewed => renewed?,
        }
    }
    sql("UPDATE settings SET value = $2 WHERE name = $1")
        .text(RENEWED_SETTING)
        .text(&last)
        .run(work.connection())
        .await?;
    work.commit().await
}

/// Updates only the index text of a package, not its change time.
pub(super) async fn rebuild_text(
    work: &mut RegistryTransaction,
    id: &str,
) -> Result<(), StoreError> {
    let row = work.locking("SELECT deprecated FROM packages WHERE id = $1", RowLock::Alone);
    let Some(row) = row.text(id).optional(work.connection()).await? else { return Ok(()) };
    let versions = live_versions(work.connection(), id).await?;
    let gone = withdrawn_versions(work.connection(), id).await?;
    let deprecated = row.maybe_text(0)?;
    let (text, tag) = index_text(&read_name(id)?, &versions, &gone, deprecated.as_deref());
    sql("UPDATE packages SET index_text = $2, index_tag = $3 WHERE id = $1")
        .text(id)
        .text(&text)
        .text(&tag)
        .run(work.connection())
        .await
        .map(drop)
}

/// Updates the tags of a package, or only their time.
async fn put_tags(
    connection: &mut AnyConnection,
    id: &str,
    tags: Option<Vec<String>>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(tags) = tags else {
        let statement = sql("UPDATE package_tags SET updated_at = $2 WHERE package = $1");
        return statement.text(id).time(now).run(connection).await.map(drop);
    };
    sql("DELETE FROM package_tags WHERE package = $1").text(id).run(&mut *connection).await?;
    let rows = tags.into_iter().map(|tag| tag_row(tag, id, now)).collect();
    insert_rows(connection, INSERT_TAGS, rows, "").await.map(drop)
}

pub(super) const INSERT_TAGS: &str = "INSERT INTO package_tags (tag, package, updated_at)";

pub(super) fn tag_row(tag: String, id: &str, updated_at: Timestamp) -> Vec<Value> {
    vec![Value::Text(tag), Value::Text(id.to_owned()), Value::Number(updated_at.micros())]
}

async fn facts_of(
    connection: &mut AnyConnection,
    id: &str,
    version: &Version,
) -> Result<VersionFacts, StoreError> {
    let row = sql("SELECT facts FROM versions WHERE package = $1 AND sort_key = $2")
        .text(id)
        .bytes(&sort_key(version))
        .one(connection)
        .await?;
    VersionFacts::read(&row.text(0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(version: &str, yanked: bool) -> LiveVersion {
        LiveVersion {
            version: version.parse().unwrap(),
            entry: VersionEntry {
                version: version.to_owned(),
                integrity: "sha256-x".to_owned(),
                sha256: "00".to_owned(),
                size: 1,
                dependencies: vec!["a@>=1".to_owned()],
                permissions: Vec::new(),
                tools: Vec::new(),
                allowed_tools: Vec::new(),
                published_at: Timestamp::from_micros(0).to_string(),
            },
            claimed: Some(Tier::Community),
            attested: Tier::Verified,
            yanked,
            yanked_why: yanked.then(|| "it leaks".to_owned()),
            deprecated: None,
            attestations: 0,
        }
    }

    #[test]
    fn latest_is_newest_unyanked_release() {
        let latest = |versions: &[(&str, bool)]| {
            let versions: Vec<_> =
                versions.iter().map(|(version, yanked)| live(version, *yanked)).collect();
            super::latest(&versions).map(|live| live.version.to_string())
        };
        assert_eq!(latest(&[]), None);
        assert_eq!(latest(&[("1.0.0", true)]), None);
        let versions = [("2.0.0-rc.1", false), ("1.1.0", true), ("1.0.0", false)];
        assert_eq!(latest(&versions).as_deref(), Some("1.0.0"));
        let versions = [("2.0.0-rc.2", true), ("2.0.0-rc.1", false), ("1.0.0", true)];
        assert_eq!(latest(&versions).as_deref(), Some("2.0.0-rc.1"));
    }

    #[test]
    fn index_has_one_line_per_version() {
        let versions = [live("2.0.0", true), live("1.0.0", false)];
        let package: PackageName = "acme/tool".parse().unwrap();
        let (text, tag) = index_text(&package, &versions, &[], None);
        let lines: Vec<IndexLine> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines[0].version.as_str(), lines[0].yanked), ("2.0.0", true));
        assert_eq!(lines[0].yanked_reason.as_deref(), Some("it leaks"));
        assert_eq!(lines[1].yanked_reason, None);
        assert_eq!((lines[1].tier.as_str(), lines[1].attested.as_str()), ("community", "verified"));
        assert_eq!(lines[0].filename, "tool-2.0.0.zip");
        assert_eq!(
            (lines[0].name.as_str(), lines[0].signer.as_deref()),
            ("acme/tool", Some("acme"))
        );
        assert!(!text.contains("\"yanked\":false") && !text.contains("permissions"), "{text}");
        let (text, other) = index_text(&package, &versions, &[], Some("use b"));
        assert!(text.contains("use b") && tag != other);
    }
}
