//! Caches accounts until one changes.
//!
//! Every request asks whose it is. Where the database is a file, all processes see the folder that
//! it lies in: a second file there is touched after each change of an account and before the change
//! is acknowledged. Who finds that file as it was may use what it read before. A database on a
//! server is asked each time.

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

/// A process may die between a change and its touch: the others notice after this time.
const MAX_CACHE_AGE: Duration = Duration::from_secs(2);
const MAX_CACHED_ACCOUNTS: usize = 10_000;

/// Whose a token is, and what a program's token may do.
#[derive(Clone, Debug)]
pub(super) struct CachedAccount {
    pub(super) user: User,
    pub(super) token: Option<ApiToken>,
}

/// How accounts look from outside: as long as it stays the same, nothing was taken away from
/// anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountsVersion(FileStamp);

#[derive(Debug, Default)]
pub(crate) struct AccountCache {
    /// The file that is touched; none for a database on a server.
    file: Option<PathBuf>,
    known: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    /// How the file looked when the holders were asked for.
    current_version: Option<AccountsVersion>,
    holders: HashMap<String, (Instant, CachedAccount)>,
}

impl AccountCache {
    /// For a database that is the file at `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, StoreError> {
        // Another name of the same database has the same mark.
        let path = path.canonicalize().map_err(|error| file_error(path, &error))?;
        let mut name = path.into_os_string();
        name.push("-people");
        let file = PathBuf::from(name);
        // One that is there stays as it is: opening a database changes nobody.
        if !file.exists() {
            touch(&file)?;
        }
        Ok(Self { file: Some(file), known: Mutex::default() })
    }

    /// How the file looks now.
    pub(super) fn current_version(&self) -> Option<AccountsVersion> {
        let metadata = fs::metadata(self.file.as_ref()?).ok()?;
        Some(AccountsVersion(FileStamp::of(&metadata)))
    }

    /// What is known under a key, else what the database says.
    pub(super) async fn get_or_load(
        &self,
        key: String,
        ask: impl Future<Output = Result<Option<CachedAccount>, StoreError>>,
    ) -> Result<Option<CachedAccount>, StoreError> {
        // Before the question: a change in between makes the answer useless.
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

    /// To be called after every change of an account or a token that was committed, and after one
    /// that found nothing to change: it may be the second try of one that was not acknowledged.
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

/// The time of the touch is that of the clock: the one of the file system stands still for
/// milliseconds.
fn touch(path: &Path) -> Result<(), StoreError> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    let touched = options.open(path).and_then(|file| file.set_modified(SystemTime::now()));
    touched.map_err(|error| file_error(path, &error))
}
