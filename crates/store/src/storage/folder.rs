//! Stores bytes as files in a local folder.

use std::{
    fs, io,
    io::{Read as _, Seek as _, Write as _},
    ops::Range,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::{StoreError, Timestamp, error::is_full};

/// Prefix of temporary files.
pub(crate) const WORK_PREFIX: &str = ".tmp-";

/// The folders below which files are written. In the folder itself, other things may lie beside
/// them.
const OWN_FOLDERS: [&str; 3] = ["knowledge", "registry", "skills"];

/// Time after which every file that is being written has its lock.
const LOCKED_WITHIN: Duration = Duration::from_secs(1);

/// Size of the test file: a disk with less free space counts as full.
const WRITE_TEST_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether a write test is running.
    trying: Arc<AtomicBool>,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        make_private(path).map_err(|error| file_error(path, &error))?;
        let path = path.canonicalize().map_err(|error| file_error(path, &error))?;
        Ok(Self { path, trying: Arc::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        on_a_thread(move || {
            fs::read_dir(&path).map(drop).map_err(|error| file_error(&path, &error))
        })
        .await
    }

    /// Writes and syncs a test file, and deletes it. The folders below must take files, too: an
    /// operator may replace or mount each of them.
    pub(crate) async fn try_write(&self) -> Result<(), StoreError> {
        let (path, trying) = (self.path.clone(), Arc::clone(&self.trying));
        // A disk that hangs blocks the thread of the test; a second one would hang as well.
        if trying.swap(true, Ordering::AcqRel) {
            return std::future::pending().await;
        }
        on_a_thread(move || {
            let tried = test_writes(&path);
            trying.store(false, Ordering::Release);
            tried
        })
        .await
    }

    /// Removes files that processes left which died while they wrote.
    pub(crate) async fn remove_unfinished(&self) -> Result<(), StoreError> {
        let root = self.path.clone();
        on_a_thread(move || {
            remove_unfinished(&root, Depth::This);
            for folder in OWN_FOLDERS {
                remove_unfinished(&root.join(folder), Depth::All);
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || {
            put(&path, &bytes, Presence::Any).map_err(|error| file_error(&path, &error))
        })
        .await
    }

    pub(crate) async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<bool, StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || {
            if path.exists() {
                return Ok(false);
            }
            match put(&path, &bytes, Presence::Absent) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(file_error(&path, &error)),
            }
        })
        .await
    }

    pub(crate) async fn swap(&self, key: &str, old: Bytes, new: Bytes) -> Result<bool, StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || swap(&path, &old, &new).map_err(|error| file_error(&path, &error)))
            .await
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(file_error(&path, &error)),
        })
        .await
    }

    pub(crate) async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || match fs::metadata(&path) {
            Ok(known) => Ok(Some(known.len())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(file_error(&path, &error)),
        })
        .await
    }

    pub(crate) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        let path = self.path.join(key);
        on_a_thread(move || match part(&path, &range) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(file_error(&path, &error)),
        })
        .await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let (path, root) = (self.path.join(key), self.path.clone());
        on_a_thread(move || match fs::remove_file(&path) {
            Ok(()) => {
                remove_empty_parents(&path, &root);
                Ok(())
            }
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(file_error(&path, &error)),
        })
        .await
    }

    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (root, prefix) = (self.path.clone(), prefix.to_owned());
        on_a_thread(move || {
            let mut keys = Vec::new();
            let from = root.join(&prefix);
            walk(&from, &prefix, &mut keys).map_err(|error| file_error(&from, &error))?;
            Ok(keys)
        })
        .await
    }

    pub(crate) async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let path = self.path.join(prefix);
        on_a_thread(move || match fs::read_dir(&path).and_then(folders) {
            Ok(names) => Ok(names),
            Err(error) if is_absent(&error) => Ok(Vec::new()),
            Err(error) => Err(file_error(&path, &error)),
        })
        .await
    }

    pub(crate) async fn list_with_times(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let (root, keys) = (self.path.clone(), self.list(prefix).await?);
        on_a_thread(move || {
            let time = |key: &String| {
                match fs::metadata(root.join(key)).and_then(|metadata| metadata.modified()) {
                    Ok(time) => Ok(Some((key.clone(), Timestamp::from(time)))),
                    // Another process deleted it in between.
                    Err(error) if is_absent(&error) => Ok(None),
                    Err(error) => Err(file_error(&root.join(key), &error)),
                }
            };
            keys.iter().filter_map(|key| time(key).transpose()).collect()
        })
        .await
    }
}

fn test_writes(root: &Path) -> Result<(), StoreError> {
    let device = |path: &Path| fs::metadata(path).map(|known| known.dev());
    let fail = |path: &Path, error: io::Error| file_error(path, &error);
    test_write(root).map_err(|error| fail(root, error))?;
    let own = device(root).map_err(|error| fail(root, error))?;
    for folder in OWN_FOLDERS.map(|name| root.join(name)) {
        let tried = match device(&folder) {
            // The first file creates it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Ok(device) if device == own => tempfile::tempfile_in(&folder).map(drop),
            Ok(_) => test_write(&folder),
            Err(error) => Err(error),
        };
        tried.map_err(|error| fail(&folder, error))?;
    }
    Ok(())
}

