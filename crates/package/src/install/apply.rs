//! Applies an install plan completely or not at all, and undoes the newest change.

use std::{fs, io, path::Path};

use super::{
    InstallFailure, InstallPlan, PlannedChange, ProjectFiles, SkillSet, UserEdits, disk_sync,
    folder_contents::FolderContents,
    gaia,
    journal::{Journal, JournalRecord, parents, remove_if_empty},
    plan::FolderStep,
    process_lock::ProcessLock,
    swap::{FolderSwap, StagedFolder, StagingFolders, remove_staging_folders, replace},
};
use crate::{
    limits::{MAX_LOCK_BYTES, MAX_MANIFEST_BYTES},
    lock, manifest, parallel, text_file,
    untracked::has_precious,
};

impl SkillSet {
    /// Applies a plan. Calls `waiting` if another program holds the lock and must finish first. If
    /// the files that the plan was computed from have changed since, the error is
    /// [`InstallFailure::Moved`]: plan again.
    pub fn apply(&self, plan: &InstallPlan, waiting: &dyn Fn()) -> Result<(), InstallFailure> {
        if !plan.growth.is_empty() {
            return Err(InstallFailure::MoreCapabilities(plan.growth.clone()));
        }
        if plan.is_empty() {
            return Ok(());
        }
        let held = self.lock_exclusive(waiting)?;
        self.roll_back(&held)?;
        self.check_fresh(plan)?;
        self.write_record(plan)?;
        parents(plan.folders()).for_each(remove_staging_folders);
        text_file::sweep(&self.root);
        let journal = Journal::new(&self.data);
        let record = self.change(plan, &journal)?;
        remove_if_empty(&plan.remove_if_empty);
        if let Err(error) = self.add_to_index(plan) {
            // The change is applied. Without the index entry, Savoir only cannot remove the folder
            // later.
            tracing::warn!("what was installed is not written down: {error}");
        }
        let closed = record.finish().and_then(|()| journal.prune(&self.root));
        // If `savoir.lock` does not change, only the closed journal record shows that the change
        // was applied, so it must reach the disk.
        let closed =
            if plan.before.lock == plan.after.lock { closed.and(journal.wait()) } else { closed };
        if let Err(error) = closed {
            // The change is applied. The next change repairs the journal.
            tracing::warn!("the journal is not in order: {error}");
        }
        Ok(())
    }

    /// Repairs changes that crashed programs left incomplete; returns whether there were any. Call
    /// it before planning, because planning fails while there are incomplete changes.
    pub fn recover(&self, waiting: &dyn Fn()) -> Result<bool, InstallFailure> {
        if Journal::new(&self.data).is_closed()? {
            return Ok(false);
        }
        let held = self.lock_exclusive(waiting)?;
        self.roll_back(&held)
    }

    /// Plans to undo the newest change of this skill set.
    pub fn undo(&self, edits: UserEdits) -> Result<InstallPlan, InstallFailure> {
        let _held = self.lock_for_planning()?;
        let nothing = || InstallFailure::NothingToUndo(self.root.clone());
        let records = Journal::new(&self.data).records(&self.root)?;
        let record = records.into_iter().next().ok_or_else(nothing)?;
        let before = self.texts()?;
        let mut edited = Vec::new();
        for (path, now, then) in [
            (self.manifest_path(), &before.manifest, &record.after.manifest),
            (self.lock_path(), &before.lock, &record.after.lock),
        ] {
            if now != then {
                edited.push(path);
            }
        }
        let (mut steps, mut changes) = (Vec::new(), Vec::new());
        for folder in &record.folders {
            self.check_still_inside(&folder.path)?;
            let (was, put) = (FolderContents::at(&folder.path)?, record.content(&folder.was)?);
            if was == put {
                continue;
            }
            if !folder.now.is(&was) {
                edited.push(folder.path.clone());
            }
            if let Some(why) = was.unsupported_reason() {
                let (path, why) = (folder.path.clone(), why.to_owned());
                return Err(InstallFailure::Unkeepable { path, why });
            }
            changes.push(match put {
                FolderContents::Absent => PlannedChange::Undone(folder.path.clone()),
                _ => PlannedChange::Restored(folder.path.clone()),
            });
            if matches!(put, FolderContents::Absent) && has_precious(&folder.path) {
                changes.push(PlannedChange::EditsLeft(folder.path.clone()));
            }
            steps.push(FolderStep { folder: folder.path.clone(), was, put });
        }
        if !edited.is_empty() && edits == UserEdits::Keep {
            return Err(InstallFailure::Edited(edited));
        }
        Ok(InstallPlan {
            root: self.root.clone(),
            before: ProjectFiles { gaia: record.after.gaia, ..before },
            after: record.before,
            steps,
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes,
            growth: Vec::new(),
            undoes: Some(record.place),
            remove_if_empty: record.made,
        })
    }

