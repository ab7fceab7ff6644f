//! Whether a person must be asked before a tool runs, in which words, and what was answered.
//!
//! A [`Request`] says everything that a run would get. [`decide`] holds it against the rules and
//! against the answer that was kept for the same place, if there is one. An answer is kept for a
//! [`Fingerprint`]: when the skill, its rights, its programs or its place change, the question
//! comes again and says what changed. A "no" is never kept.

use std::{collections::BTreeMap, path::PathBuf};

use savoir_skill::permission::{Domain, Level, Permission, Tier};
use serde::{Deserialize, Serialize};

mod changes;
mod decide;
mod fingerprint;
mod interpreter;
mod kept;
mod look_alike;
mod phrase;
mod question;
#[cfg(test)]
mod tests;
mod words;

pub use decide::{Verdict, decide};
pub use fingerprint::{Fingerprint, agrees};
pub use interpreter::is_interpreter;
pub use kept::{Approval, Approvals, user_name};
pub use question::ApprovalQuestion;
pub use words::{Line, Role, details, plain, quoted, shell_word, shown, why, words};

/// How a skill came here, in the words of gibb.eri.sh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Downloaded, and nobody here has looked at it: asks before every run.
    #[default]
    Untrusted,
    /// Installed from elsewhere, not signed by a trusted key and not from a trusted source. An answer
    /// is kept, because the dialect does not ask for more.
    Downloaded,
    /// Put there by the user.
    User,
    /// Came with the program.
    Bundled,
}

impl Trust {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Downloaded => "downloaded",
            Self::User => "user",
            Self::Bundled => "bundled",
        }
    }

    /// What is shown above everything else about a skill from elsewhere.
    pub fn banner(self) -> Option<&'static str> {
        match self {
            Self::Untrusted | Self::Downloaded => Some(
                "UNTRUSTED SKILL: it was downloaded, and neither its source nor a signature is trusted",
            ),
            Self::User | Self::Bundled => None,
        }
    }
}

/// A program that a skill runs, as it was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// The name in the skill.
    pub name: String,
    /// The file that the name leads to.
    pub path: PathBuf,
    /// SHA-256 of the file in hexadecimal digits.
    pub sha256: String,
}

/// What a tool of the skill runs, its placeholders still in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The tool.
    pub tool: String,
    /// The program and its arguments as written; empty if the tool is no command.
    pub command: Vec<String>,
}

/// What a person grants beyond what the skill declares. It belongs to the approval, never to the
/// skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtraGrants {
    /// Paths that may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Paths that may be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Public hosts, `host`, `*.host`, `host:port` or a URL, to which any request may go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Hosts on private addresses, to which any request may go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub private_hosts: Vec<String>,
    /// Programs that may be run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Environment variables that may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

impl ExtraGrants {
    /// Whether nothing is added.
    pub fn is_empty(&self) -> bool {
        self.lists().into_iter().all(|(_, list)| list.is_empty())
    }

    /// The same without order or repetition.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        for list in [
            &mut sorted.read,
            &mut sorted.write,
            &mut sorted.hosts,
            &mut sorted.private_hosts,
            &mut sorted.programs,
            &mut sorted.env,
        ] {
            list.sort();
            list.dedup();
        }
        sorted
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let join = |one: &[String], other: &[String]| [one, other].concat();
        Self {
            read: join(&self.read, &other.read),
            write: join(&self.write, &other.write),
            hosts: join(&self.hosts, &other.hosts),
            private_hosts: join(&self.private_hosts, &other.private_hosts),
            programs: join(&self.programs, &other.programs),
            env: join(&self.env, &other.env),
        }
        .sorted()
    }

    /// The nearest permissions of a skill.
    pub fn permissions(&self) -> Vec<Permission> {
        let lists = self.lists().into_iter();
        lists
            .flat_map(|(added, list)| list.iter().map(move |entry| added.permission(entry)))
            .collect()
    }

    /// The lists with what each of them is about.
    pub(crate) fn lists(&self) -> [(Added, &[String]); 6] {
        [
            (Added::Read, &self.read),
            (Added::Write, &self.write),
            (Added::Host, &self.hosts),
            (Added::PrivateHost, &self.private_hosts),
            (Added::Program, &self.programs),
            (Added::Variable, &self.env),
        ]
    }
}