fn test_write(folder: &Path) -> io::Result<()> {
    let mut file = unfinished_in(folder)?;
    file.write_all(&vec![0; WRITE_TEST_BYTES])?;
    file.as_file().sync_all()
}

/// Compares and replaces under a file lock, so that concurrent swaps run one after the other.
fn swap(path: &Path, old: &[u8], new: &[u8]) -> io::Result<bool> {
    let Some(folder) = path.parent() else { return Ok(false) };
    let lock = match fs::File::create(folder.join(".lock")) {
        Err(error) if is_absent(&error) => return Ok(false),
        lock => lock?,
    };
    lock.lock()?;
    match fs::read(path) {
        Ok(found) if found == old => put(path, new, Presence::Any).map(|()| true),
        Ok(_) => Ok(false),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn part(path: &Path, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    file.seek(io::SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What may exist at the path before a file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Any,
    Absent,
}

/// Runs blocking file operations on a blocking thread.
pub(crate) async fn on_a_thread<T: Send + 'static, E: From<StoreError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Setting(error.to_string()).into()),
    }
}

pub(crate) fn file_error(path: &Path, error: &io::Error) -> StoreError {
    let path = path.display().to_string();
    if is_full(error) {
        return StoreError::Full { what: path };
    }
    if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
        return StoreError::Denied { what: path, message: error.to_string() };
    }
    if error.kind() == io::ErrorKind::TimedOut {
        return StoreError::Locked { path };
    }
    StoreError::File { path, message: error.to_string() }
}

/// A file that is still being written. Its lock ends with the process, so that others know whether
/// it will be finished.
fn unfinished_in(folder: &Path) -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new().prefix(WORK_PREFIX).tempfile_in(folder)?;
    // Where files cannot be locked, none is removed.
    let _ = file.as_file().try_lock();
    Ok(file)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    This,
    All,
}

fn remove_unfinished(folder: &Path, depth: Depth) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(WORK_PREFIX);
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() && is_unfinished && is_abandoned(&entry.path()) {
            // It takes room, and does no harm.
            let _ = fs::remove_file(entry.path());
        } else if kind.is_dir() && !is_unfinished && depth == Depth::All {
            remove_unfinished(&entry.path(), depth);
        }
    }
}

/// Whether nobody finishes a file. A new one may not have its lock yet.
fn is_abandoned(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|known| known.modified()).map(|time| time.elapsed());
    matches!(age, Ok(Ok(age)) if age >= LOCKED_WITHIN)
        && fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Writes a file atomically, even if the power fails.
pub(crate) fn write_whole(
    path: &Path,
    bytes: &[u8],
    permissions: Option<fs::Permissions>,
) -> io::Result<()> {
    write_where(path, bytes, permissions, Presence::Any)
}

fn write_where(
    path: &Path,
    bytes: &[u8],
    permissions: Option<fs::Permissions>,
    presence: Presence,
) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = unfinished_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    // Set the time from the system clock: file system timestamps are too coarse to order two quick
    // writes.
    file.as_file().set_modified(SystemTime::now())?;
    file.as_file().sync_all()?;
    match presence {
        Presence::Any => file.persist(path),
        Presence::Absent => file.persist_noclobber(path),
    }
    .map_err(|error| error.error)?;
    sync_folder(folder);
    Ok(())
}

/// Syncs a folder, so that renames survive a power failure. Errors are ignored: other processes see
/// the rename already, and a caller that got an error would repeat a change that was made.
pub(crate) fn sync_folder(folder: &Path) {
    if let Err(error) = fs::File::open(folder).and_then(|folder| folder.sync_all()) {
        let folder = folder.display();
        tracing::warn!(%folder, %error, "a change is done, but a power cut may undo it");
    }
}

fn put(path: &Path, bytes: &[u8], presence: Presence) -> io::Result<()> {
    let mut tries = 0;
    loop {
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        match write_where(path, bytes, None, presence) {
            // Another process deleted the empty folder in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 10 => tries += 1,
            result => return result,
        }
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}

fn remove_empty_parents(path: &Path, root: &Path) {
    let mut folder = path.parent();
    while let Some(path) = folder.filter(|path| *path != root) {
        if fs::remove_dir(path).is_err() {
            return;
        }
        folder = path.parent();
    }
}

fn folders(entries: fs::ReadDir) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    Ok(names)
}

/// Collects files without following symlinks.
fn walk(folder: &Path, prefix: &str, keys: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with(WORK_PREFIX) || name == ".lock" {
            continue;
        }
        let key = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &key, keys)?;
        } else if kind.is_file() {
            keys.push(key);
        }
    }
    Ok(())
}
