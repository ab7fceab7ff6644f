//! Caches interpreter versions until the interpreter's file changes, because starting one is slow.

use std::{
    fs,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;

/// Maximum length of a version.
const MAX_BYTES: u64 = 64;

/// The version of a program: from the cache below `cache`, or else as returned by `ask`.
pub(crate) fn cached_version<E>(
    cache: &Path,
    program: &Path,
    ask: impl FnOnce() -> Result<String, E>,
) -> Result<String, E> {
    let Some(cache_file) = cache_file(cache, program) else { return ask() };
    let mut known = String::new();
    let read = fs::File::open(&cache_file)
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut known));
    if read.is_ok() && known.starts_with(|c: char| c.is_ascii_digit() || c == 'v') {
        return Ok(known);
    }
    let version = ask()?;
    // If the version cannot be cached, the next run asks the program again.
    let folder = cache_file.parent().unwrap_or(cache);
    let _ = fs::create_dir_all(folder).and_then(|()| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, version.as_bytes())?;
        file.persist(&cache_file).map_err(|error| error.error)
    });
    Ok(version)
}

/// The cache file for the current content of a program. Returns `None` for scripts, because those
/// of version managers may start another interpreter later.
fn cache_file(cache: &Path, program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let mut magic = [0; 4];
    fs::File::open(&real).ok()?.read_exact(&mut magic).ok()?;
    let found = fs::metadata(&real).ok()?;
    let mut key = real.as_os_str().as_bytes().to_vec();
    key.push(0);
    for number in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
        key.extend(number.to_le_bytes());
    }
    for number in [found.len(), found.ino()] {
        key.extend(number.to_le_bytes());
    }
    (magic == *b"\x7fELF").then(|| cache.join("versions").join(&sha256_hex(&key)[..32]))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn version_is_cached_until_the_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let ask = |version: &str| {
            let ask = || Ok::<_, Infallible>(version.to_owned());
            cached_version(folder.path(), &program, ask).unwrap()
        };
        fs::write(&program, b"\x7fELF one").unwrap();
        assert_eq!([ask("1.0"), ask("2.0")], ["1.0", "1.0"]);
        fs::write(&program, b"\x7fELF another").unwrap();
        assert_eq!(ask("2.0"), "2.0");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        assert_eq!([ask("3.0"), ask("4.0")], ["3.0", "4.0"]);
    }
}
