//! Replaces a folder atomically, and can restore it. New content is first written to a staging
//! folder beside the target.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{InstallFailure, folder_contents::FolderContents};
use crate::untracked::{CarriedFiles, carry_over, has_precious};

/// Prefix of the names of staging folders. No other part of Savoir uses it.
const STAGING: &str = ".savoir-shelf-";

/// The staging folders of one change: one beside the target folders in each parent folder.
#[derive(Debug, Default)]
pub(super) struct StagingFolders {
    by_parent: BTreeMap<PathBuf, PathBuf>,
}

impl StagingFolders {
    /// Creates one staging folder in each parent. On an error, removes those already created.
    pub(super) fn make<'a>(
        parents: impl Iterator<Item = &'a Path>,
    ) -> Result<Self, InstallFailure> {
        let mut stages = Self::default();
        for parent in parents {
            if let Err(error) = stages.add(parent) {
                stages.remove();
                return Err(error);
            }
        }
        Ok(stages)
    }

    fn add(&mut self, parent: &Path) -> Result<(), InstallFailure> {
        fs::create_dir_all(parent).map_err(InstallFailure::io(parent))?;
        let stage = tempfile::Builder::new().prefix(STAGING).tempdir_in(parent);
        let stage = stage.map_err(|error| InstallFailure::io(parent)(error.kind().into()))?;
        self.by_parent.insert(parent.to_owned(), stage.keep());
        Ok(())
    }

    /// Writes the new content of a target folder to its staging folder. The file name contains the
    /// name of the target, so that a later program can find the target after a crash.
    pub(super) fn write(
        &self,
        place: &Path,
        put: &FolderContents,
    ) -> Result<StagedFolder, InstallFailure> {
        let parent = parent_of(place);
        let stage = self.by_parent.get(parent).map_or(parent, PathBuf::as_path);
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = stage.join(name);
        write(&new, put).map_err(|error| rename_error(error, &new, place))?;
        Ok(StagedFolder {
            place: place.to_owned(),
            new,
            put: !matches!(put, FolderContents::Absent),
        })
    }

    /// The paths of the staging folders.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.by_parent.values().map(PathBuf::as_path)
    }

    /// The folders that contain the target folders.
    pub(super) fn parents(&self) -> impl Iterator<Item = &Path> {
        self.by_parent.keys().map(PathBuf::as_path)
    }

    /// Removes the staging folders and their content.
    pub(super) fn remove(self) {
        self.folders().for_each(remove);
    }
}

fn parent_of(place: &Path) -> &Path {
    place.parent().unwrap_or(Path::new("."))
}

/// The complete new content of a target folder, in a staging folder.
#[derive(Debug)]
pub(super) struct StagedFolder {
    place: PathBuf,
    new: PathBuf,
    /// Whether there is new content; `false` if the target is to be removed.
    put: bool,
}

impl StagedFolder {
    /// Moves the new content to the target completely, or changes nothing.
    pub(super) fn swap(self) -> Result<FolderSwap, InstallFailure> {
        let Self { place, new, put } = self;
        let old = exchange(&new, put, &place).map_err(InstallFailure::io(&place))?;
        Ok(FolderSwap { place, new, old, put })
    }
}

/// A replaced folder. Its old content is in the staging folder until that is removed.
#[derive(Debug)]
pub(super) struct FolderSwap {
    place: PathBuf,
    new: PathBuf,
    /// The path of the old content, if there was any.
    old: Option<PathBuf>,
    /// Whether there is new content.
    put: bool,
}

impl FolderSwap {
    /// Moves the old content back to the target.
    pub(super) fn restore(self) -> Result<(), InstallFailure> {
        let fail = || InstallFailure::io(&self.place);
        match &self.old {
            Some(old) => drop(exchange(old, true, &self.place).map_err(fail())?),
            None if self.put => {
                fs::rename(&self.place, self.new.with_extension("back")).map_err(fail())?;
            }
            None => {}
        }
        Ok(())
    }

    /// Moves untracked files, such as caches that programs created, from the old content to the
    /// new. If the target was removed, moves only the untracked files that the user could miss.
    pub(super) fn finish(self) {
        if let Some(old) = &self.old {
            carry_over_untracked(old, &self.place);
        }
    }
}

