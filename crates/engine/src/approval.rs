//! Decides whether the user must approve a run, renders the question, and stores the answer.
//!
//! A [`Request`] lists everything that a run would get. [`decide`] checks it against the rules and
//! against the approval that is stored for the same path, if there is one. An approval is stored
//! with a [`Fingerprint`]: when the skill, its permissions, its programs or its path change, the
//! question is asked again and lists the changes. A "no" is never stored.

use std::{collections::BTreeMap, path::PathBuf};

use savoir_skill::permission::{Domain, Level, Permission, Tier};
use serde::{Deserialize, Serialize};

mod changes;
mod decide;
mod fingerprint;
mod interpreter;
mod look_alike;
mod permission_phrases;
mod question;
mod question_text;
mod store;
#[cfg(test)]
mod tests;

pub use self::question_text::{
    LineRole, QuestionLine, full_question_lines, printable, question_lines, quote_argument,
    reason_lines, shell_word, to_plain_text,
};
pub use self::store::{Approval, Approvals, user_name};
pub use decide::{Verdict, decide};
pub use fingerprint::{Fingerprint, matches_confirmation};
pub use interpreter::is_interpreter;
pub use permission_phrases::{DescribedPermission, PermissionLevel, describe_permission};
pub use question::ApprovalQuestion;

/// The origin of a skill, in the terms of gibb.eri.sh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Downloaded and not reviewed: the user is asked before every run.
    #[default]
    Untrusted,
    /// Installed from elsewhere, neither signed by a trusted key nor from a trusted source. An
    /// approval is stored, because the dialect does not ask for more.
    Downloaded,
    /// Put in place by the user.
    User,
    /// Shipped with the program.
    Bundled,
}

impl Trust {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Downloaded => "downloaded",
            Self::User => "user",
            Self::Bundled => "bundled",
        }
    }

    /// The warning above the question about a downloaded skill.
    pub fn banner(self) -> Option<&'static str> {
        match self {
            Self::Untrusted | Self::Downloaded => Some(
                "UNTRUSTED SKILL: it was downloaded, and neither its source nor a signature is trusted",
            ),
            Self::User | Self::Bundled => None,
        }
    }
}

/// A program that a skill runs, as it was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// The name that the skill uses.
    pub name: String,
    /// The file to which the name resolves.
    pub path: PathBuf,
    /// SHA-256 of the file in hexadecimal digits.
    pub sha256: String,
}

/// The command of one tool, with placeholders not filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPreview {
    pub tool: String,
    /// The program and its arguments as written; empty if the tool is not a command.
    pub command: Vec<String>,
}

/// Permissions that the user grants beyond those that the skill declares. They are stored with the
/// approval, never in the skill.
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
    pub fn is_empty(&self) -> bool {
        self.lists().into_iter().all(|(_, list)| list.is_empty())
    }

    /// A copy with each list sorted and without duplicates.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        for list in [
            &mut sorted.read, &mut sorted.write, &mut sorted.hosts, &mut sorted.private_hosts,
            &mut sorted.programs, &mut sorted.env,
        ] {
            list.sort();
            list.dedup();
        }
        sorted
    }

    /// Merges two sets of grants.
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

    /// The grants as permissions in the form in which a skill declares them.
    pub fn permissions(&self) -> Vec<Permission> {
        let lists = self.lists().into_iter();
        lists
            .flat_map(|(added, list)| list.iter().map(move |entry| added.permission(entry)))
            .collect()
    }

    /// The lists, each with its kind.
    pub(crate) fn lists(&self) -> [(GrantKind, &[String]); 6] {
        [
            (GrantKind::Read, &self.read),
            (GrantKind::Write, &self.write),
            (GrantKind::Host, &self.hosts),
            (GrantKind::PrivateHost, &self.private_hosts),
            (GrantKind::Program, &self.programs),
            (GrantKind::Variable, &self.env),
        ]
    }
}

/// The kind of one entry of [`ExtraGrants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantKind {
    Read,
    Write,
    Host,
    PrivateHost,
    Program,
    Variable,
}

impl GrantKind {
    /// The command-line option that adds such an entry.
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

    /// The entry as a permission in the form in which a skill declares it.
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

/// The content of an approval question about one tool, or about a skill as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The name of the skill.
    pub skill: String,
    pub version: Option<String>,
    /// The description that the skill contains.
    pub description: String,
    /// The skill's folder, or its file if it is a single file; absolute and without symlinks.
    pub path: PathBuf,
    /// The dialect that the skill is written in.
    pub dialect: String,
    /// The tool that would run; none for a question about the skill as a whole.
    pub tool: Option<String>,
    /// The exact program or function and its arguments; empty for the skill as a whole.
    pub command: Vec<String>,
    /// The commands of the tools, for a question about the skill as a whole.
    pub tools: Vec<ToolPreview>,
    /// The programs of *all* tools of the skill: an approval is for the skill, so it must not
    /// depend on which tool asks first.
    pub programs: Vec<Program>,
    /// The permissions that the skill declares.
    pub permissions: Vec<Permission>,
    /// The permissions that the dialect grants here without declaration. They follow from the skill
    /// and the working directory, so they are not part of the fingerprint.
    #[serde(rename = "unasked")]
    pub implicit_permissions: Vec<Permission>,
    /// A description of what the dialect would grant without declaration in other folders, if it
    /// grants less here.
    #[serde(rename = "elsewhere")]
    pub implicit_elsewhere: Option<&'static str>,
    /// Programs that the skill may run because its dialect allows it, without a permission: those
    /// of its tools, and in some dialects those that it requires. They are shown as
    /// [`programs`](Self::programs); the tier treats them like `shell:execute`.
    #[serde(rename = "implied")]
    pub implied_programs: Vec<Permission>,
    /// Packages that are installed for the skill, outside its folder.
    pub packages: Vec<String>,
    /// Requirements of the skill on the machine and on the model that calls it, as written.
    pub needs: Vec<String>,
    /// Permissions that the user adds.
    pub extra: ExtraGrants,
    /// SHA-256 of the content of the skill's folder in hexadecimal digits.
    pub digest: String,
    /// The files of the skill with the first digits of their SHA-256, to report which of them
    /// changed.
    #[serde(skip)]
    pub files: BTreeMap<String, String>,
    /// Names of stored secrets that the skill would get.
    pub secrets: Vec<String>,
    pub trust: Trust,
    pub tier: Tier,
    /// A phrase that names the signer; none if the skill is unsigned.
    pub signed: Option<String>,
    /// Files that a run can see and the signature does not cover.
    pub uncovered: Vec<String>,
    /// Whether the skill declares that it changes nothing.
    pub read_only: bool,
    /// Whether the skill asks for an approval before every run.
    pub always_ask: bool,
}

impl Request {
    /// All permissions that the run gets, declared or not. The tier decides about each of them.
    pub(crate) fn granted(&self) -> impl Iterator<Item = &Permission> {
        self.permissions.iter().chain(&self.implicit_permissions).chain(&self.implied_programs)
    }
}
