//! Finds programs that are started outside of the sandbox to install packages.
//!
//! A run that may write to a project could leave an `uv` or a `node` in a folder of `PATH`, such as
//! that of an activated virtual environment. In the sandbox such a program can do no more than the
//! run itself; outside it could do everything. So folders that a run can write to, now or in an
//! earlier run, are not searched.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use savoir_sandbox::{Access, Policy};

use crate::{grant, run_environment::RunEnvironment};

/// The folders in which programs for installing are searched.
#[derive(Clone, Debug)]
pub(crate) struct HostPath {
    folders: Vec<PathBuf>,
    /// Folders that runs can write to.
    writable: Vec<PathBuf>,
}

impl HostPath {
    /// Creates the search path, without the project of the run and without folders that its policy
    /// lets it write to.
    pub(crate) fn of(policy: &Policy) -> Self {
        let is_writable = |access| matches!(access, Access::Write | Access::CreateGranted);
        let granted = policy.paths.iter().filter(|grant| is_writable(grant.access));
        let mut writable: Vec<PathBuf> = granted.map(|grant| grant.path.clone()).collect();
        let home = env::home_dir().unwrap_or_default();
        let here = [Some(policy.directory.clone()), env::current_dir().ok()];
        for folder in here.into_iter().flatten() {
            writable.extend(project(&folder, &home));
        }
        writable.extend(env::var_os("VIRTUAL_ENV").filter(|path| !path.is_empty()).map(Into::into));
        Self::new(grant::search_path(), &writable)
    }

    fn new(search: Vec<PathBuf>, writable: &[PathBuf]) -> Self {
        let real = writable.iter().filter_map(|path| path.canonicalize().ok());
        let writable = writable.iter().cloned().chain(real).collect();
        let mut host = Self { folders: Vec::new(), writable };
        // Folders with the programs of npm packages belong to a project, wherever they are.
        let is_of_project = |folder: &Path| folder.ends_with("node_modules/.bin");
        let kept = search.into_iter().filter(|it| host.accepts(it) && !is_of_project(it)).collect();
        host.folders = kept;
        host
    }

    /// Whether no run can write to a file or folder, or to the target of its symlinks.
    pub(crate) fn accepts(&self, path: &Path) -> bool {
        let is_outside = |path: &Path| !self.writable.iter().any(|it| path.starts_with(it));
        is_outside(path) && path.canonicalize().is_ok_and(|real| is_outside(&real))
    }

    /// A program by its name.
    pub(crate) fn find(&self, name: impl AsRef<OsStr>) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            let is_executable =
                |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
            fs::metadata(path).is_ok_and(is_executable) && self.accepts(path)
        };
        self.folders.iter().map(|folder| folder.join(name.as_ref())).find(is_program)
    }

    /// Returns the interpreter itself if it may be started outside of the sandbox, or else another
    /// interpreter with the same name.
    pub(crate) fn interpreter(&self, path: &Path) -> Option<PathBuf> {
        if self.accepts(path) {
            return Some(path.to_owned());
        }
        self.find(path.file_name()?)
    }

    /// Adds the search path to the variables of an installer, so that programs that it starts come
    /// from the same folders.
    pub(crate) fn with_path(
        &self,
        mut variables: Vec<(OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        variables.retain(|(name, _)| name != "PATH");
        // A folder with a colon in its name cannot be on a search path.
        let path = env::join_paths(&self.folders).unwrap_or_else(|_| "/usr/bin:/bin".into());
        variables.push(("PATH".into(), path));
        variables
    }
}

/// The working folder and the repository around it. The user's home is not a project, because the
/// programs in it are the user's own, and a run can write to it only if the user allows it.
fn project(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let run_env = RunEnvironment::at(folder, home);
    let folders = [Some(run_env.directory), run_env.repository].into_iter().flatten();
    // The root and an empty path would contain everything.
    let is_part = |folder: &PathBuf| folder.parent().is_some() && !run_env.home.starts_with(folder);
    folders.filter(is_part).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn programs_in_project_folders_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["project/.venv/bin/uv", "other/node_modules/.bin/uv", "tools/node"] {
            program(&root.join(path));
        }
        fs::create_dir(root.join("links")).unwrap();
        symlink(root.join("project/.venv/bin/uv"), root.join("links/uv")).unwrap();
        symlink(root.join("project/.venv/bin"), root.join("venv")).unwrap();
        let search = ["project/.venv/bin", "other/node_modules/.bin", "links", "venv", "tools"];
        let search: Vec<PathBuf> = search.iter().map(|path| root.join(path)).collect();
        let host = HostPath::new(search.clone(), &[root.join("project")]);
        assert_eq!(host.find("uv"), None);
        assert_eq!(host.find("node"), Some(root.join("tools/node")));
        assert_eq!(host.find("nothing"), None);
        assert_eq!(host.interpreter(&root.join("project/.venv/bin/uv")), None);
        let path = host.with_path(vec![("PATH".into(), "/evil".into()), ("A".into(), "b".into())]);
        let expected = env::join_paths([root.join("links"), root.join("tools")]).unwrap();
        assert_eq!(path, [("A".into(), "b".into()), ("PATH".into(), expected)]);
        program(&root.join("tools/uv"));
        let host = HostPath::new(search, &[root.join("project")]);
        assert_eq!(host.find("uv"), Some(root.join("tools/uv")));
        let planted = root.join("project/.venv/bin/uv");
        assert_eq!(host.interpreter(&planted), Some(root.join("tools/uv")));
    }

    #[test]
    fn home_is_not_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let inside = home.join("project/deep");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(home.join("project/.git")).unwrap();
        assert_eq!(project(&inside, &home), [inside.clone(), home.join("project")]);
        assert_eq!(project(&home, &home), Vec::<PathBuf>::new());
        for (folder, home) in [("/", &*home), ("/", Path::new("")), ("", &*home)] {
            assert_eq!(project(Path::new(folder), home), Vec::<PathBuf>::new(), "{folder:?}");
        }
    }
}