/// Replaces one folder completely, or changes nothing.
pub(super) fn replace(place: &Path, put: &FolderContents) -> Result<(), InstallFailure> {
    let stages = StagingFolders::make(std::iter::once(parent_of(place)))?;
    let swapped = stages.write(place, put).and_then(StagedFolder::swap);
    let done = swapped.map(FolderSwap::finish);
    stages.remove();
    done
}

/// Changes the path in an error from the staging folder to the target, which the user knows.
fn rename_error(error: InstallFailure, staging: &Path, place: &Path) -> InstallFailure {
    use crate::TreeError;
    match error {
        InstallFailure::Tree(TreeError::Io { path, error }) => {
            let path = path.strip_prefix(staging).map_or(place.into(), |rest| place.join(rest));
            InstallFailure::Io { path, error }
        }
        other => other,
    }
}

fn write(new: &Path, put: &FolderContents) -> Result<(), InstallFailure> {
    match put {
        FolderContents::Absent | FolderContents::Unsupported(_) => Ok(()),
        FolderContents::Tree(tree) => Ok(tree.write(new)?),
        FolderContents::Link(target) => symlink(target, new).map_err(InstallFailure::io(new)),
    }
}

/// Moves `new`, if there is new content, to the target; returns the path of the old content.
fn exchange(new: &Path, is_new: bool, place: &Path) -> io::Result<Option<PathBuf>> {
    let is_old = fs::symlink_metadata(place).is_ok();
    let aside = new.with_extension("old");
    match (is_old, is_new) {
        (false, false) => Ok(None),
        (false, true) => fs::rename(new, place).map(|()| None),
        (true, false) => fs::rename(place, &aside).map(|()| Some(aside)),
        (true, true) => match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(Some(new.to_owned())),
            // Some file systems and old kernels cannot exchange two paths in one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::rename(place, &aside)?;
                fs::rename(new, place).inspect_err(|_| {
                    // Restore the old content; report the first error.
                    let _ = fs::rename(&aside, place);
                })?;
                Ok(Some(aside))
            }
            Err(error) => Err(error.into()),
        },
    }
}

/// Moves untracked files from the old content to the target folder.
fn carry_over_untracked(old: &Path, place: &Path) {
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if !is_folder(old) {
        return;
    }
    if is_folder(place) {
        carry_over(old, place, CarriedFiles::All);
    } else if fs::symlink_metadata(place).is_err() {
        // The target was removed. Nothing is moved if it is a link, which leads to files of others.
        carry_over(old, place, CarriedFiles::Precious);
    }
}

fn remove(staging: &Path) {
    let contents = fs::read_dir(staging).into_iter().flatten().flatten();
    let mut folders = contents.map(|entry| entry.path()).filter(|path| path.is_dir());
    if folders.any(|folder| !folder.is_symlink() && has_precious(&folder)) {
        tracing::warn!("{} has files that are no part of a skill: move them", staging.display());
        return;
    }
    if let Err(error) = fs::remove_dir_all(staging) {
        tracing::debug!("{} stays until the next change: {error}", staging.display());
    }
}

/// Removes staging folders that crashed programs left in a folder. The caller must hold the
/// exclusive lock. Symbolic links with such a name are ignored: Savoir does not make them, and a cloned
/// project could lead us out of it.
pub(super) fn remove_staging_folders(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().to_string_lossy().starts_with(STAGING) {
            continue;
        }
        for old in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            let old = old.path();
            if let Some(target) = target_of(parent, &old) {
                carry_over_untracked(&old, &target);
            }
        }
        remove(&entry.path());
    }
}

