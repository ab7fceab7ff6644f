use std::ops::Range;

use super::{ArchiveError, confusion, fields::Fields, malformed};
use crate::limits::MAX_ENTRIES;

const SIGNATURE: &[u8] = b"PK\x05\x06";
const END_RECORD_BYTES: usize = 22;
const ZIP64_SIGNATURE: u32 = 0x0606_4b50;
const ZIP64_LENGTH: usize = 56;
const ZIP64_LOCATOR_SIGNATURE: u32 = 0x0706_4b50;
const ZIP64_LOCATOR_LENGTH: usize = 20;

/// The contents of the end record.
pub(super) struct End {
    /// The position of the central directory.
    pub(super) directory: Range<usize>,
    /// The number of entries.
    pub(super) entries: usize,
}

/// The fields of an end record, classic or zip64.
struct EndFields {
    here: u64,
    entries: u64,
    size: u64,
    start: u64,
}

impl End {
    /// Finds the last end record, which may be followed by a comment.
    pub(super) fn find(bytes: &[u8]) -> Option<usize> {
        let from = bytes.len().saturating_sub(END_RECORD_BYTES + usize::from(u16::MAX));
        let at = bytes[from..].windows(SIGNATURE.len()).rposition(|window| window == SIGNATURE)?;
        Some(from + at)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let at = Self::find(bytes).ok_or_else(|| malformed("its end is missing"))?;
        let numbers = Self::record(&bytes[at..])?;
        if numbers.start.saturating_add(numbers.size) == at as u64 {
            return Self::new(&numbers);
        }
        let Some(locator) = at.checked_sub(ZIP64_LOCATOR_LENGTH) else {
            return Err(malformed("its directory is cut off"));
        };
        let large = read_zip64_end(bytes, locator, at)
            .filter(|large| numbers.agrees_with_zip64(large))
            .ok_or_else(|| confusion("something lies before it or behind its directory"))?;
        Self::new(&large)
    }

    fn record(record: &[u8]) -> Result<EndFields, ArchiveError> {
        let Some((numbers, disks, comment_length)) = numbers(Fields(record)) else {
            return Err(malformed("its end is cut off"));
        };
        if disks != (0, 0) {
            return Err(malformed("it is part of a zip in several files"));
        }
        let comment = &record[END_RECORD_BYTES..];
        if comment.len() != comment_length {
            return Err(confusion("something follows its end"));
        }
        if !comment.is_empty() && !is_commit(comment) {
            return Err(confusion("it has a comment"));
        }
        Ok(numbers)
    }

    fn new(numbers: &EndFields) -> Result<Self, ArchiveError> {
        if numbers.here != numbers.entries {
            return Err(malformed("the end record has two different numbers of entries"));
        }
        if numbers.entries > MAX_ENTRIES as u64 {
            return Err(ArchiveError::TooManyFiles);
        }
        let start = numbers.start as usize;
        let directory = start..start + numbers.size as usize;
        Ok(Self { directory, entries: numbers.entries as usize })
    }
}

impl EndFields {
    /// Whether the zip64 record has the same values, where this record has one.
    fn agrees_with_zip64(&self, large: &Self) -> bool {
        let count = |a: u64, b| a == b || a == u64::from(u16::MAX);
        let place = |a: u64, b| a == b || a == u64::from(u32::MAX);
        count(self.here, large.here)
            && count(self.entries, large.entries)
            && place(self.size, large.size)
            && place(self.start, large.start)
    }
}

/// Parses the classic record; returns its fields, its disk numbers, and the length of the comment.
fn numbers(mut fields: Fields) -> Option<(EndFields, (u16, u16), usize)> {
    fields.take(SIGNATURE.len())?;
    let disks = (fields.u16()?, fields.u16()?);
    let numbers = EndFields {
        here: fields.u16()?.into(),
        entries: fields.u16()?.into(),
        size: fields.u32()?.into(),
        start: fields.u32()?.into(),
    };
    Some((numbers, disks, fields.u16()?.into()))
}

/// Parses the zip64 record and its locator, which must be directly between the directory and the
/// end record.
fn read_zip64_end(bytes: &[u8], locator: usize, end: usize) -> Option<EndFields> {
    let record = locator.checked_sub(ZIP64_LENGTH)?;
    let mut fields = Fields(&bytes[locator..end]);
    let found = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u32()?);
    if found != (ZIP64_LOCATOR_SIGNATURE, 0, record as u64, 1) {
        return None;
    }
    let mut fields = Fields(&bytes[record..locator]);
    // The length of a record covers neither its signature nor the length field.
    let head = (fields.u32()?, fields.u64()?);
    let _versions = fields.u32()?;
    let disks = (fields.u32()?, fields.u32()?);
    if (head, disks) != ((ZIP64_SIGNATURE, ZIP64_LENGTH as u64 - 12), (0, 0)) {
        return None;
    }
    let numbers = EndFields {
        here: fields.u64()?,
        entries: fields.u64()?,
        size: fields.u64()?,
        start: fields.u64()?,
    };
    (numbers.start.checked_add(numbers.size)? == record as u64).then_some(numbers)
}

/// Whether a comment is a commit id, which `git archive` writes.
fn is_commit(comment: &[u8]) -> bool {
    matches!(comment.len(), 40 | 64) && comment.iter().all(u8::is_ascii_hexdigit)
}
