//! A repository in the cache: bare, shallow, with the objects that were needed so far.

use std::{
    fs::{self, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_skill::digest::sha256_hex;
use tokio::time::{Instant, sleep};

use super::{
    Commit, GitUrl,
    failure::is_missing_object,
    program::{Call, size},
};
use crate::{
    limits::MAX_GIT_LIST_BYTES,
    source::{Progress, Settings, SourceError},
};

/// How long to wait before asking again whether another process is done.
const PAUSE: Duration = Duration::from_millis(50);

/// What every fetch leaves alone.
pub(super) const FETCH: [&str; 8] = [
    "fetch",
    "--quiet",
    "--filter=blob:none",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--no-show-forced-updates",
];

/// A repository of the cache, held by this process alone.
pub(super) struct Repository<'a> {
    pub(super) settings: &'a Settings,
    pub(super) url: &'a GitUrl,
    folder: PathBuf,
    /// Others wait until it is closed.
    _lock: fs::File,
}

/// Where the cache keeps a repository.
pub(super) fn folder(cache: &Path, url: &GitUrl) -> PathBuf {
    cache.join("git").join(&sha256_hex(url.as_str().as_bytes())[..32])
}

impl<'a> Repository<'a> {
    pub(super) async fn open(settings: &'a Settings, url: &'a GitUrl) -> Result<Self, SourceError> {
        settings.tell(Progress::Asking { place: url.to_string() });
        let folder = folder(&settings.cache, url);
        let parent = settings.cache.join("git");
        fs::create_dir_all(&parent).map_err(SourceError::io(&parent))?;
        let lock = lock(&folder.with_extension("lock"), settings.git_patience).await?;
        let repository = Self { settings, url, folder, _lock: lock };
        repository.make().await?;
        Ok(repository)
    }

    /// Makes the repository, unless it is there and has room for more.
    async fn make(&self) -> Result<(), SourceError> {
        let is_full = || size(&self.folder) > self.settings.max_repository_bytes / 2;
        if self.folder.join("HEAD").exists() && !is_full() {
            return Ok(());
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).map_err(SourceError::io(&self.folder))?;
        }
        // Without a template there are no hooks.
        self.call(&["init", "--quiet", "--bare", "--template=", "--initial-branch=main"], &[])
            .await
            .map(drop)
    }

    pub(super) async fn call(
        &self,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, SourceError> {
        self.call_for(arguments, input, MAX_GIT_LIST_BYTES).await
    }

    pub(super) async fn call_for(
        &self,
        arguments: &[&str],
        input: &[u8],
        limit: usize,
    ) -> Result<Vec<u8>, SourceError> {
        let call = Call { settings: self.settings, url: self.url, folder: &self.folder, limit };
        call.run(arguments, input).await
    }

    /// Whether a commit was fetched before.
    pub(super) async fn has(&self, commit: &Commit) -> Result<bool, SourceError> {
        let input = format!("{commit}^{{tree}}\n");
        let answer = self.call(&["cat-file", "--batch-check"], input.as_bytes()).await?;
        Ok(answer.windows(6).any(|part| part == b" tree "))
    }

    /// Fetches the trees of a commit, but none of its files.
    pub(super) async fn fetch_commit(&self, commit: &Commit) -> Result<(), SourceError> {
        if self.has(commit).await? {
            return Ok(());
        }
        let mut arguments = FETCH.to_vec();
        arguments.extend(["--depth=1", "origin", commit.as_str()]);
        match self.call(&arguments, &[]).await {
            Err(SourceError::Git { message, .. }) if is_missing_object(&message) => {
                Err(SourceError::NoCommit { url: self.url.clone(), commit: commit.clone() })
            }
            other => other.map(drop),
        }
    }

    /// Fetches files by their digests, all at once.
    pub(super) async fn fetch_files(&self, digests: &[&str]) -> Result<(), SourceError> {
        let mut arguments = FETCH.to_vec();
        arguments.extend(["--stdin", "origin"]);
        self.call(&arguments, (digests.join("\n") + "\n").as_bytes()).await.map(drop)
    }
}

/// Locks a file, which waits for others but not forever.
async fn lock(path: &Path, patience: Duration) -> Result<fs::File, SourceError> {
    let file = fs::File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(SourceError::io(path))?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(SourceError::io(path)(error)),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                let place = path.display().to_string();
                return Err(SourceError::TimedOut { place, waited: patience });
            }
            Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
        }
    }
}