    /// Checks that the files are still those that the plan was computed from.
    fn check_fresh(&self, plan: &InstallPlan) -> Result<(), InstallFailure> {
        let moved = || InstallFailure::Moved(self.root.clone());
        let ProjectFiles { manifest, lock, .. } = self.texts()?;
        // GAIA may change its lock file at any time: see `gaia`.
        if (&manifest, &lock) != (&plan.before.manifest, &plan.before.lock) {
            return Err(moved());
        }
        let seen = parallel::map(&plan.steps, |step| FolderContents::at(&step.folder));
        for (seen, step) in seen.into_iter().zip(&plan.steps) {
            if seen? != step.was {
                return Err(moved());
            }
        }
        Ok(())
    }

    fn write_record(&self, plan: &InstallPlan) -> Result<(), InstallFailure> {
        let store = self.store();
        let kept = parallel::map(&plan.keep, |tree| store.put(tree));
        Ok(kept.into_iter().try_for_each(|kept| kept.map(drop))?)
    }

    /// Applies all steps. On an error, restores everything.
    ///
    /// First, all new content is written to staging folders beside the target folders, and all old
    /// content to the journal. Then a single disk sync covers both, and only renames remain:
    /// whenever the program or the machine stops, every folder is complete, and the old content can
    /// be restored.
    fn change(
        &self,
        plan: &InstallPlan,
        journal: &Journal,
    ) -> Result<JournalRecord, InstallFailure> {
        let prepared = journal.prepare(plan)?;
        let preparation = prepare(plan, prepared.place());
        let (stages, written) = preparation.inspect_err(|_| prepared.clean_up())?;
        let record = match journal.open(prepared) {
            Ok(record) => record,
            Err(error) => {
                stages.remove();
                return Err(error);
            }
        };
        let changed =
            self.remove_from_index(plan).and_then(|()| self.exchange(plan, written, &stages));
        match changed {
            Ok(swaps) => {
                swaps.into_iter().for_each(FolderSwap::finish);
                stages.remove();
                Ok(record)
            }
            Err(error) => {
                // If the old content could not be restored, the staging folders hold the only copy
                // of it.
                if !matches!(error, InstallFailure::HalfDone { .. }) {
                    stages.remove();
                }
                Err(discard_and_fail(&record, error))
            }
        }
    }

    fn exchange(
        &self,
        plan: &InstallPlan,
        written: Vec<StagedFolder>,
        stages: &StagingFolders,
    ) -> Result<Vec<FolderSwap>, InstallFailure> {
        let mut swaps = Vec::new();
        for new in written {
            match new.swap() {
                Ok(swap) => swaps.push(swap),
                Err(error) => return Err(with_rollback_error(error, restore_swaps(swaps))),
            }
        }
        let mut parents = stages.parents();
        let waited = parents
            .try_for_each(|parent| disk_sync::wait_for(parent).map_err(InstallFailure::io(parent)));
        if let Err(error) = waited {
            return Err(with_rollback_error(error, restore_swaps(swaps)));
        }
        match write_project_files(&self.root, &plan.before, &plan.after) {
            Ok(()) => Ok(swaps),
            Err(error) => {
                let texts = restore_project_files(&self.root, &plan.before, &plan.after);
                Err(with_rollback_error(error, restore_swaps(swaps).and(texts)))
            }
        }
    }

    fn roll_back(&self, _: &ProcessLock) -> Result<bool, InstallFailure> {
        let journal = Journal::new(&self.data);
        journal.discard_empty_records()?;
        let unfinished = journal.unfinished_records()?;
        for record in &unfinished {
            roll_back(record)?;
        }
        Ok(!unfinished.is_empty())
    }
}

