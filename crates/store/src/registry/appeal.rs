//! What becomes of a scan that somebody does not agree with.

use semver::Version;
use serde_json::json;

use super::{
    Actor, PackageName, Registry, RegistryError, Right,
    blobs::is_digest,
    change::check,
    log::{Act, Deed, note},
    people::must_publish,
};
use crate::{StoreError, Time, sql::sql};

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
        let taken = sql("SELECT 1 FROM members WHERE holding = $1 LIMIT 1")
            .text(package.holding().as_str())
            .optional(work.connection())
            .await?;
        if taken.is_some() {
            must_publish(work.connection(), actor, package).await?;
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

fn must_be_digest(sha256: &str) -> Result<(), RegistryError> {
    if is_digest(sha256) {
        return Ok(());
    }
    let message = "write the SHA-256 of the archive in 64 small hexadecimal digits".to_owned();
    Err(RegistryError::Invalid { what: "the digest", message })
}
