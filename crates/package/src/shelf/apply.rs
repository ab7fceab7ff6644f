//! Making a plan true, as a whole or not at all, and taking it back.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Change, Edits, Plan, Shelf, ShelfError, Texts,
    folders::Seen,
    gaia,
    held::Held,
    journal::{Journal, Record, discard},
    plan::Step,
    swap::{Swap, sweep},
};
use crate::{lock, manifest, place};

impl Shelf {
    /// Makes a plan true. `waiting` is called if another program is at work first. If what the plan
    /// was made from has changed meanwhile, the error is [`ShelfError::Moved`]: plan again.
    pub fn apply(&self, plan: &Plan, waiting: &dyn Fn()) -> Result<(), ShelfError> {
        if !plan.growth.is_empty() {
            return Err(ShelfError::Growth(plan.growth.clone()));
        }
        if plan.is_empty() {
            return Ok(());
        }
        let held = self.hold(waiting)?;
        self.put_right(&held)?;
        self.check_fresh(plan)?;
        let store = self.store();
        for tree in &plan.keep {
            store.put(tree)?;
        }
        parents(plan.folders()).for_each(sweep);
        let journal = Journal::new(&self.data);
        let record = journal.open(plan)?;
        self.disown(plan).map_err(|error| give_up(&record, error))?;
        let swaps = self.change(plan).map_err(|error| give_up(&record, error))?;
        swaps.into_iter().for_each(Swap::finish);
        unmake(&plan.unmake);
        if let Err(error) = self.own(plan) {
            // The change is made; only removing it some day is left to its owner.
            tracing::warn!("what was installed is not written down: {error}");
        }
        let closed = match &plan.undoes {
            Some(undone) => discard(undone).and_then(|()| record.discard()),
            None => record.close().and_then(|()| journal.prune(&self.root)),
        };
        if let Err(error) = closed {
            // The change is made. The next one looks after the journal.
            tracing::warn!("the journal is not in order: {error}");
        }
        Ok(())
    }

    /// Puts right what a program that died left half done; says whether there was anything. Call it
    /// before a plan is made: none is made otherwise.
    pub fn recover(&self, waiting: &dyn Fn()) -> Result<bool, ShelfError> {
        if Journal::new(&self.data).unfinished()?.is_empty() {
            return Ok(false);
        }
        let held = self.hold(waiting)?;
        self.put_right(&held)
    }

    /// Plans to take back the newest change of this shelf.
    pub fn undo(&self, edits: Edits) -> Result<Plan, ShelfError> {
        let _held = self.steady()?;
        let nothing = || ShelfError::NothingToUndo(self.root.clone());
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
            let (was, put) = (Seen::at(&folder.path)?, record.content(&folder.was)?);
            if was == put {
                continue;
            }
            if !folder.now.is(&was) {
                edited.push(folder.path.clone());
            }
            if let Some(why) = was.strangeness() {
                let (path, why) = (folder.path.clone(), why.to_owned());
                return Err(ShelfError::Unkeepable { path, why });
            }
            changes.push(Change::Restored(folder.path.clone()));
            steps.push(Step { folder: folder.path.clone(), was, put });
        }
        if !edited.is_empty() && edits == Edits::Keep {
            return Err(ShelfError::Edited(edited));
        }
        Ok(Plan {
            root: self.root.clone(),
            before: Texts { gaia: record.after.gaia, ..before },
            after: record.before,
            steps,
            keep: Vec::new(),
            changes,
            growth: Vec::new(),
            undoes: Some(record.place),
            unmake: record.made,
        })
    }

    /// A plan is only good for what it was made from.
    fn check_fresh(&self, plan: &Plan) -> Result<(), ShelfError> {
        let moved = || ShelfError::Moved(self.root.clone());
        let Texts { manifest, lock, .. } = self.texts()?;
        // The lock of GAIA may change at any time: see `gaia`.
        if (&manifest, &lock) != (&plan.before.manifest, &plan.before.lock) {
            return Err(moved());
        }
        for step in &plan.steps {
            if Seen::at(&step.folder)? != step.was {
                return Err(moved());
            }
        }
        Ok(())
    }

    /// Changes everything. On an error everything is put back.
    fn change(&self, plan: &Plan) -> Result<Vec<Swap>, ShelfError> {
        let mut swaps = Vec::new();
        for step in &plan.steps {
            match Swap::make(&step.folder, &step.put) {
                Ok(swap) => swaps.push(swap),
                Err(error) => return Err(failed(error, put_back(swaps))),
            }
        }
        match write_texts(&self.root, &plan.before, &plan.after) {
            Ok(()) => Ok(swaps),
            Err(error) => {
                let texts = write_texts(&self.root, &plan.after, &plan.before);
                Err(failed(error, put_back(swaps).and(texts)))
            }
        }
    }

    fn put_right(&self, _: &Held) -> Result<bool, ShelfError> {
        let unfinished = Journal::new(&self.data).unfinished()?;
        for record in &unfinished {
            put_right(record)?;
        }
        Ok(!unfinished.is_empty())
    }
}

