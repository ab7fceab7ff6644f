//! Reads and writes Savoir's JSON files: writes are atomic, and a lock file orders concurrent
//! writers.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use savoir_package::temporary_file;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::secrets::KeyringError;

/// Why a file could not be stored or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no home folder to store files in.
    #[error("it is not known where to keep files: neither SAVOIR_HOME nor HOME is set")]
    NoHome,
    /// A folder could not be created or listed.
    #[error("{} cannot be used as a folder: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// Other users may write a file or a folder that decides what runs.
    #[error("other users may write to {}", path.display())]
    Exposed { path: PathBuf },
    /// Other users may read a file with secrets.
    #[error("other users may read {}", path.display())]
    Readable { path: PathBuf },
    /// A file could not be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A file does not have the format that Savoir writes.
    #[error("{} is damaged: {problem}", path.display())]
    Corrupt { path: PathBuf, problem: String },
    /// The keyring of the system has the value but does not return it.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// A file was written by a newer Savoir.
    #[error("{} has the format {found}, this program knows up to {known}", path.display())]
    Newer { path: PathBuf, found: u64, known: u64 },
    /// No record has the identifier.
    #[error("there is no run `{id}`")]
    NoSuchRun { id: String },
    /// Several records begin with the identifier.
    #[error("`{id}` could be any of {count} runs: {}", some.join(", "))]
    AmbiguousRun { id: String, count: usize, some: Vec<String> },
}

impl StoreError {
    /// A hint that solves the problem.
    pub fn help(&self) -> String {
        match self {
            Self::NoHome => "set SAVOIR_HOME to a folder of your own".to_owned(),
            Self::Folder { .. } | Self::Read { .. } | Self::Write { .. } => {
                "check its permissions and the space left, or set SAVOIR_HOME to another folder"
                    .to_owned()
            }
            Self::Exposed { path } => format!("close it with: chmod go-w {}", path.display()),
            Self::Readable { path } => format!("close it with: chmod 600 {}", path.display()),
            Self::Corrupt { path, .. } => format!(
                "fix it, or move it away to start with an empty one: mv {0} {0}.damaged",
                path.display()
            ),
            Self::Keyring(KeyringError::NotBuiltIn) => {
                "use the full program: cargo install --path crates/savoir".to_owned()
            }
            Self::Keyring(_) => "unlock the keyring, and try again".to_owned(),
            Self::Newer { .. } => "update Savoir, or set SAVOIR_HOME to another folder".to_owned(),
            Self::NoSuchRun { .. } => "`savoir runs` lists them".to_owned(),
            Self::AmbiguousRun { .. } => "give more of its digits".to_owned(),
        }
    }
}

/// Creates a folder that only its owner can access; refuses an existing one that others may write
/// to.
pub fn make_folder(path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Folder { path: path.to_owned(), source };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(failed)?;
    refuse_exposed(path)
}

/// Refuses a file or folder that other users may write to, because anyone who can write there can
/// approve skills in the owner's name. A missing path is accepted.
#[cfg(unix)]
pub fn refuse_exposed(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o022 != 0 => {
            Err(StoreError::Exposed { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Refuses a file with secrets that others may read.
#[cfg(unix)]
pub fn refuse_readable(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            Err(StoreError::Readable { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// On other systems, the folders of a user are not accessible to others by default.
#[cfg(not(unix))]
pub fn refuse_readable(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// On other systems, the folders of a user are not accessible to others by default.
#[cfg(not(unix))]
pub fn refuse_exposed(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Replace,
    KeepExisting,
}

/// Writes JSON through a temporary file in the same folder. Only the owner can read the file.
pub fn write_json(
    path: &Path,
    value: &impl Serialize,
    existing: Existing,
) -> Result<(), StoreError> {
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut text = serde_json::to_string_pretty(value)?;
        text.push('\n');
        let mut file = temporary_file::create(folder, None)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        match existing {
            Existing::Replace => file.persist(path)?,
            Existing::KeepExisting => file.persist_noclobber(path)?,
        };
        // The folder is synced, too, because the new name is part of it.
        #[cfg(unix)]
        fs::File::open(folder)?.sync_all()?;
        Ok(())
    };
    write().map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

/// Reads a JSON file; `None` if it does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::Read { path: path.to_owned(), source }),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StoreError::Corrupt { path: path.to_owned(), problem: error.to_string() })
}

/// A lock that other writers wait for; dropping it releases it.
#[derive(Debug)]
pub struct FileLock {
    // Closing the file releases the lock.
    _file: fs::File,
}

/// Waits for the lock on the file at `path`.
pub fn lock_file(path: &Path) -> Result<FileLock, StoreError> {
    // Each writer replaces the file itself, so the lock is on a separate file.
    let lock = path.with_extension("lock");
    let open = || -> io::Result<fs::File> {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&lock)?;
        file.lock()?;
        Ok(file)
    };
    let file = open().map_err(|source| StoreError::Write { path: lock.clone(), source })?;
    Ok(FileLock { _file: file })
}
