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
pub(super) struct Folders {
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
    pub(super) fn folders(self) -> Result<Folders, CommandError> {
        let run_env = RunEnvironment::here()?;
        let variable = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
        self.folders_at(&run_env, variable)
    }

    fn folders_at(
        self,
        run_env: &RunEnvironment,
        environment: Option<PathBuf>,
    ) -> Result<Folders, CommandError> {
        let missing = |what: &str, hint: &str| {
            let message = format!("--allow {self}: {what} in {}", run_env.directory.display());
            Err(CommandError::input(message).hint(hint))
        };
        let root = run_env.start();
        if root == run_env.home || root.parent().is_none() {
            return missing("there is no project", "go to the folder of a project");
        }
        match self {
            Self::Project | Self::Npm => Ok(Folders { read: Vec::new(), write: texts([root]) }),
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
                let own = [".gitconfig", ".config/git"].map(|name| run_env.home.join(name));
                let read = texts(own.iter().filter(|path| path.exists()).map(PathBuf::as_path));
                Ok(Folders { read, write: texts([root.as_path(), &git]) })
            }
            Self::PythonEnv => {
                let beside = [".venv", "venv"].map(|name| root.join(name));
                let found = environment.into_iter().chain(beside).find(|path| is_environment(path));
                match found {
                    Some(path) => {
                        Ok(Folders { read: texts([path.as_path()]), ..Folders::default() })
                    }
                    None => missing("there is no .venv", "create one: python3 -m venv .venv"),
                }
            }
        }
    }
}

fn is_environment(path: &Path) -> bool {
    path.join("pyvenv.cfg").is_file()
}

fn texts<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

impl Folders {
    /// The permissions as options, each after a space.
    pub(super) fn words(&self) -> String {
        let reads = self.read.iter().map(|path| ("--allow-read", path));
        let writes = self.write.iter().map(|path| ("--allow-write", path));
        let mut words = String::new();
        for (name, path) in writes.chain(reads) {
            words.extend([" ", name, " ", &shell_word(path)]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn presets_stand_for_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [home, work] = ["home", "work"].map(|name| root.join(name));
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(home.join(".gitconfig"), "").unwrap();
        let run_env = RunEnvironment::at(&work.join("sub"), &home);
        let of = |preset: Preset| preset.folders_at(&run_env, None);
        let git = of(Preset::Git).unwrap();
        assert_eq!(git.write, texts([work.as_path(), &work.join(".git")]));
        assert_eq!(git.read, texts([home.join(".gitconfig").as_path()]));
        assert_eq!(of(Preset::Project).unwrap().write, texts([work.as_path()]));
        assert!(of(Preset::PythonEnv).is_err());
        fs::create_dir(work.join(".venv")).unwrap();
        fs::write(work.join(".venv/pyvenv.cfg"), "").unwrap();
        assert_eq!(of(Preset::PythonEnv).unwrap().read, texts([work.join(".venv").as_path()]));
        let outside = RunEnvironment::at(&home, &root);
        assert!(Preset::Git.folders_at(&outside, None).is_err());
    }
}
