//! Keeps protected paths unchanged that cannot be protected by a mount: paths that do not exist,
//! and symbolic links. If the program created something there, it is renamed within the same folder
//! after the run. The first process of the sandbox does this when all other processes have ended,
//! even if the supervisor was killed; the supervisor does it if it had to kill the first process.

use std::{
    ffi::{CStr, CString, OsStr},
    os::{fd::RawFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use super::{
    plan::c_path,
    sys::{self, Errno},
};
use crate::{error::SandboxError, outcome::PutAside};

/// A protected path that must be unchanged after the run. All data is prepared before the run,
/// because the first process must not allocate memory.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The path and its parents, from the first component that does not exist; the last entry is
    /// the path itself.
    steps: Vec<Place>,
    /// The target of the link, if the protected path is a link.
    target: Option<CString>,
}

/// A path, and the name to which a file created there is renamed.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    folder: CString,
    name: CString,
    aside: CString,
}

impl Guarded {
    /// Guards a path that does not exist; `first` is its first component that does not exist.
    pub(crate) fn absent(path: &Path, first: &Path) -> Result<Self, SandboxError> {
        let mut steps: Vec<&Path> =
            path.ancestors().take_while(|step| step.starts_with(first)).collect();
        steps.reverse();
        let steps = steps.into_iter().map(Place::new).collect::<Result<_, _>>()?;
        Ok(Self { steps, target: None })
    }

    /// Guards a symbolic link.
    pub(crate) fn link(path: &Path, target: &Path) -> Result<Self, SandboxError> {
        Ok(Self { steps: vec![Place::new(path)?], target: Some(c_path(target)?) })
    }

    /// Moves aside what the program created and creates the original link again. All processes that
    /// could interfere must have ended.
    fn restore(&self) {
        for (index, place) in self.steps.iter().enumerate() {
            let Ok(folder) = open_folder(&place.folder) else { return };
            let is_last = index + 1 == self.steps.len();
            let is_done = self.restore_in(folder, place, is_last);
            sys::close(folder);
            if is_done {
                return;
            }
        }
    }

    /// Checks one component. Returns whether the deeper components need no check.
    fn restore_in(&self, folder: RawFd, place: &Place, is_last: bool) -> bool {
        let kind = kind_in(folder, place);
        let is_as_before = match (&self.target, kind) {
            (None, kind) => kind.is_err(),
            (Some(target), kind) => {
                kind == Ok(libc::S_IFLNK) && sys::leads_to(folder, &place.name, target)
            }
        };
        if is_as_before {
            return true;
        }
        if !is_last && kind == Ok(libc::S_IFDIR) {
            return false;
        }
        let _ = put_aside(folder, place);
        if let Some(target) = &self.target {
            let _ = sys::make_link_in(folder, &place.name, target);
        }
        true
    }

    /// Returns what was moved aside, or what could not be moved.
    fn report(&self) -> Option<PutAside> {
        let at =
            |place: &Place| place.path.with_file_name(OsStr::from_bytes(place.aside.to_bytes()));
        let moved = self.steps.iter().find(|place| at(place).symlink_metadata().is_ok());
        if let Some(place) = moved {
            return Some(PutAside { from: place.path.clone(), to: Some(at(place)), error: None });
        }
        let last = self.steps.last()?;
        let is_wrong = match &self.target {
            None => last.path.symlink_metadata().is_ok(),
            Some(target) => {
                let target = OsStr::from_bytes(target.to_bytes());
                last.path.read_link().map_or(true, |found| found != target)
            }
        };
        is_wrong.then(|| PutAside { from: last.path.clone(), to: None, error: None })
    }
}

impl Place {
    fn new(path: &Path) -> Result<Self, SandboxError> {
        let folder = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default();
        let mut aside = name.to_owned();
        aside.push(format!(".held-{}", random_suffix()));
        Ok(Self {
            path: path.to_owned(),
            folder: c_path(folder)?,
            name: c_path(Path::new(name))?,
            aside: c_path(Path::new(&aside))?,
        })
    }
}

