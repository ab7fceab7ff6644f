//! Stores signatures of versions, and computes the tier that they attest.

use savoir_skill::permission::Tier;
use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, NewSignature, OwnerScope, PackageName, Registry, RegistryError, RegistryTransaction,
    Right, RowLock, Signature, SignatureState, Signer,
    facts::{ScanVerdict, attested, read_name, read_tier, read_version, tier_number},
    index::renew,
    keys::{KeyState, is_owner, may_audit},
    log::{AuditAction, NewAuditEvent, note},
    owners::check_may_publish,
    version_order::sort_key,
};
use crate::{
    StoreError, Timestamp,
    sql::{Row, sql},
};

/// Maximum size of a signature record, which names every file of the skill.
const MAX_RECORD_BYTES: usize = 512 * 1024;

/// The signed files of a version.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedFiles<'a> {
    pub(super) integrity: &'a str,
    /// The digest of SKILL.md, by which other signatures of the same files are found.
    pub(super) skill_md: &'a str,
}

/// Stores a signature, and replaces an existing one of the same key.
pub(super) async fn put_signature(
    connection: &mut AnyConnection,
    actor: &Actor,
    (package, version): (&PackageName, &Version),
    new: &NewSignature,
    state: SignatureState,
    now: Timestamp,
) -> Result<(), RegistryError> {
    if new.record.len() > MAX_RECORD_BYTES || new.key_id.len() > 256 {
        let message = format!("it is longer than {MAX_RECORD_BYTES} bytes");
        return Err(RegistryError::Invalid { what: "the signature", message });
    }
    sql("INSERT INTO signatures
            (package, sort_key, holding, key_id, state, record, added_by, added_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (package, sort_key, holding, key_id) DO UPDATE
         SET state = excluded.state, record = excluded.record")
    .text(&package.id())
    .bytes(&sort_key(version))
    .text(new.signer.owner_scope(package).as_str())
    .text(&new.key_id)
    .text(state.as_str())
    .text(&new.record)
    .maybe_number(actor.account)
    .time(now)
    .run(connection)
    .await?;
    Ok(())
}

/// Updates the attested tier of a version; returns the old and the new tier.
pub(super) async fn recompute_tier(
    connection: &mut AnyConnection,
    id: &str,
    sort_key: &[u8],
) -> Result<(Tier, Tier), StoreError> {
    let row = sql("SELECT verdict, attested FROM versions WHERE package = $1 AND sort_key = $2")
        .text(id)
        .bytes(sort_key)
        .one(&mut *connection)
        .await?;
    let verdict = row.maybe_text(0)?.map(|text| ScanVerdict::read(&text)).transpose()?;
    let before = read_tier(row.number(1)?)?;
    let rows = sql("SELECT DISTINCT holding FROM signatures
         WHERE package = $1 AND sort_key = $2 AND state = 'active'")
    .text(id)
    .bytes(sort_key)
    .all(&mut *connection)
    .await?;
    let mut has = [false, false];
    for row in rows {
        has[usize::from(OwnerScope::read(row.text(0)?).is_for_auditors())] = true;
    }
    let now = attested(verdict, has[0], has[1]);
    sql("UPDATE versions SET attested = $3 WHERE package = $1 AND sort_key = $2")
        .text(id)
        .bytes(sort_key)
        .number(tier_number(now))
        .run(connection)
        .await?;
    Ok((before, now))
}

impl RegistryTransaction {
    /// Returns the states of the keys of signatures, and locks them until the transaction ends.
    pub(super) async fn key_states(
        &mut self,
        actor: &Actor,
        package: &PackageName,
        signatures: &[NewSignature],
        files: SignedFiles<'_>,
    ) -> Result<Vec<KeyState>, RegistryError> {
        let mut states = vec![KeyState::Unknown; signatures.len()];
        let mut order: Vec<usize> = (0..signatures.len()).collect();
        order.sort_by_key(|n| (signatures[*n].signer.owner_scope(package), &signatures[*n].key_id));
        for n in order {
            let owner_scope = signatures[n].signer.owner_scope(package);
            let state = self.key_state(&owner_scope, &signatures[n].key_id, RowLock::Share).await?;
            let trusted = match signatures[n].signer {
                Signer::Publisher => {
                    let key = (&owner_scope, &*signatures[n].key_id);
                    earlier_signer(self.connection(), actor, key, files).await?.is_none()
                }
                Signer::Auditor => {
                    may_audit(self.connection(), actor, &signatures[n].key_id).await?
                }
            };
            states[n] = if trusted { state } else { KeyState::Unknown };
        }
        Ok(states)
    }

    /// Activates signatures that a publisher's key made before it was registered.
    pub(super) async fn count_earlier_signatures(
        &mut self,
        actor: &Actor,
        (owner_scope, key_id): (&OwnerScope, &str),
        now: Timestamp,
    ) -> Result<Vec<NewAuditEvent>, RegistryError> {
        if owner_scope.is_for_auditors() {
            return Ok(Vec::new());
        }
        let rows = sql("SELECT s.package, s.sort_key, v.version, v.integrity, v.skill_md
             FROM signatures s
             JOIN versions v ON v.package = s.package AND v.sort_key = s.sort_key
             WHERE s.holding = $1 AND s.key_id = $2 AND s.state = 'unknown'
             ORDER BY s.package, s.sort_key")
        .text(owner_scope.as_str())
        .text(key_id)
        .all(self.connection())
        .await?;
        let (mut events, mut changed) = (Vec::new(), Vec::new());
        for row in rows {
            let (package, sort_key) = (read_name(&row.text(0)?)?, row.bytes(1)?);
            let (integrity, skill_md) = (row.text(3)?, row.text(4)?);
            self.lock_package(&package).await?;
            let files = SignedFiles { integrity: &integrity, skill_md: &skill_md };
            let key = (owner_scope, key_id);
            if earlier_signer(self.connection(), actor, key, files).await?.is_some() {
                continue;
            }
            sql("UPDATE signatures SET state = 'active'
                 WHERE package = $1 AND sort_key = $2 AND holding = $3 AND key_id = $4")
            .text(&package.id())
            .bytes(&sort_key)
            .text(owner_scope.as_str())
            .text(key_id)
            .run(self.connection())
            .await?;
            let (before, after) =
                recompute_tier(self.connection(), &package.id(), &sort_key).await?;
            let details = json!({
                "key_id": key_id, "signer": Signer::Publisher.as_str(),
                "before": before.as_str(), "attested": after.as_str(),
            });
            let version = read_version(&row.text(2)?)?;
            events.push(
                NewAuditEvent::new(AuditAction::Signed)
                    .version(&package, &version)
                    .details(details),
            );
            if !changed.contains(&package) {
                changed.push(package);
            }
        }
        for package in changed {
            renew(self.connection(), &package, now).await?;
        }
        Ok(events)
    }

    /// Deactivates the signatures of a revoked key on the versions of a package.
    pub(super) async fn revoke_signatures(
        &mut self,
        package: &PackageName,
        (owner_scope, key_id): (&OwnerScope, &str),
        now: Timestamp,
    ) -> Result<Vec<NewAuditEvent>, RegistryError> {
        self.lock_package(package).await?;
        let id = package.id();
        sql("UPDATE signatures SET state = 'revoked'
             WHERE package = $1 AND holding = $2 AND key_id = $3")
        .text(&id)
        .text(owner_scope.as_str())
        .text(key_id)
        .run(self.connection())
        .await?;
        let rows = sql("SELECT v.sort_key, v.version FROM signatures s
             JOIN versions v ON v.package = s.package AND v.sort_key = s.sort_key
             WHERE s.package = $1 AND s.holding = $2 AND s.key_id = $3")
        .text(&id)
        .text(owner_scope.as_str())
        .text(key_id)
        .all(self.connection())
        .await?;
        let mut events = Vec::new();
        for row in rows {
            let (before, after) = recompute_tier(self.connection(), &id, &row.bytes(0)?).await?;
            let details =
                json!({"key_id": key_id, "before": before.as_str(), "attested": after.as_str()});
            let version = read_version(&row.text(1)?)?;
            events.push(
                NewAuditEvent::new(AuditAction::Unsigned)
                    .version(package, &version)
                    .details(details),
            );
        }
        renew(self.connection(), package, now).await?;
        Ok(events)
    }
}

impl Registry<'_> {
    /// Adds a signature to a published version, and returns its new tier. Publishers add their own;
    /// auditors add those of keys that are registered for their accounts.
    pub async fn add_signature(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        new: &NewSignature,
    ) -> Result<Tier, RegistryError> {
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        let (mut work, now) = (self.begin().await?, Timestamp::now());
        let owner_scope = new.signer.owner_scope(package);
        match work.key_state(&owner_scope, &new.key_id, RowLock::Share).await? {
            KeyState::Active => {}
            KeyState::Revoked => {
                let key_id = new.key_id.clone();
                return Err(RegistryError::KeyRevoked { owner_scope, key_id });
            }
            KeyState::Unknown => {
                let what = format!("key {} of `{owner_scope}`", new.key_id);
                return Err(RegistryError::NotFound { what });
            }
        }
        work.lock_package(package).await?;
        match new.signer {
            Signer::Publisher => check_may_publish(work.connection(), actor, package).await?,
            Signer::Auditor => {
                if !may_audit(work.connection(), actor, &new.key_id).await? {
                    return Err(RegistryError::NotAdmin);
                }
            }
        }
        work.check_not_withdrawn(package, version).await?;
        if new.signer == Signer::Publisher {
            let row = sql("SELECT integrity, skill_md FROM versions
                 WHERE package = $1 AND sort_key = $2")
            .text(&package.id())
            .bytes(&sort_key(version))
            .one(work.connection())
            .await?;
            let (integrity, skill_md) = (row.text(0)?, row.text(1)?);
            let files = SignedFiles { integrity: &integrity, skill_md: &skill_md };
            let key = (&owner_scope, &*new.key_id);
            let others = earlier_signer(work.connection(), actor, key, files).await?;
            if let Some(owner_scope) = others {
                return Err(RegistryError::KeyTaken { owner_scope, key_id: new.key_id.clone() });
            }
        }
        let (at, state) = ((package, version), SignatureState::Active);
        put_signature(work.connection(), actor, at, new, state, now).await?;
        let (before, tier) =
            recompute_tier(work.connection(), &package.id(), &sort_key(version)).await?;
        renew(work.connection(), package, now).await?;
        let details = json!({
            "key_id": new.key_id, "signer": new.signer.as_str(),
            "before": before.as_str(), "attested": tier.as_str(),
        });
        let event =
            NewAuditEvent::new(AuditAction::Signed).version(package, version).details(details);
        note(work.connection(), actor, now, vec![event]).await?;
        work.commit().await?;
        Ok(tier)
    }

    /// Returns the signatures of a version, oldest first.
    pub async fn signatures(
        &self,
        package: &PackageName,
        version: &Version,
    ) -> Result<Vec<Signature>, StoreError> {
        let rows = sql("SELECT holding, key_id, state, record, added_at FROM signatures
             WHERE package = $1 AND sort_key = $2 ORDER BY added_at, holding, key_id")
        .text(&package.id())
        .bytes(&sort_key(version))
        .all(self.reader())
        .await?;
        rows.iter().map(signature).collect()
    }
}

fn signature(row: &Row) -> Result<Signature, StoreError> {
    let auditor = OwnerScope::read(row.text(0)?).is_for_auditors();
    Ok(Signature {
        signer: if auditor { Signer::Auditor } else { Signer::Publisher },
        key_id: row.text(1)?,
        state: SignatureState::read(&row.text(2)?)?,
        record: row.text(3)?,
        added_at: row.time(4)?,
    })
}

/// Returns the other owner for whom a key signed the same files before. A signature does not name a
/// namespace, so it counts only for the first publisher, not for others who copy it.
async fn earlier_signer(
    connection: &mut AnyConnection,
    actor: &Actor,
    (owner_scope, key_id): (&OwnerScope, &str),
    SignedFiles { integrity, skill_md }: SignedFiles<'_>,
) -> Result<Option<OwnerScope>, RegistryError> {
    let rows = sql("SELECT DISTINCT s.holding FROM signatures s
         JOIN versions v ON v.package = s.package AND v.sort_key = s.sort_key
         WHERE v.skill_md = $1 AND v.integrity = $2 AND s.key_id = $4 AND s.holding <> $3
         ORDER BY s.holding")
    .text(skill_md)
    .text(integrity)
    .text(owner_scope.as_str())
    .text(key_id)
    .all(&mut *connection)
    .await?;
    for row in rows {
        let other = OwnerScope::read(row.text(0)?);
        if !other.is_for_auditors() && !is_owner(connection, actor, &other).await? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}