/// Writes all new content to staging folders, and waits until it and the journal record are on
/// disk.
fn prepare(
    plan: &InstallPlan,
    record: &Path,
) -> Result<(StagingFolders, Vec<StagedFolder>), InstallFailure> {
    let stages = StagingFolders::make(parents(plan.folders()))?;
    let written = parallel::map(&plan.steps, |step| stages.write(&step.folder, &step.put));
    let written: Result<Vec<StagedFolder>, InstallFailure> = written.into_iter().collect();
    let settled = written.and_then(|written| {
        let places: Vec<&Path> = stages.folders().chain([record]).collect();
        disk_sync::sync_folders(&places).map(|()| written).map_err(InstallFailure::io(record))
    });
    match settled {
        Ok(written) => Ok((stages, written)),
        Err(error) => {
            stages.remove();
            Err(error)
        }
    }
}

fn with_rollback_error(error: InstallFailure, back: Result<(), InstallFailure>) -> InstallFailure {
    match back {
        Ok(()) => error,
        Err(back) => InstallFailure::HalfDone { error: Box::new(error), back: Box::new(back) },
    }
}

/// Discards the record if everything was restored. Otherwise the record stays, and the next program
/// uses it to restore the rest.
fn discard_and_fail(record: &JournalRecord, error: InstallFailure) -> InstallFailure {
    remove_if_empty(&record.made);
    if !matches!(error, InstallFailure::HalfDone { .. })
        && let Err(error) = record.discard()
    {
        // The record only describes the current state, so it does no harm.
        tracing::warn!("the journal is not in order: {error}");
    }
    error
}

fn restore_swaps(swaps: Vec<FolderSwap>) -> Result<(), InstallFailure> {
    let mut first = Ok(());
    for swap in swaps.into_iter().rev() {
        first = first.and(swap.restore());
    }
    first
}

/// Completes or rolls back the change of a record. If the new `savoir.lock` was written, the change
/// counts as applied. Otherwise it is rolled back, except in folders that changed since.
fn roll_back(record: &JournalRecord) -> Result<(), InstallFailure> {
    let places = record.folders.iter().map(|folder| &folder.path);
    text_file::sweep(&record.root);
    let path = record.root.join(lock::FILE);
    let now = text_file::read(&path, MAX_LOCK_BYTES)?;
    let is_made = now == record.after.lock && now != record.before.lock;
    if is_made || record.is_undo_complete() {
        parents(places).for_each(remove_staging_folders);
        return record.finish();
    }
    let mut replaced = Vec::new();
    for folder in &record.folders {
        let there = FolderContents::at(&folder.path)?;
        if !matches!(there, FolderContents::Absent) && !folder.now.is(&there) {
            continue;
        }
        let was = record.content(&folder.was)?;
        if there != was {
            replace(&folder.path, &was)?;
            replaced.push(folder.path.as_path());
        }
    }
    wait_for(&replaced)?;
    let path = record.root.join(manifest::FILE);
    if text_file::read(&path, MAX_MANIFEST_BYTES)? == record.after.manifest {
        let after =
            ProjectFiles { manifest: record.after.manifest.clone(), ..record.before.clone() };
        write_project_files(&record.root, &after, &record.before)?;
    }
    gaia::roll_back(&record.before, &record.after)?;
    parents(places).for_each(remove_staging_folders);
    remove_if_empty(&record.made);
    record.discard()
}

/// Waits until the restored folders are on disk, because the record is discarded afterwards.
fn wait_for(replaced: &[&Path]) -> Result<(), InstallFailure> {
    let folders: Vec<&Path> = replaced.iter().copied().filter(|path| path.is_dir()).collect();
    let fail = |path: &Path| InstallFailure::io(path);
    disk_sync::sync_folders(&folders).map_err(fail(folders.first().unwrap_or(&Path::new("."))))?;
    let mut parents: Vec<&Path> = replaced.iter().filter_map(|path| path.parent()).collect();
    parents.dedup();
    parents.iter().try_for_each(|parent| disk_sync::wait_for(parent).map_err(fail(parent)))
}

