//! What goes wrong with what is kept.

use thiserror::Error;

/// What goes wrong with what is kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("the database {url} cannot be opened: {message}")]
    Open {
        /// Where it is, without its password.
        url: String,
        /// Why not.
        message: String,
    },
    /// The database was made by a newer Savoir.
    #[error("the database is of version {found}, this program knows {known}; update savoir")]
    FromTheFuture {
        /// The version of the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A statement failed.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    /// A file or an object cannot be read or written.
    #[error("{path}: {message}")]
    File {
        /// Which one.
        path: String,
        /// Why not.
        message: String,
    },
    /// What is kept cannot be understood.
    #[error("{what} is damaged: {message}")]
    Damaged {
        /// Which thing.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
}
