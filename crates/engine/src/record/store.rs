//! Stores run records on disk, one file per run.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    time::SystemTime,
};

use super::{RunRecord, is_id, new_id, next_free_id};
use crate::{
    home::Home,
    store::{self, Existing, StoreError},
};

/// Maximum number of stored records. A record has a few kilobytes, so all take a few megabytes.
const MAX_RECORDS: usize = 1_000;

/// Bytes that are reserved on the disk for the record of a run.
const RESERVED_BYTES: usize = 64 << 10;

/// Disk space for a record, reserved before the run: otherwise a tool that fills the disk could
/// prevent its own record from being written. The file has no name, so it disappears if this process
/// is killed.
#[derive(Debug)]
pub struct ReservedSpace {
    file: Option<File>,
}

/// The store of run records, one file each in `runs/`.
#[derive(Clone, Debug)]
pub struct RunRecords {
    home: Home,
    max_records: usize,
}

/// Records, newest first, and those that could not be read.
#[derive(Debug, Default)]
pub struct RecordListing {
    pub records: Vec<RunRecord>,
    /// Errors of records that could not be read.
    pub problems: Vec<StoreError>,
}

impl RunRecords {
    /// Opens the store of a home; reads nothing yet.
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), max_records: MAX_RECORDS }
    }

    /// The folder of the records, which may not exist.
    pub fn folder(&self) -> PathBuf {
        self.home.data().join("runs")
    }

    /// Stores a record, and removes the oldest ones beyond the limit.
    ///
    /// The record gets another ID if its ID is taken. A run must not fail because of this: callers
    /// show the error as a warning.
    pub fn add(&self, record: &mut RunRecord) -> Result<(), StoreError> {
        let folder = self.home.data_folder("runs")?;
        if !is_id(&record.id) {
            record.id = new_id(SystemTime::now());
        }
        let mut attempts = 0;
        loop {
            let path = folder.join(format!("{}.json", record.id));
            match store::write_json(&path, record, Existing::KeepExisting) {
                Err(StoreError::Write { source, .. })
                    if source.kind() == io::ErrorKind::AlreadyExists && attempts < 64 =>
                {
                    attempts += 1;
                    record.id = next_free_id(&record.id);
                }
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        for id in self.ids()?.iter().skip(self.max_records) {
            // Another process may have removed it first, and one old record too many does no harm.
            let _ = fs::remove_file(folder.join(format!("{id}.json")));
        }
        Ok(())
    }

    /// Reserves disk space for the record of a run that is about to start. If that fails, the record
    /// is written without it, or not at all.
    pub fn reserve_space(&self) -> ReservedSpace {
        let file = self.home.data_folder("runs").ok().and_then(|folder| {
            let mut file = tempfile::tempfile_in(folder).ok()?;
            file.write_all(&vec![0; RESERVED_BYTES]).ok()?;
            Some(file)
        });
        ReservedSpace { file }
    }

    /// Stores a record. If the disk is full, releases the reserved space first, and then leaves out
    /// the longest lists if the record still does not fit.
    pub fn add_using_reserved(
        &self,
        record: &mut RunRecord,
        reserved: ReservedSpace,
    ) -> Result<(), StoreError> {
        match self.add(record) {
            Err(error) if is_disk_full(&error) => {}
            added => return added,
        }
        drop(reserved.file);
        match self.add(record) {
            Err(error) if is_disk_full(&error) => {}
            added => return added,
        }
        record.shorten();
        self.add(record)
    }

    /// Returns the newest records.
    pub fn list(&self, limit: usize) -> Result<RecordListing, StoreError> {
        let mut listing = RecordListing::default();
        for id in self.ids()?.iter().take(limit) {
            match self.read(id) {
                Ok(record) => listing.records.extend(record),
                Err(problem) => listing.problems.push(problem),
            }
        }
        Ok(listing)
    }

    /// Finds the one record whose ID is this or starts with it.
    pub fn find(&self, id: &str) -> Result<RunRecord, StoreError> {
        let none = || StoreError::NoSuchRun { id: id.to_owned() };
        // Every ID starts with an empty text.
        if id.is_empty() {
            return Err(none());
        }
        let mut found: Vec<String> =
            self.ids()?.into_iter().filter(|known| known.starts_with(id)).collect();
        let chosen = match found.as_slice() {
            [only] => only,
            all => match all.iter().find(|known| *known == id) {
                Some(exact) => exact,
                None if all.is_empty() => return Err(none()),
                None => {
                    let count = found.len();
                    found.truncate(3);
                    return Err(StoreError::AmbiguousRun { id: id.to_owned(), count, some: found });
                }
            },
        };
        self.read(chosen)?.ok_or_else(none)
    }

    /// Reads a record; `None` if it was removed since it was listed.
    fn read(&self, id: &str) -> Result<Option<RunRecord>, StoreError> {
        store::read_json(&self.folder().join(format!("{id}.json")))
    }

    /// Returns the IDs, newest first.
    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let path = self.folder();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(StoreError::Folder { path, source }),
        };
        let mut ids: Vec<String> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(".json").filter(|id| !id.starts_with('.'))?;
                Some(id.to_owned())
            })
            .collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }
}

