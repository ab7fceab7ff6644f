//! Errors of the registry.

use semver::Version;
use thiserror::Error;

use super::{OwnerScope, PackageName, Right};
use crate::StoreError;

/// Why the registry refuses.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// A name that cannot be used.
    #[error("`{}` cannot be used: {message}", name.escape_debug())]
    Name { name: String, message: String },
    /// Something else that cannot be used.
    #[error("{what} cannot be used: {message}")]
    Invalid { what: &'static str, message: String },
    /// Nobody acts who has an account.
    #[error("this needs an account; log in, or use a token")]
    NobodyActs,
    /// The token may not do this, or not there.
    #[error("this token lacks the scope {}", wanted(*right, place.as_ref()))]
    MissingScope { right: Right, place: Option<OwnerScope> },
    /// It belongs to others.
    #[error("`{owner_scope}` belongs to others; ask one of its owners to add you")]
    NotMember { owner_scope: OwnerScope },
    /// One who publishes there wants to do what owners do.
    #[error("only an owner of `{owner_scope}` may do this")]
    NotOwner { owner_scope: OwnerScope },
    /// Only an administrator of the registry may do this.
    #[error("only an administrator of the registry may do this")]
    NotAdmin,
    /// Names that begin so are not for everybody.
    #[error("names that begin with `{prefix}` are reserved; ask an administrator of the registry")]
    Reserved { prefix: &'static str },
    /// The version was published before; its bytes never change.
    #[error(
        "{package} {version} was published before, and never changes; publish a higher version"
    )]
    VersionExists {
        package: PackageName,
        version: Version,
        /// The SHA-256 of its artefact: whoever tries again learns that the first try did it.
        sha256: String,
    },
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound { what: String },
    /// The version was there, and was taken away.
    #[error("{package} {version} was withdrawn: {why}")]
    Withdrawn { package: PackageName, version: Version, why: String },
    /// An administrator took the same bytes down.
    #[error(
        "this is what {package} {version} was, which an administrator took down{}; publish something \
         else, or appeal with the digest of the archive",
        because(why)
    )]
    TakenDown { package: PackageName, version: Version, why: String },
    /// A key that others have registered.
    #[error(
        "the key {key_id} is registered for {}, and what it signs counts there; register a key of \
         your own, or ask an administrator of the registry",
        place(owner_scope)
    )]
    KeyTaken { owner_scope: OwnerScope, key_id: String },
    /// There is such a thing already.
    #[error("there is {what} already")]
    Exists { what: String },
    /// The key was revoked, for good.
    #[error("the key {key_id} of `{owner_scope}` was revoked; use another one")]
    KeyRevoked { owner_scope: OwnerScope, key_id: String },
    /// Nobody would be left who may change it.
    #[error("`{owner_scope}` would have no owner; make somebody else one first")]
    LastOwner {
        /// What would have none.
        owner_scope: OwnerScope,
    },
    /// Publishing took so long that its files may be gone again.
    #[error("publishing took too long; try again")]
    TooSlow,
    /// Somebody did it too often.
    #[error("{most} {what} in a day are enough; try again tomorrow")]
    TooOften { what: &'static str, most: u64 },
    /// Somebody takes too many names.
    #[error(
        "{most} namespaces for one account are enough, since each keeps the names that begin with it \
         from everybody else; publish into one of yours, or ask an administrator of the registry"
    )]
    TooManyNames { most: u64 },
    /// A new namespace looks like another one.
    #[error(
        "`{name}` looks like the namespace `{other}`, which is not yours; choose another name, or ask an \
         administrator of the registry, who can create it and hand it over to you"
    )]
    LooksAlike { name: String, other: String },
    /// Somebody else sweeps or imports.
    #[error("another process sweeps or imports now; try again when it is done")]
    Busy,
    /// A restore would give something to accounts that anybody may have made.
    #[error(
        "there are accounts here already of addresses that own something in the backup: {}",
        emails.join(", ")
    )]
    AccountsExist { emails: Vec<String> },
    /// Others keep their blobs in the same storage.
    #[error("other databases keep their blobs in this storage, too: {}", others.join(", "))]
    SharedStorage { others: Vec<String> },
    /// The database or the storage failed. Nothing was done.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RegistryError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => "invalid_name",
            Self::Invalid { .. } => "invalid_request",
            Self::NobodyActs => "unauthorized",
            Self::MissingScope { .. } => "missing_scope",
            Self::NotMember { .. } => "not_member",
            Self::NotOwner { .. } => "not_owner",
            Self::NotAdmin => "not_admin",
            Self::Reserved { .. } => "reserved_prefix",
            Self::VersionExists { .. } => "version_exists",
            Self::NotFound { .. } => "not_found",
            Self::Withdrawn { .. } => "withdrawn",
            Self::TakenDown { .. } => "taken_down",
            Self::KeyTaken { .. } => "key_taken",
            Self::Exists { .. } => "exists",
            Self::KeyRevoked { .. } => "key_revoked",
            Self::LastOwner { .. } => "last_owner",
            Self::TooSlow => "too_slow",
            Self::TooOften { .. } => "too_often",
            Self::TooManyNames { .. } => "too_many_names",
            Self::LooksAlike { .. } => "looks_alike",
            Self::Busy => "busy",
            Self::AccountsExist { .. } => "accounts_exist",
            Self::SharedStorage { .. } => "shared_storage",
            Self::Store(StoreError::Quota(_)) => "quota_reached",
            Self::Store(_) => "store_failed",
        }
    }

    pub(super) fn no_package(package: &PackageName) -> Self {
        Self::NotFound { what: format!("package {package}") }
    }

    pub(super) fn no_version(package: &PackageName, version: &Version) -> Self {
        Self::NotFound { what: format!("version {version} of {package}") }
    }
}

impl From<sqlx::Error> for RegistryError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

fn place(owner_scope: &OwnerScope) -> String {
    if owner_scope.is_for_auditors() { "an auditor".to_owned() } else { format!("`{owner_scope}`") }
}

fn wanted(right: Right, place: Option<&OwnerScope>) -> String {
    place.map_or_else(|| right.to_string(), |place| format!("{right} or {right}:{place}"))
}
