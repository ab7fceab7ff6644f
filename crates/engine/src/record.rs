//! Run records: what was run, with which permissions, and how it ended.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    time::SystemTime,
};

use savoir_skill::permission::{Permission, Tier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{approval::Trust, clock};

mod kept;

pub use kept::{Listing, Records, Room};

/// One run of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Sorts by time: `20261115-060102-3f9a2c` is UTC, then milliseconds and chance in
    /// hexadecimal digits.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// The name of the skill.
    pub skill: String,
    /// Its version.
    pub version: Option<String>,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The skill's folder, or its file.
    pub path: PathBuf,
    /// SHA-256 of the skill's content in hexadecimal digits.
    pub digest: String,
    /// The dialect that it is written in.
    pub dialect: String,
    /// How the skill came here.
    pub trust: Trust,
    /// Who vouches for it.
    pub tier: Tier,
    /// Why it ran, or did not.
    pub decision: DecisionRecord,
    /// The exact program and arguments, empty if it is no command.
    pub command: Vec<String>,
    /// The working folder.
    pub directory: Option<PathBuf>,
    /// The rights that the skill declares, and those its dialect grants without a word.
    pub permissions: Vec<Permission>,
    /// The rights as the sandbox was told.
    pub policy: Value,
    /// How each right was held on this machine.
    pub enforcement: Value,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether it did what it should.
    pub success: bool,
    /// What the process ended with; none if a signal ended it or nothing was started.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error: Option<ErrorRecord>,
    /// Bytes that it printed.
    pub output_bytes: u64,
    /// Whether more was printed than was kept.
    pub truncated: bool,
    /// Files that it touched.
    pub files: Files,
    /// Programs that it started.
    pub programs: Vec<String>,
    /// Hosts that it talked to, or tried to.
    pub hosts: Vec<Value>,
}

/// Why a tool ran, or did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionRecord {
    /// `run`, `once`, `always`, `declined` or `refused`.
    pub verdict: String,
    /// In a sentence.
    pub reason: String,
    /// The person who agreed, if one was asked.
    pub approved_by: Option<String>,
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorRecord {
    /// The stable identifier.
    pub code: String,
    /// In a sentence.
    pub message: String,
}

/// Files that a run touched, as far as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Files {
    /// Read.
    pub read: Vec<String>,
    /// Made, changed or removed.
    pub written: Vec<String>,
    /// Tried in vain.
    pub denied: Vec<String>,
    /// Made where other programs obey it, and put aside since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_aside: Vec<String>,
    /// How many more there were than the lists hold.
    pub more: u64,
}

impl Record {
    /// A record of a run that begins now.
    pub fn begin() -> Self {
        Self::begin_at(SystemTime::now())
    }

    /// The same with every text about what happened changed.
    #[must_use]
    pub(crate) fn map_texts(mut self, change: &dyn Fn(String) -> String) -> Self {
        let each = |texts: Vec<String>| texts.into_iter().map(change).collect();
        self.error =
            self.error.map(|error| ErrorRecord { message: change(error.message), ..error });
        let Files { read, written, denied, put_aside, more } = self.files;
        let (read, written, denied) = (each(read), each(written), each(denied));
        self.files = Files { read, written, denied, put_aside: each(put_aside), more };
        self.programs = each(self.programs);
        for host in self.hosts.iter_mut().filter_map(Value::as_object_mut) {
            for value in host.values_mut() {
                if let Value::String(text) = value {
                    *text = change(std::mem::take(text));
                }
            }
        }
        self
    }

    /// Leaves out the lists, and says how many entries they had.
    fn shorten(&mut self) {
        let Files { read, written, denied, put_aside, more } = &mut self.files;
        let lists = [read, written, denied, put_aside, &mut self.programs];
        *more += lists.into_iter().map(|list| list.drain(..).count() as u64).sum::<u64>();
        *more += self.hosts.drain(..).count() as u64;
        self.policy = Value::Null;
        self.command.truncate(16);
    }

    fn begin_at(time: SystemTime) -> Self {
        Self { id: new_id(time), started: clock::rfc3339(time), ..Self::default() }
    }
}

/// An identifier that sorts by time. Two runs of one millisecond differ by chance, and the store
/// does not let one take the place of the other.
fn new_id(time: SystemTime) -> String {
    let moment = format!("{}-{:03x}", clock::compact(time), clock::milliseconds(time));
    with_chance(&moment)
}

/// The same moment with other last digits.
fn other_id(id: &str) -> String {
    with_chance(id.get(..id.len().saturating_sub(3)).unwrap_or(id))
}

fn with_chance(moment: &str) -> String {
    // Each state has keys of its own, so this is as good as a die.
    let chance = RandomState::new().hash_one(moment) & 0xfff;
    format!("{moment}{chance:03x}")
}

/// Whether it can be the name of a file and found again.
pub fn is_id(text: &str) -> bool {
    text.len() >= 16 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
