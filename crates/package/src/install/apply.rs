//! Making a plan true, as a whole or not at all, and taking it back.

use std::{fs, io, path::Path};

use super::{
    Change, Edits, InstallFailure, Plan, SkillSet, Texts, disk,
    folders::Seen,
    gaia,
    held::Held,
    journal::{Journal, Record, parents, unmake},
    plan::Step,
    swap::{Staged, Stages, Swap, replace, sweep},
};
use crate::{
    limits::{MAX_LOCK_BYTES, MAX_MANIFEST_BYTES},
    lock, manifest, parallel, place,
    untracked::has_precious,
};

impl SkillSet {
    /// Makes a plan true. `waiting` is called if another program is at work first. If what the plan
    /// was made from has changed meanwhile, the error is [`InstallFailure::Moved`]: plan again.
    pub fn apply(&self, plan: &Plan, waiting: &dyn Fn()) -> Result<(), InstallFailure> {
        if !plan.growth.is_empty() {
            return Err(InstallFailure::Growth(plan.growth.clone()));
        }
        if plan.is_empty() {
            return Ok(());
        }
        let held = self.hold(waiting)?;
        self.put_right(&held)?;
        self.check_fresh(plan)?;
        self.keep(plan)?;
        parents(plan.folders()).for_each(sweep);
        place::sweep(&self.root);
        let journal = Journal::new(&self.data);
        let record = self.change(plan, &journal)?;
        unmake(&plan.unmake);
        if let Err(error) = self.own(plan) {
            // The change is made; only removing it some day is left to its owner.
            tracing::warn!("what was installed is not written down: {error}");
        }
        let closed = record.finish().and_then(|()| journal.prune(&self.root));
        // Where the lock stays as it is, nothing else says that the change is made.
        let closed =
            if plan.before.lock == plan.after.lock { closed.and(journal.wait()) } else { closed };
        if let Err(error) = closed {
            // The change is made. The next one looks after the journal.
            tracing::warn!("the journal is not in order: {error}");
        }
        Ok(())
    }

    /// Puts right what a program that died left half done; says whether there was anything. Call it
    /// before a plan is made: none is made otherwise.
    pub fn recover(&self, waiting: &dyn Fn()) -> Result<bool, InstallFailure> {
        if Journal::new(&self.data).is_closed()? {
            return Ok(false);
        }
        let held = self.hold(waiting)?;
        self.put_right(&held)
    }

