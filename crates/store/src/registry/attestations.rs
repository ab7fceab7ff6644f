//! Stores signed evaluations of versions.
//!
//! Anybody with an account adds them: the signature counts, not the account. The caller has checked
//! that the statement is about the files of the version.

use std::collections::HashMap;

use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, PackageName, Registry, RegistryError, Right,
    facts::read_name,
    index::rebuild_text,
    log::{AuditAction, NewAuditEvent, note},
    version_order::sort_key,
};
use crate::{
    StoreError, Timestamp,
    rate_limits::hit,
    sql::{Row, SqlBuilder, Value, among, sql},
};

/// Maximum bytes of a statement: it names the cases and has the prompt of the judge.
pub const MAX_ATTESTATION_BYTES: usize = 32 * 1024;
const MAX_KEY_ID_BYTES: usize = 256;
/// Evaluations of one version that one account may add.
const MAX_ATTESTATIONS_OF_ACCOUNT: u64 = 20;
/// Evaluations that one account may add in a day.
const MAX_ATTESTATIONS_PER_DAY: u64 = 100;
const DAY: std::time::Duration = std::time::Duration::from_hours(24);
/// Maximum number of evaluations in one answer.
const MAX_LISTED: u64 = 100;
const MAX_NAMES_PER_QUERY: usize = 500;

/// A signed evaluation to store.
#[derive(Clone, Debug)]
pub struct NewAttestation {
    /// Identifies the key and the signed statement, whatever the envelope is.
    pub digest: String,
    /// When the evaluation ended, as the statement says.
    pub finished_at: Timestamp,
    /// The id of the key that signed it.
    pub key_id: String,
    /// The key, if the statement does not contain it.
    pub public_key: Option<String>,
    /// The signed statement.
    pub statement: String,
}

/// A stored signed evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttestation {
    /// Identifies the key and the signed statement.
    pub digest: String,
    pub key_id: String,
    pub public_key: Option<String>,
    pub statement: String,
    /// The account that added it.
    pub added_by: Option<i64>,
    pub added_at: Timestamp,
}

fn stored(row: &Row) -> Result<StoredAttestation, StoreError> {
    Ok(StoredAttestation {
        digest: row.text(0)?,
        key_id: row.text(1)?,
        public_key: row.maybe_text(2)?,
        statement: row.text(3)?,
        added_by: row.maybe_number(4)?,
        added_at: row.time(5)?,
    })
}

