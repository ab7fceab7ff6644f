//! Writes files atomically.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

/// Writes a file in place of the one that may be there.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    prepared(path, bytes, 0o644)?.persist(path)?;
    keep_entry(path)
}

/// Writes a file, unless there is one: then it is an error of the kind `AlreadyExists`.
pub(super) fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    prepared(path, bytes, mode)?.persist_noclobber(path)?;
    keep_entry(path)
}

/// At most so many bytes of a file; one that is longer is an error.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(&fs::File::open(path)?, limit)
}

/// The same of a file that is open.
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

/// Keeps other programs from changing a file until the lock is dropped.
pub(super) fn lock(path: &Path) -> io::Result<fs::File> {
    let lock =
        fs::OpenOptions::new().write(true).create(true).truncate(false).open(lock_path(path))?;
    lock.lock()?;
    Ok(lock)
}

/// The file beside another one that is locked while that one is changed.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn prepared(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut file =
        Builder::new().permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A new name is on the disk only when its folder is.
fn keep_entry(path: &Path) -> io::Result<()> {
    fs::File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
