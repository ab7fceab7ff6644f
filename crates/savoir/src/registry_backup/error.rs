use std::{io, path::Path};

use savoir_store::{StoreError, registry::RegistryError};
use thiserror::Error;

use crate::error::CommandError;

/// Why a backup cannot be made, or cannot be used.
#[derive(Debug, Error)]
pub(crate) enum BackupError {
    /// The system refused.
    #[error("{path}: {error}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The file is no backup, or not all of one.
    #[error("{path}: the backup is damaged: {why}")]
    Damaged {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file is of a later program.
    #[error("{path}: the backup has version {version}; this program reads 1")]
    TooNew {
        /// Which file.
        path: String,
        /// What it has.
        version: u32,
    },
    /// Bytes that the database refers to are not in the storage.
    #[error("the storage has no bytes for {what}: {digest} is missing")]
    Missing {
        /// A version.
        what: String,
        /// What is missing.
        digest: String,
    },
    /// There is something in the registry.
    #[error("the registry is not empty; a backup is restored only into an empty one")]
    NotEmpty,
    /// The registry refused.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl BackupError {
    /// A stable word for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Damaged { .. } => "backup_damaged",
            Self::TooNew { .. } => "backup_too_new",
            Self::Missing { .. } => "blob_missing",
            Self::NotEmpty => "registry_not_empty",
            Self::Registry(error) => error.code(),
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

impl From<BackupError> for CommandError {
    fn from(error: BackupError) -> Self {
        let hint = match &error {
            BackupError::Io { .. } => "look whether there is room, and whether you may write there",
            BackupError::Damaged { .. } => "nothing was changed; take another copy of the backup",
            BackupError::TooNew { .. } => "nothing was changed; use a newer savoir",
            BackupError::Missing { .. } => {
                "try again if somebody withdrew it meanwhile, else bring the file back into the \
                 storage; no backup was written"
            }
            BackupError::NotEmpty => {
                "nothing was changed; name another place with --data, or --database and --storage"
            }
            BackupError::Registry(RegistryError::Exists { .. }) => {
                "nothing was changed; wait for five minutes and try again"
            }
            BackupError::Registry(RegistryError::AccountsExist { .. }) => {
                "nothing was changed; with --keep-accounts these accounts keep their passwords and get \
                 what the backup says they own; delete those that are not of the same people, or restore \
                 into an empty place"
            }
            BackupError::Registry(_) => "nothing was changed",
        };
        Self::findings(&error).named(error.code()).hint(hint)
    }
}
