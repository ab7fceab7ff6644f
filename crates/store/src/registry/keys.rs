//! Signing keys and their owners.

use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, OwnerScope, Registry, RegistryError, RegistryTransaction, Right, RowLock,
    SignatureState, TeamRole,
    facts::read_name,
    log::{AuditAction, NewAuditEvent, note},
    owners::check_role,
};
use crate::{
    StoreError, Timestamp,
    sql::{Row, sql},
};

const MAX_KEY_BYTES: usize = 16 * 1024;

/// A key to register. The caller has checked that the public key is valid.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// The namespace or package that it signs for; [`OwnerScope::auditors`] for auditors' keys.
    pub owner_scope: &'a OwnerScope,
    pub key_id: &'a str,
    pub public_key: &'a str,
    /// The label that its owners chose.
    pub label: &'a str,
    /// For an auditor's key: the account of the auditor, who may then add signatures.
    pub account: Option<i64>,
    /// Whether the actor proved possession of the private key.
    pub proved: bool,
}

/// A registered or revoked key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryKey {
    /// The namespace or package that it signs for.
    pub owner_scope: OwnerScope,
    pub key_id: String,
    pub public_key: String,
    /// The label that its owners chose.
    pub label: String,
    /// The account of the auditor who uses it.
    pub account: Option<i64>,
    pub added_at: Timestamp,
    /// When and why it was revoked.
    pub revoked: Option<(Timestamp, String)>,
    /// Whether its owner proved possession of the private key.
    pub proved: bool,
}