/// What one entry of a [`ExtraGrants`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Read,
    Write,
    Host,
    PrivateHost,
    Program,
    Variable,
}

impl Added {
    /// The option that adds it.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Read => "--allow-read",
            Self::Write => "--allow-write",
            Self::Host => "--allow-host",
            Self::PrivateHost => "--allow-private-host",
            Self::Program => "--allow-program",
            Self::Variable => "--allow-env",
        }
    }

    /// The nearest permission of a skill.
    pub(crate) fn permission(self, entry: &str) -> Permission {
        let (domain, level) = match self {
            Self::Read => (Domain::Filesystem, Level::Read),
            Self::Write => (Domain::Filesystem, Level::Write),
            Self::Host | Self::PrivateHost => (Domain::Network, Level::Write),
            Self::Program => (Domain::Shell, Level::Execute),
            Self::Variable => (Domain::Env, Level::Read),
        };
        Permission { domain, level, scope: Some(entry.to_owned()) }
    }
}

/// Everything that a person must see before a tool, or any tool of a skill, runs.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The name of the skill.
    pub skill: String,
    /// Its version.
    pub version: Option<String>,
    /// What it says it does.
    pub description: String,
    /// Its folder, or its file if it stands alone; absolute and without links.
    pub path: PathBuf,
    /// The dialect it is written in.
    pub dialect: String,
    /// The tool that would run; none for the skill as a whole.
    pub tool: Option<String>,
    /// The exact program or function and its arguments; empty for the skill as a whole.
    pub command: Vec<String>,
    /// What the tools run, for a question about the skill as a whole.
    pub tools: Vec<Preview>,
    /// The programs of *all* tools of the skill: an answer is for the skill, so it must not depend
    /// on which tool asks first.
    pub programs: Vec<Program>,
    /// What the skill declares.
    pub permissions: Vec<Permission>,
    /// What its dialect grants without a word, here. It follows from the skill and the place, so an
    /// answer does not depend on it.
    pub unasked: Vec<Permission>,
    /// What its dialect grants so in other places, if it grants nothing here.
    pub elsewhere: Option<&'static str>,
    /// Programs that it may run because its dialect says so, not a permission: those of its tools,
    /// and in some dialects those that it requires. They are shown as [`programs`](Self::programs);
    /// the tier decides about them as about `shell:execute`.
    pub implied: Vec<Permission>,
    /// Packages that are installed for it, outside its folder.
    pub packages: Vec<String>,
    /// What it asks of the machine and of the model that calls it, as written.
    pub needs: Vec<String>,
    /// What the person adds.
    pub extra: ExtraGrants,
    /// SHA-256 of the content of the skill's folder in hexadecimal digits.
    pub digest: String,
    /// Its files with the first digits of their SHA-256, to say which of them changed.
    #[serde(skip)]
    pub files: BTreeMap<String, String>,
    /// Names of stored secrets that it would get.
    pub secrets: Vec<String>,
    /// How it came here.
    pub trust: Trust,
    /// How far it is trusted.
    pub tier: Tier,
    /// Who signed it, in words; nothing if nobody did.
    pub signed: Option<String>,
    /// Files that a run can see and the signature does not cover.
    pub uncovered: Vec<String>,
    /// Whether it says that it changes nothing.
    pub read_only: bool,
    /// Whether it wants to be asked about each time.
    pub always_ask: bool,
}

impl Request {
    /// Everything that the tier decides about: declared or not, it is granted.
    pub(crate) fn granted(&self) -> impl Iterator<Item = &Permission> {
        self.permissions.iter().chain(&self.unasked).chain(&self.implied)
    }
}
