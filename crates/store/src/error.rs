//! Errors of the database and the storage.

use thiserror::Error;

/// What goes wrong with what is kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("the database {url} cannot be opened: {message}")]
    Open {
        /// Where it is, without its password.
        url: String,
        message: String,
    },
    /// The database was made by a newer Savoir.
    #[error("the database is of version {found}, this program knows {known}; update savoir")]
    FromTheFuture { found: i64, known: i64 },
    /// A statement failed.
    #[error("the database failed: {0}")]
    Database(sqlx::Error),
    /// There is no space left for what was to be written. Nothing was changed.
    #[error("the disk is full: {what}; free some space and try again")]
    Full { what: String },
    /// The database or the storage cannot be reached, or does not answer in time.
    #[error("{what} does not answer: {message}; try again later")]
    Unavailable { what: String, message: String },
    /// Another program holds the lock of a file for too long.
    #[error("{path} is locked by another program; try again later")]
    Locked { path: String },
    /// A file or an object cannot be read or written.
    #[error("{path}: {message}")]
    File { path: String, message: String },
    /// An account keeps as much as it may.
    #[error(transparent)]
    Quota(#[from] crate::QuotaReached),
    /// What is kept cannot be understood.
    #[error("{what} is damaged: {message}")]
    Damaged { what: String, message: String },
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
}

/// `SQLITE_FULL`, and `disk_full` of PostgreSQL.
const DISK_FULL_CODES: [&str; 2] = ["13", "53100"];

/// What PostgreSQL says while it starts, stops or has too many clients, besides class 08.
const UNAVAILABLE_CODES: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let away = |message: String| Self::Unavailable { what: "the database".to_owned(), message };
        match &error {
            sqlx::Error::PoolTimedOut => away("no connection is free".to_owned()),
            sqlx::Error::Io(cause) if is_full(cause) => Self::Full { what: cause.to_string() },
            sqlx::Error::Io(cause) => away(cause.to_string()),
            sqlx::Error::Database(cause) => match cause.code().as_deref() {
                Some(code) if DISK_FULL_CODES.contains(&code) => {
                    Self::Full { what: cause.to_string() }
                }
                Some(code) if UNAVAILABLE_CODES.contains(&code) || is_connection_error(code) => {
                    away(cause.to_string())
                }
                _ => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

/// Class 08 of PostgreSQL. Codes of SQLite have no five digits.
fn is_connection_error(code: &str) -> bool {
    code.len() == 5 && code.starts_with("08")
}

/// Whether a file cannot be written for lack of space.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