/// Reads `holding, key_id, public_key, label, account, added_at, revoked_at, revoked_why,
/// proved_at`.
fn key(row: &Row) -> Result<RegistryKey, StoreError> {
    let why = row.maybe_text(7)?.unwrap_or_default();
    Ok(RegistryKey {
        owner_scope: OwnerScope::read(row.text(0)?),
        key_id: row.text(1)?,
        public_key: row.text(2)?,
        label: row.text(3)?,
        account: row.maybe_number(4)?,
        added_at: row.time(5)?,
        revoked: row.maybe_time(6)?.map(|time| (time, why)),
        proved: row.maybe_number(8)?.is_some(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyState {
    Active,
    Revoked,
    Unknown,
}

impl KeyState {
    /// Returns the state of a signature made with the key.
    pub(super) fn signature(self) -> SignatureState {
        match self {
            Self::Active => SignatureState::Active,
            Self::Revoked => SignatureState::Revoked,
            Self::Unknown => SignatureState::Unknown,
        }
    }
}

/// Why a key is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RevocationKind<'a> {
    /// Permanently, for this reason.
    Revoked(&'a str),
    /// Because another owner proved possession of the private key. A later proof by this owner
    /// restores the key.
    Displaced,
}

impl<'a> RevocationKind<'a> {
    fn why(self) -> &'a str {
        match self {
            Self::Revoked(why) => why,
            Self::Displaced => "somebody else showed that it is theirs",
        }
    }
}

impl RegistryTransaction {
    pub(super) async fn key_state(
        &mut self,
        owner_scope: &OwnerScope,
        key_id: &str,
        lock: RowLock,
    ) -> Result<KeyState, RegistryError> {
        let text = "SELECT revoked_at FROM registry_keys WHERE holding = $1 AND key_id = $2";
        let statement = self.locking(text, lock).text(owner_scope.as_str()).text(key_id);
        Ok(match statement.optional(self.connection()).await? {
            None => KeyState::Unknown,
            Some(row) if row.maybe_number(0)?.is_some() => KeyState::Revoked,
            Some(_) => KeyState::Active,
        })
    }

    /// Records that the actor proved possession of a registered key; returns false if nothing
    /// changed. If the key was displaced by the proof of another owner, it becomes active again,
    /// because several owners may have the same key.
    async fn record_proof(
        &mut self,
        new: &NewKey<'_>,
        now: Timestamp,
    ) -> Result<bool, RegistryError> {
        if !new.proved {
            return Ok(false);
        }
        let proved = sql("UPDATE registry_keys
             SET proved_at = $3, revoked_at = NULL, revoked_why = NULL, displaced_at = NULL
             WHERE holding = $1 AND key_id = $2 AND proved_at IS NULL
                AND (revoked_at IS NULL OR displaced_at IS NOT NULL)")
        .text(new.owner_scope.as_str())
        .text(new.key_id)
        .time(now)
        .run(self.connection())
        .await?;
        Ok(proved == 1)
    }

    /// Whether the key was displaced by the proof of another owner.
    async fn is_displaced(
        &mut self,
        owner_scope: &OwnerScope,
        key_id: &str,
    ) -> Result<bool, StoreError> {
        let row = sql("SELECT 1 FROM registry_keys
             WHERE holding = $1 AND key_id = $2 AND displaced_at IS NOT NULL")
        .text(owner_scope.as_str())
        .text(key_id)
        .optional(self.connection())
        .await?;
        Ok(row.is_some())
    }

    /// Revokes a key and lowers the tiers of the versions that it signed.
    async fn revoke(
        &mut self,
        (owner_scope, key_id): (&OwnerScope, &str),
        end: RevocationKind<'_>,
        now: Timestamp,
    ) -> Result<Vec<NewAuditEvent>, RegistryError> {
        let why = end.why();
        sql("UPDATE registry_keys SET revoked_at = $3, revoked_why = $4, displaced_at = $5
             WHERE holding = $1 AND key_id = $2")
        .text(owner_scope.as_str())
        .text(key_id)
        .time(now)
        .text(why)
        .maybe_time((end == RevocationKind::Displaced).then_some(now))
        .run(self.connection())
        .await?;
        let packages = sql("SELECT DISTINCT package FROM signatures
             WHERE holding = $1 AND key_id = $2 AND state = 'active' ORDER BY package")
        .text(owner_scope.as_str())
        .text(key_id)
        .all(self.connection())
        .await?;
        let details = json!({"key_id": key_id, "why": why});
        let mut events = vec![
            NewAuditEvent::new(AuditAction::KeyRevoked).owner_scope(owner_scope).details(details),
        ];
        for row in packages {
            let package = read_name(&row.text(0)?)?;
            events.extend(self.revoke_signatures(&package, (owner_scope, key_id), now).await?);
        }
        Ok(events)
    }
}

impl Registry<'_> {
    /// Registers a key. A revoked key stays revoked.
    pub async fn add_key(&self, actor: &Actor, new: NewKey<'_>) -> Result<(), RegistryError> {
        actor.check_right(Right::Own, Some(new.owner_scope))?;
        let (mut work, now) = (self.begin().await?, Timestamp::now());
        check_may_manage_keys(work.connection(), actor, new.owner_scope).await?;
        if new.public_key.len() > MAX_KEY_BYTES || !(1..=256).contains(&new.key_id.len()) {
            let message = "it is too long, or has no identifier".to_owned();
            return Err(RegistryError::Invalid { what: "the key", message });
        }
        let added = sql("INSERT INTO registry_keys
                (holding, key_id, public_key, label, account, added_by, added_at, proved_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (holding, key_id) DO NOTHING")
        .text(new.owner_scope.as_str())
        .text(new.key_id)
        .text(new.public_key)
        .text(new.label)
        .maybe_number(new.account)
        .maybe_number(actor.account)
        .time(now)
        .maybe_time(new.proved.then_some(now))
        .run(work.connection())
        .await?;
        if added == 0 && !work.record_proof(&new, now).await? {
            let state = work.key_state(new.owner_scope, new.key_id, RowLock::Share).await?;
            let (owner_scope, key_id) = (new.owner_scope.clone(), new.key_id.to_owned());
            return Err(match state {
                KeyState::Revoked => RegistryError::KeyRevoked { owner_scope, key_id },
                _ => RegistryError::Exists { what: format!("a key {key_id} of `{owner_scope}`") },
            });
        }
        let details = json!({
            "key_id": new.key_id, "label": new.label, "account": new.account, "proved": new.proved,
        });
        let mut events = vec![
            NewAuditEvent::new(AuditAction::KeyAdded).owner_scope(new.owner_scope).details(details),
        ];
        for owner_scope in find_displaced_owners(work.connection(), actor, &new).await? {
            events.extend(
                work.revoke((&owner_scope, new.key_id), RevocationKind::Displaced, now).await?,
            );
        }
        let key = (new.owner_scope, new.key_id);
        events.extend(work.count_earlier_signatures(actor, key, now).await?);
        note(work.connection(), actor, now, events).await?;
        // Check last: a concurrent registration of the same key waits for the log number that this
        // transaction holds, and then finds the key taken.
        check_key_is_free(work.connection(), actor, &new).await?;
        Ok(work.commit().await?)
    }

    /// Returns the keys of a holding, including revoked ones, oldest first.
    pub async fn keys(&self, owner_scope: &OwnerScope) -> Result<Vec<RegistryKey>, StoreError> {
        let rows = sql("SELECT holding, key_id, public_key, label, account, added_at, revoked_at,
                revoked_why, proved_at
             FROM registry_keys WHERE holding = $1 ORDER BY added_at, key_id")
        .text(owner_scope.as_str())
        .all(self.reader())
        .await?;
        rows.iter().map(key).collect()
    }

    /// Revokes a key permanently, and lowers the tier of every version that it signed, in one
    /// transaction. Returns the number of versions.
    pub async fn revoke_key(
        &self,
        actor: &Actor,
        owner_scope: &OwnerScope,
        key_id: &str,
        why: &str,
    ) -> Result<u64, RegistryError> {
        actor.check_right(Right::Own, Some(owner_scope))?;
        let (mut work, now) = (self.begin().await?, Timestamp::now());
        check_may_manage_keys(work.connection(), actor, owner_scope).await?;
        match work.key_state(owner_scope, key_id, RowLock::Alone).await? {
            KeyState::Active => {}
            // A displaced key is revoked permanently now; otherwise a new proof would restore it.
            KeyState::Revoked if work.is_displaced(owner_scope, key_id).await? => {}
            KeyState::Revoked => return Ok(0),
            KeyState::Unknown => {
                let what = format!("key {key_id} of `{owner_scope}`");
                return Err(RegistryError::NotFound { what });
            }
        }
        let events = work.revoke((owner_scope, key_id), RevocationKind::Revoked(why), now).await?;
        let lowered = events.len() as u64 - 1;
        note(work.connection(), actor, now, events).await?;
        work.commit().await?;
        Ok(lowered)
    }
}

async fn check_may_manage_keys(
    connection: &mut AnyConnection,
    actor: &Actor,
    owner_scope: &OwnerScope,
) -> Result<(), RegistryError> {
    if owner_scope.is_for_auditors() {
        return actor.check_admin();
    }
    check_role(connection, actor, owner_scope, TeamRole::Owner).await
}

/// Returns the holdings whose registration of the same key is displaced: nobody there proved
/// possession, but the actor has.
async fn find_displaced_owners(
    connection: &mut AnyConnection,
    actor: &Actor,
    new: &NewKey<'_>,
) -> Result<Vec<OwnerScope>, RegistryError> {
    if !new.proved || new.owner_scope.is_for_auditors() {
        return Ok(Vec::new());
    }
    let rows = sql("SELECT holding FROM registry_keys
         WHERE key_id = $1 AND holding NOT IN ($2, $3) AND revoked_at IS NULL
            AND proved_at IS NULL ORDER BY holding")
    .text(new.key_id)
    .text(new.owner_scope.as_str())
    .text(OwnerScope::auditors().as_str())
    .all(&mut *connection)
    .await?;
    let mut displaced = Vec::new();
    for row in rows {
        let owner_scope = OwnerScope::read(row.text(0)?);
        if !is_owner(connection, actor, &owner_scope).await? {
            displaced.push(owner_scope);
        }
    }
    Ok(displaced)
}

/// Rejects a key that another owner has registered, because signatures made for one would count for
/// the other. Proof of possession beats a registration without proof; without proof, the first
/// registration wins. An administrator can correct that by revoking the key there and registering
/// it here. Auditors and publishers never share a key, because a signature does not say for whom it
/// was made.
async fn check_key_is_free(
    connection: &mut AnyConnection,
    actor: &Actor,
    new: &NewKey<'_>,
) -> Result<(), RegistryError> {
    let rows = sql("SELECT holding, revoked_at, proved_at FROM registry_keys
         WHERE key_id = $1 AND holding <> $2 ORDER BY holding")
    .text(new.key_id)
    .text(new.owner_scope.as_str())
    .all(&mut *connection)
    .await?;
    for row in rows {
        let (owner_scope, revoked) =
            (OwnerScope::read(row.text(0)?), row.maybe_number(1)?.is_some());
        let never_theirs = new.proved && row.maybe_number(2)?.is_none();
        let shared = if new.owner_scope.is_for_auditors() {
            revoked
        } else {
            !owner_scope.is_for_auditors()
                && ((revoked && (actor.is_admin() || never_theirs))
                    || is_owner(connection, actor, &owner_scope).await?)
        };
        if !shared {
            let key_id = new.key_id.to_owned();
            return Err(RegistryError::KeyTaken { owner_scope, key_id });
        }
    }
    Ok(())
}

/// Whether the account is an owner of a holding. The rights of administrators do not count.
pub(super) async fn is_owner(
    connection: &mut AnyConnection,
    actor: &Actor,
    owner_scope: &OwnerScope,
) -> Result<bool, RegistryError> {
    let Some(account) = actor.account else { return Ok(false) };
    let row = sql("SELECT 1 FROM members WHERE holding = $1 AND user_id = $2 AND role = $3")
        .text(owner_scope.as_str())
        .number(account)
        .text(TeamRole::Owner.as_str())
        .optional(connection)
        .await?;
    Ok(row.is_some())
}

/// Whether a key of the auditors belongs to an account.
pub(super) async fn may_audit(
    connection: &mut AnyConnection,
    actor: &Actor,
    key_id: &str,
) -> Result<bool, StoreError> {
    let Some(account) = actor.account.filter(|_| !actor.is_admin()) else {
        return Ok(actor.is_admin());
    };
    let row = sql("SELECT 1 FROM registry_keys
         WHERE holding = $1 AND key_id = $2 AND account = $3")
    .text(OwnerScope::auditors().as_str())
    .text(key_id)
    .number(account)
    .optional(connection)
    .await?;
    Ok(row.is_some())
}
