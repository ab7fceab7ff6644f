//! Stores skills as files in a local folder.
//!
//! A skill is created and deleted atomically, by renaming its folder. A process that creates or
//! deletes skills locks `.lock` in the folder of all skills; a process that replaces a file locks
//! the `SKILL.md.lock` beside it. The operating system releases both locks when a process dies.

mod with_files;

use std::{
    collections::HashMap,
    fs::{self, File, Metadata, TryLockError},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use savoir_skill::digest::hex;
use sha2::{Digest as _, Sha256};

use super::{
    MAX_FILE_BYTES, NOT_UTF8, ReadFile, SkillFile, TOO_LARGE, WriteError, invalid_name_error,
    is_valid_key,
};
use crate::{
    StoreError, Timestamp,
    file_stamp::FileStamp,
    storage::{WORK_PREFIX, file_error, sync_folder, write_whole},
};

/// How long to wait for a lock that another process has. Clients have a shorter timeout anyway.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct FolderSkills {
    root: PathBuf,
    cache: Mutex<HashMap<String, CachedSkill>>,
}

#[derive(Debug)]
struct CachedSkill {
    stamp: FileStamp,
    /// Whether the file was old enough when it was read that a later change alters its stamp.
    settled: bool,
    read: ReadFile,
}

/// Returns a version that differs after every write.
fn version(stamp: &FileStamp, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{stamp:?}"));
    hash.update(text);
    hex(&hash.finalize()[..16])
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn if_there<T>(result: io::Result<T>, path: &Path) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(file_error(path, &error)),
    }
}

