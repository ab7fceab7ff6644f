//! Reads and writes files safely: writes are atomic, reads are limited in size.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::temporary_file;

/// Writes a file, and replaces an existing one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_temp_file(path, bytes, 0o644)?.persist(path)?;
    sync_parent_folder(path)
}

/// Writes a new file; fails with `AlreadyExists` if it exists.
pub(super) fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_temp_file(path, bytes, mode)?.persist_noclobber(path)?;
    sync_parent_folder(path)
}

/// Reads a file; fails if it has more than `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(&fs::File::open(path)?, limit)
}

/// Like [`read`], for an open file.
pub(super) fn read_open(file: &fs::File, limit: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Locks a file against changes by other programs until the lock is dropped.
pub(super) fn lock(path: &Path) -> io::Result<fs::File> {
    let lock =
        fs::OpenOptions::new().write(true).create(true).truncate(false).open(lock_path(path))?;
    lock.lock()?;
    Ok(lock)
}

/// Returns the path of the lock file of a file.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn write_temp_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let permissions = fs::Permissions::from_mode(mode);
    let mut file = temporary_file::create(parent_folder(path), Some(permissions))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Syncs the parent folder, because a new file name is only on disk after its folder is.
fn sync_parent_folder(path: &Path) -> io::Result<()> {
    fs::File::open(parent_folder(path))?.sync_all()
}

fn parent_folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
