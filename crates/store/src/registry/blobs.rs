//! Stores the bytes of artifacts by digest.
//!
//! Blobs are written before the rows that refer to them, so that every reference is valid. Blobs
//! without a reference are garbage-collected later, unless a running publish claims them.

use std::time::Duration;

use bytes::Bytes;
use savoir_skill::digest::sha256_hex;
use sqlx::AnyConnection;

use super::{Registry, RegistryError};
use crate::{
    StoreError, Timestamp,
    sql::{Value, insert_rows, new_id, sql},
};

/// How long a claim is valid: the maximum time of a publish.
const CLAIM_DURATION: Duration = Duration::from_hours(1);
/// The lock for sweeping blobs, and for importing them without claims.
pub(super) const BLOBS_LEASE: &str = "registry blobs";
/// How long that lock is valid without being renewed.
pub(super) const BLOBS_LEASE_DURATION: Duration = Duration::from_mins(10);

/// Number of blobs that are checked before the lock is renewed.
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
    /// Claims and writes blobs before rows refer to them. Returns their digests.
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

    /// Protects blobs from being swept. Waits for a sweep that is removing one of them.
    async fn claim(&self, digests: &[String; 2]) -> Result<(), StoreError> {
        let end = Timestamp::now().plus(CLAIM_DURATION).micros();
        let row = |digest: String| vec![Value::Text(digest), Value::Number(end)];
        let rows: Vec<_> = sort_and_dedup(digests).into_iter().map(row).collect();
        let mut connection = self.database.writer().acquire().await?;
        let tail = "ON CONFLICT (digest) DO UPDATE SET ends_at = excluded.ends_at
            WHERE blob_claims.ends_at < excluded.ends_at";
        insert_rows(&mut connection, "INSERT INTO blob_claims (digest, ends_at)", rows, tail)
            .await
            .map(drop)
    }

    /// Stores bytes for a version that is imported later, and returns their digest. An import must
    /// be running, because its lock protects them from being swept.
    pub async fn put_blob(&self, bytes: Bytes) -> Result<String, StoreError> {
        let digest = sha256_hex(&bytes);
        self.storage.put_if_absent(&key(&digest), bytes).await?;
        Ok(digest)
    }

    /// Returns an artifact or a SKILL.md by its digest. Fails if the bytes do not match the digest.
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

    /// Returns the size of a blob in bytes.
    pub async fn blob_size(&self, digest: &str) -> Result<Option<u64>, StoreError> {
        if !is_digest(digest) {
            return Ok(None);
        }
        self.storage.size(&key(digest)).await
    }

    /// Returns a part of a blob without checking the digest: the client checks it when it has all
    /// parts.
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

    /// Returns a temporary public URL of a blob in the storage itself; `None` if the storage does
    /// not support such URLs.
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

    /// Removes blobs without reference and claim that are older than a duration. Returns how many.
    /// Fails while another process sweeps or imports, and if another database uses the same
    /// storage, because its references are not visible here.
    pub async fn sweep(&self, older_than: Duration) -> Result<u64, RegistryError> {
        self.check_only_database().await?;
        let (leases, holder) = (self.database.leases(), new_id());
        let removed = self.sweep_as(&holder, Timestamp::now().minus(older_than)).await;
        // Release the lock also after a failure, so that the next sweep need not wait.
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
                self.renew_sweep_lock(holder).await?;
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

    async fn renew_sweep_lock(&self, holder: &str) -> Result<(), RegistryError> {
        let leases = self.database.leases();
        let lease = leases.acquire(BLOBS_LEASE, holder, BLOBS_LEASE_DURATION).await?;
        lease.map(drop).ok_or(RegistryError::Busy)
    }

    /// Removes a blob unless it is used. It cannot be claimed meanwhile.
    async fn sweep_one(&self, digest: &str) -> Result<bool, StoreError> {
        // Most blobs are in use, which can be checked without a lock.
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

/// Returns the distinct digests in the order in which all processes lock them.
fn sort_and_dedup(digests: &[String; 2]) -> Vec<String> {
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

/// Ensures that claims are valid until the transaction ends. Fails if a claim has expired.
pub(super) async fn check_claims(
    connection: &mut AnyConnection,
    digests: &[String; 2],
) -> Result<(), RegistryError> {
    for digest in sort_and_dedup(digests) {
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
