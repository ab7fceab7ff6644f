//! A folder takes the place of another in one step, and can give it back.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{ShelfError, folders::Seen};
use crate::tree::is_left_behind;

/// What folders begin with in which new content is made. No other part of Savoir uses the name.
const STAGING: &str = ".savoir-shelf-";

/// A folder that got new content. The old one is beside it until this is finished.
#[derive(Debug)]
pub(super) struct Swap {
    place: PathBuf,
    staging: PathBuf,
    /// Where the old content is, if there was any.
    old: Option<PathBuf>,
    /// Whether there is new content.
    put: bool,
}

impl Swap {
    /// Puts something into a place: all of it, or nothing.
    pub(super) fn make(place: &Path, put: &Seen) -> Result<Self, ShelfError> {
        let parent = place.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(ShelfError::io(parent))?;
        let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(parent);
        let staging = staging.map_err(|error| ShelfError::io(parent)(error.kind().into()))?;
        let new = staging.path().join("new");
        write(&new, put).map_err(|error| rename_error(error, &new, place))?;
        let is_new = !matches!(put, Seen::Absent);
        let old = exchange(&new, is_new, place).map_err(ShelfError::io(place))?;
        Ok(Self { place: place.to_owned(), staging: staging.keep(), old, put: is_new })
    }

    /// Puts the old content back.
    pub(super) fn back(self) -> Result<(), ShelfError> {
        let fail = || ShelfError::io(&self.place);
        match &self.old {
            Some(old) => drop(exchange(old, true, &self.place).map_err(fail())?),
            None if self.put => {
                fs::rename(&self.place, self.staging.join("back")).map_err(fail())?;
            }
            None => {}
        }
        remove(&self.staging);
        Ok(())
    }

    /// The old content goes; what programs left behind in it moves over.
    pub(super) fn finish(self) {
        if let Some(old) = self.old.as_ref().filter(|_| self.put) {
            carry_over(old, &self.place);
        }
        remove(&self.staging);
    }
}

/// An error in the staging folder is one in the place itself, in the eyes of people.
fn rename_error(error: ShelfError, staging: &Path, place: &Path) -> ShelfError {
    use crate::TreeError;
    match error {
        ShelfError::Tree(TreeError::Io { path, error }) => {
            let path = path.strip_prefix(staging).map_or(place.into(), |rest| place.join(rest));
            ShelfError::Io { path, error }
        }
        other => other,
    }
}

fn write(new: &Path, put: &Seen) -> Result<(), ShelfError> {
    match put {
        Seen::Absent | Seen::Strange(_) => Ok(()),
        Seen::Tree(tree) => Ok(tree.write(new)?),
        Seen::Link(target) => symlink(target, new).map_err(ShelfError::io(new)),
    }
}

/// Moves `new`, if there is one, into a place; gives where the old content is then.
fn exchange(new: &Path, is_new: bool, place: &Path) -> io::Result<Option<PathBuf>> {
    let is_old = fs::symlink_metadata(place).is_ok();
    let aside = new.with_file_name("old");
    match (is_old, is_new) {
        (false, false) => Ok(None),
        (false, true) => fs::rename(new, place).map(|()| None),
        (true, false) => fs::rename(place, &aside).map(|()| Some(aside)),
        (true, true) => match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(Some(new.to_owned())),
            // Some file systems and old kernels cannot do it in one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::rename(place, &aside)?;
                fs::rename(new, place).inspect_err(|_| {
                    // The old one is better than none; the first reason counts.
                    let _ = fs::rename(&aside, place);
                })?;
                Ok(Some(aside))
            }
            Err(error) => Err(error.into()),
        },
    }
}

/// Caches and environments are no part of a skill, and costly to make again.
fn carry_over(old: &Path, place: &Path) {
    let Ok(entries) = fs::read_dir(old) else { return };
    for entry in entries.flatten() {
        let to = place.join(entry.file_name());
        if is_left_behind(&entry.file_name().to_string_lossy()) && !to.exists() {
            // Whoever needs it makes it again.
            let _ = fs::rename(entry.path(), to);
        }
    }
}

fn remove(staging: &Path) {
    if let Err(error) = fs::remove_dir_all(staging) {
        tracing::debug!("{} stays until the next change: {error}", staging.display());
    }
}

/// Removes what programs that died left in a folder. Nobody else may be at work.
pub(super) fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{File, Tree};

    fn tree(text: &str) -> Seen {
        let mut tree = Tree::default();
        let file = File { bytes: text.into(), executable: false };
        tree.add("SKILL.md".into(), file).unwrap();
        Seen::Tree(tree)
    }

    #[test]
    fn there_and_back_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("skills/x");
        let names = || fs::read_dir(folder.path().join("skills")).unwrap().count();
        for (was, put) in [
            (Seen::Absent, tree("a")),
            (tree("a"), tree("b")),
            (tree("b"), Seen::Link("elsewhere".into())),
            (Seen::Link("elsewhere".into()), tree("c")),
            (tree("c"), Seen::Absent),
        ] {
            Swap::make(&place, &put).unwrap().back().unwrap();
            assert!(Seen::at(&place).unwrap() == was, "{was:?}");
            Swap::make(&place, &put).unwrap().finish();
            assert!(Seen::at(&place).unwrap() == put, "{put:?}");
        }
        assert_eq!(names(), 0, "nothing is left behind");
    }

    #[test]
    fn caches_move_over() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        Swap::make(&place, &tree("a")).unwrap().finish();
        fs::create_dir(place.join(".venv")).unwrap();
        fs::write(place.join(".venv/python"), "").unwrap();
        Swap::make(&place, &tree("b")).unwrap().finish();
        assert!(place.join(".venv/python").exists());
        assert_eq!(fs::read_to_string(place.join("SKILL.md")).unwrap(), "b");
    }

    #[test]
    fn what_is_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".savoir-shelf-dead")).unwrap();
        fs::create_dir(folder.path().join("x")).unwrap();
        sweep(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
