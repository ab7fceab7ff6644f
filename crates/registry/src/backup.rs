//! Writes, checks and restores backups of a registry in one file.
//!
//! A backup is a plain tar, so that any program can read it and a single rename makes it visible:
//! `records.jsonl` has the records of the database, one line of JSON each; then every artifact and every
//! SKILL.md follows under its digest, sorted; `end.json` has the expected counts. Nothing is compressed,
//! because artifacts are compressed already, and there are no timestamps, so that the same registry gives
//! the same bytes.
//!
//! - [`write()`] writes a consistent snapshot, even while others publish.
//! - [`check()`] reads a backup to its end and verifies all digests.
//! - [`restore()`] restores a checked backup into an empty registry, all of it or nothing.

mod check;
mod error;
mod restore;
mod tar;
mod write;

use savoir_store::registry::Record;
use serde::{Deserialize, Serialize};

pub use self::{
    check::check,
    error::BackupError,
    restore::{ExistingAccounts, Restored, restore},
    write::write,
};

/// How many blobs are read or written at once.
const CONCURRENT_BLOBS: usize = 16;

const FORMAT_NAME: &str = "savoir-registry-backup";
const FORMAT_VERSION: u32 = 1;

const RECORDS_PATH: &str = "savoir-registry/records.jsonl";
const BLOBS_FOLDER: &str = "savoir-registry/blobs/";
const END_PATH: &str = "savoir-registry/end.json";

/// The last file of a backup: the expected counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTrailer {
    format: String,
    version: u32,
    pub records: u64,
    records_sha256: String,
    pub packages: u64,
    pub versions: u64,
    pub blobs: u64,
    /// Total size of the blobs.
    pub bytes: u64,
}

impl BackupTrailer {
    fn new() -> Self {
        Self {
            format: FORMAT_NAME.to_owned(),
            version: FORMAT_VERSION,
            records: 0,
            records_sha256: String::new(),
            packages: 0,
            versions: 0,
            blobs: 0,
            bytes: 0,
        }
    }

    fn count(&mut self, record: &Record) {
        self.records += 1;
        if let Record::Package(package) = record {
            self.packages += 1;
            self.versions += package.versions.len() as u64;
        }
    }
}

fn blob_path(digest: &str) -> String {
    format!("{BLOBS_FOLDER}{}/{digest}", digest.get(..2).unwrap_or_default())
}

/// The digests that a record refers to. Versions that were taken down have no files.
fn digests(record: &Record) -> impl Iterator<Item = &String> {
    let versions = match record {
        Record::Package(package) => package.versions.as_slice(),
        _ => &[],
    };
    let live = versions.iter().filter(|version| version.withdrawn_at.is_none());
    live.flat_map(|version| [&version.sha256, &version.skill_md])
}
