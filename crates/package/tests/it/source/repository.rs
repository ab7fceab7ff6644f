//! Creates git repositories for tests.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A repository with a work tree. Commits are available at its address immediately.
pub(crate) struct Repository {
    place: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self { place: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["config", "uploadpack.allowFilter", "true"]);
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        symlink(target, self.path().join(path)).unwrap();
    }

    /// Commits all files; returns the commit id.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits a tree that git itself would not create, on the branch `main`.
    pub(crate) fn commit_raw(&self, entries: &[(&str, &[u8], &str)]) {
        let tree = self.raw_tree(entries);
        let commit = self.git(&["commit-tree", &tree, "-m", "x"]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
    }

    /// Creates a tree object from modes, names and object ids.
    pub(crate) fn raw_tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, digest) in entries {
            bytes.extend([mode.as_bytes(), b" ", name, b"\0"].concat());
            let digits = |at: usize| u8::from_str_radix(&digest[at..at + 2], 16).unwrap();
            bytes.extend((0..digest.len()).step_by(2).map(digits));
        }
        let place = self.path().join(".git/raw");
        fs::write(&place, bytes).unwrap();
        let place = place.display().to_string();
        self.git(&["hash-object", "-t", "tree", "--literally", "-w", &place])
    }
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the repositories in a cache.
pub(crate) fn cached(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache.join("cache/git")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

/// Returns the kinds of all objects of the only repository in a cache, sorted.
pub(crate) fn objects(cache: &Path) -> Vec<String> {
    let repositories = cached(cache);
    assert_eq!(repositories.len(), 1);
    let format = ["--batch-all-objects", "--batch-check=%(objecttype)"];
    let text = git(&repositories[0], &["cat-file", format[0], format[1]]);
    let mut kinds: Vec<_> = text.lines().map(str::to_owned).collect();
    kinds.sort();
    kinds
}
