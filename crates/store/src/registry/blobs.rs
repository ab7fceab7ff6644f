//! The bytes of artefacts, stored by digest.
//!
//! They are written before the rows that refer to them, so that no row ever refers to nothing. What
//! no row refers to is swept away later, unless a publish claims it that may be about to refer to
//! it.

use std::time::Duration;

use bytes::Bytes;
use savoir_skill::digest::sha256_hex;
use sqlx::AnyConnection;

use super::{Registry, RegistryError};
use crate::{
    StoreError, Timestamp,
    sql::{Value, insert_rows, new_id, sql},
};

/// How long a publish may take from its first byte to its last row.
const CLAIM_DURATION: Duration = Duration::from_hours(1);
/// The lock under which blobs are swept, or imported without claims.
pub(super) const BLOBS_LEASE: &str = "registry blobs";
/// How long that lock holds without being renewed.
pub(super) const BLOBS_LEASE_DURATION: Duration = Duration::from_mins(10);

/// Blobs that are looked at before the lock is renewed.
const SWEEP_BATCH: usize = 500;

/// Below this there are folders of the first two digits, so that none is too large to be listed.
const BLOBS_FOLDER: &str = "registry/blobs";

fn key(digest: &str) -> String {
    format!("{BLOBS_FOLDER}/{}/{digest}", digest.get(..2).unwrap_or_default())
}

pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Registry<'_> {
    /// Writes blobs that are about to be referred to, and claims them. Returns their digests.
    pub(super) async fn write_blobs(
        &self,
        [one, two]: [Bytes; 2],
    ) -> Result<[String; 2], StoreError> {
        let digests = [sha256_hex(&one), sha256_hex(&two)];
        self.claim(&digests).await?;
        let keys = [key(&digests[0]), key(&digests[1])];
        futures::try_join!(
            self.storage.put_if_absent(&keys[0], one),
            self.storage.put_if_absent(&keys[1], two),
        )?;
        Ok(digests)
    }

    /// Says that blobs are about to be referred to. Waits for a sweep that is removing one of them.
    async fn claim(&self, digests: &[String; 2]) -> Result<(), StoreError> {
        let end = Timestamp::now().plus(CLAIM_DURATION).micros();
        let row = |digest: String| vec![Value::Text(digest), Value::Number(end)];
        let rows: Vec<_> = sorted(digests).into_iter().map(row).collect();
        let mut connection = self.database.writer().acquire().await?;
        let tail = "ON CONFLICT (digest) DO UPDATE SET ends_at = excluded.ends_at
            WHERE blob_claims.ends_at < excluded.ends_at";
        insert_rows(&mut connection, "INSERT INTO blob_claims (digest, ends_at)", rows, tail)
            .await
            .map(drop)
    }

    /// Keeps bytes for a version that is imported later, and tells their address. An import must be
    /// under way, which keeps them from being swept.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<String, StoreError> {
        let digest = sha256_hex(&bytes);
        self.storage.put_if_absent(&key(&digest), bytes).await?;
        Ok(digest)
    }

    /// The bytes at an address: an artefact, or a SKILL.md. They are what they were, or an error.
    pub async fn blob(&self, digest: &str) -> Result<Option<Bytes>, StoreError> {
        if !is_digest(digest) {
            return Ok(None);
        }
        let Some(bytes) = self.storage.get(&key(digest)).await? else { return Ok(None) };
        if sha256_hex(&bytes) != digest {
            return Err(StoreError::Damaged {
                what: format!("the blob {digest}"),
                message: "its bytes have another digest; restore it from a backup".to_owned(),
            });
        }
        Ok(Some(bytes))
    }

    /// How many bytes an address has.
    pub async fn blob_size(&self, digest: &str) -> Result<Option<u64>, StoreError> {
        if !is_digest(digest) {
            return Ok(None);
        }
        self.storage.size(&key(digest)).await
    }

    /// A part of the bytes at an address, which is not held against its digest: whoever reads all
    /// parts does that.
    pub async fn blob_part(
        &self,
        digest: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        if !is_digest(digest) {
            return Ok(None);
        }
        self.storage.get_range(&key(digest), range).await
    }

    /// An address at which everybody gets the bytes from the storage itself for some time; none if
    /// it has no such addresses.
    pub async fn blob_link(
        &self,
        digest: &str,
        lasts: Duration,
    ) -> Result<Option<String>, StoreError> {
        if !is_digest(digest) {
            return Ok(None);
        }
        self.storage.link(&key(digest), lasts).await
    }

    /// Removes blobs that nothing refers to and nobody claims, if they were written long enough
    /// ago. Returns how many. It is refused while another process sweeps or imports, and where
    /// another database keeps its blobs in the same storage, whose rows nobody sees here.
    pub async fn sweep(&self, older_than: Duration) -> Result<u64, RegistryError> {
        self.check_only_database().await?;
        let (leases, holder) = (self.database.leases(), new_id());
        let removed = self.sweep_as(&holder, Timestamp::now().minus(older_than)).await;
        // Whoever comes next need not wait, also after a failure.
        if let Some(lease) = leases.acquire(BLOBS_LEASE, &holder, BLOBS_LEASE_DURATION).await? {
            leases.release(&lease).await?;
        }
        removed
    }

    async fn sweep_as(&self, holder: &str, before: Timestamp) -> Result<u64, RegistryError> {
        let mut removed = 0;
        for folder in self.storage.folders(BLOBS_FOLDER).await? {
            let found = self.storage.list_with_times(&format!("{BLOBS_FOLDER}/{folder}")).await?;
            let old = found.into_iter().filter(|(_, written_at)| *written_at <= before);
            let keys: Vec<String> = old.map(|(key, _)| key).collect();
            for some in keys.chunks(SWEEP_BATCH) {
                self.take_turn(holder).await?;
                for key in some {
                    let digest = key.rsplit('/').next().unwrap_or_default();
                    if is_digest(digest) {
                        removed += u64::from(self.sweep_one(digest).await?);
                    }
                }
            }
        }
        sql("DELETE FROM blob_claims WHERE ends_at <= $1")
            .time(Timestamp::now())
            .run(self.database.writer())
            .await?;
        Ok(removed)
    }

    /// Holds the lock for another while.
    async fn take_turn(&self, holder: &str) -> Result<(), RegistryError> {
        let leases = self.database.leases();
        let lease = leases.acquire(BLOBS_LEASE, holder, BLOBS_LEASE_DURATION).await?;
        lease.map(drop).ok_or(RegistryError::Busy)
    }

    /// Removes one, while nobody else can claim it.
    async fn sweep_one(&self, digest: &str) -> Result<bool, StoreError> {
        // Most are in use: this is found out without a lock.
        if is_used(&mut *self.reader().acquire().await?, digest).await? {
            return Ok(false);
        }
        let mut transaction = self.database.begin().await?;
        let free = sql("INSERT INTO blob_claims (digest, ends_at) VALUES ($1, 0)
             ON CONFLICT (digest) DO UPDATE SET ends_at = 0 WHERE blob_claims.ends_at <= $2")
        .text(digest)
        .time(Timestamp::now())
        .run(&mut *transaction)
        .await?;
        if free == 0 || is_used(&mut transaction, digest).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        self.storage.delete(&key(digest)).await?;
        sql("DELETE FROM blob_claims WHERE digest = $1")
            .text(digest)
            .run(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Each once, in the order in which everybody locks them.
fn sorted(digests: &[String; 2]) -> Vec<String> {
    let mut digests = digests.to_vec();
    digests.sort_unstable();
    digests.dedup();
    digests
}

async fn is_used(connection: &mut AnyConnection, digest: &str) -> Result<bool, StoreError> {
    let row = sql("SELECT 1 WHERE EXISTS (SELECT 1 FROM versions WHERE sha256 = $1)
            OR EXISTS (SELECT 1 FROM versions WHERE skill_md = $1)")
    .text(digest)
    .optional(connection)
    .await?;
    Ok(row.is_some())
}

/// Makes sure that claims hold until the transaction is over. Whoever was asleep for longer than a
/// claim lasts must begin again.
pub(super) async fn hold_claims(
    connection: &mut AnyConnection,
    digests: &[String; 2],
) -> Result<(), RegistryError> {
    for digest in sorted(digests) {
        let held =
            sql("UPDATE blob_claims SET ends_at = ends_at WHERE digest = $1 AND ends_at > $2")
                .text(&digest)
                .time(Timestamp::now())
                .run(&mut *connection)
                .await?;
        if held == 0 {
            return Err(RegistryError::TooSlow);
        }
    }
    Ok(())
}
