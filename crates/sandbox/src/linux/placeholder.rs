//! Empty folders, and a few files, that hold the place of protected paths that do not exist, so that a run cannot
//! make them. They are on the host's disk, since a mount needs something to lie on, and are
//! removed when the last run that needs them is over.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::error::SandboxError;

/// How often a placeholder is made that other runs remove again.
const MOST_TRIES: usize = 100;

/// Whoever makes a placeholder, or looks what is there, has this meanwhile.
static MAKING: Mutex<()> = Mutex::new(());

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
            let file = locked(path).map_err(|source| failed(path, source))?;
            placeholders.held.extend(file.map(|file| (path.to_owned(), file)));
        }
        Ok(placeholders)
    }

    fn make(&mut self, path: &Path) -> Result<(), SandboxError> {
        for _ in 0..MOST_TRIES {
            create(path).map_err(|source| failed(path, source))?;
            // A placeholder that another run is about to mark would be taken for a person's.
            let file = while_none_is_made(|| locked(path));
            if let Some(file) = file.map_err(|source| failed(path, source))? {
                self.held.push((path.to_owned(), file));
                return Ok(());
            }
        }
        Err(failed(path, io::Error::other("other runs go on making and removing it")))
    }
}

fn failed(path: &Path, source: io::Error) -> SandboxError {
    SandboxError::build(format!("holding the place of {}", path.display()), source)
}

/// Looks at places while no other run of this process is about to make a placeholder, which looks like
/// something of a person's until it is marked.
pub(super) fn while_none_is_made<T>(look: impl FnOnce() -> T) -> T {
    let _turn = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    look()
}

/// Makes a placeholder, unless something is there: that of another run, which was faster.
fn create(path: &Path) -> io::Result<()> {
    while_none_is_made(|| {
        let made = match content(path) {
            None => fs::create_dir(path).and_then(|()| File::open(path)),
            Some(text) => File::create_new(path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                Ok(file)
            }),
        };
        match made {
            Ok(file) => file.set_modified(mark()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    })
}

/// Locks what is at a path, so that no other run removes it; nothing, if one did so before.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    file.lock_shared()?;
    Ok(is_at(path, &file)?.then_some(file))
}

/// Whether a path still leads to an open file.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let opened = file.metadata()?;
    let is_same = |there: fs::Metadata| (there.dev(), there.ino()) == (opened.dev(), opened.ino());
    Ok(path.symlink_metadata().is_ok_and(is_same))
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, folder) in &self.held {
            remove(path, folder);
        }
    }
}

/// Removes what runs left that were killed: placeholders at these paths that no run holds. What is
/// deeper comes first.
pub fn remove_abandoned<'a>(paths: impl IntoIterator<Item = &'a Path>) {
    for path in paths.into_iter().filter(|path| is_placeholder(path)) {
        if let Ok(folder) = File::open(path) {
            remove(path, &folder);
        }
    }
}

/// Removes a placeholder. A run that still needs it holds a lock, and removes it later. After the
/// lock is taken, the path is compared again: another run may have removed this placeholder and
/// made a new one, which this lock does not cover.
fn remove(path: &Path, folder: &File) {
    let is_free = folder.try_lock().is_ok();
    if is_free && is_at(path, folder).unwrap_or(false) && is_placeholder(path) {
        let _ = match content(path) {
            None => fs::remove_dir(path),
            Some(_) => fs::remove_file(path),
        };
    }
}

/// The text of a placeholder that must be a file. git takes a folder in these places for a broken
/// repository; this is what it assumes without the file.
pub(super) fn content(path: &Path) -> Option<&'static str> {
    if path.ends_with(".git/commondir") {
        Some(".\n")
    } else if path.ends_with(".git/config.worktree") {
        Some("")
    } else {
        None
    }
}

/// A time that no folder has by chance.
fn mark() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(0x5A_0012)
}

pub(super) fn is_placeholder(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let is_marked = metadata.modified().is_ok_and(|time| time == mark());
    is_marked
        && match content(path) {
            None => {
                metadata.is_dir() && fs::read_dir(path).is_ok_and(|mut all| all.next().is_none())
            }
            Some(text) => {
                metadata.is_file() && fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
            }
        }
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
    fn git_reads_on_where_a_file_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir(&git).unwrap();
        let paths = ["commondir", "config.worktree"].map(|name| git.join(name));
        let hold =
            || Placeholders::hold(paths.iter().map(PathBuf::as_path), std::iter::empty()).unwrap();
        let first = hold();
        let second = hold();
        drop(first);
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), ".\n");
        drop(second);
        assert!(paths.iter().all(|path| !path.exists()));
        fs::write(&paths[0], "../other\n").unwrap();
        drop(Placeholders::hold(std::iter::empty(), [paths[0].as_path()].into_iter()).unwrap());
        assert!(paths[0].exists(), "what a person made stays");
    }

    #[test]
    fn runs_side_by_side_always_hold_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let missing = [path.as_path()].into_iter();
                        let held = Placeholders::hold(missing, std::iter::empty()).unwrap();
                        assert!(is_placeholder(&path), "it is there as long as it is held");
                        drop(held);
                    }
                });
            }
        });
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
        let hold = || Placeholders::hold([path.as_path()].into_iter(), std::iter::empty()).unwrap();
        let mut killed = hold();
        killed.held.clear();
        drop(killed);
        assert!(is_placeholder(&path));
        drop(hold());
        assert!(!path.exists());
    }

    #[test]
    fn what_nobody_holds_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, own] = [".git", ".idea"].map(|name| folder.path().join(name));
        fs::create_dir(&own).unwrap();
        let hold = || Placeholders::hold([path.as_path()].into_iter(), std::iter::empty()).unwrap();
        let mut run = hold();
        remove_abandoned([path.as_path(), &own]);
        assert!(path.exists(), "a run needs it");
        // A run that is killed lets go of its locks, and removes nothing.
        run.held.clear();
        drop(run);
        remove_abandoned([path.as_path(), &own]);
        assert!(!path.exists() && own.exists());
    }
}
