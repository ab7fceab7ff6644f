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
use crate::{error::SandboxError, outcome::MovedFile};

/// A protected path that must be unchanged after the run. All data is prepared before the run,
/// because the first process must not allocate memory.
#[derive(Debug)]
pub(crate) struct GuardedPath {
    /// The path and its parents, from the first component that does not exist; the last entry is
    /// the path itself.
    entries: Vec<PathEntry>,
    /// The target of the link, if the protected path is a link.
    target: Option<CString>,
}

/// A path, and the name to which a file created there is renamed.
#[derive(Debug)]
struct PathEntry {
    path: PathBuf,
    folder: CString,
    name: CString,
    aside_name: CString,
}

impl GuardedPath {
    /// Guards a path that does not exist; `first` is its first component that does not exist.
    pub(crate) fn absent(path: &Path, first: &Path) -> Result<Self, SandboxError> {
        let mut entries: Vec<&Path> =
            path.ancestors().take_while(|step| step.starts_with(first)).collect();
        entries.reverse();
        let entries = entries.into_iter().map(PathEntry::new).collect::<Result<_, _>>()?;
        Ok(Self { entries, target: None })
    }

    /// Guards a symbolic link.
    pub(crate) fn link(path: &Path, target: &Path) -> Result<Self, SandboxError> {
        Ok(Self { entries: vec![PathEntry::new(path)?], target: Some(c_path(target)?) })
    }

    /// Moves aside what the program created and creates the original link again. All processes that
    /// could interfere must have ended.
    fn restore(&self) {
        for (index, entry) in self.entries.iter().enumerate() {
            let Ok(folder) = open_folder(&entry.folder) else { return };
            let is_last = index + 1 == self.entries.len();
            let is_done = self.restore_in(folder, entry, is_last);
            sys::close(folder);
            if is_done {
                return;
            }
        }
    }

    /// Checks one component. Returns whether the deeper components need no check.
    fn restore_in(&self, folder: RawFd, entry: &PathEntry, is_last: bool) -> bool {
        let kind = entry_type(folder, entry);
        let is_unchanged = match (&self.target, kind) {
            (None, kind) => kind.is_err(),
            (Some(target), kind) => {
                kind == Ok(libc::S_IFLNK) && sys::is_link_to(folder, &entry.name, target)
            }
        };
        if is_unchanged {
            return true;
        }
        if !is_last && kind == Ok(libc::S_IFDIR) {
            return false;
        }
        let _ = move_aside(folder, entry);
        if let Some(target) = &self.target {
            let _ = sys::make_link_in(folder, &entry.name, target);
        }
        true
    }

    /// Returns what was moved aside, or what could not be moved.
    fn moved_file(&self) -> Option<MovedFile> {
        let aside_path = |entry: &PathEntry| {
            entry.path.with_file_name(OsStr::from_bytes(entry.aside_name.to_bytes()))
        };
        let moved = self.entries.iter().find(|entry| aside_path(entry).symlink_metadata().is_ok());
        if let Some(entry) = moved {
            return Some(MovedFile {
                from: entry.path.clone(),
                to: Some(aside_path(entry)),
                error: None,
            });
        }
        let last = self.entries.last()?;
        let is_wrong = match &self.target {
            None => last.path.symlink_metadata().is_ok(),
            Some(target) => {
                let target = OsStr::from_bytes(target.to_bytes());
                last.path.read_link().map_or(true, |found| found != target)
            }
        };
        is_wrong.then(|| MovedFile { from: last.path.clone(), to: None, error: None })
    }
}

