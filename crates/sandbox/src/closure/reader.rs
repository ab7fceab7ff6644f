//! Bounded reads from regular files and from nothing else.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// A regular file, read in pieces: libraries are big, and what is wanted of them is small.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    size: u64,
}

impl Reader {
    /// Opens without following a last link and without waiting, so that a pipe put there meanwhile holds up nobody.
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

    /// What is there from an offset on, at most so many bytes, fewer where the file ends.
    pub(super) fn some(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        // The size decides what is allocated, never what a header claims.
        let mut bytes = vec![0; most.min(left)];
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

    /// Exactly so many bytes, or nothing.
    pub(super) fn exactly(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        self.some(offset, count).ok().filter(|bytes| bytes.len() == count)
    }
}

/// A whole small file, or nothing when it is too big, no regular file or not there.
pub(super) fn small(path: &Path, most: usize) -> Option<Vec<u8>> {
    let reader = Reader::open(path).ok()?;
    if reader.size > most as u64 {
        return None;
    }
    reader.some(0, most).ok()
}
