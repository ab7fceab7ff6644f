//! Everything that a registry has, in one file.
//!
//! A backup is a plain tar, so that any program can look into it and a single rename makes it
//! visible: `records.jsonl` has what the database knows, a line of JSON each; then every artefact and
//! every SKILL.md follows under its digest, sorted; `end.json` says at last how much there must be.
//! Nothing is packed again, because artefacts are packed already, and times are left out, so that the
//! same registry gives the same bytes.
//!
//! - [`write()`] makes one while others publish: what it has is that of one moment.
//! - [`check()`] reads one to its end and holds everything against its digest.
//! - [`restore()`] puts a checked one into an empty registry, all of it or nothing.

mod check;
mod error;
mod restore;
mod tar;
mod write;

use savoir_store::registry::Record;
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    check::check,
    error::BackupError,
    restore::{Accounts, Restored, restore},
    write::write,
};

/// How many blobs are read or written at once.
const AT_ONCE: usize = 16;

const FORMAT: &str = "savoir-registry-backup";
const VERSION: u32 = 1;

const RECORDS: &str = "savoir-registry/records.jsonl";
const BLOBS: &str = "savoir-registry/blobs/";
const END: &str = "savoir-registry/end.json";

/// The last file of a backup: what must have come before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    format: String,
    version: u32,
    pub(crate) records: u64,
    records_sha256: String,
    pub(crate) packages: u64,
    pub(crate) versions: u64,
    pub(crate) blobs: u64,
    /// Of the blobs.
    pub(crate) bytes: u64,
}

impl End {
    fn new() -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
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
    format!("{BLOBS}{}/{digest}", digest.get(..2).unwrap_or_default())
}

/// The digests that a record refers to. What was withdrawn has no bytes any more.
fn digests(record: &Record) -> impl Iterator<Item = &String> {
    let versions = match record {
        Record::Package(package) => package.versions.as_slice(),
        _ => &[],
    };
    let live = versions.iter().filter(|version| version.withdrawn_at.is_none());
    live.flat_map(|version| [&version.sha256, &version.skill_md])
}
