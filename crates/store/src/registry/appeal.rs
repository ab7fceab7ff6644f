//! Appeals against scan results, and clearances by administrators.

use std::{collections::BTreeSet, time::Duration};

use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, PackageName, Registry, RegistryError, Right,
    blobs::is_digest,
    change::check_message,
    facts::read_name,
    log::{AuditAction, NewAuditEvent, note},
    owners::check_may_publish,
    publish::is_taken,
    refused_scans,
};
use crate::{StoreError, Timestamp, rate_limits::hit, sql::sql};

/// How long the same appeal cannot be repeated.
const APPEAL_LIFETIME: Duration = Duration::from_hours(7 * 24);
const DAY: Duration = Duration::from_hours(24);
/// Maximum appeals of one account per day.
const MAX_APPEALS_PER_DAY: u64 = 20;

/// Prefix of the settings that store which archives are cleared.
const CLEARED_SETTING_PREFIX: &str = "registry.cleared.";

/// Returns the name of the setting that clears an archive for a package. Settings of older versions
/// name no package.
pub(super) fn setting(sha256: &str, package: Option<&PackageName>) -> String {
    match package {
        Some(package) => format!("{CLEARED_SETTING_PREFIX}{sha256}/{}", package.id()),
        None => format!("{CLEARED_SETTING_PREFIX}{sha256}"),
    }
}

/// Parses the name of such a setting into the digest and the package.
pub(super) fn read_setting(name: &str) -> Result<(String, Option<PackageName>), StoreError> {
    let rest = name.strip_prefix(CLEARED_SETTING_PREFIX).unwrap_or_default();
    match rest.split_once('/') {
        Some((sha256, id)) => Ok((sha256.to_owned(), Some(read_name(id)?))),
        None => Ok((rest.to_owned(), None)),
    }
}

/// Returns a LIKE pattern for log entries about an archive.
pub(super) fn log_pattern(sha256: &str) -> String {
    format!("%\"sha256\":\"{sha256}\"%")
}

impl Registry<'_> {
    /// Whether an account may appeal for a package: everyone who may publish it.
    pub async fn may_appeal_for(
        &self,
        actor: &Actor,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        let connection = &mut *self.reader().acquire().await?;
        check_may_publish(connection, actor, package).await
    }

    /// Records an appeal against the scan result of a published version or of a refused upload. If
    /// the package has owners, only its publishers may appeal; otherwise every account may.
    pub async fn appeal(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        sha256: &str,
        message: &str,
    ) -> Result<(), RegistryError> {
        check_message(Some(message))?;
        check_digest(sha256)?;
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        if actor.account.is_none() && !actor.is_admin() {
            return Err(RegistryError::NobodyActs);
        }
        let mut work = self.begin().await?;
        may_appeal(work.connection(), actor, package).await?;
        if let Some(account) = actor.account {
            count_appeal(work.connection(), account, sha256).await?;
        }
        let mut details = json!({"sha256": sha256, "message": message});
        if let Some(details) = details.as_object_mut() {
            details
                .extend(refused_scans::known(work.connection(), package, version, sha256).await?);
        }
        let event =
            NewAuditEvent::new(AuditAction::Appealed).version(package, version).details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        Ok(work.commit().await?)
    }

    /// Clears an archive: it can be published as a version of a package although a scan blocks it.
    /// The package is this one, or the one that the appeal named. Only for administrators. Returns
    /// the package.
    pub async fn clear(
        &self,
        actor: &Actor,
        sha256: &str,
        package: Option<&PackageName>,
        why: &str,
    ) -> Result<PackageName, RegistryError> {
        actor.check_admin()?;
        check_message(Some(why))?;
        check_digest(sha256)?;
        let mut work = self.begin().await?;
        let package = match package {
            Some(package) => package.clone(),
            None => only_package(packages_with_appeals(work.connection(), sha256).await?)?,
        };
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(&setting(sha256, Some(&package)))
        .text(why)
        .run(work.connection())
        .await?;
        let details = json!({"sha256": sha256, "why": why});
        let event = NewAuditEvent::new(AuditAction::Cleared).package(&package).details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        work.commit().await?;
        Ok(package)
    }

    /// Revokes the clearances of an archive for all packages. Returns false if there were none.
    pub async fn unclear(&self, actor: &Actor, sha256: &str) -> Result<bool, RegistryError> {
        let all = (setting(sha256, None), format!("{}/%", setting(sha256, None)));
        self.forget_clearances(actor, sha256, all).await
    }

    /// Revokes the clearance of an archive for one package. Returns false if there was none.
    pub async fn unclear_for(
        &self,
        actor: &Actor,
        sha256: &str,
        package: &PackageName,
    ) -> Result<bool, RegistryError> {
        // The name of a package may contain LIKE wildcards. The empty second pattern matches
        // nothing.
        let one = (setting(sha256, Some(package)), String::new());
        self.forget_clearances(actor, sha256, one).await
    }

    async fn forget_clearances(
        &self,
        actor: &Actor,
        sha256: &str,
        (name, pattern): (String, String),
    ) -> Result<bool, RegistryError> {
        actor.check_admin()?;
        check_digest(sha256)?;
        let mut work = self.begin().await?;
        let rows = sql("DELETE FROM settings WHERE name = $1 OR name LIKE $2 RETURNING name")
            .text(&name)
            .text(&pattern)
            .all(work.connection())
            .await?;
        if rows.is_empty() {
            return Ok(false);
        }
        let mut events = Vec::new();
        for row in rows {
            let event =
                NewAuditEvent::new(AuditAction::Uncleared).details(json!({"sha256": sha256}));
            events.push(match read_setting(&row.text(0)?)? {
                (_, Some(package)) => event.package(&package),
                (_, None) => event,
            });
        }
        note(work.connection(), actor, Timestamp::now(), events).await?;
        work.commit().await?;
        Ok(true)
    }

    /// Returns the reason why an archive was cleared for a package, if it was.
    pub async fn cleared(
        &self,
        sha256: &str,
        package: &PackageName,
    ) -> Result<Option<String>, RegistryError> {
        clearance_reason(&mut *self.reader().acquire().await?, sha256, package).await
    }
}

