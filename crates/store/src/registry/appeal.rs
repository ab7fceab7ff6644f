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

/// How long nobody has to say the same again.
const APPEAL_LIFETIME: Duration = Duration::from_hours(7 * 24);
const DAY: Duration = Duration::from_hours(24);
/// Appeals of one account in a day.
const MAX_APPEALS_PER_DAY: u64 = 20;

/// How the settings begin that say which bytes were cleared.
const CLEARED_SETTING_PREFIX: &str = "registry.cleared.";

/// What the setting is called that says that bytes were cleared for a package. Older programs
/// cleared them for no package in particular.
pub(super) fn setting(sha256: &str, package: Option<&PackageName>) -> String {
    match package {
        Some(package) => format!("{CLEARED_SETTING_PREFIX}{sha256}/{}", package.id()),
        None => format!("{CLEARED_SETTING_PREFIX}{sha256}"),
    }
}

/// What a setting of that kind says: the digest, and the package.
pub(super) fn read_setting(name: &str) -> Result<(String, Option<PackageName>), StoreError> {
    let rest = name.strip_prefix(CLEARED_SETTING_PREFIX).unwrap_or_default();
    match rest.split_once('/') {
        Some((sha256, id)) => Ok((sha256.to_owned(), Some(read_name(id)?))),
        None => Ok((rest.to_owned(), None)),
    }
}

/// Finds the entries of the log that speak of some bytes.
pub(super) fn log_pattern(sha256: &str) -> String {
    format!("%\"sha256\":\"{sha256}\"%")
}

impl Registry<'_> {
    /// Whether somebody may speak for a package: those may who publish it.
    pub async fn may_appeal_for(
        &self,
        actor: &Actor,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        let connection = &mut *self.reader().acquire().await?;
        check_may_publish(connection, actor, package).await
    }

    /// Notes for the administrators why somebody thinks that a scan is wrong: of a version that was
    /// published, or of bytes that were refused. Whoever has a package may speak for it; if nobody
    /// has it, everybody with an account may.
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

    /// Lets bytes be published as versions of a package although a scan says that they should not
    /// be: of this one, or of the one for which somebody appealed. For administrators, who have
    /// looked at them. Tells the package.
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

    /// Takes that back for all packages; false if it was not so.
    pub async fn unclear(&self, actor: &Actor, sha256: &str) -> Result<bool, RegistryError> {
        let all = (setting(sha256, None), format!("{}/%", setting(sha256, None)));
        self.forget_clearances(actor, sha256, all).await
    }

    /// Takes it back for one package; false if it was not so.
    pub async fn unclear_for(
        &self,
        actor: &Actor,
        sha256: &str,
        package: &PackageName,
    ) -> Result<bool, RegistryError> {
        // A name may have signs in it that mean something in a pattern, and no name is empty.
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

    /// Why bytes were cleared for a package, if they were.
    pub async fn cleared(
        &self,
        sha256: &str,
        package: &PackageName,
    ) -> Result<Option<String>, RegistryError> {
        clearance_reason(&mut *self.reader().acquire().await?, sha256, package).await
    }
}

/// Why bytes were cleared for a package, if they were.
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
    // An older program did not note for whom it was; its log tells who had asked.
    let for_all = name == setting(sha256, None);
    let counts = !for_all || is_cleared_for(connection, sha256, package).await?;
    Ok(Some(why).filter(|_| counts))
}

/// Whether a package is among those that had appealed when bytes were cleared for nobody in
/// particular. If none had, it was for all.
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

/// The packages for which somebody appealed about some bytes.
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

/// Whoever has a package may speak for it; if nobody has it, everybody may.
async fn may_appeal(
    connection: &mut AnyConnection,
    actor: &Actor,
    package: &PackageName,
) -> Result<(), RegistryError> {
    let taken = is_taken(connection, package).await?;
    if taken { check_may_publish(connection, actor, package).await } else { Ok(()) }
}

/// One appeal about some bytes is enough, and nobody drowns those of others.
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
