//! Defines the record of a run: which tool ran, with which permissions, and how it ended.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    path::{Path, PathBuf},
    time::SystemTime,
};

use savoir_skill::permission::{Permission, Tier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{approval::Trust, clock, smallest_permissions::is_system_path};

mod store;

pub use self::store::{RecordListing, ReservedSpace, RunRecords};

/// One run of one tool, or a call that was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// The id, which sorts by time: `20261115-060102-3f9a2c` is UTC, then milliseconds and random
    /// digits, both hexadecimal.
    pub id: String,
    /// The start time, RFC 3339 in UTC.
    pub started: String,
    /// The name of the skill.
    pub skill: String,
    pub version: Option<String>,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The skill's folder, or its file.
    pub path: PathBuf,
    /// SHA-256 of the skill's content in hexadecimal digits.
    pub digest: String,
    /// The dialect that the skill is written in.
    pub dialect: String,
    /// The origin of the skill.
    pub trust: Trust,
    /// The tier of the skill, which depends on its signature.
    pub tier: Tier,
    /// The decision that allowed or refused the run.
    pub decision: DecisionRecord,
    /// The exact program and arguments; empty if the tool is not a command.
    pub command: Vec<String>,
    /// The working folder.
    pub directory: Option<PathBuf>,
    /// The permissions that the skill declares, and those that its dialect grants without
    /// declaration.
    pub permissions: Vec<Permission>,
    /// The sandbox policy as JSON.
    pub policy: Value,
    /// How the sandbox enforced the policy on this machine.
    pub enforcement: Value,
    pub duration_ms: u64,
    pub success: bool,
    /// The exit code; none if a signal ended the process or nothing was started.
    pub exit_code: Option<i32>,
    pub error: Option<ErrorRecord>,
    /// Bytes that the tool printed.
    pub output_bytes: u64,
    /// Whether the tool printed more than the envelope contains.
    pub truncated: bool,
    pub files: FileRecord,
    pub programs: Vec<String>,
    /// Hosts that the tool connected to, or tried to.
    pub hosts: Vec<Value>,
}

/// The decision about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionRecord {
    /// `run`, `once`, `always`, `declined` or `refused`.
    pub verdict: String,
    pub reason: String,
    /// The user who agreed, if one was asked.
    pub approved_by: Option<String>,
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorRecord {
    /// The stable identifier.
    pub code: String,
    pub message: String,
}

/// Files that a run accessed, as far as the sandbox observed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRecord {
    pub read: Vec<String>,
    /// Files that were created, changed or removed.
    pub written: Vec<String>,
    /// Paths to which access was denied.
    pub denied: Vec<String>,
    /// Protected files (which other programs execute or obey) that the run created, and that were
    /// renamed afterwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_aside: Vec<String>,
    /// Number of further files that the lists do not contain.
    pub more: u64,
}

/// What a run accessed, for its user: without the files that every program reads, and with short
/// lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AccessSummary {
    pub read: Vec<String>,
    pub written: Vec<String>,
    /// Paths to which access was denied.
    pub denied: Vec<String>,
    pub programs: Vec<String>,
    /// Hosts that the tool connected to.
    pub hosts: Vec<String>,
    /// Hosts to which access was denied.
    pub denied_hosts: Vec<String>,
    /// Number of further entries that the lists do not contain.
    pub more: u64,
}

/// Maximum entries of each list of an [`AccessSummary`].
const MAX_SUMMARY_ENTRIES: usize = 50;

