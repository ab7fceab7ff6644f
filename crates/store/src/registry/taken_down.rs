//! Bytes that an administrator took down do not come back under another number.

use semver::Version;
use serde_json::Value;
use sqlx::AnyConnection;

use super::{
    PackageName, Registry, RegistryError,
    appeal::{speaks_of, why_cleared},
    facts::read_version,
    index::why_blocked,
    log::Act,
};
use crate::sql::sql;

/// What identifies the content of a version: its archive, or its files however they are packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    pub(super) sha256: &'a str,
    pub(super) integrity: &'a str,
}

impl Registry<'_> {
    /// Refuses early what [`Self::publish`] would refuse because an administrator took it down.
    pub async fn must_not_be_taken_down(
        &self,
        package: &PackageName,
        sha256: &str,
        integrity: &str,
    ) -> Result<(), RegistryError> {
        let connection = &mut *self.reader().acquire().await?;
        check(connection, package, Content { sha256, integrity }).await
    }
}

/// Refuses what a version of the same package was withdrawn or blocked for.
pub(super) async fn check(
    connection: &mut AnyConnection,
    package: &PackageName,
    content: Content<'_>,
) -> Result<(), RegistryError> {
    let found = match blocked(connection, package, content).await? {
        Some(blocked) => Some(blocked),
        None => withdrawn(connection, package, content).await?,
    };
    let Some((version, why)) = found else { return Ok(()) };
    Err(RegistryError::TakenDown { package: package.clone(), version, why })
}

/// The version with this content that an administrator blocked. One that a scan blocks is scanned
/// again.
async fn blocked(
    connection: &mut AnyConnection,
    package: &PackageName,
    Content { sha256, integrity }: Content<'_>,
) -> Result<Option<(Version, String)>, RegistryError> {
    let rows = sql("SELECT version, scan FROM versions WHERE package = $1 AND verdict = 'block'
            AND withdrawn_at IS NULL AND (sha256 = $2 OR integrity = $3)
         ORDER BY sort_key DESC")
    .text(&package.id())
    .text(sha256)
    .text(integrity)
    .all(connection)
    .await?;
    for row in rows {
        let scan = row.maybe_text(1)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let Some(scan) = scan.filter(|scan| scan["judged"].is_object()) else { continue };
        let why = why_blocked(&scan).unwrap_or_default();
        return Ok(Some((read_version(&row.text(0)?)?, why)));
    }
    Ok(None)
}

/// The version with this content that was withdrawn last, unless its archive was cleared since. Only
/// the log knows what a version was that is gone.
async fn withdrawn(
    connection: &mut AnyConnection,
    package: &PackageName,
    Content { sha256, integrity }: Content<'_>,
) -> Result<Option<(Version, String)>, RegistryError> {
    let row = sql("SELECT v.version, v.withdrawn_why, gone.seq FROM versions v
         JOIN registry_log told ON told.package = v.package AND told.version = v.version
            AND told.act IN ($2, $3) AND (told.details LIKE $4 OR told.details LIKE $5)
         JOIN registry_log gone ON gone.package = v.package AND gone.version = v.version
            AND gone.act = $3
         WHERE v.package = $1 AND v.withdrawn_at IS NOT NULL
         ORDER BY gone.seq DESC LIMIT 1")
    .text(&package.id())
    .text(Act::Published.as_str())
    .text(Act::Withdrawn.as_str())
    .text(&speaks_of(sha256))
    .text(&format!("%\"integrity\":\"{integrity}\"%"))
    .optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if why_cleared(connection, sha256, package).await?.is_some() {
        let cleared = sql("SELECT 1 FROM registry_log
             WHERE package = $1 AND act = $2 AND details LIKE $3 AND seq > $4 LIMIT 1")
        .text(&package.id())
        .text(Act::Cleared.as_str())
        .text(&speaks_of(sha256))
        .number(row.number(2)?)
        .optional(connection)
        .await?;
        if cleared.is_some() {
            return Ok(None);
        }
    }
    Ok(Some((read_version(&row.text(0)?)?, row.maybe_text(1)?.unwrap_or_default())))
}
