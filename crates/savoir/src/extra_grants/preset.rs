//! Presets of permissions, resolved in the current folder.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use savoir_engine::{approval::shell_word, run_environment::RunEnvironment};

use crate::error::CommandError;

/// A set of permissions that many skills need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// Change the files of this repository and commit; not the hooks and settings of git
    Git,
    /// Use the Python environment of this project
    PythonEnv,
    /// Use and change the packages of this Node project
    Npm,
    /// Change the files of this project
    Project,
}

/// The permissions of a preset.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PresetPermissions {
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "git",
            Self::PythonEnv => "python-env",
            Self::Npm => "npm",
            Self::Project => "project",
        })
    }
}

impl Preset {
    /// The permissions in the current folder.
    pub(super) fn permissions(self) -> Result<PresetPermissions, CommandError> {
        let run_env = RunEnvironment::here()?;
        let variable = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
        self.permissions_at(&run_env, variable)
    }

    fn permissions_at(
        self,
        run_env: &RunEnvironment,
        virtual_env: Option<PathBuf>,
    ) -> Result<PresetPermissions, CommandError> {
        let missing = |what: &str, hint: &str| {
            let message = format!("--allow {self}: {what} in {}", run_env.directory.display());
            Err(CommandError::input(message).hint(hint))
        };
        let root = run_env.start();
        if root == run_env.home || root.parent().is_none() {
            return missing("there is no project", "go to the folder of a project");
        }
        match self {
            Self::Project | Self::Npm => {
                Ok(PresetPermissions { read: Vec::new(), write: path_strings([root]) })
            }
            Self::Git => {
                let Some(root) = &run_env.repository else {
                    return missing("there is no git repository", "create one: git init");
                };
                let git = match &run_env.worktree {
                    Some(worktree) => worktree.common.clone(),
                    None => root.join(".git"),
                };
                if !git.is_dir() {
                    let hint = "name the folders with --allow-write";
                    return missing(".git is not a folder", hint);
                }
                let git_config = [".gitconfig", ".config/git"].map(|name| run_env.home.join(name));
                let read = path_strings(
                    git_config.iter().filter(|path| path.exists()).map(PathBuf::as_path),
                );
                Ok(PresetPermissions { read, write: path_strings([root.as_path(), &git]) })
            }
            Self::PythonEnv => {
                let beside = [".venv", "venv"].map(|name| root.join(name));
                let found = virtual_env.into_iter().chain(beside).find(|path| is_virtual_env(path));
                match found {
                    Some(path) => Ok(PresetPermissions {
                        read: path_strings([path.as_path()]),
                        ..PresetPermissions::default()
                    }),
                    None => missing("there is no .venv", "create one: python3 -m venv .venv"),
                }
            }
        }
    }
}

fn is_virtual_env(path: &Path) -> bool {
    path.join("pyvenv.cfg").is_file()
}

fn path_strings<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

impl PresetPermissions {
    /// The permissions as options, each after a space.
    pub(super) fn to_options(&self) -> String {
        let reads = self.read.iter().map(|path| ("--allow-read", path));
        let writes = self.write.iter().map(|path| ("--allow-write", path));
        let mut options = String::new();
        for (name, path) in writes.chain(reads) {
            options.extend([" ", name, " ", &shell_word(path)]);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn presets_list_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [home, work] = ["home", "work"].map(|name| root.join(name));
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(home.join(".gitconfig"), "").unwrap();
        let run_env = RunEnvironment::at(&work.join("sub"), &home);
        let of = |preset: Preset| preset.permissions_at(&run_env, None);
        let git = of(Preset::Git).unwrap();
        assert_eq!(git.write, path_strings([work.as_path(), &work.join(".git")]));
        assert_eq!(git.read, path_strings([home.join(".gitconfig").as_path()]));
        assert_eq!(of(Preset::Project).unwrap().write, path_strings([work.as_path()]));
        assert!(of(Preset::PythonEnv).is_err());
        fs::create_dir(work.join(".venv")).unwrap();
        fs::write(work.join(".venv/pyvenv.cfg"), "").unwrap();
        assert_eq!(
            of(Preset::PythonEnv).unwrap().read,
            path_strings([work.join(".venv").as_path()])
        );
        let outside = RunEnvironment::at(&home, &root);
        assert!(Preset::Git.permissions_at(&outside, None).is_err());
    }
}
