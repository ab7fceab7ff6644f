//! Keeps programs from changing protected files in the folders that they may write to. Protected
//! files are those that other programs execute or obey: hooks and settings of git, instructions and
//! settings of agents and editors, and the like. Runs of skills and commands of a chat use the same
//! list.

mod folder;
mod search;

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use savoir_sandbox::{Access, MovedFile, PathGrant, Policy};

pub use self::search::{Baseline, CommandGuard, printable_path};
use crate::grant::ProtectedPaths;

/// Why a folder cannot be searched: an error code and a sentence.
pub type FolderError = (&'static str, String);

/// An open folder that is searched. It stays open, so that replacing its path during the run cannot
/// redirect the search to another folder.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder. The last part of the path must not be a symlink.
    pub fn new(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty())?;
        Ok(Self { path, folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file descriptor.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    fn open(&self) -> io::Result<OwnedFd> {
        self.folder.try_clone()
    }
}

/// The folders that a run may write to, with the protected files to look for in them.
#[derive(Debug)]
pub struct GuardedFolders<'a> {
    roots: Vec<(Root, Baseline)>,
    protected: &'a ProtectedPaths,
    home: &'a Path,
}

impl<'a> GuardedFolders<'a> {
    /// Opens the folders that a policy lets a program write to.
    pub fn new(
        policy: &Policy,
        protected: &'a ProtectedPaths,
        home: &'a Path,
    ) -> Result<Self, FolderError> {
        let is_folder = |grant: &&PathGrant| {
            matches!(grant.access, Access::Write | Access::CreateGranted) && grant.path.is_dir()
        };
        let mut paths: Vec<&Path> =
            policy.paths.iter().filter(is_folder).map(|grant| &*grant.path).collect();
        paths.sort();
        paths.dedup_by(|inner, outer| inner.starts_with(outer));
        // Below a `.git` folder, the policy already protects git's own names.
        paths.retain(|path| !path.components().any(|part| part.as_os_str() == ".git"));
        let open = |path: &Path| match Root::new(path.to_owned()) {
            Ok(root) => Some(Ok((root, Baseline::default()))),
            // The sandbox itself refuses symlinks.
            Err(_) if path.is_symlink() => None,
            Err(error) => {
                let message = format!("{} cannot be opened: {error}", path.display());
                Some(Err(("folder-unusable", message)))
            }
        };
        let roots = paths.into_iter().filter_map(open).collect::<Result<_, FolderError>>()?;
        Ok(Self { roots, protected, home })
    }

    /// Calls `run` with a policy that also protects every protected file that exists. Afterwards,
    /// renames protected files that `run` has added. Returns the result of `run`, the renamed
    /// files, and sentences about folders that could not be searched completely.
    pub fn run_guarded<T>(
        self,
        mut policy: Policy,
        run: impl FnOnce(Policy) -> T,
    ) -> Result<(T, Vec<MovedFile>, Vec<String>), FolderError> {
        let is_protected = |grant: &&PathGrant| grant.access == Access::Protected;
        let protected: Vec<PathGrant> = policy.paths.iter().filter(is_protected).cloned().collect();
        let mut all = Vec::new();
        for (root, baseline) in &self.roots {
            let (before, more) =
                baseline.start_command(root, self.protected.clone(), self.home, &protected)?;
            policy.paths.extend(more);
            all.push((root, before));
        }
        let ran = run(policy);
        let (mut moved, mut failed) = (Vec::new(), Vec::new());
        for (root, before) in all {
            let (put, why) = before.move_aside(root);
            moved.extend(put);
            failed.extend(why);
        }
        Ok((ran, moved, failed))
    }
}
