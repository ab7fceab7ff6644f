//! The registry as a list of records, one line of JSON each: what a backup holds.
//!
//! Times are microseconds since 1970. What can be computed is left out: the tier that a version
//! earned follows from its scan and its signatures, and the row of a package from its versions.

use serde::{Deserialize, Serialize};

use super::{PackageName, ScanResult, VersionFacts};

/// One thing that the registry knows. Those that others refer to come first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A number that stands for a person, and their address: in another database they have another
    /// number.
    Account {
        /// The number in the other records.
        id: i64,
        /// Their address.
        email: String,
        /// Whether they may do everything. Backups of older programs do not say it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        admin: bool,
        /// Whether somebody shut them out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        disabled: bool,
        /// Whether it was deleted: only the log names it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deleted: bool,
    },
    /// A namespace.
    Namespace {
        /// Its name.
        name: String,
        /// Who took it.
        created_by: Option<i64>,
        /// When.
        created_at: i64,
    },
    /// A member of a team.
    Member(MemberRecord),
    /// A right to a reserved prefix.
    Prefix(PrefixRecord),
    /// A key.
    Key(KeyRecord),
    /// Bytes that an administrator cleared. Backups of older programs have none.
    Clearance {
        /// SHA-256 of the archive, in hexadecimal digits.
        sha256: String,
        /// The package that may have them; backups of older programs do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        package: Option<PackageName>,
        /// Why.
        why: String,
    },
    /// A package with its versions.
    Package(Box<PackageRecord>),
    /// An entry of the log.
    Log(LogRecord),
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// What they are a member of.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    /// Their account.
    pub user_id: i64,
    /// `publisher` or `owner`.
    pub role: String,
    /// Who added them.
    pub added_by: Option<i64>,
    /// When.
    pub added_at: i64,
}

/// A right to a reserved prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixRecord {
    /// Who has it.
    pub user_id: i64,
    /// The prefix.
    pub prefix: String,
    /// Who gave it.
    pub added_by: Option<i64>,
    /// When.
    pub added_at: i64,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// What it signs for; `*` for those of auditors.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    /// Identifies it.
    pub key_id: String,
    /// Its public half.
    pub public_key: String,
    /// What its owners call it.
    pub label: String,
    /// The account of the auditor who uses it.
    pub account: Option<i64>,
    /// Who added it.
    pub added_by: Option<i64>,
    /// When.
    pub added_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
    /// Why.
    pub revoked_why: Option<String>,
    /// When its owner showed that they have its secret half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<i64>,
    /// When somebody else showed that, if it ended so: it is good again for whoever shows it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaced_at: Option<i64>,
}

/// A package with its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// Its name.
    pub name: PackageName,
    /// Whose account published it first.
    pub created_by: Option<i64>,
    /// When.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// What its users should know.
    pub deprecated: Option<String>,
    /// Its versions, the lowest first.
    pub versions: Vec<VersionRecord>,
}

/// A version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionRecord {
    /// The version.
    pub version: String,
    /// The tier that it claims.
    pub claimed: Option<String>,
    /// What a lock holds it to.
    pub integrity: String,
    /// SHA-256 of its artefact, in hexadecimal digits.
    pub sha256: String,
    /// The size of its artefact, in bytes.
    pub size: u64,
    /// SHA-256 of its SKILL.md, in hexadecimal digits.
    pub skill_md: String,
    /// What its files say.
    pub facts: VersionFacts,
    /// What the last scan found.
    pub scan: Option<ScanResult>,
    /// When that was.
    pub scanned_at: Option<i64>,
    /// When it was yanked.
    pub yanked_at: Option<i64>,
    /// Why.
    pub yanked_why: Option<String>,
    /// What its users should know.
    pub deprecated: Option<String>,
    /// When it was withdrawn; then it has nothing but its number.
    pub withdrawn_at: Option<i64>,
    /// Why.
    pub withdrawn_why: Option<String>,
    /// What it is, if an administrator took it down: by withdrawing or by blocking it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_down: Option<TakenDownRecord>,
    /// Whose account published it.
    pub published_by: Option<i64>,
    /// When.
    pub published_at: i64,
    /// Who vouches for it.
    pub signatures: Vec<SignatureRecord>,
    /// How often it was downloaded.
    pub downloads: u64,
}

/// Content that nobody may publish again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenDownRecord {
    /// Since when.
    pub at: i64,
    /// SHA-256 of the artefact, if it is known.
    pub sha256: Option<String>,
    /// What a lock holds it to, if it is known.
    pub integrity: Option<String>,
}

/// A signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureRecord {
    /// What its key signs for; `*` for those of auditors.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    /// Identifies the key.
    pub key_id: String,
    /// `active`, `unknown` or `revoked`.
    pub state: String,
    /// The signature itself.
    pub record: String,
    /// Who added it.
    pub added_by: Option<i64>,
    /// When.
    pub added_at: i64,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// Its number.
    pub seq: i64,
    /// When it was done.
    pub done_at: i64,
    /// Whose account did it.
    pub account: Option<i64>,
    /// With which token.
    pub token: Option<String>,
    /// What was done.
    pub act: String,
    /// To what people own.
    #[serde(rename = "holding")]
    pub owner_scope: Option<String>,
    /// To which package.
    pub package: Option<String>,
    /// To which version.
    pub version: Option<String>,
    /// What else there is to know, as JSON.
    pub details: String,
}