/// Writes the files that differ. `savoir.lock` is the last one, because it marks the change as
/// applied.
fn write_project_files(
    root: &Path,
    before: &ProjectFiles,
    after: &ProjectFiles,
) -> Result<(), InstallFailure> {
    write_file(&root.join(manifest::FILE), before.manifest.as_ref(), after.manifest.as_ref())?;
    gaia::write(before, after)?;
    write_file(&root.join(lock::FILE), before.lock.as_ref(), after.lock.as_ref())?;
    if before != after {
        let folder = fs::File::open(root).and_then(|folder| folder.sync_all());
        folder.map_err(InstallFailure::io(root))?;
    }
    Ok(())
}

/// Restores the files that differ from `before`. Unchanged files are not written, since that could
/// fail on a full disk.
fn restore_project_files(
    root: &Path,
    before: &ProjectFiles,
    after: &ProjectFiles,
) -> Result<(), InstallFailure> {
    let path = root.join(manifest::FILE);
    let now = text_file::read(&path, MAX_MANIFEST_BYTES)?;
    let manifest = write_file(&path, now.as_ref(), before.manifest.as_ref());
    let gaia = gaia::roll_back(before, after);
    let path = root.join(lock::FILE);
    let now = text_file::read(&path, MAX_LOCK_BYTES)?;
    let lock = write_file(&path, now.as_ref(), before.lock.as_ref());
    manifest.and(gaia).and(lock)
}

