//! Handles files in the folder of a skill that do not belong to the skill.
//!
//! Programs create files when a skill is installed or used: packages, environments, caches. They
//! are not in the [`Tree`](crate::Tree), so neither the lock nor a signature covers them. There are
//! three kinds: notes, which are never executed; caches, which programs create again; and all other
//! files, which may be the user's work and are never deleted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use savoir_skill::observed::OBSERVED_FILE;

use crate::{limits::MAX_DEPTH, tree::is_ignored_name};

/// Files in which programs record what a skill did, and where it came from.
const NOTES: [&str; 3] = [OBSERVED_FILE, ".clawhub/origin.json", ".clawdhub/origin.json"];

/// The folder of signed statements about a skill.
const ATTESTATIONS: &str = ".savoir/attestations";

/// Files that operating systems create in any folder.
const SYSTEM_NOTES: [&str; 2] = [".DS_Store", "Thumbs.db"];

/// Folders of caches.
const CACHES: [&str; 3] = [".mypy_cache", ".pytest_cache", ".ruff_cache"];

/// Folders of version control, which running skills cannot see.
const HISTORY: [&str; 3] = [".git", ".hg", ".svn"];

/// Whether a path in a skill's folder is a note: a file that no signature covers and no program
/// executes.
pub fn is_note(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    NOTES.contains(&path) || SYSTEM_NOTES.contains(&name) || is_attestation(path)
}

/// Whether a file is a signed statement about the skill, such as the results of an evaluation.
fn is_attestation(path: &str) -> bool {
    let name = path.strip_prefix(ATTESTATIONS).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".json")).is_some_and(|stem| !stem.contains('/'))
}

/// An untracked file, link, or folder with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UntrackedFile {
    /// The path relative to the folder of the skill.
    pub(crate) path: String,
    /// Whether the user could miss it: it has more than caches and notes.
    pub(crate) precious: bool,
    /// Whether a running skill can see it, although no signature covers it.
    pub(crate) uncovered: bool,
}

/// Returns the untracked entries of a folder; the content of an untracked folder is not listed.
pub(crate) fn leftovers(folder: &Path) -> io::Result<Vec<UntrackedFile>> {
    let mut found = Vec::new();
    search(folder, "", 0, &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Whether a folder has files that the user could miss. Unreadable folders count as such.
pub(crate) fn has_precious(folder: &Path) -> bool {
    leftovers(folder).map_or(true, |found| found.iter().any(|one| one.precious))
}

fn search(
    folder: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<UntrackedFile>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if is_ignored_name(&name) {
            let inside = FolderScan::of(&entry.path(), &path)?;
            let history = depth == 0 && HISTORY.contains(&name.as_str());
            let (precious, uncovered) = (inside.precious, inside.uncovered && !history);
            found.push(UntrackedFile { path, precious, uncovered });
        } else if entry.file_type()?.is_dir() && depth < MAX_DEPTH {
            search(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        }
    }
    Ok(())
}

#[derive(Default)]
struct FolderScan {
    precious: bool,
    uncovered: bool,
}

impl FolderScan {
    fn of(place: &Path, path: &str) -> io::Result<Self> {
        let mut inside = Self::default();
        inside.look(place, path, 0)?;
        Ok(inside)
    }

    fn look(&mut self, place: &Path, path: &str, depth: usize) -> io::Result<()> {
        if self.precious && self.uncovered {
            return Ok(());
        }
        if !fs::symlink_metadata(place)?.is_dir() {
            let note = is_note(path);
            self.uncovered |= !note;
            self.precious |= !note && !is_cached(path);
            return Ok(());
        }
        if depth > MAX_DEPTH {
            (self.precious, self.uncovered) = (true, true);
            return Ok(());
        }
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            let name = entry.file_name();
            self.look(&entry.path(), &format!("{path}/{}", name.to_string_lossy()), depth + 1)?;
        }
        Ok(())
    }
}

/// Whether a file is in a cache.
fn is_cached(path: &str) -> bool {
    [".pyc", ".pyo"].iter().any(|end| path.ends_with(end))
        || path.split('/').any(|part| CACHES.contains(&part))
}

/// Which untracked files are moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriedFiles {
    /// All. Caches and notes are only moved if their folder still exists.
    All,
    /// Only files that the user could miss.
    Precious,
}

