use super::{
    ArchiveError,
    directory::{Entry, flags_that_matter},
    extra::Extra,
    fields::Fields,
};

const SIGNATURE: u32 = 0x0403_4b50;
const DESCRIPTOR: &[u8] = b"PK\x07\x08";
/// The length of a local header without its name.
pub(super) const LOCAL_HEADER_BYTES: u64 = 30;

/// The local header of an entry.
struct Header<'a> {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    size: u32,
    name: &'a [u8],
    extra: &'a [u8],
}

/// Returns the packed bytes of an entry, given the bytes between its start and the next entry. The
/// local header must agree with the directory, and there must be no other data.
pub(super) fn data<'a>(bytes: &'a [u8], entry: &Entry) -> Result<&'a [u8], ArchiveError> {
    let mut fields = Fields(bytes);
    let header = header(&mut fields).ok_or_else(|| entry.malformed("its header is damaged"))?;
    check(&header, entry)?;
    let Some(data) = fields.take(entry.packed as usize) else {
        return Err(entry.malformed("it overlaps with another entry"));
    };
    let is_right =
        if entry.is_described() { is_descriptor(fields.0, entry) } else { fields.is_empty() };
    if !is_right {
        return Err(entry.confusion("something else lies behind its bytes"));
    }
    Ok(data)
}

fn check(header: &Header, entry: &Entry) -> Result<(), ArchiveError> {
    if header.name != entry.name {
        return Err(entry.confusion("it has another name in front of its bytes"));
    }
    let extra = Extra::read(header.extra);
    let mut extra = extra.ok_or_else(|| entry.malformed("its extra fields are damaged"))?;
    if !extra.matches_name(entry.name) {
        return Err(entry.confusion("it has two names"));
    }
    // If a data descriptor follows, the sizes in the local header may be zero.
    let agrees = |here: Option<u64>, there: u64| {
        here == Some(there) || entry.is_described() && here == Some(0)
    };
    let is_same = flags_that_matter(header.flags) == flags_that_matter(entry.flags)
        && header.method == entry.method
        && agrees(Some(header.crc.into()), entry.crc.into())
        && agrees(extra.read_zip64_field(header.size), entry.size)
        && agrees(extra.read_zip64_field(header.packed), entry.packed)
        && extra.is_consumed()
        && !extra.encrypted;
    if !is_same {
        return Err(entry.confusion("its header and the directory disagree"));
    }
    Ok(())
}

fn header<'a>(fields: &mut Fields<'a>) -> Option<Header<'a>> {
    if fields.u32()? != SIGNATURE {
        return None;
    }
    let _version = fields.u16()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    let _time = fields.u32()?;
    let (crc, packed, size) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (name, extra) = (fields.u16()?, fields.u16()?);
    let (name, extra) = (fields.take(name.into())?, fields.take(extra.into())?);
    Some(Header { flags, method, crc, packed, size, name, extra })
}

/// Whether bytes are the data descriptor of an entry: checksum and sizes after the content, with or
/// without a signature, with 32-bit or 64-bit sizes.
fn is_descriptor(bytes: &[u8], entry: &Entry) -> bool {
    let crc = entry.crc.to_le_bytes();
    let long = [entry.packed.to_le_bytes(), entry.size.to_le_bytes()].concat();
    let short = [&long[..4], &long[8..12]].concat();
    let bytes = match bytes.len() {
        16 | 24 => bytes.strip_prefix(DESCRIPTOR),
        _ => Some(bytes),
    };
    let sizes = bytes.and_then(|bytes| bytes.strip_prefix(&crc));
    sizes.is_some_and(|sizes| sizes == short || sizes == long)
}
