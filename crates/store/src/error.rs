//! Errors of the database and the storage.

use thiserror::Error;

/// An error of the database or the storage.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("the database {url} cannot be opened: {message}")]
    Open {
        /// The address without its password.
        url: String,
        message: String,
    },
    /// A newer version of Savoir migrated the database.
    #[error("the database is of version {found}, this program knows {known}; update savoir")]
    FromTheFuture { found: i64, known: i64 },
    #[error("the database failed: {0}")]
    Database(sqlx::Error),
    /// There is no space left on the disk. Nothing was changed.
    #[error("the disk is full: {what}; free some space and try again")]
    Full { what: String },
    /// The database or the storage cannot be reached, or does not answer in time.
    #[error("{what} does not answer: {message}; try again later")]
    Unavailable { what: String, message: String },
    /// The database or the storage can be reached, but does not let us write.
    #[error("{what} refuses access: {message}; check its permissions")]
    Denied { what: String, message: String },
    /// Another process held a file lock for too long.
    #[error("{path} is locked by another program; try again later")]
    Locked { path: String },
    #[error("{path}: {message}")]
    File { path: String, message: String },
    /// The account reached a quota.
    #[error(transparent)]
    Quota(#[from] crate::QuotaReached),
    /// Stored data is invalid.
    #[error("{what} is damaged: {message}")]
    Damaged { what: String, message: String },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
}

/// `disk_full` of PostgreSQL.
const DISK_FULL_CODE: &str = "53100";

/// `read_only_sql_transaction` of PostgreSQL, as a server says that only copies another one.
const READ_ONLY_CODE: &str = "25006";

/// PostgreSQL's codes while it starts, stops or has too many clients, besides class 08.
const UNAVAILABLE_CODES: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

impl StoreError {
    /// Whether the failure ends without a change of what was asked for.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Full { .. }
                | Self::Unavailable { .. }
                | Self::Denied { .. }
                | Self::Locked { .. }
        )
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let what = || "the database".to_owned();
        let away = |message: String| Self::Unavailable { what: what(), message };
        match &error {
            sqlx::Error::PoolTimedOut => away("no connection is free".to_owned()),
            sqlx::Error::Io(cause) if is_full(cause) => Self::Full { what: cause.to_string() },
            sqlx::Error::Io(cause) => away(cause.to_string()),
            sqlx::Error::WorkerCrashed => away(error.to_string()),
            sqlx::Error::Database(cause) => {
                let message = cause.to_string();
                match failure(cause.code().as_deref().unwrap_or_default()) {
                    Some(Failure::Full) => Self::Full { what: message },
                    Some(Failure::Denied) => Self::Denied { what: what(), message },
                    Some(Failure::Unavailable) => away(message),
                    None => Self::Database(error),
                }
            }
            _ => Self::Database(error),
        }
    }
}

/// Failures that end without a change of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Full,
    Denied,
    Unavailable,
}

/// What a code of a database means. Codes of PostgreSQL have five characters, those of SQLite are
/// shorter; the extended ones have the reason in their higher bytes.
fn failure(code: &str) -> Option<Failure> {
    if code.len() < 5 {
        return match code.parse::<u32>().ok()? & 0xff {
            // `SQLITE_FULL`, `SQLITE_READONLY`
            13 => Some(Failure::Full),
            8 => Some(Failure::Denied),
            // `SQLITE_BUSY`, `SQLITE_LOCKED`, `SQLITE_IOERR`, `SQLITE_CANTOPEN`
            5 | 6 | 10 | 14 => Some(Failure::Unavailable),
            _ => None,
        };
    }
    match code {
        DISK_FULL_CODE => Some(Failure::Full),
        READ_ONLY_CODE => Some(Failure::Denied),
        code if code.starts_with("08") || UNAVAILABLE_CODES.contains(&code) => {
            Some(Failure::Unavailable)
        }
        _ => None,
    }
}

/// Whether a write failed because the disk or quota is full.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_pass_are_recognized_by_their_codes() {
        for (code, meaning) in [
            ("13", Some(Failure::Full)),
            ("53100", Some(Failure::Full)),
            ("8", Some(Failure::Denied)),
            // SQLITE_READONLY_DBMOVED
            ("1032", Some(Failure::Denied)),
            ("25006", Some(Failure::Denied)),
            ("5", Some(Failure::Unavailable)),
            // SQLITE_IOERR_WRITE
            ("778", Some(Failure::Unavailable)),
            ("08006", Some(Failure::Unavailable)),
            ("57P01", Some(Failure::Unavailable)),
            // A constraint is not such a failure.
            ("2067", None),
            ("23505", None),
            ("", None),
        ] {
            assert_eq!(failure(code), meaning, "{code}");
        }
    }
}