    /// Plans to take back the newest change of this shelf.
    pub fn undo(&self, edits: Edits) -> Result<Plan, InstallFailure> {
        let _held = self.steady()?;
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
            let (was, put) = (Seen::at(&folder.path)?, record.content(&folder.was)?);
            if was == put {
                continue;
            }
            if !folder.now.is(&was) {
                edited.push(folder.path.clone());
            }
            if let Some(why) = was.strangeness() {
                let (path, why) = (folder.path.clone(), why.to_owned());
                return Err(InstallFailure::Unkeepable { path, why });
            }
            changes.push(match put {
                Seen::Absent => Change::Undone(folder.path.clone()),
                _ => Change::Restored(folder.path.clone()),
            });
            if matches!(put, Seen::Absent) && has_precious(&folder.path) {
                changes.push(Change::Left(folder.path.clone()));
            }
            steps.push(Step { folder: folder.path.clone(), was, put });
        }
        if !edited.is_empty() && edits == Edits::Keep {
            return Err(InstallFailure::Edited(edited));
        }
        Ok(Plan {
            root: self.root.clone(),
            before: Texts { gaia: record.after.gaia, ..before },
            after: record.before,
            steps,
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes,
            growth: Vec::new(),
            undoes: Some(record.place),
            unmake: record.made,
        })
    }

    /// A plan is only good for what it was made from.
    fn check_fresh(&self, plan: &Plan) -> Result<(), InstallFailure> {
        let moved = || InstallFailure::Moved(self.root.clone());
        let Texts { manifest, lock, .. } = self.texts()?;
        // The lock of GAIA may change at any time: see `gaia`.
        if (&manifest, &lock) != (&plan.before.manifest, &plan.before.lock) {
            return Err(moved());
        }
        let seen = parallel::map(&plan.steps, |step| Seen::at(&step.folder));
        for (seen, step) in seen.into_iter().zip(&plan.steps) {
            if seen? != step.was {
                return Err(moved());
            }
        }
        Ok(())
    }

    fn keep(&self, plan: &Plan) -> Result<(), InstallFailure> {
        let store = self.store();
        let kept = parallel::map(&plan.keep, |tree| store.put(tree));
        Ok(kept.into_iter().try_for_each(|kept| kept.map(drop))?)
    }

    /// Changes everything. On an error everything is put back.
    ///
    /// First all that is new is written beside its place, and all that is old into the journal.
    /// Then one wait for the disk is enough for all of it, and what is left is to rename: however
    /// the program or the machine ends, folders are whole, and what was there can come back.
    fn change(&self, plan: &Plan, journal: &Journal) -> Result<Record, InstallFailure> {
        let unborn = journal.prepare(plan)?;
        let prepared = prepare(plan, unborn.place());
        let (stages, written) = prepared.inspect_err(|_| unborn.clear_up())?;
        let record = match journal.open(unborn) {
            Ok(record) => record,
            Err(error) => {
                stages.remove();
                return Err(error);
            }
        };
        let changed = self.disown(plan).and_then(|()| self.exchange(plan, written, &stages));
        match changed {
            Ok(swaps) => {
                swaps.into_iter().for_each(Swap::finish);
                stages.remove();
                Ok(record)
            }
            Err(error) => {
                // What could not be put back is better there than nowhere.
                if !matches!(error, InstallFailure::HalfDone { .. }) {
                    stages.remove();
                }
                Err(give_up(&record, error))
            }
        }
    }

    fn exchange(
        &self,
        plan: &Plan,
        written: Vec<Staged>,
        stages: &Stages,
    ) -> Result<Vec<Swap>, InstallFailure> {
        let mut swaps = Vec::new();
        for new in written {
            match new.swap() {
                Ok(swap) => swaps.push(swap),
                Err(error) => return Err(failed(error, put_back(swaps))),
            }
        }
        let mut parents = stages.parents();
        let waited = parents
            .try_for_each(|parent| disk::wait_for(parent).map_err(InstallFailure::io(parent)));
        if let Err(error) = waited {
            return Err(failed(error, put_back(swaps)));
        }
        match write_texts(&self.root, &plan.before, &plan.after) {
            Ok(()) => Ok(swaps),
            Err(error) => {
                let texts = put_texts_back(&self.root, &plan.before, &plan.after);
                Err(failed(error, put_back(swaps).and(texts)))
            }
        }
    }

    fn put_right(&self, _: &Held) -> Result<bool, InstallFailure> {
        let journal = Journal::new(&self.data);
        journal.discard_void()?;
        let unfinished = journal.unfinished()?;
        for record in &unfinished {
            put_right(record)?;
        }
        Ok(!unfinished.is_empty())
    }
}

/// Writes everything that is new beside its place, and waits until the disk has it and the record.
fn prepare(plan: &Plan, record: &Path) -> Result<(Stages, Vec<Staged>), InstallFailure> {
    let stages = Stages::make(parents(plan.folders()))?;
    let written = parallel::map(&plan.steps, |step| stages.write(&step.folder, &step.put));
    let written: Result<Vec<Staged>, InstallFailure> = written.into_iter().collect();
    let settled = written.and_then(|written| {
        let places: Vec<&Path> = stages.folders().chain([record]).collect();
        disk::settle(&places).map(|()| written).map_err(InstallFailure::io(record))
    });
    match settled {
        Ok(written) => Ok((stages, written)),
        Err(error) => {
            stages.remove();
            Err(error)
        }
    }
}

fn failed(error: InstallFailure, back: Result<(), InstallFailure>) -> InstallFailure {
    match back {
        Ok(()) => error,
        Err(back) => InstallFailure::HalfDone { error: Box::new(error), back: Box::new(back) },
    }
}

/// If everything is as it was, the record is void. If not, it tells the next program what to do.
fn give_up(record: &Record, error: InstallFailure) -> InstallFailure {
    unmake(&record.made);
    if !matches!(error, InstallFailure::HalfDone { .. })
        && let Err(error) = record.discard()
    {
        // It says what is the case already, so that it does no harm.
        tracing::warn!("the journal is not in order: {error}");
    }
    error
}

fn put_back(swaps: Vec<Swap>) -> Result<(), InstallFailure> {
    let mut first = Ok(());
    for swap in swaps.into_iter().rev() {
        first = first.and(swap.back());
    }
    first
}

