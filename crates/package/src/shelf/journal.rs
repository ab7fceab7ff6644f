//! The journal: what was there before a change, to take it back.
//!
//! A record is a folder, `<time>-<id>`, with the files `record.json` and one for the content of each
//! folder that was changed. While the change is made, its name ends in `.open`: whoever finds such a
//! record, and nobody at work, has found what a program that died left half done.
//!
//! The contents are not in the store: it keeps skills by their integrity, which tells nothing of
//! signatures and of what is executable, and what was there must come back to the byte.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    ShelfError,
    folders::Seen,
    gaia::Sheet,
    plan::{Plan, Step},
};
use crate::store::{decode, encode};

/// Records that are kept for each shelf.
const KEPT: usize = 20;

const RECORD: &str = "record.json";
const OPEN: &str = ".open";
const UNBORN: &str = ".new-";

/// `savoir.toml` and `savoir.lock` as they are written, where they are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// `savoir.toml`.
    pub manifest: Option<String>,
    /// `savoir.lock`.
    pub lock: Option<String>,
    /// `skill-lock.json`, if a change concerns GAIA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaia: Option<Sheet>,
}

/// What lay in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Was {
    /// Nothing.
    Absent,
    /// What this file of the record holds.
    Tree(String),
    /// A link.
    Link(PathBuf),
}

/// What lies in a folder after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Now {
    /// Nothing.
    Absent,
    /// Files of this integrity.
    Tree(String),
    /// A link.
    Link(PathBuf),
}

impl Now {
    fn of(seen: &Seen) -> Self {
        match seen {
            Seen::Absent | Seen::Strange(_) => Self::Absent,
            Seen::Tree(tree) => Self::Tree(tree.integrity()),
            Seen::Link(target) => Self::Link(target.clone()),
        }
    }

    pub(super) fn is(&self, seen: &Seen) -> bool {
        seen.strangeness().is_none() && *self == Self::of(seen)
    }
}

/// A folder that was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Touched {
    pub(super) path: PathBuf,
    pub(super) was: Was,
    pub(super) now: Now,
}

/// One change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) root: PathBuf,
    pub(super) before: Texts,
    pub(super) after: Texts,
    pub(super) folders: Vec<Touched>,
    /// Folders that were made for the change, the outer ones first.
    pub(super) made: Vec<PathBuf>,
    #[serde(skip)]
    pub(super) place: PathBuf,
}

impl Record {
    /// What lay in a folder.
    pub(super) fn content(&self, was: &Was) -> Result<Seen, ShelfError> {
        let name = match was {
            Was::Absent => return Ok(Seen::Absent),
            Was::Link(target) => return Ok(Seen::Link(target.clone())),
            Was::Tree(name) => name,
        };
        let path = self.place.join(name);
        let bytes = fs::read(&path).map_err(ShelfError::io(&path))?;
        let damaged = |_| ShelfError::Journal { path, why: "it is damaged".to_owned() };
        decode(&bytes).map(Seen::Tree).map_err(damaged)
    }

    fn read(place: PathBuf) -> Result<Self, ShelfError> {
        let path = place.join(RECORD);
        let bytes = fs::read(&path).map_err(ShelfError::io(&path))?;
        let damaged =
            |error: serde_json::Error| ShelfError::Journal { path, why: error.to_string() };
        let record: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(Self { place, ..record })
    }

    fn is_open(&self) -> bool {
        self.place.to_string_lossy().ends_with(OPEN)
    }

    /// The change is made.
    pub(super) fn close(&self) -> Result<(), ShelfError> {
        let name = self.place.to_string_lossy();
        let closed = PathBuf::from(name.trim_end_matches(OPEN));
        fs::rename(&self.place, &closed).map_err(ShelfError::io(&self.place))
    }

    /// The change never was, or is no more.
    pub(super) fn discard(&self) -> Result<(), ShelfError> {
        discard(&self.place)
    }
}

