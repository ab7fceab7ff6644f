//! Changes published versions: yank, deprecate, withdraw, rescan. The bytes never change.

use savoir_skill::permission::Tier;
use semver::Version;
use serde_json::{Value, json};

use super::{
    Actor, PackageName, Registry, RegistryError, RegistryTransaction, Right, ScanResult,
    ScanVerdict,
    appeal::clearance_reason,
    facts::read_version,
    index::renew,
    log::{AuditAction, NewAuditEvent, note},
    owners::check_may_publish,
    signatures::recompute_tier,
    version_order::{self, sort_key},
};
use crate::{
    Timestamp,
    sql::{Sql, sql},
};

const MAX_MESSAGE_BYTES: usize = 4096;
/// Fields of a scan report for an administrator's decision about a version, and about its bytes.
pub(super) const JUDGED_KEY: &str = "judged";
const CLEARED_KEY: &str = "cleared";

pub(super) fn check_message(message: Option<&str>) -> Result<(), RegistryError> {
    if message.is_some_and(|message| message.len() > MAX_MESSAGE_BYTES) {
        let message = format!("it has more than {MAX_MESSAGE_BYTES} bytes");
        return Err(RegistryError::Invalid { what: "the message", message });
    }
    Ok(())
}

impl RegistryTransaction {
    /// Applies earlier decisions of administrators to a new scan result.
    async fn apply_decisions(
        &mut self,
        package: &PackageName,
        key: &[u8],
        scan: &mut ScanResult,
    ) -> Result<(), RegistryError> {
        let row = sql("SELECT scan, sha256 FROM versions WHERE package = $1 AND sort_key = $2")
            .text(&package.id())
            .bytes(key)
            .optional(self.connection())
            .await?;
        let Some(row) = row else { return Ok(()) };
        let known = row.maybe_text(0)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let judged = known.as_ref().and_then(|known| known.get(JUDGED_KEY));
        if let Some(judged) = judged
            && let Some(verdict) = judged["verdict"].as_str()
        {
            scan.verdict = ScanVerdict::read(verdict)?;
            scan.report[JUDGED_KEY] = judged.clone();
            return Ok(());
        }
        let before = known.as_ref().and_then(|known| known.get(CLEARED_KEY)?.as_str());
        let why = match before {
            // A version that was cleared stays available, even if its bytes could no longer be
            // published.
            Some(why) => Some(why.to_owned()),
            None if scan.verdict == ScanVerdict::Block => {
                clearance_reason(self.connection(), &row.text(1)?, package).await?
            }
            None => None,
        };
        if let Some(why) = why {
            scan.report[CLEARED_KEY] = why.into();
            if scan.verdict == ScanVerdict::Block {
                scan.verdict = ScanVerdict::Review;
            }
        }
        Ok(())
    }

    /// Fails if a version does not exist, or was withdrawn.
    pub(super) async fn check_not_withdrawn(
        &mut self,
        package: &PackageName,
        version: &Version,
    ) -> Result<(), RegistryError> {
        let row = sql("SELECT withdrawn_at, withdrawn_why, version FROM versions
             WHERE package = $1 AND sort_key = $2")
        .text(&package.id())
        .bytes(&sort_key(version))
        .optional(self.connection())
        .await?;
        match row {
            None => Err(RegistryError::no_version(package, version)),
            Some(row) if row.maybe_number(0)?.is_some() => Err(RegistryError::Withdrawn {
                package: package.clone(),
                version: read_version(&row.text(2)?)?,
                why: row.maybe_text(1)?.unwrap_or_default(),
            }),
            Some(_) => Ok(()),
        }
    }

    /// Updates the index, writes the log entry and commits.
    pub(super) async fn finish_change(
        mut self,
        actor: &Actor,
        package: &PackageName,
        event: NewAuditEvent,
    ) -> Result<(), RegistryError> {
        let now = Timestamp::now();
        renew(self.connection(), package, now).await?;
        note(self.connection(), actor, now, vec![event]).await?;
        Ok(self.commit().await?)
    }
}

impl Registry<'_> {
    /// Starts a transaction for an actor who may publish the package.
    async fn as_publisher(
        &self,
        actor: &Actor,
        package: &PackageName,
    ) -> Result<RegistryTransaction, RegistryError> {
        actor.check_right(Right::Yank, Some(&package.owner_scope()))?;
        let mut work = self.begin().await?;
        work.lock_package(package).await?;
        check_may_publish(work.connection(), actor, package).await?;
        Ok(work)
    }

