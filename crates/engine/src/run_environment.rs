//! Describes where a run happens: the user's folder, repository, home and variables.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{
    grant::LinkedWorktree,
    home::Home,
    secrets::{self, StoredSecret},
};

/// The surroundings of a run. All paths are canonical: symlinks are resolved once, here, where the
/// user's own choice of folder is still trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnvironment {
    /// The user's working directory.
    pub directory: PathBuf,
    /// The root of the repository around the working directory.
    pub repository: Option<PathBuf>,
    /// Set if the repository is a linked worktree of git.
    pub worktree: Option<LinkedWorktree>,
    /// The user's home.
    pub home: PathBuf,
    /// Whether the working directory belongs to the run alone, so that the run may write anything
    /// in it.
    pub has_private_directory: bool,
    /// The user's environment, of which a run gets a small part.
    pub variables: Vec<(String, String)>,
    /// Folders of Savoir itself: approvals, records, environments, trusted keys. No run may change
    /// them.
    pub savoir_folders: Vec<PathBuf>,
    /// Secrets that the user stored for skills.
    pub secrets: Vec<StoredSecret>,
}

impl RunEnvironment {
    /// Describes the current process.
    pub fn here() -> std::io::Result<Self> {
        // The same home as in [`Home`], so that Savoir's stored data is inside the protected paths.
        let home = env::home_dir().filter(|home| home.is_absolute());
        let home = home.and_then(|home| home.canonicalize().ok());
        let home = home.as_deref().unwrap_or(Path::new("/nonexistent"));
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self { variables, ..Self::at(&env::current_dir()?, home) })
    }

    /// Creates an environment from a folder and a home, without variables.
    pub fn at(directory: &Path, home: &Path) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (directory, home) = (real(directory), real(home));
        let repository = directory.ancestors().find(|path| path.join(".git").exists());
        // If the whole home is a repository, the user does not want every skill to see it.
        let repository = repository.filter(|path| !home.starts_with(path)).map(Path::to_owned);
        let worktree = repository.as_deref().and_then(LinkedWorktree::of);
        let worktree =
            worktree.filter(|one| one.common.parent().is_some_and(|main| !home.starts_with(main)));
        Self {
            repository,
            worktree,
            home,
            directory,
            has_private_directory: false,
            variables: Vec::new(),
            savoir_folders: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Adds the folders of Savoir itself to those that no run may change.
    #[must_use]
    pub fn keeping(mut self, home: &Home) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.savoir_folders.extend([real(home.data()), real(home.cache())]);
        self
    }

    /// Adds another folder of Savoir, such as that of the settings: a program that changes the list
    /// of trusted keys decides which skills run without a question.
    #[must_use]
    pub fn keeping_folder(mut self, folder: &Path) -> Self {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self.savoir_folders.push(folder.canonicalize().unwrap_or(folder));
        self
    }

    /// Adds the secrets that the user stored.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<StoredSecret>) -> Self {
        Self { secrets, ..self }
    }

    /// Whether a variable has a value in the environment.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, value)| known == name && !value.is_empty())
    }

    /// The stored value of a variable for the skill in a folder. A variable of the environment
    /// takes precedence.
    pub(crate) fn secret(&self, name: &str, skill: &Path) -> Option<&StoredSecret> {
        secrets::value_for(&self.secrets, name, skill).filter(|_| !self.is_set(name))
    }

    /// The folder in which a command tool starts: the root of the repository, or else the working
    /// directory.
    pub fn start(&self) -> &Path {
        self.repository.as_deref().unwrap_or(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_repository_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("outer/inner/deep")).unwrap();
        std::fs::create_dir(root.join("outer/.git")).unwrap();
        std::fs::write(root.join("outer/inner/.git"), "gitdir: elsewhere").unwrap();
        let run_env = RunEnvironment::at(&root.join("outer/inner/deep"), &root);
        assert_eq!(run_env.start(), root.join("outer/inner"));
        let run_env = RunEnvironment::at(&root, &root.join("outer"));
        assert_eq!(run_env.repository, None);
        assert_eq!(run_env.start(), root);
        for home in ["outer", "outer/home"] {
            std::fs::create_dir_all(root.join("outer/home/project")).unwrap();
            let run_env = RunEnvironment::at(&root.join("outer/home/project"), &root.join(home));
            assert_eq!(run_env.repository, None, "the home is not a working folder");
        }
    }
}
