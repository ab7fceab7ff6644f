//! Manages a repository in the cache: bare, shallow, with the objects that were needed so far.

use std::{
    fs::{self, TryLockError},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use savoir_skill::digest::sha256_hex;
use tokio::time::{Instant, sleep};

use super::{
    Commit, GitUrl,
    failure::is_missing_object,
    program::{GitCommand, size},
};
use crate::{
    limits::MAX_GIT_LIST_BYTES,
    source::{Network, Progress, Settings, SourceError, parse::is_bare_repository},
};

/// The interval between attempts to get the lock.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The arguments of every fetch, which turn off everything that is not needed.
pub(super) const FETCH_ARGUMENTS: [&str; 8] = [
    "fetch", "--quiet", "--filter=blob:none", "--no-tags", "--no-write-fetch-head",
    "--no-recurse-submodules", "--no-auto-maintenance", "--no-show-forced-updates",
];

/// A cached repository, locked by this process.
pub(super) struct Repository<'a> {
    pub(super) settings: &'a Settings,
    pub(super) url: &'a GitUrl,
    folder: PathBuf,
    /// The address after the user's git settings (`insteadOf`) rewrote it; read from git when the
    /// network is needed.
    rewritten: OnceLock<String>,
    /// Other processes wait until this file is closed.
    _lock: fs::File,
}

/// Returns the cache folder of a repository.
pub(super) fn folder(cache: &Path, url: &GitUrl) -> PathBuf {
    cache.join("git").join(&sha256_hex(url.as_str().as_bytes())[..32])
}

impl<'a> Repository<'a> {
    pub(super) async fn open(settings: &'a Settings, url: &'a GitUrl) -> Result<Self, SourceError> {
        settings.report_progress(Progress::Asking { place: url.to_string() });
        let folder = folder(&settings.cache, url);
        let parent = settings.cache.join("git");
        fs::create_dir_all(&parent).map_err(SourceError::io(&parent))?;
        let lock = lock(&folder.with_extension("lock"), settings.git_timeout).await?;
        let rewritten = OnceLock::new();
        let repository = Self { settings, url, folder, rewritten, _lock: lock };
        repository.make().await?;
        Ok(repository)
    }