    /// Changes a version that is not withdrawn, by a statement whose last two parameters are the
    /// package and the sort key; returns false if nothing changed.
    async fn change_live(
        &self,
        actor: &Actor,
        (package, version): (&PackageName, &Version),
        statement: Sql,
        event: NewAuditEvent,
    ) -> Result<bool, RegistryError> {
        let mut work = self.as_publisher(actor, package).await?;
        work.check_not_withdrawn(package, version).await?;
        let statement = statement.text(&package.id()).bytes(&sort_key(version));
        if statement.run(work.connection()).await? == 0 {
            return Ok(false);
        }
        work.finish_change(actor, package, event.version(package, version)).await?;
        Ok(true)
    }

    /// Yanks a version: existing installs keep working, new installs skip it. Returns false if it
    /// was yanked already.
    pub async fn yank(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        why: Option<&str>,
    ) -> Result<bool, RegistryError> {
        check_message(why)?;
        let statement = sql("UPDATE versions SET yanked_at = $1, yanked_why = $2
             WHERE package = $3 AND sort_key = $4 AND yanked_at IS NULL");
        let statement = statement.time(Timestamp::now()).maybe_text(why);
        let event = NewAuditEvent::new(AuditAction::Yanked).details(json!({"why": why}));
        self.change_live(actor, (package, version), statement, event).await
    }

    /// Reverts a yank; returns false if the version was not yanked.
    pub async fn unyank(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
    ) -> Result<bool, RegistryError> {
        let statement = sql("UPDATE versions SET yanked_at = NULL, yanked_why = NULL
             WHERE package = $1 AND sort_key = $2 AND yanked_at IS NOT NULL");
        self.change_live(
            actor,
            (package, version),
            statement,
            NewAuditEvent::new(AuditAction::Unyanked),
        )
        .await
    }

    /// Sets the deprecation message of a version, or of the whole package; `None` removes it.
    pub async fn deprecate(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: Option<&Version>,
        message: Option<&str>,
    ) -> Result<(), RegistryError> {
        check_message(message)?;
        let event =
            NewAuditEvent::new(AuditAction::Deprecated).details(json!({"message": message}));
        if let Some(version) = version {
            let statement = sql("UPDATE versions SET deprecated = $1
                 WHERE package = $2 AND sort_key = $3")
            .maybe_text(message);
            return self.change_live(actor, (package, version), statement, event).await.map(drop);
        }
        let mut work = self.as_publisher(actor, package).await?;
        sql("UPDATE packages SET deprecated = $2 WHERE id = $1")
            .text(&package.id())
            .maybe_text(message)
            .run(work.connection())
            .await?;
        work.finish_change(actor, package, event.package(package)).await
    }

    /// Removes a version and its metadata. The number can never be used again; the bytes are
    /// deleted later by garbage collection. Only for administrators; others yank.
    pub async fn withdraw(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        why: &str,
    ) -> Result<(), RegistryError> {
        check_message(Some(why))?;
        actor.check_admin()?;
        let mut work = self.as_publisher(actor, package).await?;
        work.check_not_withdrawn(package, version).await?;
        let (id, key) = (package.id(), sort_key(version));
        let row =
            sql("SELECT sha256, integrity FROM versions WHERE package = $1 AND sort_key = $2")
                .text(&id)
                .bytes(&key)
                .one(work.connection())
                .await?;
        work.take_down(package, version).await?;
        let details = json!({"why": why, "sha256": row.text(0)?, "integrity": row.text(1)?});
        sql(
            "UPDATE versions SET withdrawn_at = $3, withdrawn_why = $4, facts = '{}', entry = '{}',
                scan = NULL, integrity = '', sha256 = '', skill_md = ''
             WHERE package = $1 AND sort_key = $2",
        )
        .text(&id)
        .bytes(&key)
        .time(Timestamp::now())
        .text(why)
        .run(work.connection())
        .await?;
        for statement in [
            "DELETE FROM signatures WHERE package = $1 AND sort_key = $2",
            "DELETE FROM attestations WHERE package = $1 AND sort_key = $2",
        ] {
            sql(statement).text(&id).bytes(&key).run(work.connection()).await?;
        }
        let event =
            NewAuditEvent::new(AuditAction::Withdrawn).version(package, version).details(details);
        work.finish_change(actor, package, event).await
    }

    /// Reserves the number of a version that another registry removed and that was never here, so
    /// that it cannot be used; returns false if the version exists or existed. Only for
    /// administrators.
    pub async fn reserve_withdrawn(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        why: Option<&str>,
    ) -> Result<bool, RegistryError> {
        check_message(why)?;
        version_order::check(version)?;
        actor.check_admin()?;
        let mut work = self.as_publisher(actor, package).await?;
        let now = Timestamp::now();
        let added = sql("INSERT INTO versions (package, sort_key, version, attested, integrity,
                sha256, size, skill_md, entry, facts, withdrawn_at, withdrawn_why, published_by,
                published_at)
             VALUES ($1, $2, $3, 0, '', '', 0, '', '{}', '{}', $4, $5, $6, $4)
             ON CONFLICT (package, sort_key) DO NOTHING")
        .text(&package.id())
        .bytes(&sort_key(version))
        .text(&version.to_string())
        .time(now)
        .text(why.unwrap_or_default())
        .maybe_number(actor.account)
        .run(work.connection())
        .await?;
        if added == 0 {
            return Ok(false);
        }
        let event = NewAuditEvent::new(AuditAction::Withdrawn)
            .version(package, version)
            .details(json!({"why": why}));
        work.finish_change(actor, package, event).await?;
        Ok(true)
    }

    /// Stores a scan result; returns the resulting tier and the stored result. A decision of an
    /// administrator overrides the scan, even if it was made during the scan. For administrators,
    /// for the registry's own scanner, and for publishers who asked for a scan.
    pub async fn set_scan(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        scan: &ScanResult,
    ) -> Result<(Tier, ScanResult), RegistryError> {
        let mut work = self.begin().await?;
        work.lock_package(package).await?;
        check_may_publish(work.connection(), actor, package).await?;
        work.check_not_withdrawn(package, version).await?;
        let (id, key) = (package.id(), sort_key(version));
        let (mut scan, mut judged) = (scan.clone(), None);
        if scan.report.get(JUDGED_KEY).is_none() || !actor.is_admin() {
            work.apply_decisions(package, &key, &mut scan).await?;
        } else {
            judged = Some(scan.report[JUDGED_KEY]["reason"].clone());
            match scan.verdict {
                ScanVerdict::Block => work.take_down(package, version).await?,
                _ => work.undo_take_down(package, version).await?,
            }
        }
        sql("UPDATE versions SET verdict = $3, scan = $4, scanned_at = $5
             WHERE package = $1 AND sort_key = $2")
        .text(&id)
        .bytes(&key)
        .text(scan.verdict.as_str())
        .text(&scan.report.to_string())
        .time(Timestamp::now())
        .run(work.connection())
        .await?;
        let (before, tier) = recompute_tier(work.connection(), &id, &key).await?;
        let mut details = json!({
            "verdict": scan.verdict.as_str(),
            "before": before.as_str(), "attested": tier.as_str(),
        });
        let act = if let Some(reason) = judged {
            details["reason"] = reason;
            AuditAction::Judged
        } else {
            AuditAction::Scanned
        };
        let event = NewAuditEvent::new(act).version(package, version).details(details);
        work.finish_change(actor, package, event).await?;
        Ok((tier, scan))
    }

    /// The versions that are not scanned yet, by package, at most `limit`.
    pub async fn unscanned(
        &self,
        limit: u64,
    ) -> Result<Vec<(PackageName, Version)>, RegistryError> {
        let rows = sql("SELECT package, version FROM versions
             WHERE verdict IS NULL AND withdrawn_at IS NULL
             ORDER BY package, sort_key LIMIT $1")
        .count(limit.min(1000))
        .all(self.reader())
        .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push((super::facts::read_name(&row.text(0)?)?, read_version(&row.text(1)?)?));
        }
        Ok(found)
    }
}
