//! Reads regular files, and only those, with size limits.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// An open regular file that is read in pieces, because libraries are big and only small parts are
/// needed.
#[derive(Debug)]
pub(super) struct FileReader {
    file: File,
    size: u64,
}

impl FileReader {
    /// Opens a file without following a link and without blocking, so that a pipe that replaced the
    /// file cannot block the caller.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { file, size: meta.len() })
    }

    /// Reads up to `max_bytes` bytes from an offset; fewer at the end of the file.
    pub(super) fn read_up_to(&self, offset: u64, max_bytes: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        // The file size bounds the allocation, not a length that a header claims.
        let mut bytes = vec![0; max_bytes.min(left)];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Reads exactly `count` bytes, or returns `None`.
    pub(super) fn read_exactly(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        self.read_up_to(offset, count).ok().filter(|bytes| bytes.len() == count)
    }
}

/// Reads a whole small file; `None` if it is too big, missing or not a regular file.
pub(super) fn read_small_file(path: &Path, max_bytes: usize) -> Option<Vec<u8>> {
    let reader = FileReader::open(path).ok()?;
    if reader.size > max_bytes as u64 {
        return None;
    }
    reader.read_up_to(0, max_bytes).ok()
}
