//! Keys that vouch for versions, and what they signed.

use savoir_skill::permission::Tier;
use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, Holding, Lock, NewSignature, PackageName, Registry, RegistryError, Right, Signature,
    SignatureState, Signer, TeamRole, Work,
    facts::{ScanVerdict, attested, read_name, read_tier, read_version, tier_number},
    index::renew,
    log::{Act, Deed, note},
    order::sort_key,
    people::{must_be, must_publish},
};
use crate::{
    StoreError, Time,
    sql::{Row, sql},
};

const LONGEST: usize = 16 * 1024;
/// Why a key signs no more for those who only had its public half.
const NOT_THEIRS: &str = "somebody else showed that it is theirs";
/// The record of a signature names every file of a skill.
const LARGEST_RECORD: usize = 512 * 1024;

/// A key that is to be registered. Whoever hands it over has checked that it is one.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// What it signs for; [`Holding::auditors`] for those of the registry's auditors.
    pub holding: &'a Holding,
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
    pub holding: Holding,
    /// Identifies it.
    pub key_id: String,
    /// Its public half.
    pub public_key: String,
    /// What its owners call it.
    pub label: String,
    /// The account of the auditor who uses it.
    pub account: Option<i64>,
    /// When it was registered.
    pub added_at: Time,
    /// When it was revoked, and why.
    pub revoked: Option<(Time, String)>,
    /// Whether its owner has shown that they have its secret half.
    pub proved: bool,
}

/// Reads `holding, key_id, public_key, label, account, added_at, revoked_at, revoked_why, proved_at`.
fn key(row: &Row) -> Result<RegistryKey, StoreError> {
    let why = row.maybe_text(7)?.unwrap_or_default();
    Ok(RegistryKey {
        holding: Holding::read(row.text(0)?),
        key_id: row.text(1)?,
        public_key: row.text(2)?,
        label: row.text(3)?,
        account: row.maybe_number(4)?,
        added_at: row.time(5)?,
        revoked: row.maybe_time(6)?.map(|time| (time, why)),
        proved: row.maybe_number(8)?.is_some(),
    })
}

/// The files that a key signs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    pub(super) integrity: &'a str,
    /// The digest of one of them, by which they are found.
    pub(super) skill_md: &'a str,
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