impl AccessSummary {
    fn new(record: &RunRecord) -> Self {
        let mut more = record.files.more;
        let mut cut = |entries: Vec<String>| -> Vec<String> {
            more += entries.len().saturating_sub(MAX_SUMMARY_ENTRIES) as u64;
            entries.into_iter().take(MAX_SUMMARY_ENTRIES).collect()
        };
        let own = |paths: &[String]| {
            let own = paths.iter().filter(|path| !is_system_path(Path::new(path)));
            own.cloned().collect::<Vec<_>>()
        };
        let hosts = |allowed: bool| {
            let wanted =
                record.hosts.iter().filter(|host| (host["verdict"] == "allowed") == allowed);
            let names = wanted.filter_map(|host| match (host["host"].as_str()?, &host["port"]) {
                ("", _) => None,
                (name, Value::Number(port)) if port.as_u64() != Some(443) => {
                    Some(format!("{name}:{port}"))
                }
                (name, _) => Some(name.to_owned()),
            });
            names.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        let files = &record.files;
        let (read, written, denied) =
            (cut(own(&files.read)), cut(files.written.clone()), cut(own(&files.denied)));
        let (programs, hosts, denied_hosts) =
            (cut(record.programs.clone()), cut(hosts(true)), cut(hosts(false)));
        Self { read, written, denied, programs, hosts, denied_hosts, more }
    }

    /// Whether nothing was accessed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RunRecord {
    /// What the run accessed, for its user.
    pub fn access_summary(&self) -> AccessSummary {
        AccessSummary::new(self)
    }

    /// Creates a record of a run that starts now.
    pub fn start() -> Self {
        Self::start_at(SystemTime::now())
    }

    /// Applies `change` to every text that came from the run, to mask secrets.
    #[must_use]
    pub(crate) fn map_texts(mut self, change: &dyn Fn(String) -> String) -> Self {
        let each = |texts: Vec<String>| texts.into_iter().map(change).collect();
        self.error =
            self.error.map(|error| ErrorRecord { message: change(error.message), ..error });
        let FileRecord { read, written, denied, put_aside, more } = self.files;
        let (read, written, denied) = (each(read), each(written), each(denied));
        self.files = FileRecord { read, written, denied, put_aside: each(put_aside), more };
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

    /// Clears the lists, and adds their lengths to `more`.
    fn shorten(&mut self) {
        let FileRecord { read, written, denied, put_aside, more } = &mut self.files;
        let lists = [read, written, denied, put_aside, &mut self.programs];
        *more += lists.into_iter().map(|list| list.drain(..).count() as u64).sum::<u64>();
        *more += self.hosts.drain(..).count() as u64;
        self.policy = Value::Null;
        self.command.truncate(16);
    }

    fn start_at(time: SystemTime) -> Self {
        Self { id: new_id(time), started: clock::rfc3339(time), ..Self::default() }
    }
}

/// Creates an id that sorts by time. Ids of the same millisecond differ by random digits, and the
/// store never overwrites a record.
fn new_id(time: SystemTime) -> String {
    let moment = format!("{}-{:03x}", clock::compact(time), clock::milliseconds(time));
    with_random_suffix(&moment)
}

/// Replaces the random digits of an id.
fn next_free_id(id: &str) -> String {
    with_random_suffix(id.get(..id.len().saturating_sub(3)).unwrap_or(id))
}

fn with_random_suffix(moment: &str) -> String {
    // Each `RandomState` has its own random keys, which is random enough here.
    let chance = RandomState::new().hash_one(moment) & 0xfff;
    format!("{moment}{chance:03x}")
}

/// Whether a text is a valid id, and so a safe file name.
pub fn is_id(text: &str) -> bool {
    text.len() >= 16 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn access_summary_leaves_out_system_files() {
        let texts = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let host = |name: &str, port: u16, verdict: Value| json!({"host": name, "port": port, "verdict": verdict});
        let refused = json!({"refused": {"reason": "not-granted"}});
        let many: Vec<String> = (0..60).map(|at| format!("/home/a/{at}")).collect();
        let record = RunRecord {
            files: FileRecord {
                read: texts(&["/usr/lib/libc.so.6", "/home/a/notes"]),
                written: many,
                denied: texts(&["/home/a/.ssh/id_rsa"]),
                ..FileRecord::default()
            },
            hosts: vec![
                host("a.org", 443, json!("allowed")),
                host("a.org", 443, json!("allowed")),
                host("b.org", 8080, refused),
            ],
            ..RunRecord::start()
        };
        let summary = record.access_summary();
        assert_eq!(summary.read, ["/home/a/notes"]);
        assert_eq!((summary.written.len(), summary.more), (50, 10));
        assert_eq!(summary.denied, ["/home/a/.ssh/id_rsa"]);
        assert_eq!(
            (summary.hosts, summary.denied_hosts),
            (texts(&["a.org"]), texts(&["b.org:8080"]))
        );
        assert!(RunRecord::start().access_summary().is_empty());
    }
}