/// A change whose lock was written is made. Every other one is taken back, except where somebody
/// changed something since.
fn put_right(record: &Record) -> Result<(), InstallFailure> {
    let places = record.folders.iter().map(|folder| &folder.path);
    place::sweep(&record.root);
    let path = record.root.join(lock::FILE);
    let now = place::read(&path, MAX_LOCK_BYTES)?;
    let is_made = now == record.after.lock && now != record.before.lock;
    if is_made || record.has_undone() {
        parents(places).for_each(sweep);
        return record.finish();
    }
    let mut replaced = Vec::new();
    for folder in &record.folders {
        let there = Seen::at(&folder.path)?;
        if !matches!(there, Seen::Absent) && !folder.now.is(&there) {
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
    if place::read(&path, MAX_MANIFEST_BYTES)? == record.after.manifest {
        let after = Texts { manifest: record.after.manifest.clone(), ..record.before.clone() };
        write_texts(&record.root, &after, &record.before)?;
    }
    gaia::put_right(&record.before, &record.after)?;
    parents(places).for_each(sweep);
    unmake(&record.made);
    record.discard()
}

/// Waits until the disk has what was put back: then the record is not needed any more.
fn wait_for(replaced: &[&Path]) -> Result<(), InstallFailure> {
    let folders: Vec<&Path> = replaced.iter().copied().filter(|path| path.is_dir()).collect();
    let fail = |path: &Path| InstallFailure::io(path);
    disk::settle(&folders).map_err(fail(folders.first().unwrap_or(&Path::new("."))))?;
    let mut parents: Vec<&Path> = replaced.iter().filter_map(|path| path.parent()).collect();
    parents.dedup();
    parents.iter().try_for_each(|parent| disk::wait_for(parent).map_err(fail(parent)))
}

/// Writes what differs, the lock last: with it the change is made.
fn write_texts(root: &Path, before: &Texts, after: &Texts) -> Result<(), InstallFailure> {
    write_text(&root.join(manifest::FILE), before.manifest.as_ref(), after.manifest.as_ref())?;
    gaia::write(before, after)?;
    write_text(&root.join(lock::FILE), before.lock.as_ref(), after.lock.as_ref())?;
    if before != after {
        let folder = fs::File::open(root).and_then(|folder| folder.sync_all());
        folder.map_err(InstallFailure::io(root))?;
    }
    Ok(())
}

/// Writes what was there before, where something else is there now: what is as it was needs no
/// room on a disk that is full.
fn put_texts_back(root: &Path, before: &Texts, after: &Texts) -> Result<(), InstallFailure> {
    let path = root.join(manifest::FILE);
    let now = place::read(&path, MAX_MANIFEST_BYTES)?;
    let manifest = write_text(&path, now.as_ref(), before.manifest.as_ref());
    let gaia = gaia::put_right(before, after);
    let path = root.join(lock::FILE);
    let now = place::read(&path, MAX_LOCK_BYTES)?;
    let lock = write_text(&path, now.as_ref(), before.lock.as_ref());
    manifest.and(gaia).and(lock)
}

/// Makes a file what it is to be, unless it is already.
pub(super) fn write_text(
    path: &Path,
    before: Option<&String>,
    after: Option<&String>,
) -> Result<(), InstallFailure> {
    match after {
        _ if before == after => {}
        Some(text) => {
            let folder = path.parent().unwrap_or(path);
            fs::create_dir_all(folder).map_err(InstallFailure::io(folder))?;
            place::write(path, text)?;
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
    use crate::{Agents, File, Tree, install::Sheet, manifest::Scope};

    /// What is written now, as [`Texts`] has it.
    fn texts(shelf: &SkillSet) -> Texts {
        let path = shelf.root.join("skill-lock.json");
        let text = fs::read_to_string(&path).ok();
        Texts { gaia: Some(Sheet { path, text }), ..shelf.texts().unwrap() }
    }

    fn tree(text: &str) -> Seen {
        let mut tree = Tree::default();
        let file = File { bytes: text.into(), executable: false };
        tree.add("SKILL.md".into(), file).unwrap();
        Seen::Tree(tree)
    }

    /// A shelf, and a plan that adds a folder, changes one and removes one.
    fn shelf(place: &Path) -> (SkillSet, Plan) {
        let shelf = SkillSet::new(
            &place.join("project"),
            Scope::Project,
            Agents::new(place, |_| None),
            place.join("data"),
        );
        let folder = |name: &str| shelf.root.join("skills").join(name);
        for (name, text) in [("changed", "old"), ("removed", "old")] {
            replace(&folder(name), &tree(text)).unwrap();
        }
        let step = |name: &str, was: Seen, put: Seen| Step { folder: folder(name), was, put };
        let gaia = |version: &str| {
            let text = format!(r#"{{"version":1,"skills":{{"x":{{"version":"{version}"}}}}}}"#);
            Sheet { path: shelf.root.join("skill-lock.json"), text: Some(text) }
        };
        let texts = |text: &str| Texts {
            manifest: Some(text.into()),
            lock: Some(text.into()),
            gaia: Some(gaia(text)),
        };
        let empty = Sheet { text: None, ..gaia("") };
        let nothing = Texts { gaia: Some(empty), ..Texts::default() };
        write_texts(&shelf.root, &nothing, &texts("old")).unwrap();
        let plan = Plan {
            root: shelf.root.clone(),
            before: texts("old"),
            after: texts("new"),
            steps: vec![
                step("added", Seen::Absent, tree("new")),
                step("changed", tree("old"), tree("new")),
                step("removed", tree("old"), Seen::Absent),
            ],
            keep: Vec::new(),
            confirmed: Vec::new(),
            changes: Vec::new(),
            growth: Vec::new(),
            undoes: None,
            unmake: Vec::new(),
        };
        (shelf, plan)
    }

    /// Begins a change and leaves it after some of its steps, as a program that dies does.
    fn leave(shelf: &SkillSet, plan: &Plan, steps: usize) {
        let journal = Journal::new(&shelf.data);
        let unborn = journal.prepare(plan).unwrap();
        let (_stages, written) = prepare(plan, unborn.place()).unwrap();
        journal.open(unborn).unwrap();
        for new in written.into_iter().take(steps) {
            // What lay there stays beside it.
            new.swap().unwrap();
        }
        let after = Texts { lock: plan.before.lock.clone(), ..plan.after.clone() };
        if steps > plan.steps.len() {
            write_texts(&shelf.root, &plan.before, &after).unwrap();
        }
        if steps > plan.steps.len() + 1 {
            write_texts(&shelf.root, &after, &plan.after).unwrap();
        }
    }

    #[test]
    fn what_was_left_half_done_is_put_right() {
        for steps in 0..=5 {
            let place = tempfile::tempdir().unwrap();
            let (shelf, plan) = shelf(place.path());
            leave(&shelf, &plan, steps);
            assert_eq!(shelf.undo(Edits::Keep).unwrap_err().code(), "unfinished");
            assert!(shelf.recover(&|| ()).unwrap());
            assert!(!shelf.recover(&|| ()).unwrap(), "once is enough");
            let made = steps == 5;
            let expected = if made { &plan.after } else { &plan.before };
            assert_eq!(texts(&shelf), *expected, "{steps}");
            for step in &plan.steps {
                let expected = if made { &step.put } else { &step.was };
                assert!(Seen::at(&step.folder).unwrap() == *expected, "{steps}: {step:?}");
            }
            let left = fs::read_dir(shelf.root.join("skills")).unwrap().count();
            assert_eq!(left, 2, "nothing lies beside them after {steps}");
            if made {
                shelf.apply(&shelf.undo(Edits::Keep).unwrap(), &|| ()).unwrap();
                assert_eq!(texts(&shelf), plan.before);
            }
            assert_eq!(shelf.undo(Edits::Keep).unwrap_err().code(), "nothing_to_undo");
        }
    }

    #[test]
    fn a_record_that_says_nothing_is_no_obstacle() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        let void = shelf.data.join("undo/000000000000001-00000001.open");
        fs::create_dir_all(&void).unwrap();
        assert_eq!(shelf.undo(Edits::Keep).unwrap_err().code(), "nothing_to_undo");
        assert!(!shelf.recover(&|| ()).unwrap(), "nothing was changed");
        assert!(!void.exists());
        fs::create_dir_all(&void).unwrap();
        shelf.apply(&plan, &|| ()).unwrap();
        assert_eq!(fs::read_dir(shelf.data.join("undo")).unwrap().count(), 1);
    }

    #[test]
    fn an_undo_that_died_is_not_redone() {
        // The lock is written; or what is undone is gone, too; or the lock is the same throughout.
        for (moment, same_lock) in [(0, false), (1, false), (1, true)] {
            let place = tempfile::tempdir().unwrap();
            let (shelf, mut plan) = shelf(place.path());
            if same_lock {
                plan.after.lock = plan.before.lock.clone();
            }
            shelf.apply(&plan, &|| ()).unwrap();
            let undo = shelf.undo(Edits::Keep).unwrap();
            leave(&shelf, &undo, 5);
            if moment == 1 {
                super::super::journal::discard(undo.undoes.as_ref().unwrap()).unwrap();
            }
            assert!(shelf.recover(&|| ()).unwrap());
            assert_eq!(texts(&shelf), plan.before, "{moment}");
            for step in &plan.steps {
                assert!(Seen::at(&step.folder).unwrap() == step.was, "{moment}: {step:?}");
            }
            assert_eq!(shelf.undo(Edits::Keep).unwrap_err().code(), "nothing_to_undo");
        }
    }

    #[test]
    fn what_is_as_it_was_is_not_written_again() {
        use std::os::unix::fs::MetadataExt as _;
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        let files = || [manifest::FILE, lock::FILE].map(|name| shelf.root.join(name));
        let inodes = || files().map(|path| fs::metadata(path).unwrap().ino());
        let before = inodes();
        put_texts_back(&shelf.root, &plan.before, &plan.after).unwrap();
        assert_eq!(inodes(), before, "there may be no room for them");
        write_texts(&shelf.root, &plan.before, &plan.after).unwrap();
        put_texts_back(&shelf.root, &plan.before, &plan.after).unwrap();
        assert_eq!(texts(&shelf), plan.before);
    }

    #[test]
    fn a_file_of_gaia_that_breaks_meanwhile_leaves_nothing_half_done() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        fs::write(shelf.root.join("skill-lock.json"), "{").unwrap();
        let error = shelf.apply(&plan, &|| ()).unwrap_err();
        assert_ne!(error.code(), "half_done", "{error}");
        let now = shelf.texts().unwrap();
        assert_eq!((now.manifest, now.lock), (plan.before.manifest, plan.before.lock));
        assert!(!shelf.recover(&|| ()).unwrap());
    }

    #[test]
    fn unfinished_texts_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        let left = |name: &str| shelf.root.join(format!(".savoir-new-{name}"));
        fs::write(left("abcDEF"), "half").unwrap();
        leave(&shelf, &plan, 1);
        shelf.recover(&|| ()).unwrap();
        assert!(!left("abcDEF").exists());
        fs::write(left("ABCdef"), "half").unwrap();
        shelf.apply(&plan, &|| ()).unwrap();
        assert!(!left("ABCdef").exists());
    }

    #[test]
    fn what_was_never_opened_has_changed_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, mut plan) = shelf(place.path());
        let further = shelf.root.join("further/skills/added");
        plan.steps.push(Step { folder: further, was: Seen::Absent, put: tree("new") });
        let unborn = Journal::new(&shelf.data).prepare(&plan).unwrap();
        prepare(&plan, unborn.place()).unwrap();
        unborn.leave();
        assert!(!shelf.recover(&|| ()).unwrap());
        for step in &plan.steps {
            assert!(Seen::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
        plan.steps.pop();
        shelf.apply(&plan, &|| ()).unwrap();
        assert_eq!(fs::read_dir(shelf.root.join("skills")).unwrap().count(), 2);
        assert!(!shelf.root.join("further").exists(), "it was made for nothing");
        assert_eq!(fs::read_dir(shelf.data.join("undo")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_damaged_and_not_needed_is_no_obstacle() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        leave(&shelf, &plan, 1);
        let record = &Journal::new(&shelf.data).unfinished().unwrap()[0];
        // Of the folder that was not reached yet.
        fs::write(record.place.join("1.tree"), "").unwrap();
        assert!(shelf.recover(&|| ()).unwrap());
        for step in &plan.steps {
            assert!(Seen::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
    }

    #[test]
    fn what_was_edited_since_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, plan) = shelf(place.path());
        leave(&shelf, &plan, 2);
        fs::write(shelf.root.join("skills/changed/SKILL.md"), "mine").unwrap();
        shelf.recover(&|| ()).unwrap();
        assert!(Seen::at(&shelf.root.join("skills/changed")).unwrap() == tree("mine"));
        assert!(Seen::at(&shelf.root.join("skills/added")).unwrap() == Seen::Absent);
    }

    #[test]
    fn what_fails_is_put_back() {
        let place = tempfile::tempdir().unwrap();
        let (shelf, mut plan) = shelf(place.path());
        // Nothing seems to be there, and nothing can be put there.
        std::os::unix::fs::symlink("nowhere", shelf.root.join("link")).unwrap();
        let folder = shelf.root.join("link/skill");
        plan.steps.push(Step { folder, was: Seen::Absent, put: tree("new") });
        let error = shelf.apply(&plan, &|| ()).unwrap_err();
        assert_eq!(error.code(), "io");
        assert_eq!(texts(&shelf), plan.before);
        for step in &plan.steps[..3] {
            assert!(Seen::at(&step.folder).unwrap() == step.was, "{step:?}");
        }
        assert!(!shelf.recover(&|| ()).unwrap(), "nothing is half done");
        assert_eq!(fs::read_dir(shelf.root.join("skills")).unwrap().count(), 2);
    }
}