/// A record is gone at once, even if removing its files takes a while.
pub(super) fn discard(place: &Path) -> Result<(), ShelfError> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let gone = place.with_file_name(format!("{UNBORN}{name}"));
    fs::rename(place, &gone).map_err(ShelfError::io(place))?;
    // What is left of it is removed with the next one.
    let _ = fs::remove_dir_all(gone);
    Ok(())
}

/// The records of all shelves of a user.
pub(super) struct Journal {
    folder: PathBuf,
}

impl Journal {
    pub(super) fn new(data: &Path) -> Self {
        Self { folder: data.join("undo") }
    }

    /// Writes down what a plan is going to change, before it does.
    pub(super) fn open(&self, plan: &Plan) -> Result<Record, ShelfError> {
        let fail = || ShelfError::io(&self.folder);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(fail())?;
        self.sweep();
        let unborn = tempfile::Builder::new().prefix(UNBORN).tempdir_in(&self.folder);
        let unborn = unborn.map_err(fail())?;
        let folders: Result<Vec<Touched>, ShelfError> = plan
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| touched(unborn.path(), at, step))
            .collect();
        let mut record = Record {
            root: plan.root.clone(),
            before: plan.before.clone(),
            after: plan.after.clone(),
            folders: folders?,
            made: missing_parents(&plan.steps),
            place: PathBuf::new(),
        };
        let path = unborn.path().join(RECORD);
        let text = serde_json::to_vec(&record);
        let text = text.map_err(|error| ShelfError::io(&path)(error.into()))?;
        write(&path, &text)?;
        let name = format!("{:015}-{:08x}{OPEN}", self.next_time()?, std::process::id());
        record.place = self.folder.join(name);
        fs::rename(unborn.keep(), &record.place).map_err(fail())?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fail())?;
        Ok(record)
    }

    /// The clock may be put back; the journal goes on.
    fn next_time(&self) -> Result<i64, ShelfError> {
        let last = self.names()?.into_iter().next_back();
        let last = last.and_then(|name| name.split('-').next()?.parse::<i64>().ok());
        let now = Timestamp::now().as_millisecond();
        Ok(last.map_or(now, |last| now.max(last + 1)))
    }

    /// All records, the oldest first.
    fn names(&self) -> Result<Vec<String>, ShelfError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ShelfError::io(&self.folder)(error)),
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// What programs that died left half done.
    pub(super) fn unfinished(&self) -> Result<Vec<Record>, ShelfError> {
        let names = self.names()?.into_iter().rev().filter(|name| name.ends_with(OPEN));
        names.map(|name| Record::read(self.folder.join(name))).collect()
    }

    /// The records of a shelf, the newest first. One that is damaged is passed over.
    pub(super) fn records(&self, root: &Path) -> Result<Vec<Record>, ShelfError> {
        let places = self.names()?.into_iter().rev().map(|name| self.folder.join(name));
        let records = places.filter_map(|place| Record::read(place).ok());
        Ok(records.filter(|record| record.root == root && !record.is_open()).collect())
    }

    /// Forgets what is too old.
    pub(super) fn prune(&self, root: &Path) -> Result<(), ShelfError> {
        self.records(root)?.iter().skip(KEPT).try_for_each(Record::discard)
    }

    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNBORN) {
                // It takes room, and does no harm.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn touched(record: &Path, at: usize, step: &Step) -> Result<Touched, ShelfError> {
    let was = match &step.was {
        Seen::Absent | Seen::Strange(_) => Was::Absent,
        Seen::Link(target) => Was::Link(target.clone()),
        Seen::Tree(tree) => {
            let name = format!("{at}.tree");
            write(&record.join(&name), &encode(tree))?;
            Was::Tree(name)
        }
    };
    Ok(Touched { path: step.folder.clone(), was, now: Now::of(&step.put) })
}

/// Writes a file and waits until the disk has it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ShelfError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(ShelfError::io(path))
}

/// The folders that must be made for a change, the outer ones first.
fn missing_parents(steps: &[Step]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for step in steps {
        let parents = step.folder.ancestors().skip(1).take_while(|parent| !parent.exists());
        missing.extend(parents.map(Path::to_owned));
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}
