//! Reads archives of skills.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use savoir_package::{archive, limits::MAX_ARCHIVE_BYTES};

/// File name extensions of archives.
const EXTENSIONS: [&str; 5] = [".zip", ".skill", ".tar", ".tar.gz", ".tgz"];

/// Number of bytes that are needed to detect the kind of an archive.
const MAGIC_BYTES: u64 = 512;

/// Whether a path ends like that of an archive.
pub(crate) fn has_archive_name(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    EXTENSIONS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a file is an archive by its name or its content.
pub(crate) fn is_archive(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    has_archive_name(path)
        || read(path, MAGIC_BYTES).is_ok_and(|bytes| archive::kind(&bytes).is_some())
}

/// The bytes of an archive. One byte more than allowed is read, so that a larger one is refused.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    read(path, MAX_ARCHIVE_BYTES + 1)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
