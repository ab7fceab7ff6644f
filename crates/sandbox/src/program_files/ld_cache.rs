//! Reads `/etc/ld.so.cache`, the list of library paths that `ldconfig` writes for the glibc loader.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    elf::{u32_at, u64_at},
    file_reader,
};

pub(super) const LD_CACHE_PATH: &str = "/etc/ld.so.cache";

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
const MAX_BYTES: usize = 16 << 20;

/// The flags of a glibc library for this architecture.
const LIBRARY_FLAGS: u32 = if cfg!(target_arch = "aarch64") { 0x0a03 } else { 0x0303 };

/// The list of libraries. It is searched linearly, because it is read once and used for a few
/// lookups.
#[derive(Debug, Default)]
pub(super) struct LdCache {
    bytes: Vec<u8>,
    entries: usize,
}

impl LdCache {
    /// Reads the system's list; the list is empty if the file is missing or malformed.
    pub(super) fn read() -> Self {
        file_reader::read_small_file(Path::new(LD_CACHE_PATH), MAX_BYTES)
            .and_then(Self::parse)
            .unwrap_or_default()
    }

    /// Parses the new format, either alone or behind a list in the old format.
    pub(super) fn parse(mut bytes: Vec<u8>) -> Option<Self> {
        if bytes.starts_with(OLD_MAGIC) {
            let entries = usize::try_from(u32_at(&bytes, OLD_MAGIC.len())?).ok()?;
            let end = entries.checked_mul(12)?.checked_add(OLD_MAGIC.len() + 4)?;
            let start = end.checked_next_multiple_of(8)?;
            if start > bytes.len() {
                return None;
            }
            bytes.drain(..start);
        }
        if !bytes.starts_with(NEW_MAGIC) {
            return None;
        }
        let entries = usize::try_from(u32_at(&bytes, NEW_MAGIC.len())?).ok()?;
        let end = entries.checked_mul(ENTRY_BYTES)?.checked_add(HEADER_BYTES)?;
        (end <= bytes.len()).then_some(Self { bytes, entries })
    }

    /// Returns the path of a library name. Variants for specific processor features are skipped.
    pub(super) fn find(&self, name: &OsStr) -> Option<PathBuf> {
        let table = self.bytes.get(HEADER_BYTES..HEADER_BYTES + self.entries * ENTRY_BYTES)?;
        table.chunks_exact(ENTRY_BYTES).find_map(|entry| {
            if u32_at(entry, 0)? != LIBRARY_FLAGS || u64_at(entry, 16)? != 0 {
                return None;
            }
            if self.string_at(u32_at(entry, 4)?)? != name.as_bytes() {
                return None;
            }
            let path = Path::new(OsStr::from_bytes(self.string_at(u32_at(entry, 8)?)?));
            path.is_absolute().then(|| path.to_path_buf())
        })
    }

    fn string_at(&self, at: u32) -> Option<&[u8]> {
        let rest = self.bytes.get(usize::try_from(at).ok()?..)?;
        let rest = &rest[..rest.len().min(4096)];
        rest.split(|byte| *byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_list(libraries: &[(u32, &str, &str, u64)]) -> Vec<u8> {
        let mut bytes = NEW_MAGIC.to_vec();
        let mut strings = Vec::new();
        let start = HEADER_BYTES + ENTRY_BYTES * libraries.len();
        bytes.extend((libraries.len() as u32).to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        for (flags, name, path, hardware) in libraries {
            let mut put = |text: &str| {
                let at = (start + strings.len()) as u32;
                strings.extend(text.bytes().chain([0]));
                at
            };
            let (name, path) = (put(name), put(path));
            bytes.extend([*flags, name, path, 0].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend(hardware.to_le_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn finds_library_without_processor_features() {
        let bytes = encode_list(&[
            (0x0801, "libx.so.1", "/lib32/libx.so.1", 0),
            (LIBRARY_FLAGS, "libx.so.1", "/lib/glibc-hwcaps/libx.so.1", 1 << 62),
            (LIBRARY_FLAGS, "libx.so.1", "/lib/libx.so.1", 0),
            (LIBRARY_FLAGS, "libx.so.1", "/later/libx.so.1", 0),
        ]);
        let mut both = OLD_MAGIC.to_vec();
        both.extend(1_u32.to_le_bytes());
        both.extend([0; 12]);
        both.resize(both.len().next_multiple_of(8), 0);
        both.extend(&bytes);
        for bytes in [bytes, both] {
            let list = LdCache::parse(bytes).unwrap();
            assert_eq!(list.find("libx.so.1".as_ref()), Some("/lib/libx.so.1".into()));
            assert_eq!(list.find("libx.so".as_ref()), None);
        }
    }

    #[test]
    fn rejects_impossible_counts() {
        let mut bytes = encode_list(&[(LIBRARY_FLAGS, "a", "/a", 0)]);
        bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(LdCache::parse(bytes).is_none());
        assert!(LdCache::parse(OLD_MAGIC.to_vec()).is_none());
        assert!(LdCache::parse([OLD_MAGIC, &[0xff; 4]].concat()).is_none());
        assert!(LdCache::parse(Vec::new()).is_none());
    }
}