/// Returns a random suffix. It is chosen before the program starts and never shown, so that the
/// program cannot create a file with the new name first.
fn random_suffix() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let hash = RandomState::new().build_hasher().finish();
    format!("{:08x}", hash as u32)
}

/// Runs an operation in a folder and retries it with permissions restored, because the program may
/// have removed them to hide files.
fn opening<T>(folder: &CStr, attempt: impl Fn() -> sys::Result<T>) -> sys::Result<T> {
    match attempt() {
        Err(Errno(libc::EACCES)) => {
            open_way(folder);
            attempt()
        }
        result => result,
    }
}

fn open_folder(folder: &CStr) -> sys::Result<RawFd> {
    opening(folder, || sys::open_without_links(folder))
}

fn kind_in(folder: RawFd, place: &Place) -> sys::Result<u32> {
    opening(&place.folder, || sys::file_type_in(folder, &place.name))
}

fn put_aside(folder: RawFd, place: &Place) -> sys::Result<()> {
    opening(&place.folder, || sys::rename_in(folder, &place.name, &place.aside))
}

/// Gives the owner access to a folder and all its parents.
fn open_way(folder: &CStr) {
    let bytes = folder.to_bytes();
    let mut buffer = [0; libc::PATH_MAX as usize];
    let Some(way) = buffer.get_mut(..=bytes.len()) else { return };
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'/'
            && let Some(Ok(above)) = way.get(..=index).map(CStr::from_bytes_with_nul)
            && index > 0
        {
            sys::open_to_owner(above);
        }
        way[index] = *byte;
    }
    sys::open_to_owner(folder);
}

pub(crate) fn restore(guarded: &[Guarded]) {
    for one in guarded {
        one.restore();
    }
}

/// Returns everything that was moved aside or could not be.
pub(crate) fn report(guarded: &[Guarded]) -> Vec<PutAside> {
    guarded.iter().filter_map(Guarded::report).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn restored(guarded: &[Guarded]) -> Vec<PutAside> {
        restore(guarded);
        report(guarded)
    }

    #[test]
    fn what_came_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [git, deep] = [".git", ".config/git"].map(|name| root.join(name));
        let guarded = [
            Guarded::absent(&git, &git).unwrap(),
            Guarded::absent(&deep, &root.join(".config")).unwrap(),
        ];
        assert!(restored(&guarded).is_empty());
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::create_dir_all(root.join(".config/other")).unwrap();
        let [put] = restored(&guarded).try_into().unwrap();
        assert_eq!(put.from, git);
        assert!(put.to.unwrap().join("hooks").is_dir() && !git.exists());
        assert!(root.join(".config/other").is_dir(), "only what is protected is moved");
    }

    #[test]
    fn a_link_on_the_way_is_put_aside_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("planted/git")).unwrap();
        let deep = root.join(".config/git");
        let guarded = [Guarded::absent(&deep, &root.join(".config")).unwrap()];
        symlink("planted", root.join(".config")).unwrap();
        let [put] = restored(&guarded).try_into().unwrap();
        assert_eq!(put.from, root.join(".config"));
        assert!(!deep.exists() && root.join("planted/git").exists());
    }

    #[test]
    fn a_folder_that_was_closed_is_opened() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = root.join(".git");
        let guarded = [Guarded::absent(&git, &git).unwrap()];
        fs::create_dir(&git).unwrap();
        for mode in [0o555, 0o000] {
            fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(restored(&guarded).len(), 1);
        }
        assert!(!git.exists());
    }

    #[test]
    fn links_lead_where_they_led() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let link = root.join("CLAUDE.md");
        symlink("AGENTS.md", &link).unwrap();
        let guarded = [Guarded::link(&link, Path::new("AGENTS.md")).unwrap()];
        assert!(restored(&guarded).is_empty());
        fs::remove_file(&link).unwrap();
        fs::write(&link, "obey me").unwrap();
        let [put] = restored(&guarded).try_into().unwrap();
        assert_eq!(fs::read_to_string(put.to.unwrap()).unwrap(), "obey me");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("AGENTS.md"));
    }
}
