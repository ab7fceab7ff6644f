//! What becomes of a scan that somebody does not agree with.

use std::time::Duration;

use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, PackageName, Registry, RegistryError, Right,
    blobs::is_digest,
    change::check,
    log::{Act, Deed, note},
    people::must_publish,
    publish::is_taken,
};
use crate::{StoreError, Time, rate::hit, sql::sql};

/// How long nobody has to say the same again.
const APPEAL_STANDS: Duration = Duration::from_hours(7 * 24);
const DAY: Duration = Duration::from_hours(24);
/// Appeals of one account in a day.
const MOST_APPEALS: u64 = 20;

/// What the settings are called that say which bytes were cleared.
pub(super) fn setting(sha256: &str) -> String {
    format!("registry.cleared.{sha256}")
}

impl Registry<'_> {
    /// Whether somebody may speak for a package: those may who publish it.
    pub async fn may_speak_for(
        &self,
        actor: &Actor,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        actor.must_have(Right::Publish, Some(&package.holding()))?;
        let connection = &mut *self.reader().acquire().await?;
        must_publish(connection, actor, package).await
    }

    /// Notes for the administrators why somebody thinks that a scan is wrong: of a version that was
    /// published, or of bytes that were refused. Whoever has a package may speak for it; if nobody has
    /// it, everybody with an account may.
    pub async fn appeal(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        sha256: &str,
        message: &str,
    ) -> Result<(), RegistryError> {
        check(Some(message))?;
        must_be_digest(sha256)?;
        actor.must_have(Right::Publish, Some(&package.holding()))?;
        if actor.account.is_none() && !actor.is_admin() {
            return Err(RegistryError::NobodyActs);
        }
        let mut work = self.begin().await?;
        may_appeal(work.connection(), actor, package).await?;
        if let Some(account) = actor.account {
            count_appeal(work.connection(), account, sha256).await?;
        }
        let details = json!({"sha256": sha256, "message": message});
        let deed = Deed::new(Act::Appealed).version(package, version).details(details);
        note(work.connection(), actor, Time::now(), vec![deed]).await?;
        Ok(work.commit().await?)
    }

    /// Lets bytes be published although a scan says that they should not be. For administrators, who
    /// have looked at them.
    pub async fn clear(&self, actor: &Actor, sha256: &str, why: &str) -> Result<(), RegistryError> {
        actor.must_be_admin()?;
        check(Some(why))?;
        must_be_digest(sha256)?;
        let mut work = self.begin().await?;
        sql("INSERT INTO settings (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(&setting(sha256))
        .text(why)
        .run(work.connection())
        .await?;
        let deed = Deed::new(Act::Cleared).details(json!({"sha256": sha256, "why": why}));
        note(work.connection(), actor, Time::now(), vec![deed]).await?;
        Ok(work.commit().await?)
    }

    /// Takes that back; false if it was not so.
    pub async fn unclear(&self, actor: &Actor, sha256: &str) -> Result<bool, RegistryError> {
        actor.must_be_admin()?;
        let mut work = self.begin().await?;
        let removed = sql("DELETE FROM settings WHERE name = $1")
            .text(&setting(sha256))
            .run(work.connection())
            .await?;
        if removed == 0 {
            return Ok(false);
        }
        let deed = Deed::new(Act::Uncleared).details(json!({"sha256": sha256}));
        note(work.connection(), actor, Time::now(), vec![deed]).await?;
        work.commit().await?;
        Ok(true)
    }

    /// Why bytes were cleared, if they were.
    pub async fn cleared(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.database.settings().get(&setting(sha256)).await
    }
}

/// Whoever has a package may speak for it; if nobody has it, everybody may.
async fn may_appeal(
    connection: &mut AnyConnection,
    actor: &Actor,
    package: &PackageName,
) -> Result<(), RegistryError> {
    let taken = is_taken(connection, package).await?;
    if taken { must_publish(connection, actor, package).await } else { Ok(()) }
}

/// One appeal about some bytes is enough, and nobody drowns those of others.
async fn count_appeal(
    connection: &mut AnyConnection,
    account: i64,
    sha256: &str,
) -> Result<(), RegistryError> {
    let again = hit(connection, &format!("appeal/{account}/{sha256}"), APPEAL_STANDS).await?;
    if again.count > 1 {
        let what = "an appeal of yours about these bytes, which administrators see,".to_owned();
        return Err(RegistryError::Exists { what });
    }
    let all = hit(connection, &format!("appeals/{account}"), DAY).await?;
    if all.count > MOST_APPEALS {
        return Err(RegistryError::TooOften { what: "appeals", most: MOST_APPEALS });
    }
    Ok(())
}

pub(super) fn must_be_digest(sha256: &str) -> Result<(), RegistryError> {
    if is_digest(sha256) {
        return Ok(());
    }
    let message = "write the SHA-256 of the archive in 64 small hexadecimal digits".to_owned();
    Err(RegistryError::Invalid { what: "the digest", message })
}
