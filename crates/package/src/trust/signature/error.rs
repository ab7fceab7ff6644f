//! Errors of signatures.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::super::{oms::OmsError, openpgp::OpenPgpError, ssh::SshError};

/// Why a signature is invalid. The skill must not be used then: it was changed after signing, or
/// the signature belongs to another skill.
#[derive(Debug, Error)]
pub enum SignatureError {
    /// The record is not valid JSON.
    #[error("{place} is not a JSON object: {why}; get the skill again, or sign it again")]
    Json { place: String, why: String },
    /// The algorithm is not supported.
    #[error(
        "{place}: `algorithm` is {found}, expected `ed25519` or `detached`; sign the skill again"
    )]
    Algorithm { place: String, found: String },
    /// The format is not supported.
    #[error("{place}: `signature_version` is {found}, expected 1; a newer Savoir may know it")]
    Format { place: String, found: String },
    /// It was made for another skill.
    #[error(
        "{place}: `name` is {found}, but the skill is `{expected}`; a signature does not pass from one skill to another"
    )]
    Name { place: String, found: String, expected: String },
    /// It was made for another version.
    #[error(
        "{place}: `version` is {found}, but the skill is {expected}; a signature does not pass from one version to another"
    )]
    Version { place: String, found: String, expected: String },
    /// The list of signed files is missing or invalid.
    #[error("{place}: `files` {why}; sign the skill again")]
    Files { place: String, why: String },
    /// A member is invalid.
    #[error("{place}: `{field}` {why}; get the skill again, or sign it again")]
    Field { place: String, field: &'static str, why: String },
    /// The key id does not match the key.
    #[error("{place}: its key is said to be {claimed}, but it is {actual}; sign the skill again")]
    KeyId { place: String, claimed: String, actual: String },
    #[error(
        "{place}: the `signature` of the key {key_id} does not hold; get the skill again from its publisher"
    )]
    Wrong { place: String, key_id: String },
    /// A signed file is missing.
    #[error("`{}` was signed in {place} and is not there; get the skill again", path.escape_debug())]
    Missing { place: String, path: String },
    /// A file was not signed.
    #[error("`{}` was not signed in {place}; remove it, or sign the skill again", path.escape_debug())]
    Additional { place: String, path: String },
    /// A file differs from the signed one.
    #[error("`{}` is not what was signed in {place}; get the skill again, or sign it again", path.escape_debug())]
    Changed { place: String, path: String },
    /// The key was revoked.
    #[error(
        "{place}: the key {key_id} was revoked on {revoked_at}: {reason}; ask the publisher for a new signature"
    )]
    Revoked { place: String, key_id: String, revoked_at: String, reason: String },
    /// An OpenSSH signature is invalid.
    #[error("{place}: {error}")]
    Ssh { place: String, error: SshError },
    /// An OpenSSF model signing bundle is invalid.
    #[error("{place}: {error}")]
    Oms { place: String, error: OmsError },
    /// An OpenPGP signature is invalid or cannot be checked.
    #[error("{place}: {error}")]
    OpenPgp { place: String, error: OpenPgpError },
}

impl SignatureError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json { .. } => "signature_json",
            Self::Algorithm { .. } => "signature_algorithm",
            Self::Format { .. } => "signature_version",
            Self::Name { .. } => "signature_name",
            Self::Version { .. } => "signature_skill_version",
            Self::Files { .. } => "signature_files",
            Self::Field { .. } => "signature_field",
            Self::KeyId { .. } => "signature_key_id",
            Self::Wrong { .. } => "signature_wrong",
            Self::Missing { .. } => "file_missing",
            Self::Additional { .. } => "file_additional",
            Self::Changed { .. } => "file_changed",
            Self::Revoked { .. } => "key_revoked",
            Self::Ssh { .. } => "signature_ssh",
            Self::Oms { error, .. } => error.code(),
            Self::OpenPgp { error, .. } => error.code(),
        }
    }
}

impl SignatureError {
    /// Whether the error concerns a record in one of these files, and not a bundle or a signature
    /// in a format that Savoir may not support completely.
    pub(super) fn is_of_record(&self, files: &[&str]) -> bool {
        let place = match self {
            Self::Algorithm { place, .. }
            | Self::Format { place, .. }
            | Self::Name { place, .. }
            | Self::Version { place, .. }
            | Self::Files { place, .. }
            | Self::Field { place, .. }
            | Self::KeyId { place, .. }
            | Self::Wrong { place, .. }
            | Self::Missing { place, .. }
            | Self::Additional { place, .. }
            | Self::Changed { place, .. }
            | Self::Ssh { place, .. } => place,
            Self::Json { .. } | Self::Revoked { .. } | Self::Oms { .. } | Self::OpenPgp { .. } => {
                return false;
            }
        };
        files.iter().any(|file| place.starts_with(file))
    }

    /// Whether the program that checks signatures failed, so that the result is unknown.
    pub fn is_undecided(&self) -> bool {
        let Self::OpenPgp { error, .. } = self else { return false };
        matches!(error, OpenPgpError::NoProgram | OpenPgpError::Io { .. })
    }
}

/// A difference between the current and the signed files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Difference {
    /// A signed file is missing.
    #[error("`{}` was signed and is not there", .0.escape_debug())]
    Missing(String),
    /// A file was not signed.
    #[error("`{}` was not signed", .0.escape_debug())]
    Additional(String),
    /// A file differs from the signed one.
    #[error("`{}` is not what was signed", .0.escape_debug())]
    Changed(String),
}

impl Difference {
    /// Returns the first difference, if there is any.
    pub(in super::super) fn find(
        signed: &BTreeMap<String, String>,
        there: &BTreeMap<String, String>,
    ) -> Result<(), Self> {
        for (path, digest) in signed {
            match there.get(path) {
                None => return Err(Self::Missing(path.clone())),
                Some(other) if other != digest => return Err(Self::Changed(path.clone())),
                Some(_) => {}
            }
        }
        match there.keys().find(|path| !signed.contains_key(*path)) {
            Some(path) => Err(Self::Additional(path.clone())),
            None => Ok(()),
        }
    }

    /// Returns all differences, sorted by path.
    pub(in super::super) fn all(
        signed: &BTreeMap<String, String>,
        there: &BTreeMap<String, String>,
    ) -> Vec<Self> {
        let paths: BTreeSet<_> = signed.keys().chain(there.keys()).collect();
        let difference = |path: &String| match (signed.get(path), there.get(path)) {
            (Some(_), None) => Some(Self::Missing(path.clone())),
            (None, Some(_)) => Some(Self::Additional(path.clone())),
            (Some(digest), Some(other)) if digest != other => Some(Self::Changed(path.clone())),
            _ => None,
        };
        paths.into_iter().filter_map(difference).collect()
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Missing(_) => "missing",
            Self::Additional(_) => "additional",
            Self::Changed(_) => "changed",
        }
    }

    pub fn path(&self) -> &str {
        match self {
            Self::Missing(path) | Self::Additional(path) | Self::Changed(path) => path,
        }
    }

    pub(super) fn error(self, place: String) -> SignatureError {
        match self {
            Self::Missing(path) => SignatureError::Missing { place, path },
            Self::Additional(path) => SignatureError::Additional { place, path },
            Self::Changed(path) => SignatureError::Changed { place, path },
        }
    }
}
