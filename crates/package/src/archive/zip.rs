//! Reads zip archives that all programs interpret in the same way: parsers that start at the end,
//! at the directory or at the beginning must see the same entries, which must follow each other
//! without gaps.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{
    ArchiveError, ArchiveKind,
    tree_builder::{TreeBuilder, check_size, is_junk, max_unpacked_bytes, text},
};
use crate::{File, Tree, limits::MAX_TREE_BYTES};

mod directory;
mod end;
mod extra;
mod fields;
mod local;

use directory::Entry;
use end::End;

/// Whether bytes end like a zip.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    End::find(bytes).is_some()
}

/// Returns all files of a zip.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    let end = End::read(bytes)?;
    let entries = directory::read(&bytes[end.directory.clone()], end.entries)?;
    check_no_overlap(&entries, end.directory.start)?;
    check_sizes(&entries)?;
    let mut builder = TreeBuilder::default();
    for (index, entry) in entries.iter().enumerate() {
        builder.count_entry()?;
        let next = entries.get(index + 1).map_or(end.directory.start, Entry::start);
        let packed = local::data(&bytes[entry.start()..next], entry)?;
        add_entry(entry, packed, &mut builder)?;
    }
    builder.finish()
}

fn add_entry(entry: &Entry, packed: &[u8], builder: &mut TreeBuilder) -> Result<(), ArchiveError> {
    let path = text(entry.name)?;
    if is_junk(path) {
        return Ok(());
    }
    let executable = entry.mode & 0o111 != 0;
    let folder = path.strip_suffix('/');
    match (entry.mode & 0o170_000, folder) {
        (0 | 0o040_000, Some(folder)) if entry.size == 0 => {
            content(entry, packed)?;
            builder.add_folder(folder)
        }
        (0 | 0o100_000, None) => {
            check_size(path, entry.size)?;
            builder.add_file(path, File { bytes: content(entry, packed)?, executable })
        }
        (0o120_000, _) => Err(ArchiveError::Link(path.to_owned())),
        _ => Err(ArchiveError::FileType(path.to_owned())),
    }
}

/// Checks that entries start at the first byte and do not overlap. Gaps between entries are
/// detected when their bytes are read.
fn check_no_overlap(entries: &[Entry], directory: usize) -> Result<(), ArchiveError> {
    if entries.first().map_or(directory, Entry::start) != 0 {
        return Err(confusion("something lies before its first entry"));
    }
    let starts = entries.iter().skip(1).map(Entry::start).chain([directory]);
    for (entry, next) in entries.iter().zip(starts) {
        if entry.min_end() > next as u64 {
            return Err(entry.malformed("it overlaps with another entry or is out of order"));
        }
    }
    Ok(())
}

/// Rejects an archive by the sizes in its directory. Unpacking never exceeds them.
fn check_sizes(entries: &[Entry]) -> Result<(), ArchiveError> {
    let mut all: u64 = 0;
    for entry in entries {
        if entry.size > max_unpacked_bytes(entry.packed) {
            return Err(ArchiveError::TooLarge(format!(
                "`{}` becomes {} bytes from {}, as only attacks do",
                entry.path().escape_debug(),
                entry.size,
                entry.packed
            )));
        }
        all = all.saturating_add(entry.size);
    }
    if all > MAX_TREE_BYTES {
        return Err(ArchiveError::TooLarge(format!(
            "its files have {all} bytes together; a skill has at most {MAX_TREE_BYTES}"
        )));
    }
    Ok(())
}

fn content(entry: &Entry, packed: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let bytes = if entry.is_stored() { Some(packed.to_vec()) } else { inflate(packed, entry.size) };
    let bytes = bytes.filter(|bytes| bytes.len() as u64 == entry.size);
    let bytes =
        bytes.ok_or_else(|| entry.malformed("its packed bytes are not what they should"))?;
    let mut crc = Crc::new();
    crc.update(&bytes);
    if crc.sum() != entry.crc {
        return Err(entry.malformed("its bytes are damaged"));
    }
    Ok(bytes)
}

/// Inflates all of the bytes; fails if the result does not have the expected size. Never produces
/// more than one byte above it.
fn inflate(packed: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let mut inflating = Decompress::new(false);
    let status = inflating.decompress_vec(packed, &mut bytes, FlushDecompress::Finish).ok()?;
    let complete = status == Status::StreamEnd && inflating.total_in() == packed.len() as u64;
    complete.then_some(bytes)
}

fn malformed(why: &'static str) -> ArchiveError {
    ArchiveError::Malformed { kind: ArchiveKind::Zip, entry: None, why }
}

fn confusion(why: &'static str) -> ArchiveError {
    ArchiveError::Confusion { entry: None, why }
}