impl Registry<'_> {
    /// Adds a signed evaluation to a version. The same statement is stored once.
    pub async fn add_attestation(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        new: &NewAttestation,
    ) -> Result<StoredAttestation, RegistryError> {
        let account = actor.account.ok_or(RegistryError::NobodyActs)?;
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        for (what, length, most) in [
            ("the statement", new.statement.len(), MAX_ATTESTATION_BYTES),
            ("the key id", new.key_id.len(), MAX_KEY_ID_BYTES),
        ] {
            if length > most {
                let message = format!("it has {length} bytes; at most {most} are allowed");
                return Err(RegistryError::Invalid { what, message });
            }
        }
        let now = Timestamp::now();
        let mut work = self.begin().await?;
        work.lock_package(package).await?;
        work.check_not_withdrawn(package, version).await?;
        let added = hit(work.connection(), &format!("attestations/{account}"), DAY).await?;
        if added.count > MAX_ATTESTATIONS_PER_DAY {
            let (what, most) = ("evaluations", MAX_ATTESTATIONS_PER_DAY);
            return Err(RegistryError::TooOften { what, most });
        }
        let at = (package.id(), sort_key(version));
        check_count_of_account(work.connection(), &at, account, &new.digest).await?;
        let inserted = sql("INSERT INTO attestations
                (package, sort_key, digest, key_id, public_key, statement, added_by, added_at,
                 finished_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (package, sort_key, digest) DO NOTHING")
        .text(&at.0)
        .bytes(&at.1)
        .text(&new.digest)
        .text(&new.key_id)
        .maybe_text(new.public_key.as_deref())
        .text(&new.statement)
        .number(account)
        .time(now)
        .time(new.finished_at)
        .run(work.connection())
        .await?;
        let row =
            sql("SELECT digest, key_id, public_key, statement, added_by, added_at, removed_at
             FROM attestations WHERE package = $1 AND sort_key = $2 AND digest = $3")
            .text(&at.0)
            .bytes(&at.1)
            .text(&new.digest)
            .one(work.connection())
            .await?;
        if row.maybe_number(6)?.is_some() {
            let message = "it was removed from this version; evaluate again, and sign the new \
                           results"
                .to_owned();
            return Err(RegistryError::Invalid { what: "the statement", message });
        }
        if inserted > 0 {
            rebuild_text(&mut work, &at.0).await?;
            let event = NewAuditEvent::new(AuditAction::Attested)
                .version(package, version)
                .details(json!({"sha256": new.digest, "key_id": new.key_id}));
            note(work.connection(), actor, now, vec![event]).await?;
        }
        work.commit().await?;
        Ok(stored(&row)?)
    }

    /// Removes a signed evaluation: your own, or as an administrator that of any account. Nobody can
    /// add it again. False if there is none.
    pub async fn remove_attestation(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        digest: &str,
    ) -> Result<bool, RegistryError> {
        let account = actor.account.ok_or(RegistryError::NobodyActs)?;
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        let (id, key) = (package.id(), sort_key(version));
        let mut work = self.begin().await?;
        work.lock_package(package).await?;
        let row = sql("SELECT added_by, key_id FROM attestations
             WHERE package = $1 AND sort_key = $2 AND digest = $3 AND removed_at IS NULL")
        .text(&id)
        .bytes(&key)
        .text(digest)
        .optional(work.connection())
        .await?;
        let Some(row) = row else { return Ok(false) };
        if row.maybe_number(0)? != Some(account) {
            actor.check_admin()?;
        }
        sql("UPDATE attestations SET removed_at = $4, statement = '', public_key = NULL
             WHERE package = $1 AND sort_key = $2 AND digest = $3")
        .text(&id)
        .bytes(&key)
        .text(digest)
        .time(Timestamp::now())
        .run(work.connection())
        .await?;
        rebuild_text(&mut work, &id).await?;
        let event = NewAuditEvent::new(AuditAction::AttestationRemoved)
            .version(package, version)
            .details(json!({"sha256": digest, "key_id": row.text(1)?}));
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        work.commit().await?;
        Ok(true)
    }

    /// Returns the newest signed evaluation of each key for a version: first those of the given keys,
    /// then those added last.
    pub async fn attestations(
        &self,
        package: &PackageName,
        version: &Version,
        keys: &[&str],
    ) -> Result<Vec<StoredAttestation>, StoreError> {
        let mut query = SqlBuilder::new(
            "SELECT digest, key_id, public_key, statement, added_by, added_at FROM (
                SELECT a.*, ROW_NUMBER() OVER
                    (PARTITION BY key_id ORDER BY finished_at DESC, digest) AS age
                FROM attestations a WHERE removed_at IS NULL"
                .to_owned(),
        );
        query.and("package =", Value::Text(package.id()));
        query.and("sort_key =", Value::Bytes(sort_key(version)));
        query.push(") newest WHERE age = 1 ORDER BY ");
        if !keys.is_empty() {
            let places: Vec<String> =
                keys.iter().map(|key| query.place(Value::Text((*key).to_owned()))).collect();
            query.push(&format!("CASE WHEN key_id IN ({}) THEN 0 ELSE 1 END, ", places.join(", ")));
        }
        query.push(&format!("added_at DESC, digest LIMIT {MAX_LISTED}"));
        let rows = query.into_statement().all(self.reader()).await?;
        rows.iter().map(stored).collect()
    }

    /// Counts the signed evaluations of the latest version of some packages. Packages without one
    /// are left out.
    pub async fn attestation_counts(
        &self,
        packages: &[PackageName],
    ) -> Result<HashMap<PackageName, u64>, StoreError> {
        let mut found = HashMap::new();
        for chunk in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = chunk.iter().map(PackageName::id);
            let select = "SELECT a.package FROM attestations a
                 JOIN versions v ON v.package = a.package AND v.sort_key = a.sort_key
                 JOIN packages p ON p.id = v.package AND p.latest = v.version
                 WHERE a.removed_at IS NULL AND a.package IN";
            for row in among(select, ids).all(self.reader()).await? {
                *found.entry(read_name(&row.text(0)?)?).or_default() += 1;
            }
        }
        Ok(found)
    }
}

/// Refuses more evaluations of one version from one account.
async fn check_count_of_account(
    connection: &mut AnyConnection,
    (package, key): &(String, Vec<u8>),
    account: i64,
    digest: &str,
) -> Result<(), RegistryError> {
    let own = sql("SELECT COUNT(*) FROM attestations
         WHERE package = $1 AND sort_key = $2 AND added_by = $3 AND digest <> $4
            AND removed_at IS NULL")
    .text(package)
    .bytes(key)
    .number(account)
    .text(digest)
    .one(connection)
    .await?;
    if own.count(0)? < MAX_ATTESTATIONS_OF_ACCOUNT {
        return Ok(());
    }
    let message = format!(
        "your account has added {MAX_ATTESTATIONS_OF_ACCOUNT} to this version, which is the \
         maximum; remove an older one"
    );
    Err(RegistryError::Invalid { what: "another evaluation", message })
}