/// The target of a folder in a staging folder: its name without the extension, if that is a name.
fn target_of(parent: &Path, staged: &Path) -> Option<PathBuf> {
    let name = Path::new(staged.file_stem()?);
    let mut components = name.components();
    let is_name = matches!(components.next(), Some(Component::Normal(_)));
    (is_name && components.next().is_none()).then(|| parent.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{File, Tree};

    fn tree(text: &str) -> FolderContents {
        let mut tree = Tree::default();
        let file = File { bytes: text.into(), executable: false };
        tree.add("SKILL.md".into(), file).unwrap();
        FolderContents::Tree(tree)
    }

    #[test]
    fn swap_and_restore() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("skills/x");
        let names = || fs::read_dir(folder.path().join("skills")).unwrap().count();
        for (was, put) in [
            (FolderContents::Absent, tree("a")),
            (tree("a"), tree("b")),
            (tree("b"), FolderContents::Link("elsewhere".into())),
            (FolderContents::Link("elsewhere".into()), tree("c")),
            (tree("c"), FolderContents::Absent),
        ] {
            let stages = StagingFolders::make(place.parent().into_iter()).unwrap();
            let swap = stages.write(&place, &put).unwrap().swap().unwrap();
            assert!(FolderContents::at(&place).unwrap() == put, "{put:?}");
            swap.restore().unwrap();
            stages.remove();
            assert!(FolderContents::at(&place).unwrap() == was, "{was:?}");
            replace(&place, &put).unwrap();
            assert!(FolderContents::at(&place).unwrap() == put, "{put:?}");
        }
        assert_eq!(names(), 0, "nothing is left behind");
    }

    #[test]
    fn untracked_caches_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        replace(&place, &tree("a")).unwrap();
        fs::create_dir(place.join(".venv")).unwrap();
        fs::write(place.join(".venv/python"), "").unwrap();
        replace(&place, &tree("b")).unwrap();
        assert!(place.join(".venv/python").exists());
        assert_eq!(fs::read_to_string(place.join("SKILL.md")).unwrap(), "b");
    }

    #[test]
    fn untracked_user_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x.y");
        let fill = || {
            replace(&place, &tree("a")).unwrap();
            for file in ["node_modules/mine/notes.txt", "sub/.venv/python", "__pycache__/a.pyc"] {
                fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
                fs::write(place.join(file), "mine").unwrap();
            }
        };
        fill();
        replace(&place, &tree("b")).unwrap();
        assert!(place.join("sub/.venv/python").exists(), "its folder is gone otherwise");
        replace(&place, &FolderContents::Absent).unwrap();
        assert!(place.join("node_modules/mine/notes.txt").exists());
        assert!(place.join("sub/.venv/python").exists());
        assert!(!place.join("__pycache__").exists() && !place.join("SKILL.md").exists());
        fs::remove_dir_all(&place).unwrap();
        for put in [FolderContents::Absent, tree("b")] {
            fill();
            let stages = StagingFolders::make(place.parent().into_iter()).unwrap();
            // The program dies before what it left behind is moved over.
            stages.write(&place, &put).unwrap().swap().unwrap();
            remove_staging_folders(folder.path());
            assert!(place.join("node_modules/mine/notes.txt").exists(), "{put:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    /// A folder with a file in each given path.
    fn fill(folder: &Path, files: &[&str]) {
        for file in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
        }
    }

    #[test]
    fn links_in_a_project_do_not_move_files_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let (others, skills) = (folder.path().join("others"), folder.path().join("skills"));
        fill(&others, &["mine/.git/config", "mine/node_modules/a.js"]);
        fs::create_dir(&skills).unwrap();
        symlink(&others, skills.join(".savoir-shelf-link")).unwrap();
        remove_staging_folders(&skills);
        assert!(others.join("mine/.git/config").exists());
        assert!(others.join("mine/node_modules/a.js").exists());
        assert_eq!(fs::read_dir(&skills).unwrap().count(), 1, "nothing was moved here");
    }

    #[test]
    fn nothing_is_moved_through_a_link_or_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (others, skills) = (folder.path().join("others"), folder.path().join("a/skills"));
        fs::create_dir(&others).unwrap();
        fs::create_dir_all(skills.join("foo")).unwrap();
        symlink(&others, skills.join("foo/sub")).unwrap();
        symlink(&others, skills.join("bar")).unwrap();
        let staged = skills.join(".savoir-shelf-zz");
        fill(&staged, &["foo/sub/node_modules/a.js", "foo/sub/in/.venv/python"]);
        fill(&staged, &["bar.old/node_modules/a.js", "...new/node_modules/a.js"]);
        remove_staging_folders(&skills);
        assert_eq!(fs::read_dir(&others).unwrap().count(), 0);
        assert!(!folder.path().join("a/node_modules").exists());
    }

    #[test]
    fn leftover_staging_folders_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".savoir-shelf-dead")).unwrap();
        fs::create_dir(folder.path().join("x")).unwrap();
        remove_staging_folders(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
