//! Stores finished trials and votes by the digest of everything that they depend on, so that an
//! interrupted evaluation continues and an unchanged one costs nothing.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use serde_json::Value;

use crate::trace::{TRACE_FORMAT, Trace};

/// The folder of the cache.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The digest of a list of facts. No two lists of facts are written as the same bytes.
pub(super) fn key(facts: &[&str]) -> String {
    let facts = Value::from(facts.to_vec());
    sha256_hex(facts.to_string().as_bytes())
}

/// This program on this kind of machine: a trial from another one is run again.
pub(super) fn harness() -> String {
    format!(
        "savoir {} {} {} trace {TRACE_FORMAT}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

impl Cache {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, kind: &str, key: &str) -> PathBuf {
        self.folder.join(kind).join(&key[..2]).join(format!("{key}.json"))
    }

    /// A stored trial. One that cannot be read, or has another key, is ignored.
    pub(super) fn trial(&self, key: &str) -> Option<Trace> {
        let path = self.path("trials", key);
        match Trace::read(&path) {
            Ok(trace) if trace.key == key => Some(trace),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "a stored trial has another key");
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a stored trial cannot be read");
                None
            }
        }
    }

    pub(super) fn store_trial(&self, trace: &Trace) {
        let bytes = serde_json::to_vec(trace).unwrap_or_default();
        store(&self.path("trials", &trace.key), &bytes);
    }

    /// A stored answer of a judge.
    pub(super) fn vote(&self, key: &str) -> Option<String> {
        fs::read_to_string(self.path("votes", key)).ok()
    }

    pub(super) fn store_vote(&self, key: &str, answer: &str) {
        store(&self.path("votes", key), answer.as_bytes());
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