fn is_disk_full(error: &StoreError) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, StoreError::Write { source, .. } | StoreError::Folder { source, .. }
        if matches!(source.kind(), StorageFull | QuotaExceeded))
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        time::{Duration, UNIX_EPOCH},
    };

    use super::*;

    fn store() -> (tempfile::TempDir, RunRecords) {
        let dir = tempfile::tempdir().unwrap();
        let records = RunRecords::new(&Home::at(dir.path()));
        (dir, records)
    }

    fn at(milliseconds: u64) -> RunRecord {
        let time = UNIX_EPOCH + Duration::from_millis(1_794_722_462_000 + milliseconds);
        RunRecord { skill: format!("skill-{milliseconds}"), ..RunRecord::start_at(time) }
    }

    fn skills(listing: &RecordListing) -> Vec<&str> {
        listing.records.iter().map(|record| record.skill.as_str()).collect()
    }

    #[test]
    fn id_contains_the_time() {
        let record = at(345);
        assert_eq!(record.started, "2026-11-15T06:01:02.345Z");
        assert_eq!(&record.id[..19], "20261115-060102-159");
        assert_eq!(record.id.len(), 22);
    }

    #[test]
    fn empty_store_creates_no_folder() {
        let (dir, records) = store();
        assert!(records.list(10).unwrap().records.is_empty());
        assert!(matches!(records.find("2026"), Err(StoreError::NoSuchRun { .. })));
        assert!(!dir.path().join("data").exists());
    }

    #[test]
    fn newest_records_come_first_and_oldest_are_removed() {
        let (dir, mut records) = store();
        records.max_records = 3;
        // Not in time order: a long run that started first is recorded last.
        for milliseconds in [20, 5_000, 10, 999, 1_000] {
            records.add(&mut at(milliseconds)).unwrap();
        }
        let listing = records.list(10).unwrap();
        assert_eq!(skills(&listing), ["skill-5000", "skill-1000", "skill-999"]);
        assert_eq!(skills(&records.list(1).unwrap()), ["skill-5000"]);
        assert_eq!(fs::read_dir(dir.path().join("data/runs")).unwrap().count(), 3);
    }

    #[test]
    fn taken_id_is_replaced() {
        let (_dir, records) = store();
        let mut first = at(1);
        let mut second = RunRecord { skill: "other".to_owned(), ..first.clone() };
        records.add(&mut first).unwrap();
        records.add(&mut second).unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(first.id[..19], second.id[..19]);
        assert_eq!(records.find(&first.id).unwrap().skill, "skill-1");
        assert_eq!(records.find(&second.id).unwrap().skill, "other");
    }

    #[test]
    fn id_cannot_be_a_path() {
        let (dir, records) = store();
        for id in ["", "../../escaped-from-here", "20261115/060102"] {
            let mut record = RunRecord { id: id.to_owned(), ..at(1) };
            records.add(&mut record).unwrap();
            assert_eq!(records.find(&record.id).unwrap(), record);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn unique_id_prefix_is_enough() {
        let (_dir, records) = store();
        let mut ids = BTreeSet::new();
        for milliseconds in [0, 1, 2, 3, 61_000] {
            let mut record = at(milliseconds);
            records.add(&mut record).unwrap();
            ids.insert(record.id);
        }
        assert_eq!(records.find("20261115-0602").unwrap().skill, "skill-61000");
        for id in &ids {
            assert_eq!(&records.find(id).unwrap().id, id);
        }
        let error = records.find("20261115-0601").unwrap_err().to_string();
        assert!(error.starts_with("`20261115-0601` could be any of 4 runs: 2026"), "{error}");
        assert_eq!(error.matches("20261115-060102-").count(), 3, "{error}");
        assert!(records.find("").is_err());
        let error = records.find("../approvals").unwrap_err();
        assert_eq!(error.to_string(), "there is no run `../approvals`");
    }

    #[test]
    fn damaged_record_is_reported_and_others_are_listed() {
        let (dir, records) = store();
        records.add(&mut at(1)).unwrap();
        let path = dir.path().join("data/runs/20990101-000000-000000.json");
        fs::write(&path, "{").unwrap();
        let listing = records.list(10).unwrap();
        assert_eq!(skills(&listing), ["skill-1"]);
        assert!(listing.problems[0].to_string().contains("20990101-000000-000000.json is damaged"));
        assert!(matches!(records.find("2099"), Err(StoreError::Corrupt { .. })));
        assert!(path.exists());
    }

    #[test]
    fn all_fields_are_read_back() {
        let (_dir, records) = store();
        let mut record = RunRecord {
            version: Some("1.0.0".into()),
            tool: Some("git_log".into()),
            path: "/skills/git".into(),
            permissions: vec!["shell:execute:git".parse().unwrap()],
            policy: serde_json::json!({"read": ["/x"]}),
            exit_code: Some(3),
            error: Some(super::super::ErrorRecord { code: "x".into(), message: "y".into() }),
            hosts: vec![serde_json::json!({"host": "example.com"})],
            ..at(7)
        };
        records.add(&mut record).unwrap();
        assert_eq!(records.find(&record.id).unwrap(), record);
    }

    #[test]
    fn reserved_file_has_no_name() {
        use std::os::unix::fs::MetadataExt as _;

        let (_dir, records) = store();
        let reserved = records.reserve_space();
        let taken = reserved.file.as_ref().unwrap().metadata().unwrap();
        assert!(taken.blocks() * 512 >= RESERVED_BYTES as u64, "{}", taken.blocks());
        assert_eq!(fs::read_dir(records.folder()).unwrap().count(), 0);
        let mut record = at(1);
        records.add_using_reserved(&mut record, reserved).unwrap();
        assert_eq!(records.find(&record.id).unwrap(), record);
    }

    #[test]
    fn shortened_record_keeps_skill_and_tool() {
        let mut record = RunRecord { command: vec!["dd".into()], ..at(1) };
        record.files.written = vec!["x".repeat(100); 4096];
        record.shorten();
        assert!(serde_json::to_vec(&record).unwrap().len() < 4096);
        assert_eq!((record.command.len(), record.files.more), (1, 4096));
    }

    #[cfg(unix)]
    #[test]
    fn record_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_dir, records) = store();
        let mut record = at(1);
        records.add(&mut record).unwrap();
        let file = records.folder().join(format!("{}.json", record.id));
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn unwritable_store_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("data"), "in the way").unwrap();
        let records = RunRecords::new(&Home::at(dir.path()));
        assert!(records.add(&mut at(1)).is_err());
    }
}