impl PathEntry {
    fn new(path: &Path) -> Result<Self, SandboxError> {
        let folder = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default();
        let mut aside_name = name.to_owned();
        aside_name.push(format!(".held-{}", random_suffix()));
        Ok(Self {
            path: path.to_owned(),
            folder: c_path(folder)?,
            name: c_path(Path::new(name))?,
            aside_name: c_path(Path::new(&aside_name))?,
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
fn retry_with_owner_access<T>(
    folder: &CStr,
    attempt: impl Fn() -> sys::Result<T>,
) -> sys::Result<T> {
    match attempt() {
        Err(Errno(libc::EACCES)) => {
            grant_owner_access(folder);
            attempt()
        }
        result => result,
    }
}

fn open_folder(folder: &CStr) -> sys::Result<RawFd> {
    retry_with_owner_access(folder, || sys::open_without_links(folder))
}

fn entry_type(folder: RawFd, entry: &PathEntry) -> sys::Result<u32> {
    retry_with_owner_access(&entry.folder, || sys::file_type_in(folder, &entry.name))
}

fn move_aside(folder: RawFd, entry: &PathEntry) -> sys::Result<()> {
    retry_with_owner_access(&entry.folder, || {
        sys::rename_in(folder, &entry.name, &entry.aside_name)
    })
}

/// Gives the owner access to a folder and all its parents.
fn grant_owner_access(folder: &CStr) {
    let bytes = folder.to_bytes();
    let mut buffer = [0; libc::PATH_MAX as usize];
    let Some(buffer_path) = buffer.get_mut(..=bytes.len()) else { return };
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'/'
            && let Some(Ok(above)) = buffer_path.get(..=index).map(CStr::from_bytes_with_nul)
            && index > 0
        {
            sys::give_owner_access(above);
        }
        buffer_path[index] = *byte;
    }
    sys::give_owner_access(folder);
}

pub(crate) fn restore_all(guarded: &[GuardedPath]) {
    for path in guarded {
        path.restore();
    }
}

/// Returns everything that was moved aside or could not be.
pub(crate) fn list_moved_files(guarded: &[GuardedPath]) -> Vec<MovedFile> {
    guarded.iter().filter_map(GuardedPath::moved_file).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn restore_and_list(guarded: &[GuardedPath]) -> Vec<MovedFile> {
        restore_all(guarded);
        list_moved_files(guarded)
    }

    #[test]
    fn created_files_are_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [git, deep] = [".git", ".config/git"].map(|name| root.join(name));
        let guarded = [
            GuardedPath::absent(&git, &git).unwrap(),
            GuardedPath::absent(&deep, &root.join(".config")).unwrap(),
        ];
        assert!(restore_and_list(&guarded).is_empty());
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::create_dir_all(root.join(".config/other")).unwrap();
        let [put] = restore_and_list(&guarded).try_into().unwrap();
        assert_eq!(put.from, git);
        assert!(put.to.unwrap().join("hooks").is_dir() && !git.exists());
        assert!(root.join(".config/other").is_dir(), "only what is protected is moved");
    }

    #[test]
    fn link_among_the_parents_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("planted/git")).unwrap();
        let deep = root.join(".config/git");
        let guarded = [GuardedPath::absent(&deep, &root.join(".config")).unwrap()];
        symlink("planted", root.join(".config")).unwrap();
        let [put] = restore_and_list(&guarded).try_into().unwrap();
        assert_eq!(put.from, root.join(".config"));
        assert!(!deep.exists() && root.join("planted/git").exists());
    }

    #[test]
    fn folder_without_permissions_is_made_accessible() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = root.join(".git");
        let guarded = [GuardedPath::absent(&git, &git).unwrap()];
        fs::create_dir(&git).unwrap();
        for mode in [0o555, 0o000] {
            fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(restore_and_list(&guarded).len(), 1);
        }
        assert!(!git.exists());
    }

    #[test]
    fn replaced_link_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let link = root.join("CLAUDE.md");
        symlink("AGENTS.md", &link).unwrap();
        let guarded = [GuardedPath::link(&link, Path::new("AGENTS.md")).unwrap()];
        assert!(restore_and_list(&guarded).is_empty());
        fs::remove_file(&link).unwrap();
        fs::write(&link, "obey me").unwrap();
        let [put] = restore_and_list(&guarded).try_into().unwrap();
        assert_eq!(fs::read_to_string(put.to.unwrap()).unwrap(), "obey me");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("AGENTS.md"));
    }
}
