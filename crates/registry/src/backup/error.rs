use std::{io, path::Path};

use savoir_store::{StoreError, registry::RegistryError};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum BackupError {
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
    /// The file is not a backup, or not a complete one.
    #[error("{path}: the backup is damaged: {why}")]
    Damaged { path: String, why: String },
    /// The file was written by a newer program.
    #[error("{path}: the backup has version {version}; this program reads version 1")]
    TooNew { path: String, version: u32 },
    /// The database refers to a file that is not in the storage.
    #[error("the storage has no file for {what}: {digest} is missing")]
    Missing { what: String, digest: String },
    #[error("the registry is not empty; a backup is restored only into an empty one")]
    NotEmpty,
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl BackupError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Damaged { .. } => "backup_damaged",
            Self::TooNew { .. } => "backup_too_new",
            Self::Missing { .. } => "blob_missing",
            Self::NotEmpty => "registry_not_empty",
            Self::Registry(error) => error.code(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the free space and the permissions of the file",
            Self::Damaged { .. } => "nothing was changed; use another copy of the backup",
            Self::TooNew { .. } => "nothing was changed; use a newer savoir",
            Self::Missing { .. } => {
                "no backup was written; try again if the version was just taken down, otherwise \
                 restore the file in the storage"
            }
            Self::NotEmpty => {
                "nothing was changed; choose another storage: --data, or --database and --storage"
            }
            Self::Registry(RegistryError::Exists { .. }) => {
                "nothing was changed; wait five minutes and try again"
            }
            Self::Registry(RegistryError::AccountsExist { .. }) => {
                "nothing was changed; delete accounts that belong to other people, or restore into an \
                 empty storage; with --keep-accounts, these accounts keep their passwords and get \
                 what they own in the backup"
            }
            Self::Registry(_) => "nothing was changed",
        }
    }

    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |error| Self::Io { path: path.clone(), error }
    }

    pub(super) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.display().to_string(), why: why.into() }
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        Self::Registry(error.into())
    }
}
