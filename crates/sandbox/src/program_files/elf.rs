//! Reads the parts of an ELF file that name its loader, its libraries and the folders to search
//! them in.
//!
//! The file may contain any bytes. Every offset is checked against the data that was read, every
//! count has a limit, and only the needed parts are read.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use super::file_reader::FileReader;

/// The first read: it covers the header and, in every file seen so far, the segment table.
pub(super) const HEAD_BYTES: usize = 4096;

const MAX_SEGMENTS: usize = 256;
const MAX_DYNAMIC_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 4096;
const MAX_LIBRARIES: usize = 256;

/// The ELF `e_machine` value of this architecture.
pub(super) const ELF_MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// The loader, libraries and search folders that an ELF file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ElfFile {
    /// Whether the file can only be started and never be loaded as a library.
    pub(super) is_executable_only: bool,
    /// The loader that the kernel starts for this program.
    pub(super) interpreter: Option<PathBuf>,
    /// The names of needed libraries, in order.
    pub(super) needed: Vec<OsString>,
    /// The library's own name (`DT_SONAME`).
    pub(super) soname: Option<OsString>,
    /// Search folders of the old kind (`RPATH`), which also apply to the libraries that it loads.
    pub(super) rpath: Option<OsString>,
    /// Search folders of the new kind (`RUNPATH`), which apply only to this file.
    pub(super) runpath: Option<OsString>,
    /// Whether the system's default folders are not searched for this file.
    pub(super) skips_default_folders: bool,
}

/// Why a file has no readable ELF data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElfError {
    /// It is not an ELF file, or one for another architecture.
    NotElf,
    /// The file cannot be read or contradicts itself.
    Invalid(&'static str),
}

impl ElfFile {
    /// Opens and reads a file.
    pub(super) fn open(path: &Path) -> Result<Self, ElfError> {
        let reader = FileReader::open(path).map_err(|_| ElfError::Invalid("it cannot be read"))?;
        let head =
            reader.read_up_to(0, HEAD_BYTES).map_err(|_| ElfError::Invalid("it cannot be read"))?;
        Self::read(&reader, &head)
    }

    /// Reads an open file; `head` is its beginning, which was read already.
    pub(super) fn read(reader: &FileReader, head: &[u8]) -> Result<Self, ElfError> {
        if !is_elf_for_this_machine(head) {
            return Err(ElfError::NotElf);
        }
        let mut elf_file = Self::default();
        match u16_at(head, 16) {
            Some(2) => elf_file.is_executable_only = true,
            Some(3) => {}
            _ => return Err(ElfError::Invalid("it is neither a program nor a library")),
        }
        let segments = ElfSegments::read(reader, head)?;
        if let Some((offset, size)) = segments.interpreter {
            elf_file.interpreter = Some(read_interpreter(reader, offset, size)?);
        }
        if let Some((offset, size)) = segments.dynamic {
            elf_file.read_dynamic(reader, &segments, offset, size)?;
        }
        Ok(elf_file)
    }

    fn read_dynamic(
        &mut self,
        reader: &FileReader,
        segments: &ElfSegments,
        offset: u64,
        size: u64,
    ) -> Result<(), ElfError> {
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= MAX_DYNAMIC_BYTES)
            .ok_or(ElfError::Invalid("its dynamic section is too long"))?;
        let table = reader
            .read_exactly(offset, size)
            .ok_or(ElfError::Invalid("its dynamic section is outside the file"))?;
        let (mut needed, mut soname, mut rpath, mut runpath) = (Vec::new(), None, None, None);
        let (mut address, mut length) = (None, 0);
        for entry in table.chunks_exact(16) {
            let (Some(tag), Some(value)) = (u64_at(entry, 0), u64_at(entry, 8)) else { break };
            match tag {
                0 => break,
                1 => needed.push(value),
                5 => address = Some(value),
                10 => length = value,
                14 => soname = Some(value),
                15 => rpath = Some(value),
                29 => runpath = Some(value),
                // DT_FLAGS_1: DF_1_NODEFLIB, DF_1_PIE.
                0x6fff_fffb => {
                    self.skips_default_folders = value & 0x800 != 0;
                    self.is_executable_only |= value & 0x0800_0000 != 0;
                }
                _ => {}
            }
        }
        if needed.len() > MAX_LIBRARIES {
            return Err(ElfError::Invalid("it names too many libraries"));
        }
        if needed.is_empty() && soname.is_none() && rpath.is_none() && runpath.is_none() {
            return Ok(());
        }
        let strings = address
            .and_then(|address| segments.offset_of(address))
            .map(|offset| StringTable { reader, offset, length })
            .ok_or(ElfError::Invalid("its names are outside the file"))?;
        self.needed = needed.into_iter().map(|at| strings.get(at)).collect::<Result<_, _>>()?;
        self.soname = soname.map(|at| strings.get(at)).transpose()?;
        self.runpath = runpath.map(|at| strings.get(at)).transpose()?;
        self.rpath = rpath.map(|at| strings.get(at)).transpose()?;
        if self.needed.iter().any(|name| name.is_empty()) {
            return Err(ElfError::Invalid("it names a library without a name"));
        }
        Ok(())
    }
}