fn failed(error: ShelfError, back: Result<(), ShelfError>) -> ShelfError {
    match back {
        Ok(()) => error,
        Err(back) => ShelfError::HalfDone { error: Box::new(error), back: Box::new(back) },
    }
}

/// If everything is as it was, the record is void. If not, it tells the next program what to do.
fn give_up(record: &Record, error: ShelfError) -> ShelfError {
    unmake(&record.made);
    if !matches!(error, ShelfError::HalfDone { .. })
        && let Err(error) = record.discard()
    {
        // It says what is the case already, so that it does no harm.
        tracing::warn!("the journal is not in order: {error}");
    }
    error
}

fn put_back(swaps: Vec<Swap>) -> Result<(), ShelfError> {
    let mut first = Ok(());
    for swap in swaps.into_iter().rev() {
        first = first.and(swap.back());
    }
    first
}

/// A change whose lock was written is made. Every other one is taken back, except where somebody
/// changed something since.
fn put_right(record: &Record) -> Result<(), ShelfError> {
    let places = record.folders.iter().map(|folder| &folder.path);
    let path = record.root.join(lock::FILE);
    let now = place::read(&path, crate::limits::MAX_LOCK_BYTES)?;
    if now == record.after.lock && now != record.before.lock {
        parents(places).for_each(sweep);
        return record.close();
    }
    for folder in &record.folders {
        let (there, was) = (Seen::at(&folder.path)?, record.content(&folder.was)?);
        let ours = matches!(there, Seen::Absent) || folder.now.is(&there);
        if ours && there != was {
            Swap::make(&folder.path, &was)?.finish();
        }
    }
    let path = record.root.join(manifest::FILE);
    if place::read(&path, crate::limits::MAX_MANIFEST_BYTES)? == record.after.manifest {
        let after = Texts { manifest: record.after.manifest.clone(), ..record.before.clone() };
        write_texts(&record.root, &after, &record.before)?;
    }
    gaia::put_right(&record.before, &record.after)?;
    parents(places).for_each(sweep);
    unmake(&record.made);
    record.discard()
}

/// Writes what differs, the lock last: with it the change is made.
fn write_texts(root: &Path, before: &Texts, after: &Texts) -> Result<(), ShelfError> {
    write_text(&root.join(manifest::FILE), before.manifest.as_ref(), after.manifest.as_ref())?;
    gaia::write(before, after)?;
    write_text(&root.join(lock::FILE), before.lock.as_ref(), after.lock.as_ref())?;
    if before != after {
        let folder = fs::File::open(root).and_then(|folder| folder.sync_all());
        folder.map_err(ShelfError::io(root))?;
    }
    Ok(())
}

/// Makes a file what it is to be, unless it is already.
pub(super) fn write_text(
    path: &Path,
    before: Option<&String>,
    after: Option<&String>,
) -> Result<(), ShelfError> {
    match after {
        _ if before == after => {}
        Some(text) => {
            let folder = path.parent().unwrap_or(path);
            fs::create_dir_all(folder).map_err(ShelfError::io(folder))?;
            place::write(path, text)?;
        }
        None => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ShelfError::io(path)(error));
            }
            _ => {}
        },
    }
    Ok(())
}

fn parents<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> impl Iterator<Item = &'a Path> {
    let mut parents: Vec<&Path> = folders.filter_map(|folder| folder.parent()).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.into_iter()
}

/// Removes folders that were made and are empty again.
fn unmake(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        // Somebody may have put something there.
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agents, File, Tree, manifest::Scope, shelf::Sheet};

    /// What is written now, as [`Texts`] has it.
    fn texts(shelf: &Shelf) -> Texts {
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
    fn shelf(place: &Path) -> (Shelf, Plan) {
        let shelf = Shelf::new(
            &place.join("project"),
            Scope::Project,
            Agents::new(place, |_| None),
            place.join("data"),
        );
        let folder = |name: &str| shelf.root.join("skills").join(name);
        for (name, text) in [("changed", "old"), ("removed", "old")] {
            Swap::make(&folder(name), &tree(text)).unwrap().finish();
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
            changes: Vec::new(),
            growth: Vec::new(),
            undoes: None,
            unmake: Vec::new(),
        };
        (shelf, plan)
    }

    /// Begins a change and leaves it after some of its steps, as a program that dies does.
    fn leave(shelf: &Shelf, plan: &Plan, steps: usize) {
        Journal::new(&shelf.data).open(plan).unwrap();
        for step in plan.steps.iter().take(steps) {
            // What lay there stays beside it.
            let _ = Swap::make(&step.folder, &step.put).unwrap();
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
