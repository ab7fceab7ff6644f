use std::io::Write as _;

use flate2::{Compression, Crc, write::DeflateEncoder};

use super::{
    ArchiveError,
    tree_builder::{is_junk, max_unpacked_bytes},
};
use crate::{
    File, Tree,
    limits::MAX_ARCHIVE_BYTES,
    path::{self, PathProblem},
};

/// The earliest time that zip can store. It is always used, so that packing is deterministic.
const MODIFIED_TIME: [u8; 4] = [0, 0, 0x21, 0];
/// Made on Unix, so that permissions are used, with version 2.0 of the format.
const MADE_BY_VERSION: [u8; 2] = [20, 3];
const NEEDED_VERSION: [u8; 2] = [20, 0];
const UTF8_FLAG: u16 = 1 << 11;

/// Packs the files of a skill as a zip with one folder. The same files always give the same bytes.
pub fn pack(name: &str, tree: &Tree) -> Result<Vec<u8>, ArchiveError> {
    if name.contains('/') || is_junk(name) {
        let why = "it is not the name of a skill's folder".to_owned();
        return Err(ArchiveError::path(name, PathProblem::Characters(why)));
    }
    let mut zip = ZipWriter::default();
    for (path, file) in tree.files() {
        let path = format!("{name}/{path}");
        path::check(&path).map_err(|problem| ArchiveError::path(&path, problem))?;
        if !is_junk(&path) {
            zip.add(&path, file)?;
        }
    }
    let bytes = zip.finish();
    if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
        return Err(ArchiveError::TooLarge(format!(
            "the packed skill has {} bytes; at most {MAX_ARCHIVE_BYTES} are read again",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Packs the files of a skill as a zip without a folder and without compression. Its bytes do not
/// depend on the version of the compressor, so its digest can be computed in advance.
pub fn pack_plain(tree: &Tree) -> Result<Vec<u8>, ArchiveError> {
    let mut zip = ZipWriter { stored: true, ..ZipWriter::default() };
    for (path, file) in tree.files().filter(|(path, _)| !is_junk(path)) {
        zip.add(path, file)?;
    }
    Ok(zip.finish())
}

#[derive(Default)]
struct ZipWriter {
    /// Whether files are stored without compression.
    stored: bool,
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl ZipWriter {
    fn add(&mut self, path: &str, file: &File) -> Result<(), ArchiveError> {
        let failed = |error| ArchiveError::Entry(crate::TreeError::Io { path: path.into(), error });
        let deflated = if self.stored { None } else { deflate(&file.bytes).map_err(failed)? };
        let (method, packed) = match &deflated {
            Some(deflated) => (8, deflated),
            None => (0, &file.bytes),
        };
        let described = describe(path, file, method, packed.len());
        let mode: u32 = if file.executable { 0o100_755 } else { 0o100_644 };
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(MADE_BY_VERSION);
        self.directory.extend(&described);
        // No comment, first disk, no internal attributes.
        self.directory.extend([0; 6]);
        self.directory.extend((mode << 16).to_le_bytes());
        self.directory.extend((self.bytes.len() as u32).to_le_bytes());
        self.directory.extend(path.as_bytes());
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&described);
        self.bytes.extend(path.as_bytes());
        self.bytes.extend(packed);
        self.entries += 1;
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        let start = (self.bytes.len() as u32).to_le_bytes();
        let size = (self.directory.len() as u32).to_le_bytes();
        let entries = self.entries.to_le_bytes();
        self.bytes.append(&mut self.directory);
        let end: [&[u8]; 7] = [b"PK\x05\x06", &[0; 4], &entries, &entries, &size, &start, &[0; 2]];
        self.bytes.extend(end.concat());
        self.bytes
    }
}

/// Returns the fields that the local header and the central directory share, from the required
/// version to the lengths.
fn describe(path: &str, file: &File, method: u16, packed: usize) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(&file.bytes);
    let mut fields = Vec::from(NEEDED_VERSION);
    fields.extend(UTF8_FLAG.to_le_bytes());
    fields.extend(method.to_le_bytes());
    fields.extend(MODIFIED_TIME);
    for number in [crc.sum(), packed as u32, file.bytes.len() as u32] {
        fields.extend(number.to_le_bytes());
    }
    fields.extend((path.len() as u16).to_le_bytes());
    // No extra fields.
    fields.extend([0; 2]);
    fields
}

/// Deflates bytes; returns `None` if that does not save space, or saves so much that readers would
/// take it for a zip bomb.
fn deflate(bytes: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    let mut deflating = DeflateEncoder::new(Vec::new(), Compression::default());
    deflating.write_all(bytes)?;
    let deflated = deflating.finish()?;
    let shrinks = deflated.len() < bytes.len();
    let looks_sound = bytes.len() as u64 <= max_unpacked_bytes(deflated.len() as u64);
    Ok((shrinks && looks_sound).then_some(deflated))
}