/// Writes or removes a file, unless it already has the new content.
pub(super) fn write_file(
    path: &Path,
    before: Option<&String>,
    after: Option<&String>,
) -> Result<(), InstallFailure> {
    match after {
        _ if before == after => {}
        Some(text) => {
            let folder = path.parent().unwrap_or(path);
            fs::create_dir_all(folder).map_err(InstallFailure::io(folder))?;
            text_file::write(path, text)?;
        }
        None => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(InstallFailure::io(path)(error));
            }
            _ => {}
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agents, File, Tree, install::GaiaLockFile, manifest::Scope};

    /// Returns the current content of the project files.
    fn texts(skill_set: &SkillSet) -> ProjectFiles {
        let path = skill_set.root.join("skill-lock.json");
        let text = fs::read_to_string(&path).ok();
        ProjectFiles { gaia: Some(GaiaLockFile { path, text }), ..skill_set.texts().unwrap() }
    }

    fn tree(text: &str) -> FolderContents {
        let mut tree = Tree::default();
        let file = File { bytes: text.into(), executable: false };
        tree.add("SKILL.md".into(), file).unwrap();
        FolderContents::Tree(tree)
    }

    /// Creates a skill set, and a plan that adds a folder, changes one and removes one.
    fn skill_set(place: &Path) -> (SkillSet, InstallPlan) {
        let skill_set = SkillSet::new(
            &place.join("project"),
            Scope::Project,
            Agents::new(place, |_| None),
            place.join("data"),
        );
        let folder = |name: &str| skill_set.root.join("skills").join(name);
        for (name, text) in [("changed", "old"), ("removed", "old")] {
            replace(&folder(name), &tree(text)).unwrap();
        }
        let step = |name: &str, was: FolderContents, put: FolderContents| FolderStep {
            folder: folder(name),
            was,
            put,
        };
        let gaia = |version: &str| {
            let text = format!(r#"{{"version":1,"skills":{{"x":{{"version":"{version}"}}}}}}"#);
            GaiaLockFile { path: skill_set.root.join("skill-lock.json"), text: Some(text) }
        };
        let texts = |text: &str| ProjectFiles {
            manifest: Some(text.into()),
            lock: Some(text.into()),
            gaia: Some(gaia(text)),
        };
        let empty = GaiaLockFile { text: None, ..gaia("") };
        let nothing = ProjectFiles { gaia: Some(empty), ..ProjectFiles::default() };
        write_project_files(&skill_set.root, &nothing, &texts("old")).unwrap();
        let plan = InstallPlan {
            root: skill_set.root.clone(),
            before: texts("old"),
            after: texts("new"),
            steps: vec![
                step("added", FolderContents::Absent, tree("new")),
                step("changed", tree("old"), tree("new")),
                step("removed", tree("old"), FolderContents::Absent),
            ],
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes: Vec::new(),
            growth: Vec::new(),
            undoes: None,
            remove_if_empty: Vec::new(),
        };
        (skill_set, plan)
    }

    /// Applies some steps of a plan and stops, like a crashing program.
    fn leave(skill_set: &SkillSet, plan: &InstallPlan, steps: usize) {
        let journal = Journal::new(&skill_set.data);
        let prepared = journal.prepare(plan).unwrap();
        let (_stages, written) = prepare(plan, prepared.place()).unwrap();
        journal.open(prepared).unwrap();
        for new in written.into_iter().take(steps) {
            // The old content stays in the staging folder.
            new.swap().unwrap();
        }
        let after = ProjectFiles { lock: plan.before.lock.clone(), ..plan.after.clone() };
        if steps > plan.steps.len() {
            write_project_files(&skill_set.root, &plan.before, &after).unwrap();
        }
        if steps > plan.steps.len() + 1 {
            write_project_files(&skill_set.root, &after, &plan.after).unwrap();
        }
    }

    #[test]
    fn interrupted_change_is_rolled_back() {
        for steps in 0..=5 {
            let place = tempfile::tempdir().unwrap();
            let (skill_set, plan) = skill_set(place.path());
            leave(&skill_set, &plan, steps);
            assert_eq!(skill_set.undo(UserEdits::Keep).unwrap_err().code(), "unfinished");
            assert!(skill_set.recover(&|| ()).unwrap());
            assert!(!skill_set.recover(&|| ()).unwrap(), "once is enough");
            let made = steps == 5;
            let expected = if made { &plan.after } else { &plan.before };
            assert_eq!(texts(&skill_set), *expected, "{steps}");
            for step in &plan.steps {
                let expected = if made { &step.put } else { &step.was };
                assert!(
                    FolderContents::at(&step.folder).unwrap() == *expected,
                    "{steps}: {step:?}"
                );
            }
            let left = fs::read_dir(skill_set.root.join("skills")).unwrap().count();
            assert_eq!(left, 2, "nothing lies beside them after {steps}");
            if made {
                skill_set.apply(&skill_set.undo(UserEdits::Keep).unwrap(), &|| ()).unwrap();
                assert_eq!(texts(&skill_set), plan.before);
            }
            assert_eq!(skill_set.undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
        }
    }

    #[test]
    fn empty_record_is_ignored() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        let void = skill_set.data.join("undo/000000000000001-00000001.open");
        fs::create_dir_all(&void).unwrap();
        assert_eq!(skill_set.undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
        assert!(!skill_set.recover(&|| ()).unwrap(), "nothing was changed");
        assert!(!void.exists());
        fs::create_dir_all(&void).unwrap();
        skill_set.apply(&plan, &|| ()).unwrap();
        assert_eq!(fs::read_dir(skill_set.data.join("undo")).unwrap().count(), 1);
    }

    #[test]
    fn interrupted_undo_is_rolled_back() {
        // Crash points: after `savoir.lock` was written, after the undone record was discarded, and
        // with a plan that does not change the lock.
        for (moment, same_lock) in [(0, false), (1, false), (1, true)] {
            let place = tempfile::tempdir().unwrap();
            let (skill_set, mut plan) = skill_set(place.path());
            if same_lock {
                plan.after.lock = plan.before.lock.clone();
            }
            skill_set.apply(&plan, &|| ()).unwrap();
            let undo = skill_set.undo(UserEdits::Keep).unwrap();
            leave(&skill_set, &undo, 5);
            if moment == 1 {
                super::super::journal::discard(undo.undoes.as_ref().unwrap()).unwrap();
            }
            assert!(skill_set.recover(&|| ()).unwrap());
            assert_eq!(texts(&skill_set), plan.before, "{moment}");
            for step in &plan.steps {
                assert!(
                    FolderContents::at(&step.folder).unwrap() == step.was,
                    "{moment}: {step:?}"
                );
            }
            assert_eq!(skill_set.undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
        }
    }

    #[test]
    fn unchanged_files_are_not_rewritten() {
        use std::os::unix::fs::MetadataExt as _;
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        let files = || [manifest::FILE, lock::FILE].map(|name| skill_set.root.join(name));
        let inodes = || files().map(|path| fs::metadata(path).unwrap().ino());
        let before = inodes();
        restore_project_files(&skill_set.root, &plan.before, &plan.after).unwrap();
        assert_eq!(inodes(), before, "there may be no room for them");
        write_project_files(&skill_set.root, &plan.before, &plan.after).unwrap();
        restore_project_files(&skill_set.root, &plan.before, &plan.after).unwrap();
        assert_eq!(texts(&skill_set), plan.before);
    }

    #[test]
    fn broken_gaia_lock_rolls_back_everything() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        fs::write(skill_set.root.join("skill-lock.json"), "{").unwrap();
        let error = skill_set.apply(&plan, &|| ()).unwrap_err();
        assert_ne!(error.code(), "half_done", "{error}");
        let now = skill_set.texts().unwrap();
        assert_eq!((now.manifest, now.lock), (plan.before.manifest, plan.before.lock));
        assert!(!skill_set.recover(&|| ()).unwrap());
    }

    #[test]
    fn temporary_text_files_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        let left = |name: &str| skill_set.root.join(format!(".savoir-new-{name}"));
        fs::write(left("abcDEF"), "half").unwrap();
        leave(&skill_set, &plan, 1);
        skill_set.recover(&|| ()).unwrap();
        assert!(!left("abcDEF").exists());
        fs::write(left("ABCdef"), "half").unwrap();
        skill_set.apply(&plan, &|| ()).unwrap();
        assert!(!left("ABCdef").exists());
    }

    #[test]
    fn unopened_record_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, mut plan) = skill_set(place.path());
        let further = skill_set.root.join("further/skills/added");
        plan.steps.push(FolderStep {
            folder: further,
            was: FolderContents::Absent,
            put: tree("new"),
        });
        let prepared = Journal::new(&skill_set.data).prepare(&plan).unwrap();
        prepare(&plan, prepared.place()).unwrap();
        prepared.leave();
        assert!(!skill_set.recover(&|| ()).unwrap());
        for step in &plan.steps {
            assert!(FolderContents::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
        plan.steps.pop();
        skill_set.apply(&plan, &|| ()).unwrap();
        assert_eq!(fs::read_dir(skill_set.root.join("skills")).unwrap().count(), 2);
        assert!(!skill_set.root.join("further").exists(), "it was made for nothing");
        assert_eq!(fs::read_dir(skill_set.data.join("undo")).unwrap().count(), 1);
    }

    #[test]
    fn damaged_unneeded_record_is_ignored() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        leave(&skill_set, &plan, 1);
        let record = &Journal::new(&skill_set.data).unfinished_records().unwrap()[0];
        // Remove the old content of the folder that was not changed yet.
        fs::write(record.place.join("1.tree"), "").unwrap();
        assert!(skill_set.recover(&|| ()).unwrap());
        for step in &plan.steps {
            assert!(FolderContents::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
    }

    #[test]
    fn later_edits_are_not_rolled_back() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, plan) = skill_set(place.path());
        leave(&skill_set, &plan, 2);
        fs::write(skill_set.root.join("skills/changed/SKILL.md"), "mine").unwrap();
        skill_set.recover(&|| ()).unwrap();
        assert!(
            FolderContents::at(&skill_set.root.join("skills/changed")).unwrap() == tree("mine")
        );
        assert!(
            FolderContents::at(&skill_set.root.join("skills/added")).unwrap()
                == FolderContents::Absent
        );
    }

    #[test]
    fn failed_change_is_rolled_back() {
        let place = tempfile::tempdir().unwrap();
        let (skill_set, mut plan) = skill_set(place.path());
        // A broken link: the folder seems to be missing, but cannot be created.
        std::os::unix::fs::symlink("nowhere", skill_set.root.join("link")).unwrap();
        let folder = skill_set.root.join("link/skill");
        plan.steps.push(FolderStep { folder, was: FolderContents::Absent, put: tree("new") });
        let error = skill_set.apply(&plan, &|| ()).unwrap_err();
        assert_eq!(error.code(), "io");
        assert_eq!(texts(&skill_set), plan.before);
        for step in &plan.steps[..3] {
            assert!(FolderContents::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
        assert!(!skill_set.recover(&|| ()).unwrap(), "nothing is half done");
        assert_eq!(fs::read_dir(skill_set.root.join("skills")).unwrap().count(), 2);
    }
}
