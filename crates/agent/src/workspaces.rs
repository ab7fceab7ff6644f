//! Manages the folders in which tools run for remote users. Each run has its own folder; files that
//! a tool leaves in it are stored for a while with the record of the run, only for the user of the
//! run.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_engine::{Home, StoreError, record::is_id};
use serde::Serialize;
use tempfile::TempDir;

/// Maximum number of folders that are stored for one user; older ones are deleted.
const MAX_STORED_RUNS: usize = 50;
/// Maximum size of a stored folder in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of files of a folder that are listed.
const MAX_FILES: usize = 10_000;
/// A time that is longer than any run.
const RETENTION: Duration = Duration::from_hours(24);
/// The prefix of folders in which a tool may still run.
const RUNNING_PREFIX: &str = "run-";

/// The folders of one user.
#[derive(Clone, Debug)]
pub struct Workspaces {
    root: PathBuf,
}

/// A file that a tool left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftFile {
    /// The path in the folder.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
}

impl Workspaces {
    /// The workspaces of one owner, identified by a unique name.
    pub fn of(home: &Home, owner: &str) -> Result<Self, StoreError> {
        let root = home.data_folder("workspaces")?.join(owner);
        savoir_engine::store::make_folder(&root)?;
        Ok(Self { root })
    }

    /// Creates an empty folder for a run. It is deleted unless it is stored.
    pub(crate) fn create(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix(RUNNING_PREFIX).tempdir_in(&self.root)
    }

    /// Stores a folder with the record of its run if the tool left files in it; returns the files.
    pub(crate) fn store(&self, folder: TempDir, run: &str) -> io::Result<Vec<LeftFile>> {
        let files = files_below(folder.path())?;
        let size: u64 = files.iter().map(|file| file.size).sum();
        if size > MAX_BYTES {
            let message = format!("they have more than {} MiB", MAX_BYTES >> 20);
            return Err(io::Error::other(message));
        }
        if files.is_empty() || !is_id(run) {
            return folder.close().map(|()| Vec::new());
        }
        fs::rename(folder.path(), self.root.join(run))?;
        // The folder was renamed, so `TempDir` must not delete the old path.
        let _ = folder.keep();
        self.remove_oldest();
        Ok(files)
    }

    /// Removes the oldest stored folders. The names of folders sort by the time of their run.
    fn remove_oldest(&self) {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let modified = entry.metadata().and_then(|found| found.modified()).ok();
            let is_old =
                modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > RETENTION);
            if !name.starts_with(RUNNING_PREFIX) {
                names.push(name);
            } else if is_old {
                // Left by a server that was killed during the run.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        names.sort();
        let too_many = names.len().saturating_sub(MAX_STORED_RUNS);
        for name in names.drain(..too_many) {
            if let Err(error) = fs::remove_dir_all(self.root.join(&name)) {
                tracing::warn!(%error, name, "an old workspace is still there");
            }
        }
    }

    /// Lists the files of a run, if its folder still exists.
    pub fn files(&self, run: &str) -> Option<Vec<LeftFile>> {
        files_below(&self.folder(run)?).ok()
    }

    /// Opens a file that a run left. Links are not followed, because a tool may have created them.
    pub fn open(&self, run: &str, path: &str) -> Option<File> {
        let file = open_below(&self.folder(run)?, Path::new(path)).ok()?;
        file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
    }

    fn folder(&self, run: &str) -> Option<PathBuf> {
        let folder = self.root.join(run);
        (is_id(run) && !run.starts_with(RUNNING_PREFIX) && folder.is_dir()).then_some(folder)
    }
}

/// The regular files below a folder; links and other entries are left out.
fn files_below(root: &Path) -> io::Result<Vec<LeftFile>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if let (true, Ok(relative)) = (kind.is_file(), path.strip_prefix(root)) {
                let path = relative.to_string_lossy().into_owned();
                files.push(LeftFile { path, size: entry.metadata()?.len() });
            }
            if files.len() + folders.len() > MAX_FILES {
                return Err(io::Error::other(format!("they are more than {MAX_FILES}")));
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

#[cfg(target_os = "linux")]
fn open_below(root: &Path, path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
    let folder = openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // Opening a pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(File::from(openat2(folder, path, flags, Mode::empty(), resolve)?))
}

#[cfg(not(target_os = "linux"))]
fn open_below(_: &Path, _: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::symlink};

    use super::*;

    const RUN: &str = "20261117-101010-0a1-7f3";

    fn workspaces() -> (TempDir, Workspaces) {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::of(&Home::at(folder.path()), "7").unwrap();
        (folder, workspaces)
    }

    #[test]
    fn remaining_files_are_stored_and_empty_folders_removed() {
        let (_folder, workspaces) = workspaces();
        let empty = workspaces.create().unwrap();
        let path = empty.path().to_owned();
        assert!(workspaces.store(empty, RUN).unwrap().is_empty() && !path.exists());
        let full = workspaces.create().unwrap();
        fs::create_dir(full.path().join("out")).unwrap();
        fs::write(full.path().join("out/a.txt"), "left").unwrap();
        let left = [LeftFile { path: "out/a.txt".to_owned(), size: 4 }];
        assert_eq!(workspaces.store(full, RUN).unwrap(), left);
        assert_eq!(workspaces.files(RUN).unwrap(), left);
        let mut text = String::new();
        workspaces.open(RUN, "out/a.txt").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "left");
        let others = Workspaces { root: workspaces.root.with_file_name("8") };
        assert!(others.files(RUN).is_none());
    }

    #[test]
    fn links_and_parent_paths_are_refused() {
        let (folder, workspaces) = workspaces();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        let full = workspaces.create().unwrap();
        fs::write(full.path().join("a"), "a").unwrap();
        symlink(folder.path().join("secret"), full.path().join("link")).unwrap();
        symlink(folder.path(), full.path().join("folder")).unwrap();
        workspaces.store(full, RUN).unwrap();
        assert_eq!(workspaces.files(RUN).unwrap().len(), 1);
        for path in ["link", "folder/secret", "../../../secret", "/etc/passwd", "", ".", "folder"] {
            assert!(workspaces.open(RUN, path).is_none(), "{path}");
        }
        for run in ["..", "../8", "", "run-abcdefghijklmnop"] {
            assert!(
                workspaces.files(run).is_none() && workspaces.open(run, "a").is_none(),
                "{run}"
            );
        }
    }

    #[test]
    fn oldest_runs_are_removed() {
        let (_folder, workspaces) = workspaces();
        for number in 0..=MAX_STORED_RUNS {
            let full = workspaces.create().unwrap();
            fs::write(full.path().join("a"), "a").unwrap();
            workspaces.store(full, &format!("20261117-101010-{number:03}")).unwrap();
        }
        assert!(workspaces.files("20261117-101010-000").is_none());
        assert!(workspaces.files("20261117-101010-001").is_some());
    }
}
