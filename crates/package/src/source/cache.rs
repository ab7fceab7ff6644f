//! Cleans the cache of fetched sources.

use std::{
    fs::{self, TryLockError},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use super::SourceError;

/// Whether files are deleted or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanMode {
    Remove,
    /// Dry run.
    Look,
}

/// The result of cleaning a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The number of repositories that were removed.
    pub repositories: usize,
    /// The number of other files that were removed.
    pub files: usize,
    /// Their total size.
    pub bytes: u64,
    /// The number of repositories that another process uses, which stay.
    pub in_use: usize,
}

impl std::ops::AddAssign for Cleaned {
    fn add_assign(&mut self, other: Self) {
        self.repositories += other.repositories;
        self.files += other.files;
        self.bytes += other.bytes;
        self.in_use += other.in_use;
    }
}

/// Cleans a cache, such as that of a [`Fetcher`](super::Fetcher). Its content can be fetched again;
/// installed skills are stored elsewhere.
pub fn clean(cache: &Path, what: CleanMode) -> Result<Cleaned, SourceError> {
    let mut cleaned = Cleaned::default();
    for entry in entries(cache)? {
        let path = entry.path();
        if path.is_dir() && entry.file_name() == "git" {
            repositories(&path, what, &mut cleaned)?;
        } else {
            remove(&path, what, &mut cleaned)?;
        }
    }
    Ok(cleaned)
}

/// Removes repositories one by one, each under its lock.
fn repositories(folder: &Path, what: CleanMode, cleaned: &mut Cleaned) -> Result<(), SourceError> {
    for entry in entries(folder)? {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let lock = path.with_extension("lock");
        let file = fs::File::options().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(SourceError::io(&lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                cleaned.in_use += 1;
                continue;
            }
            Err(TryLockError::Error(error)) => return Err(SourceError::io(&lock)(error)),
        }
        let mut inside = Cleaned::default();
        remove(&path, what, &mut inside)?;
        cleaned.repositories += 1;
        cleaned.bytes += inside.bytes;
    }
    Ok(())
}

fn remove(path: &Path, what: CleanMode, cleaned: &mut Cleaned) -> Result<(), SourceError> {
    let metadata = fs::symlink_metadata(path).map_err(SourceError::io(path))?;
    if metadata.is_dir() {
        // Copies of skills that were tried out are read-only.
        if what == CleanMode::Remove && metadata.permissions().readonly() {
            let writable = fs::Permissions::from_mode(0o700);
            fs::set_permissions(path, writable).map_err(SourceError::io(path))?;
        }
        for entry in entries(path)? {
            remove(&entry.path(), what, cleaned)?;
        }
        if what == CleanMode::Remove {
            fs::remove_dir(path).map_err(SourceError::io(path))?;
        }
        return Ok(());
    }
    cleaned.files += 1;
    cleaned.bytes += metadata.len();
    match what {
        CleanMode::Remove => fs::remove_file(path).map_err(SourceError::io(path)),
        CleanMode::Look => Ok(()),
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, SourceError> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<Result<_, _>>().map_err(SourceError::io(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(SourceError::io(folder)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_keeps_repositories_in_use() {
        let place = tempfile::tempdir().unwrap();
        let cache = place.path();
        for path in ["addresses/ab", "git/one/x", "git/two/HEAD", "files/cd"] {
            let path = cache.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "12345").unwrap();
        }
        let lock = fs::File::create(cache.join("git/two.lock")).unwrap();
        lock.lock().unwrap();
        let expected = Cleaned { repositories: 1, files: 2, bytes: 15, in_use: 1 };
        assert_eq!(clean(cache, CleanMode::Look).unwrap(), expected);
        assert!(cache.join("git/one/x").exists());
        assert_eq!(clean(cache, CleanMode::Remove).unwrap(), expected);
        assert!(!cache.join("files").exists() && !cache.join("git/one").exists());
        assert!(cache.join("git/two/HEAD").exists(), "it is in use");
        drop(lock);
        assert_eq!(clean(cache, CleanMode::Remove).unwrap().repositories, 1);
        assert_eq!(clean(&cache.join("none"), CleanMode::Remove).unwrap(), Cleaned::default());
    }
}
