use super::{ArchiveError, ArchiveKind, extra::Extra, fields::Fields, local, malformed};

const SIGNATURE: u32 = 0x0201_4b50;
const STORED_METHOD: u16 = 0;
const DEFLATED_METHOD: u16 = 8;

/// Flags of encrypted entries.
const ENCRYPTED_FLAGS: u16 = 1 | 1 << 6 | 1 << 13;
/// Whether checksum and sizes follow the packed bytes.
const DESCRIPTOR_FLAG: u16 = 1 << 3;
/// Whether the name is UTF-8.
const UTF8_FLAG: u16 = 1 << 11;
/// The compression level, which does not affect reading.
const COMPRESSION_LEVEL_FLAGS: u16 = 1 << 1 | 1 << 2;

/// An entry of the central directory.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// The packed size.
    pub(super) packed: u64,
    /// The unpacked size.
    pub(super) size: u64,
    /// Type and permissions; 0 if the zip was not made on Unix.
    pub(super) mode: u32,
    start: usize,
}

impl Entry<'_> {
    /// The offset of its local header.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The smallest offset at which the entry can end.
    pub(super) fn min_end(&self) -> u64 {
        let head = local::LOCAL_HEADER_BYTES + self.name.len() as u64;
        (self.start as u64).saturating_add(self.packed).saturating_add(head)
    }

    pub(super) fn is_stored(&self) -> bool {
        self.method == STORED_METHOD
    }

    /// Whether checksum and sizes follow the packed bytes.
    pub(super) fn is_described(&self) -> bool {
        self.flags & DESCRIPTOR_FLAG != 0
    }

    pub(super) fn path(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    pub(super) fn malformed(&self, why: &'static str) -> ArchiveError {
        ArchiveError::Malformed { kind: ArchiveKind::Zip, entry: Some(self.path()), why }
    }

    pub(super) fn confusion(&self, why: &'static str) -> ArchiveError {
        ArchiveError::Confusion { entry: Some(self.path()), why }
    }

    fn check(&self) -> Result<(), ArchiveError> {
        if self.flags & ENCRYPTED_FLAGS != 0 {
            return Err(ArchiveError::Encrypted(self.path()));
        }
        if self.flags & !(DESCRIPTOR_FLAG | UTF8_FLAG | COMPRESSION_LEVEL_FLAGS) != 0 {
            return Err(self.malformed("it needs an extension of zip that is not read"));
        }
        if ![STORED_METHOD, DEFLATED_METHOD].contains(&self.method) {
            return Err(self.malformed("it is neither stored nor packed with deflate"));
        }
        if self.is_stored() && self.packed != self.size {
            return Err(self.malformed("it is stored, but its sizes differ"));
        }
        Ok(())
    }
}

/// The flags that affect how an entry is read.
pub(super) fn flags_that_matter(flags: u16) -> u16 {
    flags & !COMPRESSION_LEVEL_FLAGS
}

/// Parses a directory, which must contain nothing else.
pub(super) fn read(bytes: &[u8], count: usize) -> Result<Vec<Entry<'_>>, ArchiveError> {
    let mut fields = Fields(bytes);
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(entry(&mut fields)?);
    }
    if !fields.is_empty() {
        return Err(malformed("its directory has more than its entries"));
    }
    Ok(entries)
}

/// Fields that are only needed while the directory is read.
struct EntryTail<'a> {
    extra: &'a [u8],
    comment: &'a [u8],
    disk: u16,
    sizes: [u32; 3],
}

fn entry<'a>(fields: &mut Fields<'a>) -> Result<Entry<'a>, ArchiveError> {
    let read = header(fields).ok_or_else(|| malformed("its directory is damaged"))?;
    let (mut entry, rest) = read;
    let extra = Extra::read(rest.extra);
    let mut extra = extra.ok_or_else(|| entry.malformed("its extra fields are damaged"))?;
    // The zip64 field contains only the values that are too large, in this order.
    let [size, packed, start] = rest.sizes.map(|number| extra.read_zip64_field(number));
    let (Some(size), Some(packed), Some(start)) = (size, packed, start) else {
        return Err(entry.malformed("a large number is missing"));
    };
    (entry.size, entry.packed) = (size, packed);
    entry.start = usize::try_from(start).unwrap_or(usize::MAX);
    if extra.encrypted {
        return Err(ArchiveError::Encrypted(entry.path()));
    }
    if !extra.is_consumed() {
        return Err(entry.confusion("it has two sizes"));
    }
    if !extra.matches_name(entry.name) {
        return Err(entry.confusion("it has two names"));
    }
    if !rest.comment.is_empty() {
        return Err(entry.confusion("it has a comment"));
    }
    if rest.disk != 0 {
        return Err(entry.malformed("it lies in another file"));
    }
    entry.check()?;
    Ok(entry)
}

fn header<'a>(fields: &mut Fields<'a>) -> Option<(Entry<'a>, EntryTail<'a>)> {
    if fields.u32()? != SIGNATURE {
        return None;
    }
    let _versions = fields.u32()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    let _time = fields.u32()?;
    let crc = fields.u32()?;
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let lengths = [fields.u16()?, fields.u16()?, fields.u16()?];
    let disk = fields.u16()?;
    let _internal = fields.u16()?;
    let mode = fields.u32()? >> 16;
    let start = fields.u32()?;
    let [name, extra, comment] = lengths.map(|length| fields.take(length.into()));
    let entry = Entry { name: name?, flags, method, crc, packed: 0, size: 0, mode, start: 0 };
    Some((
        entry,
        EntryTail { extra: extra?, comment: comment?, disk, sizes: [size, packed, start] },
    ))
}
