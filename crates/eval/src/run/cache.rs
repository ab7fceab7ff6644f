//! Stores finished trials and votes by the digest of everything that they depend on, so that an
//! interrupted evaluation continues and an unchanged one costs nothing.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{TRACE_FORMAT, Trace};

/// The folder of the cache.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// This machine. What another one stored may come from another sandbox or model.
    machine: String,
}

/// A stored answer of a judge.
#[derive(Serialize, Deserialize)]
struct StoredVote {
    machine: String,
    answer: String,
}

/// The digest of a list of facts. No two lists of facts are written as the same bytes.
pub(super) fn key(facts: &[&str]) -> String {
    let facts = Value::from(facts.to_vec());
    sha256_hex(facts.to_string().as_bytes())
}

/// This program on this kind of machine: a trial of another one has another key.
pub(super) fn harness() -> String {
    format!(
        "savoir {} {} {} trace {TRACE_FORMAT}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

impl Cache {
    /// `machine` is a name that no other machine has.
    pub fn new(folder: PathBuf, machine: &str) -> Self {
        Self { folder, machine: machine.to_owned() }
    }

    pub(super) fn machine(&self) -> &str {
        &self.machine
    }

    /// Why something that another machine stored does not count.
    fn foreign(&self, what: &str) -> String {
        format!(
            "{what} was stored by another machine, which cannot be checked; remove {}, or grade the \
             results of that machine with --replay",
            self.folder.display()
        )
    }

    fn path(&self, kind: &str, key: &str) -> PathBuf {
        self.folder.join(kind).join(&key[..2]).join(format!("{key}.json"))
    }

    /// A stored trial. One that cannot be read, or has another key, is ignored; one of another
    /// machine is an error.
    pub(super) fn trial(&self, key: &str) -> Result<Option<Trace>, String> {
        let path = self.path("trials", key);
        match Trace::read(&path) {
            Ok(trace) if trace.key == key && trace.machine == self.machine => Ok(Some(trace)),
            Ok(trace) if trace.key == key => Err(self.foreign("the trial")),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "a stored trial has another key");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a stored trial cannot be read");
                Ok(None)
            }
        }
    }

    pub(super) fn store_trial(&self, trace: &Trace) {
        let bytes = serde_json::to_vec(trace).unwrap_or_default();
        store(&self.path("trials", &trace.key), &bytes);
    }

    /// A stored answer of a judge.
    pub(super) fn vote(&self, key: &str) -> Result<Option<String>, String> {
        let Ok(text) = fs::read_to_string(self.path("votes", key)) else { return Ok(None) };
        match serde_json::from_str::<StoredVote>(&text) {
            Ok(vote) if vote.machine == self.machine => Ok(Some(vote.answer)),
            Ok(_) => Err(self.foreign("the verdict")),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn store_vote(&self, key: &str, answer: &str) {
        let vote = StoredVote { machine: self.machine.clone(), answer: answer.to_owned() };
        store(&self.path("votes", key), &serde_json::to_vec(&vote).unwrap_or_default());
    }
}

/// What cannot be stored is run again.
fn store(path: &Path, bytes: &[u8]) {
    if let Err(error) = write(path, bytes) {
        tracing::warn!(path = %path.display(), %error, "a trial is not stored");
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