/// Keeps a signature, in place of the same one.
pub(super) async fn put_signature(
    connection: &mut AnyConnection,
    actor: &Actor,
    (package, version): (&PackageName, &Version),
    new: &NewSignature,
    state: SignatureState,
    now: Time,
) -> Result<(), RegistryError> {
    if new.record.len() > LARGEST_RECORD || new.key_id.len() > 256 {
        let message = format!("it is longer than {LARGEST_RECORD} bytes");
        return Err(RegistryError::Invalid { what: "the signature", message });
    }
    sql("INSERT INTO signatures
            (package, sort_key, holding, key_id, state, record, added_by, added_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (package, sort_key, holding, key_id) DO UPDATE
         SET state = excluded.state, record = excluded.record")
    .text(&package.id())
    .bytes(&sort_key(version))
    .text(new.signer.holding(package).as_str())
    .text(&new.key_id)
    .text(state.as_str())
    .text(&new.record)
    .maybe_number(actor.account)
    .time(now)
    .run(connection)
    .await?;
    Ok(())
}

/// Computes anew what tier a version earned: before, and now.
pub(super) async fn earn(
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
        has[usize::from(Holding::read(row.text(0)?).is_for_auditors())] = true;
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

impl Work {
    /// What the keys of signatures are at the moment, and stay until this is over.
    pub(super) async fn key_states(
        &mut self,
        actor: &Actor,
        package: &PackageName,
        signatures: &[NewSignature],
        files: Files<'_>,
    ) -> Result<Vec<KeyState>, RegistryError> {
        let mut states = vec![KeyState::Unknown; signatures.len()];
        let mut order: Vec<usize> = (0..signatures.len()).collect();
        order.sort_by_key(|n| (signatures[*n].signer.holding(package), &signatures[*n].key_id));
        for n in order {
            let holding = signatures[n].signer.holding(package);
            let state = self.key_state(&holding, &signatures[n].key_id, Lock::Share).await?;
            let trusted = match signatures[n].signer {
                Signer::Publisher => {
                    let key = (&holding, &*signatures[n].key_id);
                    signed_for(self.connection(), actor, key, files).await?.is_none()
                }
                Signer::Auditor => {
                    may_audit(self.connection(), actor, &signatures[n].key_id).await?
                }
            };
            states[n] = if trusted { state } else { KeyState::Unknown };
        }
        Ok(states)
    }

    async fn key_state(
        &mut self,
        holding: &Holding,
        key_id: &str,
        lock: Lock,
    ) -> Result<KeyState, RegistryError> {
        let text = "SELECT revoked_at FROM registry_keys WHERE holding = $1 AND key_id = $2";
        let statement = self.locking(text, lock).text(holding.as_str()).text(key_id);
        Ok(match statement.optional(self.connection()).await? {
            None => KeyState::Unknown,
            Some(row) if row.maybe_number(0)?.is_some() => KeyState::Revoked,
            Some(_) => KeyState::Active,
        })
    }

    /// Notes of a key that is registered that who registers it again has shown that they have it; false if
    /// nothing is new. One that ended because somebody else had shown it is good again: several people
    /// may have one key.
    async fn prove(&mut self, new: &NewKey<'_>, now: Time) -> Result<bool, RegistryError> {
        if !new.proved {
            return Ok(false);
        }
        let proved = sql("UPDATE registry_keys
             SET proved_at = $3, revoked_at = NULL, revoked_why = NULL
             WHERE holding = $1 AND key_id = $2 AND proved_at IS NULL
                AND (revoked_at IS NULL OR revoked_why = $4)")
        .text(new.holding.as_str())
        .text(new.key_id)
        .time(now)
        .text(NOT_THEIRS)
        .run(self.connection())
        .await?;
        Ok(proved == 1)
    }

    /// Revokes a key, and lowers what it signed.
    async fn revoke(
        &mut self,
        (holding, key_id): (&Holding, &str),
        why: &str,
        now: Time,
    ) -> Result<Vec<Deed>, RegistryError> {
        sql("UPDATE registry_keys SET revoked_at = $3, revoked_why = $4
             WHERE holding = $1 AND key_id = $2")
        .text(holding.as_str())
        .text(key_id)
        .time(now)
        .text(why)
        .run(self.connection())
        .await?;
        let packages = sql("SELECT DISTINCT package FROM signatures
             WHERE holding = $1 AND key_id = $2 AND state = 'active' ORDER BY package")
        .text(holding.as_str())
        .text(key_id)
        .all(self.connection())
        .await?;
        let details = json!({"key_id": key_id, "why": why});
        let mut deeds = vec![Deed::new(Act::KeyRevoked).holding(holding).details(details)];
        for row in packages {
            let package = read_name(&row.text(0)?)?;
            deeds.extend(self.unsign(&package, (holding, key_id), now).await?);
        }
        Ok(deeds)
    }

    /// Takes away what a revoked key gave to the versions of a package.
    async fn unsign(
        &mut self,
        package: &PackageName,
        (holding, key_id): (&Holding, &str),
        now: Time,
    ) -> Result<Vec<Deed>, RegistryError> {
        self.lock_package(package).await?;
        let id = package.id();
        sql("UPDATE signatures SET state = 'revoked'
             WHERE package = $1 AND holding = $2 AND key_id = $3")
        .text(&id)
        .text(holding.as_str())
        .text(key_id)
        .run(self.connection())
        .await?;
        let rows = sql("SELECT v.sort_key, v.version FROM signatures s
             JOIN versions v ON v.package = s.package AND v.sort_key = s.sort_key
             WHERE s.package = $1 AND s.holding = $2 AND s.key_id = $3")
        .text(&id)
        .text(holding.as_str())
        .text(key_id)
        .all(self.connection())
        .await?;
        let mut deeds = Vec::new();
        for row in rows {
            let (before, after) = earn(self.connection(), &id, &row.bytes(0)?).await?;
            let details =
                json!({"key_id": key_id, "before": before.as_str(), "attested": after.as_str()});
            let version = read_version(&row.text(1)?)?;
            deeds.push(Deed::new(Act::Unsigned).version(package, &version).details(details));
        }
        renew(self.connection(), package, now).await?;
        Ok(deeds)
    }
}

impl Registry<'_> {
    /// Registers a key. One that was revoked stays so.
    pub async fn add_key(&self, actor: &Actor, new: NewKey<'_>) -> Result<(), RegistryError> {
        actor.must_have(Right::Own, Some(new.holding))?;
        let (mut work, now) = (self.begin().await?, Time::now());
        must_own_keys(work.connection(), actor, new.holding).await?;
        if new.public_key.len() > LONGEST || !(1..=256).contains(&new.key_id.len()) {
            let message = "it is too long, or has no identifier".to_owned();
            return Err(RegistryError::Invalid { what: "the key", message });
        }
        let added = sql("INSERT INTO registry_keys
                (holding, key_id, public_key, label, account, added_by, added_at, proved_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (holding, key_id) DO NOTHING")
        .text(new.holding.as_str())
        .text(new.key_id)
        .text(new.public_key)
        .text(new.label)
        .maybe_number(new.account)
        .maybe_number(actor.account)
        .time(now)
        .maybe_time(new.proved.then_some(now))
        .run(work.connection())
        .await?;
        if added == 0 && !work.prove(&new, now).await? {
            let state = work.key_state(new.holding, new.key_id, Lock::Share).await?;
            let (holding, key_id) = (new.holding.clone(), new.key_id.to_owned());
            return Err(match state {
                KeyState::Revoked => RegistryError::KeyRevoked { holding, key_id },
                _ => RegistryError::Exists { what: format!("a key {key_id} of `{holding}`") },
            });
        }
        let details = json!({
            "key_id": new.key_id, "label": new.label, "account": new.account, "proved": new.proved,
        });
        let mut deeds = vec![Deed::new(Act::KeyAdded).holding(new.holding).details(details)];
        for holding in displaced(work.connection(), actor, &new).await? {
            deeds.extend(work.revoke((&holding, new.key_id), NOT_THEIRS, now).await?);
        }
        note(work.connection(), actor, now, deeds).await?;
        // Looked at last: whoever registers the same key elsewhere at once waits for the number above.
        must_be_free(work.connection(), actor, &new).await?;
        Ok(work.commit().await?)
    }

    /// The keys of a holding, also those that were revoked, oldest first.
    pub async fn keys(&self, holding: &Holding) -> Result<Vec<RegistryKey>, StoreError> {
        let rows = sql("SELECT holding, key_id, public_key, label, account, added_at, revoked_at,
                revoked_why, proved_at
             FROM registry_keys WHERE holding = $1 ORDER BY added_at, key_id")
        .text(holding.as_str())
        .all(self.reader())
        .await?;
        rows.iter().map(key).collect()
    }

    /// Revokes a key for good, and lowers every version that it vouched for, all at once. Returns how
    /// many versions it had signed.
    pub async fn revoke_key(
        &self,
        actor: &Actor,
        holding: &Holding,
        key_id: &str,
        why: &str,
    ) -> Result<u64, RegistryError> {
        actor.must_have(Right::Own, Some(holding))?;
        let (mut work, now) = (self.begin().await?, Time::now());
        must_own_keys(work.connection(), actor, holding).await?;
        match work.key_state(holding, key_id, Lock::Alone).await? {
            KeyState::Active => {}
            KeyState::Revoked => return Ok(0),
            KeyState::Unknown => {
                let what = format!("key {key_id} of `{holding}`");
                return Err(RegistryError::NotFound { what });
            }
        }
        let deeds = work.revoke((holding, key_id), why, now).await?;
        let lowered = deeds.len() as u64 - 1;
        note(work.connection(), actor, now, deeds).await?;
        work.commit().await?;
        Ok(lowered)
    }

    /// Adds a signature to a version that was published, and tells what tier it has now. Publishers
    /// add their own; auditors add those of keys that are registered for their accounts.
    pub async fn add_signature(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        new: &NewSignature,
    ) -> Result<Tier, RegistryError> {
        actor.must_have(Right::Publish, Some(&package.holding()))?;
        let (mut work, now) = (self.begin().await?, Time::now());
        let holding = new.signer.holding(package);
        match work.key_state(&holding, &new.key_id, Lock::Share).await? {
            KeyState::Active => {}
            KeyState::Revoked => {
                let key_id = new.key_id.clone();
                return Err(RegistryError::KeyRevoked { holding, key_id });
            }
            KeyState::Unknown => {
                let what = format!("key {} of `{holding}`", new.key_id);
                return Err(RegistryError::NotFound { what });
            }
        }
        work.lock_package(package).await?;
        match new.signer {
            Signer::Publisher => must_publish(work.connection(), actor, package).await?,
            Signer::Auditor => {
                if !may_audit(work.connection(), actor, &new.key_id).await? {
                    return Err(RegistryError::NotAdmin);
                }
            }
        }
        work.must_be_live(package, version).await?;
        if new.signer == Signer::Publisher {
            let row = sql("SELECT integrity, skill_md FROM versions
                 WHERE package = $1 AND sort_key = $2")
            .text(&package.id())
            .bytes(&sort_key(version))
            .one(work.connection())
            .await?;
            let (integrity, skill_md) = (row.text(0)?, row.text(1)?);
            let files = Files { integrity: &integrity, skill_md: &skill_md };
            let key = (&holding, &*new.key_id);
            let others = signed_for(work.connection(), actor, key, files).await?;
            if let Some(holding) = others {
                return Err(RegistryError::KeyTaken { holding, key_id: new.key_id.clone() });
            }
        }
        let (at, state) = ((package, version), SignatureState::Active);
        put_signature(work.connection(), actor, at, new, state, now).await?;
        let (before, tier) = earn(work.connection(), &package.id(), &sort_key(version)).await?;
        renew(work.connection(), package, now).await?;
        let details = json!({
            "key_id": new.key_id, "signer": new.signer.as_str(),
            "before": before.as_str(), "attested": tier.as_str(),
        });
        let deed = Deed::new(Act::Signed).version(package, version).details(details);
        note(work.connection(), actor, now, vec![deed]).await?;
        work.commit().await?;
        Ok(tier)
    }

    /// The signatures of a version, oldest first.
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
    let auditor = Holding::read(row.text(0)?).is_for_auditors();
    Ok(Signature {
        signer: if auditor { Signer::Auditor } else { Signer::Publisher },
        key_id: row.text(1)?,
        state: SignatureState::read(&row.text(2)?)?,
        record: row.text(3)?,
        added_at: row.time(4)?,
    })
}

async fn must_own_keys(
    connection: &mut AnyConnection,
    actor: &Actor,
    holding: &Holding,
) -> Result<(), RegistryError> {
    if holding.is_for_auditors() {
        return actor.must_be_admin();
    }
    must_be(connection, actor, holding, TeamRole::Owner).await
}

/// The holdings for which somebody registered a key who never showed that they have it, if who registers
/// it now has.
async fn displaced(
    connection: &mut AnyConnection,
    actor: &Actor,
    new: &NewKey<'_>,
) -> Result<Vec<Holding>, RegistryError> {
    if !new.proved || new.holding.is_for_auditors() {
        return Ok(Vec::new());
    }
    let rows = sql("SELECT holding FROM registry_keys
         WHERE key_id = $1 AND holding NOT IN ($2, $3) AND revoked_at IS NULL
            AND proved_at IS NULL ORDER BY holding")
    .text(new.key_id)
    .text(new.holding.as_str())
    .text(Holding::auditors().as_str())
    .all(&mut *connection)
    .await?;
    let mut displaced = Vec::new();
    for row in rows {
        let holding = Holding::read(row.text(0)?);
        if !owns(connection, actor, &holding).await? {
            displaced.push(holding);
        }
    }
    Ok(displaced)
}

/// Refuses a key that others have registered: what they signed would count as signed for this holding.
/// Whoever shows that they have it has it, and among those who do not, the first; an administrator who
/// finds that it was the wrong one revokes it there, and registers it here. Auditors and publishers never
/// share one, or nobody could tell for whom it signs.
async fn must_be_free(
    connection: &mut AnyConnection,
    actor: &Actor,
    new: &NewKey<'_>,
) -> Result<(), RegistryError> {
    let rows = sql("SELECT holding, revoked_at, proved_at FROM registry_keys
         WHERE key_id = $1 AND holding <> $2 ORDER BY holding")
    .text(new.key_id)
    .text(new.holding.as_str())
    .all(&mut *connection)
    .await?;
    for row in rows {
        let (holding, revoked) = (Holding::read(row.text(0)?), row.maybe_number(1)?.is_some());
        let never_theirs = new.proved && row.maybe_number(2)?.is_none();
        let shared = if new.holding.is_for_auditors() {
            revoked
        } else {
            !holding.is_for_auditors()
                && ((revoked && (actor.is_admin() || never_theirs))
                    || owns(connection, actor, &holding).await?)
        };
        if !shared {
            let key_id = new.key_id.to_owned();
            return Err(RegistryError::KeyTaken { holding, key_id });
        }
    }
    Ok(())
}

/// For whom else a key has signed the same files before. A signature does not name a namespace, so that it
/// counts for those who published it first, and for nobody who only took it from them.
async fn signed_for(
    connection: &mut AnyConnection,
    actor: &Actor,
    (holding, key_id): (&Holding, &str),
    Files { integrity, skill_md }: Files<'_>,
) -> Result<Option<Holding>, RegistryError> {
    let rows = sql("SELECT DISTINCT s.holding FROM signatures s
         JOIN versions v ON v.package = s.package AND v.sort_key = s.sort_key
         WHERE v.skill_md = $1 AND v.integrity = $2 AND s.key_id = $4 AND s.holding <> $3
         ORDER BY s.holding")
    .text(skill_md)
    .text(integrity)
    .text(holding.as_str())
    .text(key_id)
    .all(&mut *connection)
    .await?;
    for row in rows {
        let other = Holding::read(row.text(0)?);
        if !other.is_for_auditors() && !owns(connection, actor, &other).await? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Whether somebody is an owner of a holding by themselves, not because they are an administrator.
async fn owns(
    connection: &mut AnyConnection,
    actor: &Actor,
    holding: &Holding,
) -> Result<bool, RegistryError> {
    let Some(account) = actor.account else { return Ok(false) };
    let row = sql("SELECT 1 FROM members WHERE holding = $1 AND user_id = $2 AND role = $3")
        .text(holding.as_str())
        .number(account)
        .text(TeamRole::Owner.as_str())
        .optional(connection)
        .await?;
    Ok(row.is_some())
}

/// Whether a key of the auditors is somebody's.
async fn may_audit(
    connection: &mut AnyConnection,
    actor: &Actor,
    key_id: &str,
) -> Result<bool, StoreError> {
    let Some(account) = actor.account.filter(|_| !actor.is_admin()) else {
        return Ok(actor.is_admin());
    };
    let row = sql("SELECT 1 FROM registry_keys
         WHERE holding = $1 AND key_id = $2 AND account = $3")
    .text(Holding::auditors().as_str())
    .text(key_id)
    .number(account)
    .optional(connection)
    .await?;
    Ok(row.is_some())
}