    /// Creates the repository, unless it exists and is small enough to grow.
    async fn make(&self) -> Result<(), SourceError> {
        let is_full = || size(&self.folder) > self.settings.max_repository_bytes / 2;
        let is_there = self.folder.join("HEAD").exists();
        // Without a network it could not be fetched again.
        if is_there && (self.is_offline() || !is_full()) {
            return self.borrow_objects();
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).map_err(SourceError::io(&self.folder))?;
        }
        // An empty template means that there are no hooks.
        self.call(&["init", "--quiet", "--bare", "--template=", "--initial-branch=main"], &[])
            .await?;
        self.borrow_objects()
    }

    /// Uses the objects of a bare repository on this machine in place. Its git settings do not
    /// apply; those of the cached repository do.
    fn borrow_objects(&self) -> Result<(), SourceError> {
        let Some(from) = self.url.local_path().filter(|path| is_bare_repository(path)) else {
            return Ok(());
        };
        let objects = from.join("objects").display().to_string();
        if objects.contains(['\n', char::REPLACEMENT_CHARACTER]) {
            return Ok(());
        }
        let folder = self.folder.join("objects/info");
        let path = folder.join("alternates");
        let text = format!("{objects}\n");
        if fs::read_to_string(&path).is_ok_and(|known| known == text) {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(SourceError::io(&folder))?;
        fs::write(&path, text).map_err(SourceError::io(&path))
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
        self.run_git(arguments, input, limit, "", 0).await
    }

    /// Calls git with access to the server. `what` names the wanted data in errors.
    pub(super) async fn ask(
        &self,
        arguments: &[&str],
        input: &[u8],
        what: &str,
    ) -> Result<Vec<u8>, SourceError> {
        self.ask_within(self.settings.max_repository_bytes, arguments, input, what).await
    }

    async fn ask_within(
        &self,
        room: u64,
        arguments: &[&str],
        input: &[u8],
        what: &str,
    ) -> Result<Vec<u8>, SourceError> {
        if self.is_offline() {
            return Err(SourceError::Offline(format!("{what} of {}", self.url)));
        }
        let rewritten = if let Some(rewritten) = self.rewritten.get() {
            rewritten
        } else {
            let answer = self.call(&["ls-remote", "--get-url", "origin"], &[]).await?;
            let answer = String::from_utf8_lossy(&answer).trim().to_owned();
            self.rewritten.get_or_init(|| answer)
        };
        let protocols = self.url.protocols(rewritten);
        let answer = self.run_git(arguments, input, MAX_GIT_LIST_BYTES, &protocols, room).await;
        // git may have finished before its size was checked.
        let answer = answer.and_then(|answer| {
            if size(&self.folder) <= room {
                return Ok(answer);
            }
            Err(SourceError::TooLarge { place: self.url.to_string(), limit: room })
        });
        if matches!(answer, Err(SourceError::TooLarge { .. })) {
            self.remove_unfinished();
        }
        answer
    }

    async fn run_git(
        &self,
        arguments: &[&str],
        input: &[u8],
        limit: usize,
        protocols: &str,
        room: u64,
    ) -> Result<Vec<u8>, SourceError> {
        let Self { settings, url, folder, .. } = self;
        GitCommand { settings, url, folder, limit, protocols, room }.run(arguments, input).await
    }

    /// Whether the server must not be contacted. A repository on this machine is available without
    /// a network.
    pub(super) fn is_offline(&self) -> bool {
        self.settings.network == Network::Offline && self.url.local_path().is_none()
    }

    /// The path of the cached list of references.
    pub(super) fn known_references(&self) -> PathBuf {
        self.folder.join("savoir-references")
    }

    /// Removes files that git was receiving when it was stopped.
    fn remove_unfinished(&self) {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        for folder in entries(&self.folder.join("objects")) {
            for entry in entries(&folder.path()) {
                if entry.file_name().to_string_lossy().starts_with("tmp_") {
                    // If a file cannot be removed, the next fetch reports that the cache is too
                    // large.
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// Whether a commit is in the cache.
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
        let mut arguments = FETCH_ARGUMENTS.to_vec();
        arguments.extend(["--depth=1", "origin", commit.as_str()]);
        match self.ask(&arguments, &[], &format!("the commit {commit}")).await {
            Err(SourceError::Git { message, .. }) if is_missing_object(&message) => {
                Err(SourceError::NoCommit { url: self.url.clone(), commit: commit.clone() })
            }
            other => other.map(drop),
        }
    }

    /// Fetches files by their object ids, all at once.
    pub(super) async fn fetch_files(&self, digests: &[&str]) -> Result<(), SourceError> {
        self.fetch_files_within(self.settings.max_repository_bytes, digests).await
    }

    /// Fetches the files of one skill after fetching many was too large. The limit is doubled, so
    /// that data from the failed attempts does not count against this skill.
    pub(super) async fn fetch_files_of_one(&self, digests: &[&str]) -> Result<(), SourceError> {
        let room = self.settings.max_repository_bytes.saturating_mul(2);
        self.fetch_files_within(room, digests).await
    }

    async fn fetch_files_within(&self, room: u64, digests: &[&str]) -> Result<(), SourceError> {
        let mut arguments = FETCH_ARGUMENTS.to_vec();
        arguments.extend(["--stdin", "origin"]);
        let input = digests.join("\n") + "\n";
        self.ask_within(room, &arguments, input.as_bytes(), "a file").await.map(drop)
    }
}

/// Locks a file; waits for other processes, but at most `time_limit`.
async fn lock(path: &Path, time_limit: Duration) -> Result<fs::File, SourceError> {
    let file = fs::File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(SourceError::io(path))?;
    let deadline = Instant::now() + time_limit;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(SourceError::io(path)(error)),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                let place = path.display().to_string();
                return Err(SourceError::TimedOut { place, waited: time_limit });
            }
            Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY_DELAY).await,
        }
    }
}
