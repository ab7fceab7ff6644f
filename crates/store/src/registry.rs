//! The registry: packages that users publish.
//!
//! - [`PackageName`] is `web-search` in the default namespace or `acme/web-search` in another one;
//!   a [`OwnerScope`] is what people own together, with members and keys.
//! - [`Actor`] is who does something. Each function that changes something decides whether they may,
//!   in the transaction that does it.
//! - [`Registry::publish`] writes the bytes first and then, in one transaction, everything else. What
//!   was published never changes, and its number is never given to something else.
//! - [`Registry::index`], [`Registry::package`], [`Registry::version`], [`Registry::newest`] and
//!   [`Registry::list`] read. All of them look at an index of the database, and nothing is counted.
//! - [`Registry::changes`] is every change in order, for those who keep an index of their own;
//!   [`Registry::audit`] is the same log for people.
//! - [`Registry::export`] and [`Registry::import`] move everything.
//!
//! Whoever locks rows takes them in this order: namespace, keys, packages by name, claims of blobs,
//! and the counter of the log at last.

mod actor;
mod appeal;
mod blobs;
mod change;
mod downloads;
mod error;
mod export;
mod facts;
mod flat_names;
mod import;
mod index;
mod keys;
mod list;
mod log;
mod look_alike;
mod lookup;
mod name;
mod owners;
mod publish;
mod read;
mod record;
mod refused_scans;
mod signatures;
mod storage_marks;
mod taken_down;
mod version_order;

use sqlx::{AnyConnection, AnyPool};

pub use actor::{Actor, Grant, Right};
pub use downloads::{DownloadCounter, Tally};
pub use error::RegistryError;
pub use export::Export;
pub use facts::{
    FileFact, NewSignature, PackageVersion, ScanResult, ScanVerdict, Signature, SignatureState,
    Signer, VersionFacts,
};
pub use import::{Import, Imported};
pub(crate) use index::renew_withdrawn;
pub use index::{GoneLine, IndexLine};
pub use keys::{NewKey, RegistryKey};
pub use list::{Cursor, Filter, Order, Page, Summary, Yanked};
pub use log::{AuditAction, AuditEntry, AuditFilter, RegistryChange};
pub(crate) use log::{note_ended, note_made};
pub use lookup::{Artefact, Findable};
pub use name::{Namespace, OwnerScope, PackageName};
pub use owners::{Member, TeamRole};
pub use publish::{NewVersion, Published};
pub use read::{IndexText, Package, VersionSummary};
pub use record::{
    KeyRecord, LogRecord, MemberRecord, PackageRecord, PrefixRecord, Record, SignatureRecord,
    TakenDownRecord, VersionRecord,
};

use crate::{Database, DatabaseKind, Storage, StoreError, database::WriteTransaction, sql::Sql};

/// The registry of a database and a storage.
#[derive(Clone, Copy, Debug)]
pub struct Registry<'a> {
    database: &'a Database,
    storage: &'a Storage,
}

impl<'a> Registry<'a> {
    pub(crate) fn new(database: &'a Database, storage: &'a Storage) -> Self {
        Self { database, storage }
    }

    fn reader(&self) -> &AnyPool {
        self.database.reader()
    }

    async fn begin(&self) -> Result<RegistryTransaction, StoreError> {
        Ok(RegistryTransaction {
            transaction: self.database.begin().await?,
            kind: self.database.kind(),
        })
    }
}

/// A transaction that changes the registry.
struct RegistryTransaction {
    transaction: WriteTransaction,
    kind: DatabaseKind,
}

impl RegistryTransaction {
    fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await
    }

    /// A statement that locks the rows that it reads. In SQLite a transaction has locked everything.
    fn locking(&self, text: &'static str, lock: RowLock) -> Sql {
        match self.kind {
            DatabaseKind::Sqlite => crate::sql::sql(text),
            DatabaseKind::Postgres => crate::sql::built(format!("{text} {}", lock.as_str())),
        }
    }
}

/// How rows are locked.
#[derive(Clone, Copy)]
enum RowLock {
    /// So that others can lock them so, but not change them.
    Share,
    /// So that nobody else can lock them.
    Alone,
}

impl RowLock {
    fn as_str(self) -> &'static str {
        match self {
            Self::Share => "FOR SHARE",
            // Rows that refer to this one can be added nevertheless.
            Self::Alone => "FOR NO KEY UPDATE",
        }
    }
}
