//! Rejects content that an administrator took down, under any name and version.
//!
//! For a withdrawn or blocked version, the digests of its archive and of its files and the time are
//! stored with the version. A later clearance allows one skill to publish the content again.

use semver::Version;
use serde_json::Value;
use sqlx::AnyConnection;

use super::{
    PackageName, Registry, RegistryError, RegistryTransaction,
    appeal::{clearance_reason, log_pattern},
    facts::{read_name, read_version},
    index::why_blocked,
    log::AuditAction,
    version_order::sort_key,
};
use crate::{
    Timestamp,
    sql::{Row, sql},
};

/// Maximum number of other versions with the same content that are returned.
const MAX_LISTED: u64 = 100;
/// Maximum number of taken-down versions with the same content that are checked, newest first.
const MAX_READ: u64 = 100;

/// Identifies the content of a version: by its archive, or by its files independent of the archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentDigests<'a> {
    pub(super) sha256: &'a str,
    pub(super) integrity: &'a str,
}

impl Registry<'_> {
    /// Rejects taken-down content before it is uploaded to [`Self::publish`], which rejects it,
    /// too.
    pub async fn must_not_be_taken_down(
        &self,
        package: &PackageName,
        sha256: &str,
        integrity: &str,
    ) -> Result<(), RegistryError> {
        let connection = &mut *self.reader().acquire().await?;
        check(connection, package, ContentDigests { sha256, integrity }).await
    }

    /// Returns at most a hundred other installable versions with the same content as a version,
    /// which may itself be taken down.
    pub async fn same_content(
        &self,
        package: &PackageName,
        version: &Version,
    ) -> Result<Vec<(PackageName, Version)>, RegistryError> {
        let (id, key) = (package.id(), sort_key(version));
        let row = sql("SELECT COALESCE(taken_sha256, sha256), COALESCE(taken_integrity, integrity)
             FROM versions WHERE package = $1 AND sort_key = $2")
        .text(&id)
        .bytes(&key)
        .optional(self.reader())
        .await?;
        let row = row.ok_or_else(|| RegistryError::no_version(package, version))?;
        let rows = sql("SELECT package, version FROM versions
             WHERE withdrawn_at IS NULL AND (verdict IS NULL OR verdict <> 'block')
                AND (sha256 = $1 OR integrity = $2) AND NOT (package = $3 AND sort_key = $4)
             ORDER BY package, sort_key LIMIT $5")
        .text(&row.text(0)?)
        .text(&row.text(1)?)
        .text(&id)
        .bytes(&key)
        .count(MAX_LISTED)
        .all(self.reader())
        .await?;
        let found = |row: &Row| Ok((read_name(&row.text(0)?)?, read_version(&row.text(1)?)?));
        rows.iter().map(found).collect()
    }
}

impl RegistryTransaction {
    /// Stores the digests of a version that an administrator takes down.
    pub(super) async fn take_down(
        &mut self,
        package: &PackageName,
        version: &Version,
    ) -> Result<(), RegistryError> {
        sql("UPDATE versions
             SET taken_at = $3, taken_sha256 = sha256, taken_integrity = integrity
             WHERE package = $1 AND sort_key = $2")
        .text(&package.id())
        .bytes(&sort_key(version))
        .time(Timestamp::now())
        .run(self.connection())
        .await?;
        Ok(())
    }

    /// Removes the stored digests when an administrator reverses the decision.
    pub(super) async fn undo_take_down(
        &mut self,
        package: &PackageName,
        version: &Version,
    ) -> Result<(), RegistryError> {
        sql("UPDATE versions
             SET taken_at = NULL, taken_sha256 = NULL, taken_integrity = NULL
             WHERE package = $1 AND sort_key = $2")
        .text(&package.id())
        .bytes(&sort_key(version))
        .run(self.connection())
        .await?;
        Ok(())
    }
}

/// A version that was taken down.
struct TakenDownContent {
    package: PackageName,
    version: Version,
    why: String,
    at: Timestamp,
}

impl TakenDownContent {
    /// Reads `package, version, withdrawn_at, withdrawn_why, scan, taken_at`.
    fn read(row: &Row) -> Result<Self, RegistryError> {
        let why = if row.maybe_number(2)?.is_some() {
            row.maybe_text(3)?
        } else {
            let scan = row.maybe_text(4)?;
            let scan = scan.and_then(|text| serde_json::from_str::<Value>(&text).ok());
            scan.as_ref().and_then(why_blocked)
        };
        Ok(Self {
            package: read_name(&row.text(0)?)?,
            version: read_version(&row.text(1)?)?,
            why: why.unwrap_or_default(),
            at: row.time(5)?,
        })
    }
}

/// Rejects content that was taken down with any version, unless it was cleared for this package
/// later. A publishing transaction calls this after it took its sequence number: then it sees
/// everything that was taken down before, and later takedowns see what it published.
pub(super) async fn check(
    connection: &mut AnyConnection,
    package: &PackageName,
    ContentDigests { sha256, integrity }: ContentDigests<'_>,
) -> Result<(), RegistryError> {
    let rows = sql("SELECT package, version, withdrawn_at, withdrawn_why, scan, taken_at
         FROM versions WHERE taken_sha256 = $1 OR taken_integrity = $2
         ORDER BY taken_at DESC LIMIT $3")
    .text(sha256)
    .text(integrity)
    .count(MAX_READ)
    .all(&mut *connection)
    .await?;
    let taken = rows.iter().map(TakenDownContent::read).collect::<Result<Vec<_>, _>>()?;
    let Some(last) = taken.first().map(|taken| taken.at) else { return Ok(()) };
    if was_cleared(connection, package, sha256, last).await? {
        return Ok(());
    }
    let own = taken.iter().position(|taken| taken.package == *package).unwrap_or(0);
    match taken.into_iter().nth(own) {
        Some(TakenDownContent { package, version, why, .. }) => {
            Err(RegistryError::TakenDown { package, version, why })
        }
        None => Ok(()),
    }
}

/// Whether an archive was cleared for a package after a time.
async fn was_cleared(
    connection: &mut AnyConnection,
    package: &PackageName,
    sha256: &str,
    after: Timestamp,
) -> Result<bool, RegistryError> {
    if clearance_reason(connection, sha256, package).await?.is_none() {
        return Ok(false);
    }
    let row = sql("SELECT 1 FROM registry_log
         WHERE package = $1 AND act = $2 AND details LIKE $3 AND done_at > $4 LIMIT 1")
    .text(&package.id())
    .text(AuditAction::Cleared.as_str())
    .text(&log_pattern(sha256))
    .time(after)
    .optional(connection)
    .await?;
    Ok(row.is_some())
}
