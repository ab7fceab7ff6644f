use std::path::Path;

use futures::{StreamExt as _, stream::FuturesUnordered};
use savoir_store::{
    hash_password,
    registry::{Actor, Import, Imported, Registry},
};
use uuid::Uuid;

use super::{
    BackupError, CONCURRENT_BLOBS,
    check::{BackupItem, BackupReader},
};

#[derive(Debug)]
pub struct Restored {
    pub imported: Imported,
    pub blobs: u64,
}

/// How to treat existing accounts that own something in the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingAccounts {
    /// Restore nothing, because anyone may have created them.
    Refuse,
    /// Let them own it.
    Keep,
}

/// Restores a checked backup into an empty registry, with all its accounts, including those that own
/// nothing. Everything becomes visible at once, or nothing if it fails. `on_progress` is called with the number
/// of blobs that were written.
pub async fn restore(
    registry: Registry<'_>,
    path: &Path,
    accounts: ExistingAccounts,
    mut on_progress: impl FnMut(u64),
) -> Result<Restored, BackupError> {
    check_empty(registry).await?;
    // Nobody knows this password; an administrator resets it for each account.
    let secret = format!("{}{}", Uuid::new_v4(), Uuid::new_v4());
    let hash = hash_password(&secret).await?;
    let mut import = registry.import(&Actor::operator()).await?.with_accounts(hash);
    if accounts == ExistingAccounts::Keep {
        import = import.keeping_accounts();
    }
    match restore_records(registry, &mut import, path, &mut on_progress).await {
        Ok(blobs) => Ok(Restored { imported: import.finish().await?, blobs }),
        Err(error) => {
            import.cancel().await?;
            Err(error)
        }
    }
}

async fn check_empty(registry: Registry<'_>) -> Result<(), BackupError> {
    if registry.head().await? > 0 || !registry.indexes_after(None, 1).await?.is_empty() {
        return Err(BackupError::NotEmpty);
    }
    Ok(())
}

async fn restore_records(
    registry: Registry<'_>,
    import: &mut Import<'_>,
    path: &Path,
    on_progress: &mut impl FnMut(u64),
) -> Result<u64, BackupError> {
    // Check again, because another user may have published since.
    check_empty(registry).await?;
    let mut backup = BackupReader::open(path)?;
    let mut records = backup.records()?;
    while let Some(record) = records.next()? {
        import.push(record).await?;
    }
    records.finish()?;
    // Before the blobs, which may take long.
    import.settle().await?;
    let mut written = 0;
    let mut writing = FuturesUnordered::new();
    loop {
        let next = backup.next()?;
        let is_end = matches!(next, BackupItem::BackupTrailer(_));
        if let BackupItem::Blob(_, bytes) = next {
            // The reader verified the digest.
            writing.push(registry.put_blob(bytes.into()));
        }
        while writing.len() >= CONCURRENT_BLOBS || is_end && !writing.is_empty() {
            if let Some(done) = writing.next().await {
                done?;
                written += 1;
                on_progress(written);
            }
        }
        if is_end {
            return Ok(written);
        }
        import.renew().await?;
    }
}