impl FolderSkills {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, CachedSkill>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name).join("SKILL.md")
    }

    /// Returns the canonical path of a skill's folder.
    pub(super) fn place(&self, name: &str) -> Result<Option<PathBuf>, StoreError> {
        if is_valid_key(name) { self.inside(&self.root.join(name)) } else { Ok(None) }
    }

    /// Returns the canonical path, unless symlinks lead out of the folder of all skills.
    fn inside(&self, path: &Path) -> Result<Option<PathBuf>, StoreError> {
        let Some(place) = if_there(path.canonicalize(), path)? else { return Ok(None) };
        let Some(root) = if_there(self.root.canonicalize(), &self.root)? else { return Ok(None) };
        Ok((place.starts_with(&root) && place != root).then_some(place))
    }

    /// Returns the names of all entries in the folder of all skills.
    pub(super) fn entries(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(file_error(&self.root, &error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| file_error(&self.root, &error))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Fails if the folder of all skills is something else, so that no skill is reported as missing.
    fn check_root(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.root) {
            Ok(metadata) if !metadata.is_dir() => {
                Err(file_error(&self.root, &io::ErrorKind::NotADirectory.into()))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_error(&self.root, &error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = self.entries()?;
        names.retain(|name| is_valid_key(name) && self.has_file(name));
        Ok(names)
    }

    fn has_file(&self, name: &str) -> bool {
        self.inside(&self.path(name)).ok().flatten().is_some_and(|place| place.is_file())
    }

    pub(super) fn list(&self) -> Result<Vec<SkillFile>, StoreError> {
        let mut files = Vec::new();
        let names = self.entries()?;
        self.cache().retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            match self.read(&name) {
                Ok(file) => files.extend(file),
                Err(error) => tracing::debug!("left out: {error}"),
            }
        }
        Ok(files)
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<SkillFile>, StoreError> {
        self.read_any(name)?.map(ReadFile::into_valid).transpose()
    }

    /// Like `read`, but also returns a file that is not valid text.
    pub(super) fn read_any(&self, name: &str) -> Result<Option<ReadFile>, StoreError> {
        if !is_valid_key(name) {
            return Ok(None);
        }
        let path = self.path(name);
        let metadata = if_there(fs::metadata(&path), &path)?.filter(Metadata::is_file);
        let Some(metadata) = metadata else {
            self.check_root()?;
            self.cache().remove(name);
            return Ok(None);
        };
        match self.known(name, &metadata) {
            Some(known) => Ok(Some(known)),
            None => self.load_any(name),
        }
    }

    /// Returns a cached file if it is unchanged.
    pub(super) fn unchanged(&self, name: &str) -> Option<SkillFile> {
        if !self.cache().contains_key(name) {
            return None;
        }
        let metadata = fs::metadata(self.path(name)).ok()?;
        self.known(name, &metadata)?.into_valid().ok()
    }

    /// Returns the cached file if its metadata is unchanged.
    fn known(&self, name: &str, metadata: &Metadata) -> Option<ReadFile> {
        let cache = self.cache();
        let cached = cache.get(name)?;
        let same = cached.settled && cached.stamp == FileStamp::of(metadata);
        same.then(|| cached.read.clone())
    }

    /// Reads a file without the cache.
    fn load(&self, name: &str) -> Result<Option<SkillFile>, StoreError> {
        self.load_any(name)?.map(ReadFile::into_valid).transpose()
    }

    /// Like `load`, but also returns a file that is not valid text.
    fn load_any(&self, name: &str) -> Result<Option<ReadFile>, StoreError> {
        let path = self.path(name);
        let Some(place) = self.inside(&path)? else { return Ok(None) };
        let Some(mut file) = if_there(File::open(&place), &place)? else { return Ok(None) };
        let fail = |error: io::Error| file_error(&path, &error);
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        (&mut file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
        let (before, after) =
            (FileStamp::of(&metadata), FileStamp::of(&file.metadata().map_err(fail)?));
        let is_too_large = bytes.len() as u64 > MAX_FILE_BYTES;
        let text = String::from_utf8(bytes);
        let problem = match &text {
            _ if is_too_large => Some(TOO_LARGE),
            Ok(_) => None,
            Err(_) => Some(NOT_UTF8),
        };
        let text =
            text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let file = SkillFile {
            key: name.to_owned(),
            version: version(&before, &text),
            text: text.into(),
            created_at: self.created_at(name).unwrap_or_else(|| modified_at(&metadata)),
            updated_at: modified_at(&metadata),
            is_valid: problem.is_none(),
        };
        let read = ReadFile { file, problem };
        let settled = before == after && before.is_settled();
        let cached = CachedSkill { stamp: before, settled, read: read.clone() };
        self.cache().insert(name.to_owned(), cached);
        Ok(Some(read))
    }

    /// Returns when a skill was created. The lock file stores it if the folder was replaced.
    fn created_at(&self, name: &str) -> Option<Timestamp> {
        let folder = self.root.join(name);
        let made = Timestamp::from(fs::metadata(&folder).ok()?.created().ok()?);
        let lock = fs::symlink_metadata(folder.join("SKILL.md.lock")).ok();
        let before = lock.and_then(|lock| lock.modified().ok()).map(Timestamp::from);
        Some(before.map_or(made, |before| before.min(made)))
    }

    pub(super) fn create(&self, name: &str, text: &str) -> Result<SkillFile, WriteError> {
        if !is_valid_key(name) {
            return Err(invalid_name_error(name));
        }
        let fail = |error: io::Error| file_error(&self.root.join(name), &error);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.root).map_err(fail)?;
        let _lock = lock(&self.root.join(".lock")).map_err(fail)?;
        let entries = self.entries()?;
        self.check_free(name, &entries)?;
        self.sweep(&entries);
        self.publish(name, text).map_err(fail)?;
        self.load(name)?.ok_or(WriteError::Missing)
    }

    pub(super) fn check_free(&self, name: &str, entries: &[String]) -> Result<(), WriteError> {
        match entries.iter().find(|entry| entry.eq_ignore_ascii_case(name)) {
            None => Ok(()),
            Some(existing) => {
                let has_file = self.has_file(existing);
                Err(WriteError::Exists { existing: existing.clone(), has_file })
            }
        }
    }

    fn publish(&self, name: &str, text: &str) -> io::Result<()> {
        let fresh = tempfile::Builder::new().prefix(WORK_PREFIX).tempdir_in(&self.root)?;
        File::create(fresh.path().join("SKILL.md.lock"))?;
        write_whole(&fresh.path().join("SKILL.md"), text.as_bytes(), None)?;
        fs::rename(fresh.path(), self.root.join(name))?;
        // The temporary folder was renamed, so there is nothing to delete.
        let _ = fresh.keep();
        sync_folder(&self.root);
        Ok(())
    }

    /// Deletes temporary folders of processes that died. The caller has locked `.lock`, so no
    /// living process uses them.
    fn sweep(&self, entries: &[String]) {
        for entry in entries.iter().filter(|entry| entry.starts_with(WORK_PREFIX)) {
            let _ = fs::remove_dir_all(self.root.join(entry));
        }
    }

    pub(super) fn remove_unfinished(&self) -> Result<(), StoreError> {
        let path = self.root.join(".lock");
        let Some(_lock) = if_there(lock(&path), &path)? else { return Ok(()) };
        self.sweep(&self.entries()?);
        Ok(())
    }

    pub(super) fn replace(
        &self,
        name: &str,
        text: &str,
        version: &str,
    ) -> Result<SkillFile, WriteError> {
        if !is_valid_key(name) {
            return Err(WriteError::Missing);
        }
        let folder = self.inside(&self.root.join(name))?.ok_or(WriteError::Missing)?;
        let path = folder.join("SKILL.md");
        let _lock = lock_skill(&folder)?.ok_or(WriteError::Missing)?;
        let current = self.load_any(name)?.ok_or(WriteError::Missing)?;
        if current.file.version != version {
            return Err(WriteError::Changed);
        }
        remove_unfinished(&folder);
        let permissions = fs::metadata(&path).ok().map(|metadata| metadata.permissions());
        write_whole(&path, text.as_bytes(), permissions)
            .map_err(|error| file_error(&path, &error))?;
        self.load(name)?.ok_or(WriteError::Missing)
    }

    pub(super) fn delete(&self, name: &str, version: Option<&str>) -> Result<(), WriteError> {
        if !is_valid_key(name) {
            return Err(WriteError::Missing);
        }
        let path = self.root.join(name);
        let fail = |error: io::Error| file_error(&path, &error);
        self.inside(&path)?.ok_or(WriteError::Missing)?;
        let _lock = lock(&self.root.join(".lock")).map_err(fail)?;
        let metadata = if_there(fs::symlink_metadata(&path), &path)?.ok_or(WriteError::Missing)?;
        if let Some(version) = version
            && self.load_any(name)?.is_some_and(|read| read.file.version != version)
        {
            return Err(WriteError::Changed);
        }
        self.cache().remove(name);
        if !metadata.is_dir() {
            // A symlink to another skill, or a file where a folder is expected.
            return fs::remove_file(&path).map_err(|error| fail(error).into());
        }
        let _skill_lock = lock_skill(&path)?.ok_or(WriteError::Missing)?;
        let away = tempfile::Builder::new().prefix(WORK_PREFIX).tempdir_in(&self.root);
        let away = away.map_err(fail)?;
        fs::rename(&path, away.path().join(name)).map_err(fail)?;
        sync_folder(&self.root);
        // The folder has a temporary name now, so the next sweep deletes the rest.
        if let Err(error) = away.close() {
            tracing::warn!(skill = name, %error, "a skill is gone, but not all of its files");
        }
        Ok(())
    }
}

fn modified_at(metadata: &Metadata) -> Timestamp {
    metadata.modified().map_or_else(|_| Timestamp::now(), Timestamp::from)
}

/// Waits for a lock up to [`LOCK_TIMEOUT`]. The lock is released when the file is dropped.
fn lock(path: &Path) -> io::Result<File> {
    // Opening a symlink would create a file at its target.
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(io::Error::other("the lock is a link"));
    }
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process holds the lock",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
        }
    }
}

/// Locks a skill; returns `None` if its folder does not exist.
fn lock_skill(folder: &Path) -> Result<Option<File>, StoreError> {
    let path = folder.join("SKILL.md.lock");
    loop {
        let Some(file) = if_there(lock(&path), &path)? else { return Ok(None) };
        let held = file.metadata().map_err(|error| file_error(&path, &error))?;
        // While we waited, the folder may have been deleted and created again: then the lock is on
        // the old file.
        if let Some(there) = if_there(fs::metadata(&path), &path)?
            && (held.dev(), held.ino()) == (there.dev(), there.ino())
        {
            return Ok(Some(file));
        }
    }
}

/// Deletes temporary files of a writer that died. The lock is held, so no other writer is active.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(WORK_PREFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