/// Checks for a 64-bit little-endian ELF file of this architecture.
fn is_elf_for_this_machine(head: &[u8]) -> bool {
    head.len() >= 64
        && head.starts_with(b"\x7fELF\x02\x01\x01")
        && ELF_MACHINE.is_some()
        && u16_at(head, 18) == ELF_MACHINE
}

/// The segments of the file that matter here.
struct ElfSegments {
    /// Address, offset and length in the file.
    loads: Vec<(u64, u64, u64)>,
    dynamic: Option<(u64, u64)>,
    interpreter: Option<(u64, u64)>,
}

impl ElfSegments {
    fn read(reader: &FileReader, head: &[u8]) -> Result<Self, ElfError> {
        let outside = ElfError::Invalid("its segment table is outside the file");
        let offset = u64_at(head, 32).ok_or(outside)?;
        let count = usize::from(u16_at(head, 56).ok_or(outside)?);
        if u16_at(head, 54) != Some(56) || count == 0 || count > MAX_SEGMENTS {
            return Err(ElfError::Invalid("its table of segments has an impossible size"));
        }
        let size = count * 56;
        let near = usize::try_from(offset)
            .ok()
            .and_then(|start| head.get(start..start.checked_add(size)?))
            .map(<[u8]>::to_vec);
        let table = near.or_else(|| reader.read_exactly(offset, size)).ok_or(outside)?;
        let mut segments = Self { loads: Vec::new(), dynamic: None, interpreter: None };
        for entry in table.chunks_exact(56) {
            let (Some(kind), Some(offset), Some(address), Some(size)) =
                (u32_at(entry, 0), u64_at(entry, 8), u64_at(entry, 16), u64_at(entry, 32))
            else {
                return Err(outside);
            };
            match kind {
                1 => segments.loads.push((address, offset, size)),
                2 => segments.dynamic = Some((offset, size)),
                // The kernel uses the first one.
                3 if segments.interpreter.is_none() => segments.interpreter = Some((offset, size)),
                _ => {}
            }
        }
        Ok(segments)
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        self.loads.iter().find_map(|&(start, offset, size)| {
            let distance = address.checked_sub(start)?;
            (distance < size).then(|| offset.checked_add(distance)).flatten()
        })
    }
}

/// The string table.
struct StringTable<'a> {
    reader: &'a FileReader,
    offset: u64,
    length: u64,
}

impl StringTable<'_> {
    fn get(&self, at: u64) -> Result<OsString, ElfError> {
        let broken = ElfError::Invalid("one of its names is cut off");
        let left = self.length.checked_sub(at).ok_or(broken)?;
        let start = self.offset.checked_add(at).ok_or(broken)?;
        // Most names are short, but a search path can be long.
        for max_bytes in [256, MAX_NAME_BYTES] {
            let max_bytes = usize::try_from(left).unwrap_or(usize::MAX).min(max_bytes);
            let mut bytes = self.reader.read_up_to(start, max_bytes).map_err(|_| broken)?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                bytes.truncate(end);
                return Ok(OsString::from_vec(bytes));
            }
        }
        Err(broken)
    }
}

fn read_interpreter(reader: &FileReader, offset: u64, size: u64) -> Result<PathBuf, ElfError> {
    let broken = ElfError::Invalid("the path of its loader is invalid");
    let size = usize::try_from(size)
        .ok()
        .filter(|size| (2..=MAX_NAME_BYTES).contains(size))
        .ok_or(broken)?;
    let mut bytes = reader.read_exactly(offset, size).ok_or(broken)?;
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(broken)?;
    bytes.truncate(end);
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() { Ok(path) } else { Err(broken) }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}
