//! Unpacks archives inside a skill and detects file types by their first bytes.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

/// Maximum number of entries of an archive that are read, and of their bytes in total.
const MAX_ENTRIES: usize = 500;
const MAX_UNPACKED_BYTES: u64 = 8 * 1024 * 1024;

/// The type of a file, judging by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    /// A compiled program.
    Program(&'static str),
    /// A zip archive.
    Zip,
    /// An archive that is not unpacked.
    Packed(&'static str),
    /// A picture, a font, a document, sound.
    Media,
    /// Text, judging by the first bytes.
    Other,
}

/// Detects the type of a file by its first bytes.
pub(super) fn file_type(bytes: &[u8]) -> FileType {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if starts(b"\x7fELF") {
        FileType::Program("a program for Linux")
    } else if starts(b"MZ") && bytes.len() > 128 && bytes.contains(&0) {
        FileType::Program("a program for Windows")
    } else if starts(&[0xcf, 0xfa, 0xed, 0xfe])
        || starts(&[0xce, 0xfa, 0xed, 0xfe])
        || starts(&[0xca, 0xfe, 0xba, 0xbe])
    {
        FileType::Program("a program for macOS or Java")
    } else if starts(b"\0asm") {
        FileType::Program("WebAssembly")
    } else if bytes.len() > 16 && bytes[2] == 0x0d && bytes[3] == 0x0a && bytes[1] == 0x0d {
        FileType::Program("Python bytecode")
    } else if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        FileType::Zip
    } else if starts(&[0x1f, 0x8b]) {
        FileType::Packed("gzip")
    } else if starts(b"7z\xbc\xaf") {
        FileType::Packed("7-Zip")
    } else if starts(b"Rar!") {
        FileType::Packed("RAR")
    } else if starts(&[0xfd, b'7', b'z', b'X', b'Z']) {
        FileType::Packed("xz")
    } else if starts(b"BZh") {
        FileType::Packed("bzip2")
    } else if starts(&[0x28, 0xb5, 0x2f, 0xfd]) {
        FileType::Packed("Zstandard")
    } else if bytes.get(257..262) == Some(b"ustar") {
        FileType::Packed("tar")
    } else if is_media(bytes) {
        FileType::Media
    } else {
        FileType::Other
    }
}

fn is_media(bytes: &[u8]) -> bool {
    let magics: [&[u8]; 16] = [
        b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"wOFF", b"wOF2", b"OTTO",
        b"\0\x01\0\0", b"ID3", b"OggS", b"fLaC", b"\0\0\x01\0", b"BM", b"II*\0",
        b"SQLite format 3",
    ];
    let begins =
        magics.iter().any(|magic| bytes.starts_with(magic)) || bytes.get(4..8) == Some(b"ftyp");
    begins && !is_text(bytes)
}

/// Whether a file is text: `BM=1` can begin a script as well as a picture. A PDF may be valid text,
/// but it is not read or run as text.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.starts_with(b"%PDF") && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// The files of an archive.
#[derive(Debug, Default)]
pub(super) struct ArchiveContents {
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Why not everything could be read.
    pub(super) problem: Option<String>,
    pub(super) locked: bool,
}

/// Unpacks a zip archive, up to the limits.
pub(super) fn unzip(bytes: &[u8]) -> ArchiveContents {
    let mut contents = ArchiveContents::default();
    let mut archive = match ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) => archive,
        Err(error) => {
            contents.problem = Some(error.to_string());
            return contents;
        }
    };
    let mut left = MAX_UNPACKED_BYTES;
    for index in 0..archive.len() {
        if index >= MAX_ENTRIES || left == 0 {
            contents.problem = Some("it contains too many files or bytes".into());
            break;
        }
        let entry = match archive.by_index_raw(index) {
            Ok(entry) if entry.encrypted() => {
                contents.locked = true;
                continue;
            }
            Ok(entry) if entry.is_dir() => continue,
            Ok(entry) => entry.name().map(std::borrow::Cow::into_owned).unwrap_or_default(),
            Err(error) => {
                contents.problem = Some(error.to_string());
                continue;
            }
        };
        let Ok(file) = archive.by_index(index) else {
            contents.problem = Some(format!("`{entry}` cannot be unpacked"));
            continue;
        };
        let mut unpacked = Vec::new();
        // One byte more than allowed shows that the entry is longer.
        if file.take(left + 1).read_to_end(&mut unpacked).is_err() {
            contents.problem = Some(format!("`{entry}` cannot be unpacked"));
        }
        if unpacked.len() as u64 > left {
            unpacked.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            contents.problem = Some(format!("`{entry}` is too large to be read to its end"));
        }
        left = left.saturating_sub(unpacked.len() as u64);
        contents.files.push((entry, unpacked));
    }
    contents
}
