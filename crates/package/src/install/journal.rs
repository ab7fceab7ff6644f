//! Stores the undo journal: the content of all changed folders before each change.
//!
//! A record is a folder named `<time>-<id>`. It has the file `record.json`, and one file with the
//! old content of each changed folder. While a change is applied, the name of its record ends in
//! `.open`: if such a record exists and no program holds the lock, a program crashed during the
//! change.
//!
//! The old content is not in the store: the store identifies skills by their integrity, which
//! covers neither signatures nor executable bits, and undo must restore every byte.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use tempfile::TempDir;

use super::{
    InstallFailure, disk_sync,
    folder_contents::FolderContents,
    gaia::GaiaLockFile,
    plan::{FolderStep, InstallPlan},
    swap::remove_staging_folders,
};
use crate::{
    parallel,
    store::{decode, encode},
};

/// Maximum number of records per skill set.
const MAX_RECORDS: usize = 20;

const RECORD_FILE: &str = "record.json";
const OPEN_SUFFIX: &str = ".open";
const PREPARED_PREFIX: &str = ".new-";
const DISCARDED_PREFIX: &str = ".gone-";

/// The texts of `savoir.toml`, `savoir.lock` and the lock of GAIA; `None` for files that do not
/// exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFiles {
    pub manifest: Option<String>,
    pub lock: Option<String>,
    /// `skill-lock.json`, if the change concerns GAIA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaia: Option<GaiaLockFile>,
}

/// The content of a folder before the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ContentsBefore {
    Absent,
    /// Files, stored in this file of the record.
    Tree(String),
    /// A link to this target.
    Link(PathBuf),
}

/// The content of a folder after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ContentsAfter {
    Absent,
    /// Files with this integrity.
    Tree(String),
    /// A link to this target.
    Link(PathBuf),
}

impl ContentsAfter {
    fn of(seen: &FolderContents) -> Self {
        match seen {
            // The folder of a removed skill may still have untracked files.
            seen if seen.is_empty_or_absent() => Self::Absent,
            FolderContents::Absent | FolderContents::Unsupported(_) => Self::Absent,
            FolderContents::Tree(tree) => Self::Tree(tree.integrity()),
            FolderContents::Link(target) => Self::Link(target.clone()),
        }
    }

    pub(super) fn is(&self, seen: &FolderContents) -> bool {
        seen.unsupported_reason().is_none() && *self == Self::of(seen)
    }
}

/// A changed folder: its content before and after the change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedFolder {
    pub(super) path: PathBuf,
    pub(super) was: ContentsBefore,
    pub(super) now: ContentsAfter,
}

/// One change of a skill set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JournalRecord {
    pub(super) root: PathBuf,
    pub(super) before: ProjectFiles,
    pub(super) after: ProjectFiles,
    pub(super) folders: Vec<ChangedFolder>,
    /// Folders that were created for the change, outer ones first.
    pub(super) made: Vec<PathBuf>,
    /// The name of the record that the change undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undoes: Option<String>,
    #[serde(skip)]
    pub(super) place: PathBuf,
}

impl JournalRecord {
    /// Reads the old content of a folder.
    pub(super) fn content(&self, was: &ContentsBefore) -> Result<FolderContents, InstallFailure> {
        let name = match was {
            ContentsBefore::Absent => return Ok(FolderContents::Absent),
            ContentsBefore::Link(target) => return Ok(FolderContents::Link(target.clone())),
            ContentsBefore::Tree(name) => name,
        };
        let path = self.place.join(name);
        let bytes = fs::read(&path).map_err(InstallFailure::io(&path))?;
        let damaged = |_| InstallFailure::Journal { path, why: "it is damaged".to_owned() };
        decode(&bytes).map(FolderContents::Tree).map_err(damaged)
    }

    fn read(place: PathBuf) -> Result<Self, InstallFailure> {
        let path = place.join(RECORD_FILE);
        let bytes = fs::read(&path).map_err(InstallFailure::io(&path))?;
        let damaged =
            |error: serde_json::Error| InstallFailure::Journal { path, why: error.to_string() };
        let record: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(Self { place, ..record })
    }

    /// Removes the staging folders, and the folders that were created for the change and are empty.
    pub(super) fn clean_up(&self) {
        parents(self.folders.iter().map(|folder| &folder.path)).for_each(remove_staging_folders);
        remove_if_empty(&self.made);
    }

    fn is_open(&self) -> bool {
        self.place.to_string_lossy().ends_with(OPEN_SUFFIX)
    }

    /// Marks the change as applied by removing `.open` from the name.
    fn close(&self) -> Result<(), InstallFailure> {
        let name = self.place.to_string_lossy();
        let closed = PathBuf::from(name.trim_end_matches(OPEN_SUFFIX));
        fs::rename(&self.place, &closed).map_err(InstallFailure::io(&self.place))
    }