pub(super) async fn clearance_reason(
    connection: &mut AnyConnection,
    sha256: &str,
    package: &PackageName,
) -> Result<Option<String>, RegistryError> {
    let mut why = None;
    for name in [setting(sha256, Some(package)), setting(sha256, None)] {
        let row = sql("SELECT value FROM settings WHERE name = $1")
            .text(&name)
            .optional(&mut *connection)
            .await?;
        if let Some(row) = row {
            why = Some((row.text(0)?, name));
            break;
        }
    }
    let Some((why, name)) = why else { return Ok(None) };
    // Older versions did not store the package; the appeals in the log tell for which packages it
    // counts.
    let for_all = name == setting(sha256, None);
    let counts = !for_all || is_cleared_for(connection, sha256, package).await?;
    Ok(Some(why).filter(|_| counts))
}

/// Whether a clearance without a package counts for a package: it does if there was an appeal for
/// this package, or no appeal at all.
async fn is_cleared_for(
    connection: &mut AnyConnection,
    sha256: &str,
    package: &PackageName,
) -> Result<bool, RegistryError> {
    let rows = sql("SELECT package FROM registry_log
         WHERE act = $1 AND details LIKE $3 AND seq < COALESCE(
            (SELECT MAX(seq) FROM registry_log WHERE act = $2 AND details LIKE $3), 0)")
    .text(AuditAction::Appealed.as_str())
    .text(AuditAction::Cleared.as_str())
    .text(&log_pattern(sha256))
    .all(connection)
    .await?;
    let asked = rows.iter().map(|row| row.maybe_text(0)).collect::<Result<Vec<_>, _>>()?;
    let own = [package.id(), package.to_string()];
    Ok(asked.is_empty() || asked.into_iter().flatten().any(|asked| own.contains(&asked)))
}

/// Returns the packages with appeals about an archive.
async fn packages_with_appeals(
    connection: &mut AnyConnection,
    sha256: &str,
) -> Result<BTreeSet<String>, RegistryError> {
    let rows = sql("SELECT DISTINCT package FROM registry_log WHERE act = $1 AND details LIKE $2")
        .text(AuditAction::Appealed.as_str())
        .text(&log_pattern(sha256))
        .all(connection)
        .await?;
    let found = rows.iter().map(|row| row.maybe_text(0)).collect::<Result<Vec<_>, _>>()?;
    let names = found.into_iter().flatten().map(|id| Ok(read_name(&id)?.to_string()));
    names.collect()
}

fn only_package(packages: BTreeSet<String>) -> Result<PackageName, RegistryError> {
    let all: Vec<String> = packages.into_iter().collect();
    let message = match all.as_slice() {
        [one] => return Ok(read_name(one)?),
        [] => "nobody appealed about these bytes: name the skill that they are for".to_owned(),
        several => format!(
            "these bytes are in appeals for {}: name the skill that they are for",
            several.join(", ")
        ),
    };
    Err(RegistryError::Invalid { what: "the clearance", message })
}

/// Fails unless the account may publish the package, or the package has no owner.
async fn may_appeal(
    connection: &mut AnyConnection,
    actor: &Actor,
    package: &PackageName,
) -> Result<(), RegistryError> {
    let taken = is_taken(connection, package).await?;
    if taken { check_may_publish(connection, actor, package).await } else { Ok(()) }
}

/// Rejects repeated appeals about the same archive, so that one account cannot bury those of
/// others.
async fn count_appeal(
    connection: &mut AnyConnection,
    account: i64,
    sha256: &str,
) -> Result<(), RegistryError> {
    let again = hit(connection, &format!("appeal/{account}/{sha256}"), APPEAL_LIFETIME).await?;
    if again.count > 1 {
        let what = "an appeal of yours about these bytes, which administrators see,".to_owned();
        return Err(RegistryError::Exists { what });
    }
    let all = hit(connection, &format!("appeals/{account}"), DAY).await?;
    if all.count > MAX_APPEALS_PER_DAY {
        return Err(RegistryError::TooOften { what: "appeals", most: MAX_APPEALS_PER_DAY });
    }
    Ok(())
}

pub(super) fn check_digest(sha256: &str) -> Result<(), RegistryError> {
    if is_digest(sha256) {
        return Ok(());
    }
    let message = "write the SHA-256 of the archive in 64 small hexadecimal digits".to_owned();
    Err(RegistryError::Invalid { what: "the digest", message })
}
