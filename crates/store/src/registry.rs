//! Stores the registry: packages that users publish.
//!
//! - [`PackageName`] is `web-search` in the default namespace or `acme/web-search` in another one;
//!   an [`OwnerScope`] is a namespace or package with its members and keys.
//! - [`Actor`] is the account that makes a change. Each function that changes something checks the
//!   permission of the actor, in the transaction of the change.
//! - [`Registry::publish`] writes the bytes first and then, in one transaction, everything else. A
//!   published version never changes, and its number is never used again.
//! - [`Registry::index`], [`Registry::package`], [`Registry::version`],
//!   [`Registry::resolve_version`] and [`Registry::list`] read. All of them use a database index,
//!   and none counts rows.
//! - [`Registry::changes`] lists every change in order, for mirrors with an index of their own;
//!   [`Registry::audit`] is the same log for users.
//! - [`Registry::export`] and [`Registry::import`] copy the whole registry.
//!
//! To avoid deadlocks, transactions lock rows in this order: namespace, keys, packages by name,
//! claims of blobs, and last the counter of the log.

mod actor;
mod appeal;
mod attestations;
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
mod reviews;
mod signatures;
mod storage_marks;
mod taken_down;
mod version_order;

use sqlx::{AnyConnection, AnyPool};

pub use actor::{Actor, Grant, Right};
pub use attestations::{MAX_ATTESTATION_BYTES, NewAttestation, StoredAttestation};
pub use downloads::{DownloadCounter, VersionDownloads};
pub use error::RegistryError;
pub use export::Export;
pub use facts::{
    FileFact, NewSignature, PackageVersion, ScanResult, ScanVerdict, Signature, SignatureState,
    Signer, VersionFacts,
};
pub use import::{Import, Imported};
pub(crate) use index::rebuild_withdrawn;
pub use index::{IndexLine, TakenDownLine};
pub use keys::{NewKey, RegistryKey};
pub use list::{Cursor, Filter, Order, Page, Summary, Yanked};
pub use log::{AuditAction, AuditEntry, AuditFilter, RegistryChange};
pub(crate) use log::{note_ended, note_made};
pub use lookup::{Artefact, SearchablePackage};
pub use name::{Namespace, OwnerScope, PackageName};
pub use owners::{Member, TeamRole};
pub use publish::{NewVersion, Published};
pub use read::{IndexText, Package, VersionSummary};
pub use record::{
    AttestationRecord, KeyRecord, LogRecord, MemberRecord, PackageRecord, PrefixRecord, Record,
    SignatureRecord, TakenDownRecord, VersionRecord,
};
pub use reviews::{MAX_RATING, NewReview, Publisher, Rating, Review};

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

/// A write transaction on the registry.
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

    /// Builds a statement that locks the rows that it reads. In SQLite, a write transaction has
    /// locked everything already.
    fn locking(&self, text: &'static str, lock: RowLock) -> Sql {
        match self.kind {
            DatabaseKind::Sqlite => crate::sql::sql(text),
            DatabaseKind::Postgres => crate::sql::built(format!("{text} {}", lock.as_str())),
        }
    }
}

/// The kind of a row lock.
#[derive(Clone, Copy)]
enum RowLock {
    /// Others can also take a shared lock, but cannot change the rows.
    Share,
    /// Nobody else can lock or change the rows.
    Alone,
}

impl RowLock {
    fn as_str(self) -> &'static str {
        match self {
            Self::Share => "FOR SHARE",
            // Unlike `FOR UPDATE`, this lets other transactions insert rows that refer to the
            // locked one.
            Self::Alone => "FOR NO KEY UPDATE",
        }
    }
}
