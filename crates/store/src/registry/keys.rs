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

/// A key that is to be registered. Whoever hands it over has checked that it is one.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// What it signs for; [`OwnerScope::auditors`] for those of the registry's auditors.
    pub owner_scope: &'a OwnerScope,
    /// Identifies it.
    pub key_id: &'a str,
    /// Its public half.
    pub public_key: &'a str,
    /// What its owners call it.
    pub label: &'a str,
    /// The account of the auditor who uses it, who may then add signatures.
    pub account: Option<i64>,
    /// Whether who registers it has shown that they have its secret half.
    pub proved: bool,
}

/// A key that is or was registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryKey {
    /// What it signs for.
    pub owner_scope: OwnerScope,
    /// Identifies it.
    pub key_id: String,
    /// Its public half.
    pub public_key: String,
    /// What its owners call it.
    pub label: String,
    /// The account of the auditor who uses it.
    pub account: Option<i64>,
    /// When it was registered.
    pub added_at: Timestamp,
    /// When it was revoked, and why.
    pub revoked: Option<(Timestamp, String)>,
    /// Whether its owner has shown that they have its secret half.
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

/// What a key is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyState {
    Active,
    Revoked,
    Unknown,
}

impl KeyState {
    /// What a signature by it is worth.
    pub(super) fn signature(self) -> SignatureState {
        match self {
            Self::Active => SignatureState::Active,
            Self::Revoked => SignatureState::Revoked,
            Self::Unknown => SignatureState::Unknown,
        }
    }
}

/// How a key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RevocationKind<'a> {
    /// For good: somebody says why.
    Revoked(&'a str),
    /// For those who only had its public half, until they show that they have the other one.
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

    /// Notes of a key that is registered that who registers it again has shown that they have it;
    /// false if nothing is new. One that ended because somebody else had shown it is good again:
    /// several people may have one key.
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

    /// Whether it ended because somebody else showed that it is theirs.
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

    /// Revokes a key, and lowers what it signed.
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
    /// Registers a key. One that was revoked stays so.
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
        // Looked at last: whoever registers the same key elsewhere at once waits for the number
        // above.
        check_key_is_free(work.connection(), actor, &new).await?;
        Ok(work.commit().await?)
    }

    /// The keys of a holding, also those that were revoked, oldest first.
    pub async fn keys(&self, owner_scope: &OwnerScope) -> Result<Vec<RegistryKey>, StoreError> {
        let rows = sql("SELECT holding, key_id, public_key, label, account, added_at, revoked_at,
                revoked_why, proved_at
             FROM registry_keys WHERE holding = $1 ORDER BY added_at, key_id")
        .text(owner_scope.as_str())
        .all(self.reader())
        .await?;
        rows.iter().map(key).collect()
    }

    /// Revokes a key for good, and lowers every version that it vouched for, all at once. Returns
    /// how many versions it had signed.
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
            // Who showed it again would have it again.
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

/// The holdings for which somebody registered a key who never showed that they have it, if who
/// registers it now has.
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

/// Refuses a key that others have registered: what they signed would count as signed for this
/// holding. Whoever shows that they have it has it, and among those who do not, the first; an
/// administrator who finds that it was the wrong one revokes it there, and registers it here.
/// Auditors and publishers never share one, or nobody could tell for whom it signs.
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

/// Whether somebody is an owner of a holding by themselves, not because they are an administrator.
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

/// Whether a key of the auditors is somebody's.
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
