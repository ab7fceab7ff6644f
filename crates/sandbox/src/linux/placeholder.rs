//! Empty folders that hold the place of protected paths that do not exist, so that a run cannot
//! make them. They are on the host's disk, since a mount needs something to lie on, and are
//! removed when the last run that needs them is over.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::error::SandboxError;

/// Placeholders of a run.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    held: Vec<(PathBuf, File)>,
}

impl Placeholders {
    /// Makes a placeholder at each path, and takes over those of other runs.
    pub(crate) fn hold<'a>(
        missing: impl Iterator<Item = &'a Path>,
        existing: impl Iterator<Item = &'a Path>,
    ) -> Result<Self, SandboxError> {
        let mut placeholders = Self::default();
        for path in missing {
            placeholders.make(path)?;
        }
        for path in existing.filter(|path| is_placeholder(path)) {
            placeholders.lock(path)?;
        }
        Ok(placeholders)
    }

    fn make(&mut self, path: &Path) -> Result<(), SandboxError> {
        let failed = |source| {
            SandboxError::build(format!("holding the place of {}", path.display()), source)
        };
        match fs::create_dir(path) {
            Ok(()) => {
                let folder = File::open(path).map_err(failed)?;
                folder.set_modified(mark()).map_err(failed)?;
            }
            // Another run was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        self.lock(path)
    }

    fn lock(&mut self, path: &Path) -> Result<(), SandboxError> {
        let locked = File::open(path).and_then(|folder| folder.lock_shared().map(|()| folder));
        let folder = locked.map_err(|source| {
            SandboxError::build(format!("holding the place of {}", path.display()), source)
        })?;
        self.held.push((path.to_owned(), folder));
        Ok(())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, folder) in &self.held {
            // Whoever still needs it holds a lock, and removes it later.
            if is_placeholder(path) && folder.try_lock().is_ok() {
                let _ = fs::remove_dir(path);
            }
        }
    }
}

/// A time that no folder has by chance.
fn mark() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(0x5A_0012)
}

fn is_placeholder(path: &Path) -> bool {
    let marked = path.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_dir() && metadata.modified().is_ok_and(|time| time == mark())
    });
    marked && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_removes_the_placeholder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".vscode");
        let hold = || Placeholders::hold([path.as_path()].into_iter(), std::iter::empty()).unwrap();
        let first = hold();
        let second = hold();
        assert!(path.is_dir());
        drop(first);
        assert!(path.is_dir(), "the second run still needs it");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_person_made_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".idea");
        fs::create_dir(&path).unwrap();
        drop(Placeholders::hold(std::iter::empty(), [path.as_path()].into_iter()).unwrap());
        drop(Placeholders::hold([path.as_path()].into_iter(), std::iter::empty()).unwrap());
        assert!(path.is_dir());
    }

    #[test]
    fn a_placeholder_that_a_killed_run_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claude");
        std::mem::forget(
            Placeholders::hold([path.as_path()].into_iter(), std::iter::empty()).unwrap(),
        );
        assert!(is_placeholder(&path));
    }
}
