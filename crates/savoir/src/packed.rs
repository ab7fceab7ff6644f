//! Skills that are packed in one file.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use savoir_package::{archive, limits::MAX_ARCHIVE_BYTES};

/// How the names of archives of skills end.
const ENDINGS: [&str; 5] = [".zip", ".skill", ".tar", ".tar.gz", ".tgz"];

/// As many bytes as tell what kind of archive a file is.
const BEGINNING: u64 = 512;

/// Whether a file is an archive, or calls itself one.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    if !path.is_file() {
        return false;
    }
    ENDINGS.iter().any(|ending| name.ends_with(ending))
        || read(path, BEGINNING).is_ok_and(|bytes| archive::kind(&bytes).is_some())
}

/// The bytes of an archive; of one that is too large, enough to be refused.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    read(path, MAX_ARCHIVE_BYTES + 1)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
