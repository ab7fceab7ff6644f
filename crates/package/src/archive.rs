//! Reads archives of skills strictly, and packs them deterministically.
//!
//! An archive is read only if every program would extract the same files from it. If parsers could
//! disagree about it, if a path leads out of the folder, if an entry is not a plain file or folder,
//! or if it is too large, the whole archive is rejected before anything is written. A `.skill` file
//! is a zip.

mod error;
mod layout;
mod pack;
mod tar;
mod tree_builder;
mod zip;

pub use error::ArchiveError;
pub use layout::{one_skill, skills};
pub use pack::{pack, pack_plain};

use crate::{Tree, limits::MAX_ARCHIVE_BYTES};

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveKind {
    Zip,
    /// A gzipped tar.
    TarGz,
    Tar,
}

/// Detects the format from the first bytes; the file name does not matter.
pub fn kind(bytes: &[u8]) -> Option<ArchiveKind> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        Some(ArchiveKind::Zip)
    } else if bytes.starts_with(b"\x1f\x8b") {
        Some(ArchiveKind::TarGz)
    } else if tar::is_tar(bytes) {
        Some(ArchiveKind::Tar)
    } else {
        None
    }
}

/// Returns all files of an archive under their paths. Writes nothing.
pub fn unpack(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
        return Err(ArchiveError::TooLarge(format!(
            "the archive has {} bytes; at most {MAX_ARCHIVE_BYTES} are read",
            bytes.len()
        )));
    }
    match kind(bytes) {
        Some(ArchiveKind::Zip) => zip::read(bytes),
        Some(ArchiveKind::TarGz) => tar::read_gz(bytes),
        Some(ArchiveKind::Tar) => tar::read(bytes),
        // Some programs accept a zip with arbitrary data in front of it.
        None if zip::is_zip(bytes) => zip::read(bytes),
        None => Err(ArchiveError::Unknown),
    }
}
