//! What other programs execute or obey stays as it is, in every folder that a program may write to:
//! hooks and settings of git, instructions and settings of agents and editors, and the like. A run of a
//! skill and a command of a chat are held to the same list.

mod folder;
mod look;

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use savoir_sandbox::{Access, PathGrant, Policy, PutAside};

pub use self::look::{Baseline, Before, shown};
use crate::grant::ProtectedPaths;

/// Why a folder cannot be looked through: a code and a sentence.
pub type Unusable = (&'static str, String);

/// A folder that is looked through, open, so that its path cannot lead elsewhere meanwhile.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder, by a path without links.
    pub fn new(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty())?;
        Ok(Self { path, folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    fn open(&self) -> io::Result<OwnedFd> {
        self.folder.try_clone()
    }
}

/// The folders that a run may write to, with what other programs obey there.
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
    ) -> Result<Self, Unusable> {
        let is_folder = |grant: &&PathGrant| {
            matches!(grant.access, Access::Write | Access::Make) && grant.path.is_dir()
        };
        let mut paths: Vec<&Path> =
            policy.paths.iter().filter(is_folder).map(|grant| &*grant.path).collect();
        paths.sort();
        paths.dedup_by(|inner, outer| inner.starts_with(outer));
        // In what git keeps, the list of its own names is enough.
        paths.retain(|path| !path.components().any(|part| part.as_os_str() == ".git"));
        let open = |path: &Path| match Root::new(path.to_owned()) {
            Ok(root) => Some(Ok((root, Baseline::default()))),
            // The sandbox refuses links.
            Err(_) if path.is_symlink() => None,
            Err(error) => {
                let message = format!("{} cannot be opened: {error}", path.display());
                Some(Err(("folder-unusable", message)))
            }
        };
        let roots = paths.into_iter().filter_map(open).collect::<Result<_, Unusable>>()?;
        Ok(Self { roots, protected, home })
    }

    /// Runs something with everything held that is there, and puts aside what it adds.
    pub fn around<T>(
        self,
        mut policy: Policy,
        run: impl FnOnce(Policy) -> T,
    ) -> Result<(T, Vec<PutAside>, Vec<String>), Unusable> {
        let is_protected = |grant: &&PathGrant| grant.access == Access::Protected;
        let protected: Vec<PathGrant> = policy.paths.iter().filter(is_protected).cloned().collect();
        let mut all = Vec::new();
        for (root, baseline) in &self.roots {
            let (before, more) =
                baseline.before(root, self.protected.clone(), self.home, &protected)?;
            policy.paths.extend(more);
            all.push((root, before));
        }
        let ran = run(policy);
        let (mut aside, mut failed) = (Vec::new(), Vec::new());
        for (root, before) in all {
            let (put, why) = before.put_aside(root);
            aside.extend(put);
            failed.extend(why);
        }
        Ok((ran, aside, failed))
    }
}