    /// The path of the record that the change undoes.
    fn undone_record(&self) -> Option<PathBuf> {
        // Only the file name is used, so that a record cannot point outside the journal.
        let name = Path::new(self.undoes.as_deref()?).file_name()?;
        Some(self.place.with_file_name(name))
    }

    /// Whether the change undoes a record that was already discarded: then the undo was applied.
    pub(super) fn is_undo_complete(&self) -> bool {
        self.undone_record().is_some_and(|undone| !undone.exists())
    }

    /// Marks the change as applied. An undo discards the record that it undid, and its own record,
    /// because an undo cannot be undone.
    pub(super) fn finish(&self) -> Result<(), InstallFailure> {
        match self.undone_record() {
            None => self.close(),
            Some(undone) if undone.exists() => discard(&undone).and_then(|()| self.discard()),
            Some(_) => self.discard(),
        }
    }

    /// Discards the record of a change that was rolled back or undone.
    pub(super) fn discard(&self) -> Result<(), InstallFailure> {
        discard(&self.place)
    }
}

/// Whether a record has no `record.json`.
fn is_empty_record(place: &Path) -> bool {
    let found = fs::symlink_metadata(place.join(RECORD_FILE));
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Discards a record by renaming it, so that it disappears at once even if removing its files takes
/// a while.
pub(super) fn discard(place: &Path) -> Result<(), InstallFailure> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let gone = place.with_file_name(format!("{DISCARDED_PREFIX}{name}"));
    fs::rename(place, &gone).map_err(InstallFailure::io(place))?;
    // The next change removes the files that could not be removed.
    let _ = fs::remove_dir_all(gone);
    Ok(())
}

/// The part of a record that is needed to prune old records.
#[derive(Deserialize)]
struct RecordRoot {
    root: PathBuf,
}

impl RecordRoot {
    fn read(place: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(place.join(RECORD_FILE)).ok()?).ok()
    }
}

/// A written record of a change that has not started.
pub(super) struct PreparedRecord {
    record: JournalRecord,
    place: TempDir,
}

impl PreparedRecord {
    pub(super) fn place(&self) -> &Path {
        self.place.path()
    }

    pub(super) fn clean_up(&self) {
        self.record.clean_up();
    }

    /// Leaves the record behind like a program that crashes.
    #[cfg(test)]
    pub(super) fn leave(self) {
        let _ = self.place.keep();
    }
}

/// The journal of a user: the records of all skill sets.
pub(super) struct Journal {
    folder: PathBuf,
}

impl Journal {
    pub(super) fn new(data: &Path) -> Self {
        Self { folder: data.join("undo") }
    }

    /// Writes the record of a plan before the plan is applied. The record takes effect once it is
    /// open.
    pub(super) fn prepare(&self, plan: &InstallPlan) -> Result<PreparedRecord, InstallFailure> {
        let fail = || InstallFailure::io(&self.folder);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(fail())?;
        self.sweep();
        let place = tempfile::Builder::new().prefix(PREPARED_PREFIX).tempdir_in(&self.folder);
        let place = place.map_err(fail())?;
        let folders = parallel::map(plan.steps.iter().enumerate(), |(at, step)| {
            record_folder(place.path(), at, step)
        });
        let record = JournalRecord {
            root: plan.root.clone(),
            before: plan.before.clone(),
            after: plan.after.clone(),
            folders: folders.into_iter().collect::<Result<_, _>>()?,
            made: missing_parents(&plan.steps),
            undoes: plan.undoes.as_ref().and_then(|place| name_of(place)),
            place: PathBuf::new(),
        };
        let path = place.path().join(RECORD_FILE);
        let text = serde_json::to_vec(&record);
        let text = text.map_err(|error| InstallFailure::io(&path)(error.into()))?;
        write(&path, &text)?;
        Ok(PreparedRecord { record, place })
    }

    /// Opens a record: from now on the change is rolled back if it does not finish. The prepared
    /// files must be on disk already.
    pub(super) fn open(&self, prepared: PreparedRecord) -> Result<JournalRecord, InstallFailure> {
        let PreparedRecord { mut record, place } = prepared;
        let name = format!("{:015}-{:08x}{OPEN_SUFFIX}", self.next_time()?, std::process::id());
        record.place = self.folder.join(name);
        fs::rename(place.keep(), &record.place).map_err(InstallFailure::io(&self.folder))?;
        self.wait()?;
        Ok(record)
    }

    /// Waits until the list of records is on disk.
    pub(super) fn wait(&self) -> Result<(), InstallFailure> {
        disk_sync::wait_for(&self.folder).map_err(InstallFailure::io(&self.folder))
    }

