//! The records of a registry backup, one line of JSON each.
//!
//! Times are microseconds since 1970. What can be computed is left out: the tier that a version
//! earned follows from its scan and its signatures, and the row of a package from its versions.

use serde::{Deserialize, Serialize};

use super::{PackageName, ScanResult, VersionFacts};

/// One record of a backup. Records that others refer to come first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The id and email address of an account: in another database the account has another id.
    Account {
        /// The id that other records use.
        id: i64,
        /// The email address.
        email: String,
        /// Whether the account is an administrator. Missing in older backups.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        admin: bool,
        /// Whether the account was disabled.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        disabled: bool,
        /// Whether the account was deleted; then only the log refers to it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deleted: bool,
    },
    Namespace {
        name: String,
        /// The account that created it.
        created_by: Option<i64>,
        created_at: i64,
    },
    /// A member of a team.
    Member(MemberRecord),
    /// A right to a reserved prefix.
    Prefix(PrefixRecord),
    /// A registered public key.
    Key(KeyRecord),
    /// An archive that an administrator cleared. Missing in older backups.
    Clearance {
        /// SHA-256 of the archive, in hexadecimal digits.
        sha256: String,
        /// The package that may publish it. Missing in older backups.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        package: Option<PackageName>,
        /// The reason.
        why: String,
    },
    /// A package with its versions.
    Package(Box<PackageRecord>),
    /// An entry of the audit log.
    Log(LogRecord),
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The namespace or package of the team.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    /// The account of the member.
    pub user_id: i64,
    /// `publisher` or `owner`.
    pub role: String,
    /// The account that added the member.
    pub added_by: Option<i64>,
    pub added_at: i64,
}

/// A right to a reserved prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixRecord {
    /// The account that may use the prefix.
    pub user_id: i64,
    pub prefix: String,
    /// The account that granted it.
    pub added_by: Option<i64>,
    pub added_at: i64,
}

/// A registered public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The namespace or package that it signs for; `*` for auditors.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    pub key_id: String,
    pub public_key: String,
    /// The label that its owners chose.
    pub label: String,
    /// The account of the auditor who uses it.
    pub account: Option<i64>,
    /// The account that added it.
    pub added_by: Option<i64>,
    pub added_at: i64,
    pub revoked_at: Option<i64>,
    /// The reason for the revocation.
    pub revoked_why: Option<String>,
    /// When its owner proved possession of the private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<i64>,
    /// When another owner proved possession, which ended this registration. A new proof restores
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaced_at: Option<i64>,
}

/// A package with its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackageRecord {
    pub name: PackageName,
    /// The account that created it.
    pub created_by: Option<i64>,
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<String>,
    /// Its versions, the lowest first.
    pub versions: Vec<VersionRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionRecord {
    pub version: String,
    /// The tier that it claims.
    pub claimed: Option<String>,
    /// The digest of its content that lockfiles pin.
    pub integrity: String,
    /// SHA-256 of its artifact, in hexadecimal digits.
    pub sha256: String,
    /// The size of its artifact, in bytes.
    pub size: u64,
    /// SHA-256 of its SKILL.md, in hexadecimal digits.
    pub skill_md: String,
    /// Metadata from its files.
    pub facts: VersionFacts,
    /// The result of the last scan.
    pub scan: Option<ScanResult>,
    /// When it was last scanned.
    pub scanned_at: Option<i64>,
    pub yanked_at: Option<i64>,
    /// The reason for the yank.
    pub yanked_why: Option<String>,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<String>,
    /// When it was withdrawn; then only its version number is left.
    pub withdrawn_at: Option<i64>,
    /// The reason for the withdrawal.
    pub withdrawn_why: Option<String>,
    /// Its digests, if an administrator took it down by withdrawing or blocking it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_down: Option<TakenDownRecord>,
    /// The account that published it.
    pub published_by: Option<i64>,
    pub published_at: i64,
    pub signatures: Vec<SignatureRecord>,
    /// Its signed evaluations. Missing in older backups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attestations: Vec<AttestationRecord>,
    /// How often it was downloaded.
    pub downloads: u64,
}

/// Digests of content that must not be published again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenDownRecord {
    /// When it was taken down.
    pub at: i64,
    /// SHA-256 of the artifact, if it is known.
    pub sha256: Option<String>,
    /// The digest of the content that lockfiles pin, if it is known.
    pub integrity: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureRecord {
    /// The namespace or package that its key signs for; `*` for auditors.
    #[serde(rename = "holding")]
    pub owner_scope: String,
    pub key_id: String,
    /// `active`, `unknown` or `revoked`.
    pub state: String,
    /// The signature itself.
    pub record: String,
    /// The account that added it.
    pub added_by: Option<i64>,
    pub added_at: i64,
}

/// A signed evaluation of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttestationRecord {
    /// Identifies the key and the signed statement.
    pub digest: String,
    /// The id of the key that signed it.
    pub key_id: String,
    /// The key, if the statement does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// The signed statement; empty if it was removed.
    pub statement: String,
    /// The account that added it.
    pub added_by: Option<i64>,
    /// When it was added.
    pub added_at: i64,
    /// When the evaluation ended; missing in older backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<i64>,
    /// When it was removed. It must not be added again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<i64>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The sequence number.
    pub seq: i64,
    pub done_at: i64,
    /// The account that made the change.
    pub account: Option<i64>,
    /// The token that was used.
    pub token: Option<String>,
    /// The action.
    pub act: String,
    /// The namespace or package that changed.
    #[serde(rename = "holding")]
    pub owner_scope: Option<String>,
    /// The package that changed.
    pub package: Option<String>,
    /// The version that changed.
    pub version: Option<String>,
    /// Further details as JSON.
    pub details: String,
}
