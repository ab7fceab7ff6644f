//! What lies in the folder of a skill and is no part of it.
//!
//! Programs leave things behind when a skill is installed or used: packages, environments, caches.
//! They belong to no [`Tree`](crate::Tree), so that no lock and no signature covers them. Three
//! kinds matter: notes, which nothing takes for code; caches, which any program makes again; and
//! everything else, which may be somebody's work and is never deleted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use savoir_skill::observed::OBSERVED_FILE;

use crate::{limits::MAX_DEPTH, tree::is_ignored_name};

/// Where programs note down what they found out about a skill, and where it came from.
const NOTES: [&str; 3] = [OBSERVED_FILE, ".clawhub/origin.json", ".clawdhub/origin.json"];

/// The folder of signed statements about a skill.
const ATTESTATIONS: &str = ".savoir/attestations";

/// What systems note down about any folder.
const SYSTEM_NOTES: [&str; 2] = [".DS_Store", "Thumbs.db"];

/// Folders that hold nothing but what their program makes again.
const CACHES: [&str; 3] = [".mypy_cache", ".pytest_cache", ".ruff_cache"];

/// The history of version control, which no run sees.
const HISTORY: [&str; 3] = [".git", ".hg", ".svn"];

/// Whether a file of a skill's folder is one that programs note something down in: no signature
/// covers it, and nothing takes it for code. The path is that from the folder of the skill.
pub fn is_note(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    NOTES.contains(&path) || SYSTEM_NOTES.contains(&name) || is_attestation(path)
}

/// Whether a file is a signed statement about the skill, such as the results of an evaluation.
fn is_attestation(path: &str) -> bool {
    let name = path.strip_prefix(ATTESTATIONS).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".json")).is_some_and(|stem| !stem.contains('/'))
}

/// Something that was left behind: a file, a link, or a folder with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UntrackedFile {
    /// Its path from the folder of the skill.
    pub(crate) path: String,
    /// Whether somebody could miss it: there is more than caches and notes.
    pub(crate) precious: bool,
    /// Whether a run sees it and no signature covers it.
    pub(crate) uncovered: bool,
}

/// What was left behind in a folder, without what is inside of it.
pub(crate) fn leftovers(folder: &Path) -> io::Result<Vec<UntrackedFile>> {
    let mut found = Vec::new();
    search(folder, "", 0, &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Whether a folder has anything that somebody could miss. What cannot be read may be it.
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

/// Whether a program makes a file again.
fn is_cached(path: &str) -> bool {
    [".pyc", ".pyo"].iter().any(|end| path.ends_with(end))
        || path.split('/').any(|part| CACHES.contains(&part))
}

/// What moves on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriedFiles {
    /// Everything. What nobody could miss only moves where its folder is still there.
    All,
    /// What somebody could miss.
    Precious,
}

/// Moves what was left behind from one folder of a skill to the next, whatever became of the
/// folders between.
pub(crate) fn carry_over(old: &Path, new: &Path, carry: CarriedFiles) {
    let Ok(found) = leftovers(old) else { return };
    for one in found {
        let (from, to) = (old.join(&one.path), new.join(&one.path));
        let parent = to.parent().unwrap_or(new);
        let wanted = one.precious || carry == CarriedFiles::All && parent.is_dir();
        if fs::symlink_metadata(&to).is_ok() || !wanted {
            continue;
        }
        let moved = fs::create_dir_all(parent).and_then(|()| fs::rename(&from, &to));
        if let Err(error) = moved {
            tracing::warn!("{} could not be moved: {error}", to.display());
        }
    }
}

/// The files and folders of a skill's folder that a run sees, and no lock and no signature covers.
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
    fn what_is_what() {
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
    fn what_moves_over() {
        let old = place(&["a/node_modules/x", "a/__pycache__/x.pyc", ".venv/x", "b/x.pyc", "c.md"]);
        let new = place(&["b/part.md", ".venv/y"]);
        carry_over(old.path(), new.path(), CarriedFiles::All);
        let there = |path: &str| new.path().join(path).exists();
        assert!(there("a/node_modules/x") && there("b/x.pyc"));
        assert!(!there("a/__pycache__") && !there("c.md") && !there(".venv/x"));
    }
}
