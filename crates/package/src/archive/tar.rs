//! Reads tar archives, plain or gzipped, with plain files and folders only. Long names in the
//! formats of GNU and POSIX are supported; all other extensions are rejected.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;
use tar::{EntryType, Header};

use super::{
    ArchiveError, ArchiveKind,
    tree_builder::{TreeBuilder, check_size, is_junk, max_unpacked_bytes, text},
};
use crate::{
    File, Tree,
    limits::{MAX_RATIO, MAX_TAR_BYTES, MAX_TAR_RECORD_BYTES},
};

mod record;

use record::EntryOverrides;

const BLOCK_BYTES: usize = 512;

/// Whether bytes start with a tar header.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.first_chunk::<BLOCK_BYTES>().is_some_and(|block| {
        let header = Header::from_byte_slice(block);
        block[0] != 0 && header.cksum().is_ok_and(|sum| sum == checksum(header))
    })
}

/// Returns all files of a tar.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    TarReader { source: bytes, kind: ArchiveKind::Tar }.entries()
}

/// Returns all files of a gzipped tar.
pub(super) fn read_gz(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    let left = max_unpacked_bytes(bytes.len() as u64).min(MAX_TAR_BYTES);
    let source = LimitedReader { source: MultiGzDecoder::new(bytes), left };
    TarReader { source, kind: ArchiveKind::TarGz }.entries()
}

/// A reader that fails if more than a maximum number of bytes is read.
struct LimitedReader<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

struct TarReader<R> {
    source: R,
    kind: ArchiveKind,
}

impl<R: Read> TarReader<R> {
    fn entries(mut self) -> Result<Tree, ArchiveError> {
        let mut builder = TreeBuilder::default();
        let mut described = EntryOverrides::default();
        while let Some(header) = self.header()? {
            let size =
                header.entry_size().map_err(|_| self.malformed("its size is not a number"))?;
            if is_record(header.entry_type()) {
                self.describe(&header, size, &mut described)?;
                continue;
            }
            let described = std::mem::take(&mut described);
            let path = described.path.unwrap_or_else(|| header.path_bytes().into_owned());
            if described.size.is_some_and(|described| described != size) {
                return Err(self.error(Some(&path), "it has two sizes"));
            }
            self.entry(&header, &path, size, &mut builder)?;
        }
        if described != EntryOverrides::default() {
            return Err(self.malformed("its last entry is missing"));
        }
        self.check_nothing_follows()?;
        builder.finish()
    }

    /// Reads a record that describes the next entry, or all following ones.
    fn describe(
        &mut self,
        header: &Header,
        size: u64,
        described: &mut EntryOverrides,
    ) -> Result<(), ArchiveError> {
        let name = header.path_bytes();
        if size > MAX_TAR_RECORD_BYTES {
            return Err(self.error(Some(&name), "it describes an entry at too great length"));
        }
        let record = self.content(size)?;
        let read = match header.entry_type() {
            EntryType::GNULongName => described.read_long_name(record),
            EntryType::XHeader => described.read_extended_header(&record),
            _ => record::check_global(&record),
        };
        read.map_err(|why| self.error(Some(&name), why))
    }

    fn entry(
        &mut self,
        header: &Header,
        path: &[u8],
        size: u64,
        builder: &mut TreeBuilder,
    ) -> Result<(), ArchiveError> {
        builder.count_entry()?;
        let path = strip_dot_prefix(text(path)?);
        if is_junk(path) {
            return self.skip(size);
        }
        let is_folder = match header.entry_type() {
            EntryType::Directory => true,
            // The oldest tar format marks folders by a trailing slash.
            EntryType::Regular => path.ends_with('/'),
            EntryType::Symlink | EntryType::Link | EntryType::GNULongLink => {
                return Err(ArchiveError::Link(path.to_owned()));
            }
            _ => return Err(ArchiveError::FileType(path.to_owned())),
        };
        if is_folder && size > 0 {
            return Err(self.error(Some(path.as_bytes()), "it is a folder with content"));
        }
        if is_folder {
            let path = path.strip_suffix('/').unwrap_or(path);
            return if matches!(path, "" | ".") { Ok(()) } else { builder.add_folder(path) };
        }
        check_size(path, size)?;
        let mode = header.mode().map_err(|_| self.malformed("its mode is not a number"))?;
        let bytes = self.content(size)?;
        builder.add_file(path, File { bytes, executable: mode & 0o111 != 0 })
    }

    /// Returns the next header; `None` at the end.
    fn header(&mut self) -> Result<Option<Header>, ArchiveError> {
        let mut header = Header::new_old();
        let read = self.source.read_exact(header.as_mut_bytes());
        read.map_err(|error| self.io(&error))?;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        match header.cksum() {
            Ok(sum) if sum == checksum(&header) => Ok(Some(header)),
            _ => Err(self.malformed("the header of an entry is damaged")),
        }
    }

    /// Returns the next `size` bytes, and skips the padding of the last block.
    fn content(&mut self, size: u64) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = vec![0; size as usize];
        self.source.read_exact(&mut bytes).map_err(|error| self.io(&error))?;
        self.skip_exactly(padding(size))?;
        Ok(bytes)
    }

    fn skip(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.skip_exactly(size)?;
        self.skip_exactly(padding(size))
    }

    fn skip_exactly(&mut self, size: u64) -> Result<(), ArchiveError> {
        let skipped = io::copy(&mut (&mut self.source).take(size), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == size => Ok(()),
            Ok(_) => Err(self.malformed(CUT_OFF_MESSAGE)),
            Err(error) => Err(self.io(&error)),
        }
    }

    /// Checks that only zeros follow the end. Reading to the end also verifies the checksum of
    /// gzip.
    fn check_nothing_follows(&mut self) -> Result<(), ArchiveError> {
        let mut buffer = [0; 16 * BLOCK_BYTES];
        loop {
            let read = self.source.read(&mut buffer).map_err(|error| self.io(&error))?;
            if read == 0 {
                return Ok(());
            }
            if buffer[..read].iter().any(|byte| *byte != 0) {
                return Err(self.malformed("something follows its end"));
            }
        }
    }

    fn io(&self, error: &io::Error) -> ArchiveError {
        match error.kind() {
            io::ErrorKind::FileTooLarge => ArchiveError::TooLarge(format!(
                "it has more than {MAX_TAR_BYTES} bytes or {MAX_RATIO} times its size, unpacked"
            )),
            io::ErrorKind::UnexpectedEof => self.malformed(CUT_OFF_MESSAGE),
            _ => self.malformed("its gzip data is damaged, or something follows its end"),
        }
    }

    fn malformed(&self, why: &'static str) -> ArchiveError {
        self.error(None, why)
    }

    fn error(&self, entry: Option<&[u8]>, why: &'static str) -> ArchiveError {
        let entry = entry.map(|entry| String::from_utf8_lossy(entry).into_owned());
        ArchiveError::Malformed { kind: self.kind, entry, why }
    }
}

const CUT_OFF_MESSAGE: &str = "it is cut off";

fn is_record(kind: EntryType) -> bool {
    matches!(kind, EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader)
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK_BYTES as u64) - size
}

fn checksum(header: &Header) -> u32 {
    let bytes = header.as_bytes();
    let others = bytes[..148].iter().chain(&bytes[156..]);
    // The checksum field itself counts as eight spaces.
    others.map(|byte| u32::from(*byte)).sum::<u32>() + 8 * u32::from(b' ')
}

/// Removes the `./` that `tar -C folder .` puts in front of every path.
fn strip_dot_prefix(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}
