//! Caches accounts until one of them changes.
//!
//! Every request needs the account of its token. If the database is a file, each process watches a
//! second file in the same folder, which is touched after each change of an account and before the
//! change is acknowledged. While that file is unchanged, cached accounts are valid. With a database
//! server, nothing is cached.

use std::{
    collections::HashMap,
    fs::{self, File},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{ApiToken, User};
use crate::{
    StoreError,
    file_stamp::FileStamp,
    storage::{file_error, on_a_thread},
};

/// If a process dies between a change and the touch, other processes notice the change after this
/// time.
const MAX_CACHE_AGE: Duration = Duration::from_secs(2);
const MAX_CACHED_ACCOUNTS: usize = 10_000;

/// The account of a token, and the API token itself with its scopes.
#[derive(Clone, Debug)]
pub(super) struct CachedAccount {
    pub(super) user: User,
    pub(super) token: Option<ApiToken>,
}

/// A stamp of all accounts. While it is unchanged, no account or token was disabled or revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountsVersion(FileStamp);

#[derive(Debug, Default)]
pub(crate) struct AccountCache {
    /// The file that is touched; `None` for a database server.
    file: Option<PathBuf>,
    known: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    /// The stamp of the file when `holders` were read.
    current_version: Option<AccountsVersion>,
    holders: HashMap<String, (Instant, CachedAccount)>,
}

impl AccountCache {
    /// Creates the cache for the SQLite file at `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, StoreError> {
        // All paths of the same database must lead to the same file.
        let path = path.canonicalize().map_err(|error| file_error(path, &error))?;
        let mut name = path.into_os_string();
        name.push("-people");
        let file = PathBuf::from(name);
        // Do not touch an existing file: opening the database changes no account.
        if !file.exists() {
            touch(&file)?;
        }
        Ok(Self { file: Some(file), known: Mutex::default() })
    }

    pub(super) fn current_version(&self) -> Option<AccountsVersion> {
        let metadata = fs::metadata(self.file.as_ref()?).ok()?;
        Some(AccountsVersion(FileStamp::of(&metadata)))
    }

    /// Returns the cached account of a key, or loads it from the database.
    pub(super) async fn get_or_load(
        &self,
        key: String,
        ask: impl Future<Output = Result<Option<CachedAccount>, StoreError>>,
    ) -> Result<Option<CachedAccount>, StoreError> {
        // Read the stamp before the query: a change during the query must invalidate the result.
        let current_version = self.current_version();
        if let Some(holder) =
            current_version.and_then(|current_version| self.get_cached(current_version, &key))
        {
            return Ok(Some(holder));
        }
        let answer = ask.await?;
        if let (Some(current_version), Some(holder)) = (current_version, &answer) {
            self.keep(current_version, key, holder.clone());
        }
        Ok(answer)
    }

    /// Invalidates the cache. Call it after each committed change of an account or a token, and
    /// also if nothing changed: the caller may be retrying a change that was committed but not
    /// acknowledged.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        on_a_thread(move || touch(&file)).await
    }

    fn get_cached(&self, current_version: AccountsVersion, key: &str) -> Option<CachedAccount> {
        let known = self.known();
        if known.current_version != Some(current_version) {
            return None;
        }
        let (since, holder) = known.holders.get(key)?;
        (since.elapsed() < MAX_CACHE_AGE).then(|| holder.clone())
    }

    fn keep(&self, current_version: AccountsVersion, key: String, holder: CachedAccount) {
        let mut known = self.known();
        if known.current_version != Some(current_version)
            || known.holders.len() >= MAX_CACHED_ACCOUNTS
        {
            known.holders.clear();
            known.current_version = Some(current_version);
        }
        known.holders.insert(key, (Instant::now(), holder));
    }

    fn known(&self) -> MutexGuard<'_, CacheEntries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the modification time from the system clock, because file system timestamps are too coarse
/// to differ after every change.
fn touch(path: &Path) -> Result<(), StoreError> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    let touched = options.open(path).and_then(|file| file.set_modified(SystemTime::now()));
    touched.map_err(|error| file_error(path, &error))
}