/// Moves untracked files from the old folder of a skill to the new one, even if folders in between
/// no longer exist. Nothing is moved through a symbolic link in the new folder: it could lead out of the
/// project.
pub(crate) fn carry_over(old: &Path, new: &Path, carry: CarriedFiles) {
    let Ok(found) = leftovers(old) else { return };
    for one in found {
        let (from, to) = (old.join(&one.path), new.join(&one.path));
        let parent = to.parent().unwrap_or(new);
        let wanted = one.precious || carry == CarriedFiles::All && parent.is_dir();
        if fs::symlink_metadata(&to).is_ok() || !wanted || has_link(new, parent) {
            continue;
        }
        let moved = fs::create_dir_all(parent).and_then(|()| fs::rename(&from, &to));
        if let Err(error) = moved {
            tracing::warn!("{} could not be moved: {error}", to.display());
        }
    }
}

/// Whether a folder, or one between it and `path` below it, is a symbolic link.
fn has_link(folder: &Path, path: &Path) -> bool {
    path.ancestors().take_while(|at| at.starts_with(folder)).any(Path::is_symlink)
}

/// Returns the files and folders that a running skill can see, but that neither the lock nor a
/// signature covers.
pub(crate) fn uncovered(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = leftovers(folder)?.into_iter().filter(|one| one.uncovered);
    Ok(found.map(|one| folder.join(one.path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SIGNATURE_FILES;

    fn place(files: &[&str]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for path in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        place
    }

    #[test]
    fn untracked_files_are_classified() {
        for (path, top, precious, uncovered) in [
            ("node_modules/mine/notes.txt", "node_modules", true, true),
            ("sub/__pycache__/x.pyc", "sub/__pycache__", false, true),
            ("__pycache__/notes.txt", "__pycache__", true, true),
            ("x.pyc", "x.pyc", false, true),
            ("deep/.venv/bin/python", "deep/.venv", true, true),
            (".ruff_cache/0/1", ".ruff_cache", false, true),
            (".savoir/observed.json", ".savoir", false, false),
            (".savoir/attestations/eval-1.json", ".savoir", false, false),
            (".savoir/attestations/run.py", ".savoir", true, true),
            (".savoir/attestations/a/b.json", ".savoir", true, true),
            (".clawhub/origin.json", ".clawhub", false, false),
            (".clawhub/mine", ".clawhub", true, true),
            ("sub/.DS_Store", "sub/.DS_Store", false, false),
            (".git/config", ".git", true, false),
            ("sub/.git/config", "sub/.git", true, true),
        ] {
            let place = place(&["SKILL.md", "sub/part.md", path]);
            let expected = UntrackedFile { path: top.to_owned(), precious, uncovered };
            assert_eq!(leftovers(place.path()).unwrap(), [expected], "{path}");
        }
        assert!(SIGNATURE_FILES.iter().all(|name| !is_note(name)));
    }

    #[test]
    fn carry_over_moves_untracked_files() {
        let old = place(&["a/node_modules/x", "a/__pycache__/x.pyc", ".venv/x", "b/x.pyc", "c.md"]);
        let new = place(&["b/part.md", ".venv/y"]);
        carry_over(old.path(), new.path(), CarriedFiles::All);
        let there = |path: &str| new.path().join(path).exists();
        assert!(there("a/node_modules/x") && there("b/x.pyc"));
        assert!(!there("a/__pycache__") && !there("c.md") && !there(".venv/x"));
    }
}
