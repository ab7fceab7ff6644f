//! Archives of skills: read with distrust, packed the same every time.
//!
//! An archive is read only if every program would see the same files in it. What two programs
//! read differently, what leads out of the folder, what is no plain file and what grows too large
//! is refused as a whole, before anything is written. A `.skill` file is a zip.

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

/// What kind of archive bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveKind {
    /// A zip.
    Zip,
    /// A tar that was packed with gzip.
    TarGz,
    /// A tar.
    Tar,
}

/// What kind of archive bytes are: by their beginning, whatever their name is.
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

/// All files of an archive, with their paths as in the archive. Nothing is written.
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
        // Some programs find a zip behind anything.
        None if zip::is_zip(bytes) => zip::read(bytes),
        None => Err(ArchiveError::Unknown),
    }
}
