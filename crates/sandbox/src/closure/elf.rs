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

use super::reader::Reader;

/// The first read: it covers the header and, in every file seen so far, the segment table.
pub(super) const HEAD: usize = 4096;

const SEGMENTS: usize = 256;
const DYNAMIC: usize = 64 << 10;
const NAME: usize = 4096;
const NEEDED: usize = 256;

/// The ELF `e_machine` value of this architecture.
pub(super) const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// The loader, libraries and search folders that an ELF file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    /// Whether the file can only be started and never be loaded as a library.
    pub(super) only_a_program: bool,
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
    pub(super) no_defaults: bool,
}

/// Why a file has no readable ELF data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not an ELF file, or one for another architecture.
    Foreign,
    /// The file cannot be read or contradicts itself.
    Broken(&'static str),
}

impl Image {
    /// Opens and reads a file.
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        let reader = Reader::open(path).map_err(|_| Fault::Broken("it cannot be read"))?;
        let head = reader.some(0, HEAD).map_err(|_| Fault::Broken("it cannot be read"))?;
        Self::read(&reader, &head)
    }

    /// Reads an open file; `head` is its beginning, which was read already.
    pub(super) fn read(reader: &Reader, head: &[u8]) -> Result<Self, Fault> {
        if !is_for_this_machine(head) {
            return Err(Fault::Foreign);
        }
        let mut image = Self::default();
        match u16_at(head, 16) {
            Some(2) => image.only_a_program = true,
            Some(3) => {}
            _ => return Err(Fault::Broken("it is neither a program nor a library")),
        }
        let segments = Segments::read(reader, head)?;
        if let Some((offset, size)) = segments.interpreter {
            image.interpreter = Some(interpreter(reader, offset, size)?);
        }
        if let Some((offset, size)) = segments.dynamic {
            image.read_dynamic(reader, &segments, offset, size)?;
        }
        Ok(image)
    }

    fn read_dynamic(
        &mut self,
        reader: &Reader,
        segments: &Segments,
        offset: u64,
        size: u64,
    ) -> Result<(), Fault> {
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= DYNAMIC)
            .ok_or(Fault::Broken("its dynamic section is too long"))?;
        let table = reader
            .exactly(offset, size)
            .ok_or(Fault::Broken("its dynamic section lies outside the file"))?;
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
                    self.no_defaults = value & 0x800 != 0;
                    self.only_a_program |= value & 0x0800_0000 != 0;
                }
                _ => {}
            }
        }
        if needed.len() > NEEDED {
            return Err(Fault::Broken("it names too many libraries"));
        }
        if needed.is_empty() && soname.is_none() && rpath.is_none() && runpath.is_none() {
            return Ok(());
        }
        let strings = address
            .and_then(|address| segments.offset_of(address))
            .map(|offset| Strings { reader, offset, length })
            .ok_or(Fault::Broken("its names lie outside the file"))?;
        self.needed = needed.into_iter().map(|at| strings.get(at)).collect::<Result<_, _>>()?;
        self.soname = soname.map(|at| strings.get(at)).transpose()?;
        self.runpath = runpath.map(|at| strings.get(at)).transpose()?;
        self.rpath = rpath.map(|at| strings.get(at)).transpose()?;
        if self.needed.iter().any(|name| name.is_empty()) {
            return Err(Fault::Broken("it names a library without a name"));
        }
        Ok(())
    }
}

/// Checks for a 64-bit little-endian ELF file of this architecture.
fn is_for_this_machine(head: &[u8]) -> bool {
    head.len() >= 64
        && head.starts_with(b"\x7fELF\x02\x01\x01")
        && MACHINE.is_some()
        && u16_at(head, 18) == MACHINE
}

/// The segments of the file that matter here.
struct Segments {
    /// Address, offset and length in the file.
    loads: Vec<(u64, u64, u64)>,
    dynamic: Option<(u64, u64)>,
    interpreter: Option<(u64, u64)>,
}

impl Segments {
    fn read(reader: &Reader, head: &[u8]) -> Result<Self, Fault> {
        let outside = Fault::Broken("its table of segments lies outside the file");
        let offset = u64_at(head, 32).ok_or(outside)?;
        let count = usize::from(u16_at(head, 56).ok_or(outside)?);
        if u16_at(head, 54) != Some(56) || count == 0 || count > SEGMENTS {
            return Err(Fault::Broken("its table of segments has an impossible size"));
        }
        let size = count * 56;
        let near = usize::try_from(offset)
            .ok()
            .and_then(|start| head.get(start..start.checked_add(size)?))
            .map(<[u8]>::to_vec);
        let table = near.or_else(|| reader.exactly(offset, size)).ok_or(outside)?;
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
struct Strings<'a> {
    reader: &'a Reader,
    offset: u64,
    length: u64,
}

impl Strings<'_> {
    fn get(&self, at: u64) -> Result<OsString, Fault> {
        let broken = Fault::Broken("one of its names is cut off");
        let left = self.length.checked_sub(at).ok_or(broken)?;
        let start = self.offset.checked_add(at).ok_or(broken)?;
        // Most names are short, but a search path can be long.
        for most in [256, NAME] {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(most);
            let mut bytes = self.reader.some(start, most).map_err(|_| broken)?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                bytes.truncate(end);
                return Ok(OsString::from_vec(bytes));
            }
        }
        Err(broken)
    }
}

fn interpreter(reader: &Reader, offset: u64, size: u64) -> Result<PathBuf, Fault> {
    let broken = Fault::Broken("the path of its loader is not one");
    let size = usize::try_from(size).ok().filter(|size| (2..=NAME).contains(size)).ok_or(broken)?;
    let mut bytes = reader.exactly(offset, size).ok_or(broken)?;
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(broken)?;
    bytes.truncate(end);
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() { Ok(path) } else { Err(broken) }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}
