//! Stores bytes under keys, in a folder or a bucket.

mod bucket;
mod folder;

use std::{ops::Range, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;

pub(crate) use bucket::Bucket;
pub(crate) use folder::{WORK_PREFIX, file_error, on_a_thread, sync_folder, write_whole};

use crate::{SkillFiles, StoreError, Timestamp};
use folder::Folder;

/// A folder or a bucket. Clones share it.
#[derive(Clone, Debug)]
pub struct Storage {
    place: StorageBackend,
    skills: SkillFiles,
}

#[derive(Clone, Debug)]
enum StorageBackend {
    Folder(Arc<Folder>),
    Bucket(Arc<Bucket>),
}

/// Checks a key: names with slashes between them. Keys that could leave the folder are refused, and
/// so are the names of temporary files.
fn check(key: &str) -> Result<(), StoreError> {
    let good = |name: &str| {
        !matches!(name, "" | "." | ".." | ".lock")
            && !name.starts_with(WORK_PREFIX)
            && name.len() <= 200
            && !name.chars().any(|c| c.is_control() || c == '\\')
    };
    if key.len() <= 1000 && key.split('/').all(good) {
        return Ok(());
    }
    Err(StoreError::File { path: key.to_owned(), message: "this is no key".to_owned() })
}

impl Storage {
    /// Opens a folder, and creates it if necessary, accessible only for its owner.
    pub fn folder(path: &Path) -> Result<Self, StoreError> {
        let folder = Folder::open(path)?;
        let skills = SkillFiles::in_folder(folder.path());
        Ok(Self { place: StorageBackend::Folder(Arc::new(folder)), skills })
    }

    /// Opens `s3://bucket[/prefix]`; endpoint, region and keys come from the environment
    /// (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, …).
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let settings: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(key, _)| key.starts_with("AWS_"))
            .collect();
        Self::open_with(url, settings.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Like [`Self::open`], with these settings instead of the environment.
    pub fn open_with<'a>(
        url: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, StoreError> {
        let bucket = Arc::new(Bucket::open(url, settings)?);
        let skills = SkillFiles::in_bucket(Arc::clone(&bucket));
        Ok(Self { place: StorageBackend::Bucket(bucket), skills })
    }

    /// Checks that the storage answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match &self.place {
            StorageBackend::Folder(folder) => folder.ping().await,
            StorageBackend::Bucket(bucket) => bucket.ping().await,
        }
    }

    /// Checks that the storage can be written. Does not end while a disk hangs.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        match &self.place {
            StorageBackend::Folder(folder) => folder.try_write().await,
            StorageBackend::Bucket(bucket) => bucket.try_write().await,
        }
    }

    /// Whether this is a bucket.
    pub fn is_bucket(&self) -> bool {
        matches!(self.place, StorageBackend::Bucket(_))
    }

    /// Removes what processes left that were killed while they wrote.
    pub async fn remove_unfinished(&self) -> Result<(), StoreError> {
        self.skills.remove_unfinished().await?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.remove_unfinished().await,
            StorageBackend::Bucket(_) => Ok(()),
        }
    }

    /// Stores bytes, and replaces existing ones. The write is atomic.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.put(key, bytes).await,
            StorageBackend::Bucket(bucket) => bucket.put(key, bytes).await,
        }
    }

    /// Stores bytes unless the key exists; returns false if it does. Of several concurrent callers,
    /// one gets true.
    pub async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<bool, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.put_if_absent(key, bytes).await,
            StorageBackend::Bucket(bucket) => bucket.put_if_absent(key, bytes).await,
        }
    }

    /// Replaces the bytes `old` by `new`; returns false if the key has other bytes or does not
    /// exist. Of several concurrent callers, one gets true, unless it is a bucket without
    /// conditional writes.
    pub(crate) async fn swap(&self, key: &str, old: Bytes, new: Bytes) -> Result<bool, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.swap(key, old, new).await,
            StorageBackend::Bucket(bucket) => bucket.swap(key, &old, new).await,
        }
    }

    /// The bytes of a key.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.get(key).await,
            StorageBackend::Bucket(bucket) => bucket.get(key).await,
        }
    }

    /// The size of the bytes of a key.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.size(key).await,
            StorageBackend::Bucket(bucket) => bucket.size(key).await,
        }
    }

    /// A range of the bytes of a key; shorter if the key has fewer bytes.
    pub async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.get_range(key, range).await,
            StorageBackend::Bucket(bucket) => bucket.get_range(key, range).await,
        }
    }

    /// A URL at which anyone can read a key for some time; none for a folder.
    pub async fn link(&self, key: &str, lasts: Duration) -> Result<Option<String>, StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(_) => Ok(None),
            StorageBackend::Bucket(bucket) => bucket.link(key, lasts).await.map(Some),
        }
    }

    /// Deletes a key; does nothing if it does not exist.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        check(key)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.delete(key).await,
            StorageBackend::Bucket(bucket) => bucket.delete(key).await,
        }
    }

    /// The keys below a prefix, sorted. A prefix is whole names: `a/b` has `a/b/c` below it, but
    /// not `a/bc`. The empty one has all.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() {
            check(prefix)?;
        }
        let mut keys = match &self.place {
            StorageBackend::Folder(folder) => folder.list(prefix).await?,
            StorageBackend::Bucket(bucket) => bucket.list(prefix).await?,
        };
        keys.sort_unstable();
        Ok(keys)
    }

    /// The names of the folders below a prefix.
    pub(crate) async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        check(prefix)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.folders(prefix).await,
            StorageBackend::Bucket(bucket) => bucket.folders(prefix).await,
        }
    }

    /// The keys below a prefix with the times of their last changes, in any order.
    pub(crate) async fn list_with_times(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        check(prefix)?;
        match &self.place {
            StorageBackend::Folder(folder) => folder.list_with_times(prefix).await,
            StorageBackend::Bucket(bucket) => bucket.list_with_times(prefix).await,
        }
    }

    /// The skills in this storage.
    pub fn skills(&self) -> SkillFiles {
        self.skills.clone()
    }
}