    /// Returns the time for a new record. It is always later than the last record, even if the
    /// clock was set back.
    fn next_time(&self) -> Result<i64, InstallFailure> {
        let last = self.names()?.into_iter().next_back();
        let last = last.and_then(|name| name.split('-').next()?.parse::<i64>().ok());
        let now = Timestamp::now().as_millisecond();
        Ok(last.map_or(now, |last| now.max(last + 1)))
    }

    /// The names of all records, oldest first.
    fn names(&self) -> Result<Vec<String>, InstallFailure> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(InstallFailure::io(&self.folder)(error)),
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the records of changes that crashed programs left incomplete.
    pub(super) fn unfinished_records(&self) -> Result<Vec<JournalRecord>, InstallFailure> {
        let places = self.open_record_paths()?.into_iter().filter(|place| !is_empty_record(place));
        places.map(JournalRecord::read).collect()
    }

    /// Whether there are no open records, neither for [`Self::unfinished_records`] nor for
    /// [`Self::discard_empty_records`].
    pub(super) fn is_closed(&self) -> Result<bool, InstallFailure> {
        Ok(self.open_record_paths()?.is_empty())
    }

    /// Discards open records without `record.json`: their changes have not started.
    pub(super) fn discard_empty_records(&self) -> Result<(), InstallFailure> {
        for place in self.open_record_paths()?.into_iter().filter(|place| is_empty_record(place)) {
            tracing::warn!("{} says nothing, and is removed", place.display());
            discard(&place)?;
        }
        Ok(())
    }

    /// The paths of open records, newest first.
    fn open_record_paths(&self) -> Result<Vec<PathBuf>, InstallFailure> {
        let names = self.names()?.into_iter().rev().filter(|name| name.ends_with(OPEN_SUFFIX));
        Ok(names.map(|name| self.folder.join(name)).collect())
    }

    /// Returns the closed records of a skill set, newest first. Skips damaged records.
    pub(super) fn records(&self, root: &Path) -> Result<Vec<JournalRecord>, InstallFailure> {
        let places = self.names()?.into_iter().rev().map(|name| self.folder.join(name));
        let records = places.filter_map(|place| JournalRecord::read(place).ok());
        Ok(records.filter(|record| record.root == root && !record.is_open()).collect())
    }

    /// Discards all but the newest [`MAX_RECORDS`] records of a skill set.
    pub(super) fn prune(&self, root: &Path) -> Result<(), InstallFailure> {
        let names = self.names()?;
        // Then no skill set has too many records, and no record has to be read.
        if names.len() <= MAX_RECORDS {
            return Ok(());
        }
        let places = names.into_iter().rev().filter(|name| !name.ends_with(OPEN_SUFFIX));
        let mut places: Vec<PathBuf> = places.map(|name| self.folder.join(name)).collect();
        places.retain(|place| RecordRoot::read(place).is_some_and(|whose| whose.root == root));
        places.iter().skip(MAX_RECORDS).try_for_each(|place| discard(place))
    }

    /// Removes discarded records, and prepared records that were never opened, together with the
    /// folders that were created for them. A change without an open record has not changed
    /// anything.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREPARED_PREFIX)
                && let Ok(record) = JournalRecord::read(entry.path())
            {
                record.clean_up();
            }
            if name.starts_with(PREPARED_PREFIX) || name.starts_with(DISCARDED_PREFIX) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn name_of(place: &Path) -> Option<String> {
    place.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The folders around others.
pub(super) fn parents<'a>(
    folders: impl Iterator<Item = &'a PathBuf>,
) -> impl Iterator<Item = &'a Path> {
    let mut parents: Vec<&Path> = folders.filter_map(|folder| folder.parent()).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.into_iter()
}

/// Removes folders that were made and are empty again.
pub(super) fn remove_if_empty(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        // Somebody may have put something there.
        let _ = fs::remove_dir(folder);
    }
}

fn record_folder(
    record: &Path,
    at: usize,
    step: &FolderStep,
) -> Result<ChangedFolder, InstallFailure> {
    let was = match &step.was {
        FolderContents::Absent | FolderContents::Unsupported(_) => ContentsBefore::Absent,
        FolderContents::Link(target) => ContentsBefore::Link(target.clone()),
        FolderContents::Tree(tree) => {
            let name = format!("{at}.tree");
            write(&record.join(&name), &encode(tree))?;
            ContentsBefore::Tree(name)
        }
    };
    Ok(ChangedFolder { path: step.folder.clone(), was, now: ContentsAfter::of(&step.put) })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallFailure> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(InstallFailure::io(path))
}

/// The folders that must be made for a change, the outer ones first.
fn missing_parents(steps: &[FolderStep]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for parent in parents(steps.iter().map(|step| &step.folder)) {
        let above = parent.ancestors().take_while(|folder| !folder.exists());
        missing.extend(above.map(Path::to_owned));
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}
