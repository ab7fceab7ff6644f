//! Errors of the registry.

use semver::Version;
use thiserror::Error;

use super::{OwnerScope, PackageName, Right};
use crate::StoreError;

/// Why the registry rejects a request.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// A name is invalid.
    #[error("`{}` cannot be used: {message}", name.escape_debug())]
    Name { name: String, message: String },
    /// Another value is invalid.
    #[error("{what} cannot be used: {message}")]
    Invalid { what: &'static str, message: String },
    /// The request is not authenticated.
    #[error("this needs an account; log in, or use a token")]
    NobodyActs,
    /// The token lacks the scope.
    #[error("this token lacks the scope {}", wanted(*right, place.as_ref()))]
    MissingScope { right: Right, place: Option<OwnerScope> },
    /// The namespace or package belongs to another owner.
    #[error("`{}` belongs to others; ask one of its owners to add you", shown(owner_scope))]
    NotMember { owner_scope: OwnerScope },
    /// A publisher tries to do what only owners may do.
    #[error("only an owner of `{}` may do this", shown(owner_scope))]
    NotOwner { owner_scope: OwnerScope },
    /// Only an administrator of the registry may do this.
    #[error("only an administrator of the registry may do this")]
    NotAdmin,
    /// The prefix of the name is reserved.
    #[error("names that begin with `{prefix}` are reserved; ask an administrator of the registry")]
    Reserved { prefix: &'static str },
    /// The version was published before; its bytes never change.
    #[error(
        "{package} {version} was published before, and never changes; publish a higher version"
    )]
    VersionExists {
        package: PackageName,
        version: Version,
        /// The SHA-256 of its artifact, so that a client that retries sees that it had succeeded.
        sha256: String,
    },
    /// It does not exist.
    #[error("there is no {what}")]
    NotFound { what: String },
    /// The version was withdrawn.
    #[error("{package} {version} was withdrawn: {why}")]
    Withdrawn { package: PackageName, version: Version, why: String },
    /// The same content was withdrawn or blocked by an administrator.
    #[error(
        "this is what {package} {version} was, which an administrator took down{}; publish something \
         else, or appeal with the digest of the archive",
        because(why)
    )]
    TakenDown { package: PackageName, version: Version, why: String },
    /// The key is registered by another owner.
    #[error(
        "the key {key_id} is registered for {}, and what it signs counts there; register a key of \
         your own, or ask an administrator of the registry",
        place(owner_scope)
    )]
    KeyTaken { owner_scope: OwnerScope, key_id: String },
    /// It already exists.
    #[error("there is {what} already")]
    Exists { what: String },
    /// The key was revoked permanently.
    #[error("the key {key_id} of `{owner_scope}` was revoked; use another one")]
    KeyRevoked { owner_scope: OwnerScope, key_id: String },
    /// The change would remove the last owner.
    #[error("`{owner_scope}` would have no owner; make somebody else one first")]
    LastOwner {
        /// The namespace or package.
        owner_scope: OwnerScope,
    },
    /// Publishing took so long that its files may have been removed.
    #[error("publishing took too long; try again")]
    TooSlow,
    /// A rate limit was exceeded.
    #[error("{most} {what} in a day are enough; try again tomorrow")]
    TooOften { what: &'static str, most: u64 },
    /// The account has created the maximum number of namespaces.
    #[error(
        "{most} namespaces for one account are enough, since each keeps the names that begin with it \
         from everybody else; publish into one of yours, or ask an administrator of the registry"
    )]
    TooManyNames { most: u64 },
    /// A new namespace looks like an existing one.
    #[error(
        "`{name}` looks like the namespace `{other}`, which is not yours; choose another name, or ask an \
         administrator of the registry, who can create it and hand it over to you"
    )]
    LooksAlike { name: String, other: String },
    /// Another process sweeps or imports.
    #[error("another process sweeps or imports now; try again when it is done")]
    Busy,
    /// A restore would grant rights to accounts that anyone may have created.
    #[error(
        "there are accounts here already of addresses that own something in the backup: {}",
        emails.join(", ")
    )]
    AccountsExist { emails: Vec<String> },
    /// Another database stores its blobs in the same storage.
    #[error("other databases keep their blobs in this storage, too: {}", others.join(", "))]
    SharedStorage { others: Vec<String> },
    /// The database or the storage failed. Nothing was done.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RegistryError {
    /// Returns the stable error code.
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

/// The name as users know it: for a skill without namespace, without the `_/`.
fn shown(owner_scope: &OwnerScope) -> &str {
    let scope = owner_scope.as_str();
    scope.strip_prefix("_/").unwrap_or(scope)
}

fn wanted(right: Right, place: Option<&OwnerScope>) -> String {
    place.map_or_else(|| right.to_string(), |place| format!("{right} or {right}:{place}"))
}
