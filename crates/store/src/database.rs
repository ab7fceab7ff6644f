//! Opens SQLite or PostgreSQL behind one interface.

use std::{
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    pin::pin,
    str::FromStr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sqlx::{
    Any, AnyConnection, AnyPool, ConnectOptions, Connection, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use tokio::time::timeout;
use url::Url;

use crate::{
    Accounts, CatalogSources, Knowledge, Leases, Quotas, RateLimits, Runs, Sessions, Settings,
    SkillFactsTable, Storage, StoreError, Timestamp, Usage, VectorSearch, Workflows,
    accounts::AccountCache,
    deadline::{RELEASE_TIMEOUT, STATEMENT_TIMEOUT, within},
    knowledge::VectorCache,
    migrations::migrate,
    registry::{Registry, rebuild_withdrawn},
    sql::sql,
};

/// How long a writer waits for another process, in milliseconds.
const BUSY_TIMEOUT_MS: u32 = 20_000;
/// Number of connections of one process that read an SQLite file.
const SQLITE_READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;
/// How long to wait for a connection to a server.
const POSTGRES_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a write may take until it is tested whether the server takes connections.
const CONNECT_TEST_DELAY: Duration = Duration::from_millis(100);
/// SQLite cannot use a disk with less free space, and reports that as an I/O error.
const MIN_FREE_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A file, in WAL mode.
    Sqlite,
    /// A server.
    Postgres,
}

/// An open database whose migrations are done. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Database {
    kind: DatabaseKind,
    reader: AnyPool,
    /// In SQLite a single connection: writers of one process queue here instead of at the file
    /// lock.
    writer: AnyPool,
    vectors: Arc<OnceLock<VectorSearch>>,
    cache: Arc<VectorCache>,
    people: Arc<AccountCache>,
    quotas: Quotas,
}

impl Database {
    /// Opens `postgres://…` or `sqlite://path`, and runs the migrations under a lock.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Self::open_server(url).await;
        }
        let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
        match path {
            Some(path) if !path.is_empty() && !path.starts_with(":memory:") => {
                Self::open_file(Path::new(path)).await
            }
            Some(_) => Err(StoreError::Setting(
                "a database in memory is not shared; give the path of a file".to_owned(),
            )),
            None => Err(StoreError::Setting(format!(
                "`{}` is not a database; use postgres://… or sqlite://path",
                without_password(url)
            ))),
        }
    }

    /// Opens the file `savoir.sqlite` in a folder, which must exist.
    pub async fn open_folder(folder: &Path) -> Result<Self, StoreError> {
        Self::open_file(&folder.join("savoir.sqlite")).await
    }

    async fn open_file(path: &Path) -> Result<Self, StoreError> {
        let shown = format!("sqlite://{}", path.display());
        let fail = |message: String| StoreError::Open { url: shown.clone(), message };
        let (path, created) = (path.to_path_buf(), path.to_path_buf());
        tokio::task::spawn_blocking(move || create_private(&created))
            .await
            .map_err(|error| fail(error.to_string()))?
            .map_err(|error| fail(error.to_string()))?;
        let people = AccountCache::beside(&path)?;
        let options = sqlite_options(&path).map_err(|error| fail(error.to_string()))?;
        // A pool would retry for a long time before it reports why a file cannot be opened.
        let first = first_connection(&options).await.map_err(|error| {
            if is_full(&path) {
                return StoreError::Full { what: path.display().to_string() };
            }
            fail(error.to_string())
        })?;
        let writer = pool(1)
            .acquire_timeout(Duration::from_millis(u64::from(BUSY_TIMEOUT_MS) * 2))
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(|connection, _| Box::pin(prepare_sqlite(connection)))
            .connect_lazy_with(options.clone());
        let reader = pool(SQLITE_READERS)
            .after_connect(|connection, _| Box::pin(prepare_sqlite(connection)))
            .connect_lazy_with(options);
        let database = Self::finish(DatabaseKind::Sqlite, reader, writer, people).await;
        first.close().await?;
        database
    }

    async fn open_server(url: &str) -> Result<Self, StoreError> {
        let fail = |error: sqlx::Error| StoreError::Open {
            url: without_password(url),
            message: error.to_string(),
        };
        sqlx::any::install_default_drivers();
        let options = AnyConnectOptions::from_str(url).map_err(fail)?.disable_statement_logging();
        // A pool would retry for a long time before it reports that the server does not answer.
        AnyConnection::connect_with(&options).await.map_err(fail)?.close().await.map_err(fail)?;
        let pool = pool(POSTGRES_CONNECTIONS)
            .acquire_timeout(POSTGRES_ACQUIRE_TIMEOUT)
            // A restarted server leaves dead connections; one that was just used is known to be
            // alive.
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > Duration::from_secs(2) {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Self::finish(DatabaseKind::Postgres, pool.clone(), pool, AccountCache::default()).await
    }

    async fn finish(
        kind: DatabaseKind,
        reader: AnyPool,
        writer: AnyPool,
        people: AccountCache,
    ) -> Result<Self, StoreError> {
        let (vectors, cache) = (Arc::default(), Arc::default());
        let (people, quotas) = (Arc::new(people), Quotas::NONE);
        let database = Self { kind, reader, writer, vectors, cache, people, quotas };
        let search = migrate(&database).await?;
        let _ = database.vectors.set(search);
        rebuild_withdrawn(&database).await?;
        Ok(database)
    }

    /// The kind of database.
    pub fn kind(&self) -> DatabaseKind {
        self.kind
    }

    /// Sets the quotas of accounts.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// The quotas of accounts.
    pub fn quotas(&self) -> Quotas {
        self.quotas
    }

    /// Checks that the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sql("SELECT 1").one(self.reader()).await.map(drop)
    }

    /// Checks that the database can be written. A server that refuses connections is an error at
    /// once: the pool would try to connect again for a while.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        let mut write = pin!(self.write_mark());
        match timeout(CONNECT_TEST_DELAY, &mut write).await {
            Ok(written) => return written,
            Err(_) if self.kind == DatabaseKind::Sqlite => return write.await,
            Err(_) => {}
        }
        let options = self.writer.connect_options();
        let connect = async {
            match AnyConnection::connect_with(&options).await {
                Ok(connection) => {
                    let _ = connection.close().await;
                    std::future::pending().await
                }
                Err(error) => Err(error.into()),
            }
        };
        tokio::select! {
            written = write => written,
            refused = connect => refused,
        }
    }

    async fn write_mark(&self) -> Result<(), StoreError> {
        sql("INSERT INTO settings (name, value) VALUES ('ready', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        .text(&Timestamp::now().to_string())
        .run(self.writer())
        .await
        .map(drop)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }

    /// User accounts, their tokens, and failed logins.
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts(self)
    }

    /// Settings and signing keys.
    pub fn settings(&self) -> Settings<'_> {
        Settings(self)
    }

    /// Counters of requests.
    pub fn rate_limits(&self) -> RateLimits<'_> {
        RateLimits(self)
    }

    /// Conversations.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(self)
    }

    /// Documents that can be searched.
    pub fn knowledge(&self) -> Knowledge<'_> {
        Knowledge(self)
    }

    /// Workflows and their executions.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows(self)
    }

    /// The history of everything that ran.
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }

    /// The usage of models.
    pub fn usage(&self) -> Usage<'_> {
        Usage(self)
    }

    /// Locks that all processes see.
    pub fn leases(&self) -> Leases<'_> {
        Leases(self)
    }

    /// Data about skills that is not in their files.
    pub fn skill_facts(&self) -> SkillFactsTable<'_> {
        SkillFactsTable(self)
    }

    /// Repositories from which users may install skills.
    pub fn catalog_sources(&self) -> CatalogSources<'_> {
        CatalogSources(self)
    }

    /// The registry of published packages, whose bytes are in a storage.
    pub fn registry<'a>(&'a self, storage: &'a Storage) -> Registry<'a> {
        Registry::new(self, storage)
    }

    pub(crate) fn reader(&self) -> &AnyPool {
        &self.reader
    }

    pub(crate) fn writer(&self) -> &AnyPool {
        &self.writer
    }

    /// Starts a write transaction. In SQLite it takes the lock immediately: a transaction that
    /// reads first and writes later would fail if another one wrote in between.
    pub(crate) async fn begin(&self) -> Result<WriteTransaction, StoreError> {
        begin_whole(
            self.writer.clone(),
            match self.kind {
                DatabaseKind::Sqlite => "BEGIN IMMEDIATE",
                DatabaseKind::Postgres => "BEGIN",
            },
        )
        .await
    }

    /// An SQL expression for the time of the database in microseconds, for what processes compare
    /// whose clocks differ.
    pub(crate) fn clock(&self) -> &'static str {
        match self.kind {
            DatabaseKind::Sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            DatabaseKind::Postgres => {
                "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
            }
        }
    }

    pub(crate) fn vectors(&self) -> VectorSearch {
        self.vectors.get().copied().unwrap_or(VectorSearch::Scan)
    }

    pub(crate) fn people(&self) -> &AccountCache {
        &self.people
    }

    pub(crate) fn cache(&self) -> &VectorCache {
        &self.cache
    }
}

/// A transaction, which is rolled back unless it is committed.
#[derive(Debug)]
pub(crate) struct WriteTransaction(Transaction<'static, Any>);

impl WriteTransaction {
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        within(STATEMENT_TIMEOUT, self.0.commit()).await
    }

    pub(crate) async fn rollback(self) -> Result<(), StoreError> {
        within(STATEMENT_TIMEOUT, self.0.rollback()).await
    }
}

impl Deref for WriteTransaction {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.0
    }
}

impl DerefMut for WriteTransaction {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.0
    }
}

/// Starts a transaction in a task of its own. A caller may be cancelled at any moment, for example
/// when a client disconnects: a connection that was just starting a transaction would then return
/// to the pool with an open transaction that holds its locks.
pub(crate) async fn begin_whole(
    pool: AnyPool,
    statement: &'static str,
) -> Result<WriteTransaction, StoreError> {
    match tokio::spawn(async move { within(STATEMENT_TIMEOUT, pool.begin_with(statement)).await })
        .await
    {
        Ok(begun) => Ok(WriteTransaction(begun?)),
        Err(error) => Err(StoreError::Setting(error.to_string())),
    }
}

fn pool(connections: u32) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(connections)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(is_usable(connection)))
}

/// Whether a used connection can be used again; otherwise it is closed.
///
/// SQLite ends a transaction by itself when the disk is full, but sqlx still counts it: such a
/// connection could never start another one. A server that hangs would block its connection
/// forever.
async fn is_usable(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    // This rolls back a transaction that was not committed.
    match timeout(RELEASE_TIMEOUT, connection.ping()).await {
        Ok(answered) => answered.map(|()| !connection.is_in_transaction()),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Creates the file, accessible only for its owner. SQLite gives its journal the same mode.
fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
        && !folder.exists()
    {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn sqlite_options(path: &Path) -> Result<AnyConnectOptions, Box<dyn std::error::Error>> {
    sqlx::any::install_default_drivers();
    let path: PathBuf = std::path::absolute(path)?;
    let file = Url::from_file_path(&path).map_err(|()| "its path cannot be used")?;
    let url = format!("sqlite://{}?mode=rw", file.path());
    Ok(AnyConnectOptions::from_str(&url)?.disable_statement_logging())
}

/// Opens a file and switches it to WAL mode, which is permanent.
async fn first_connection(options: &AnyConnectOptions) -> Result<AnyConnection, sqlx::Error> {
    let mut connection = AnyConnection::connect_with(options).await?;
    prepare_sqlite(&mut connection).await?;
    // Two processes that change the mode at the same time do not wait for each other.
    let mut tries = 0;
    loop {
        match sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await {
            Ok(_) => return Ok(connection),
            Err(error) if tries >= 100 || !is_busy(&error) => return Err(error),
            Err(_) => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Whether an error is `SQLITE_BUSY` or `SQLITE_LOCKED`; extended codes have these in their lowest
/// byte.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Configures a new connection. It must not fail because the disk is full: a pool would retry, and
/// then report that it has no connection. The first statements touch no file; without the last one,
/// writes are slower, but as safe.
async fn prepare_sqlite(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let statements = format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}; PRAGMA foreign_keys = ON");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut *connection).await?;
    if let Err(error) = sqlx::raw_sql("PRAGMA synchronous = NORMAL").execute(connection).await {
        tracing::warn!(%error, "the database file cannot be read at the moment");
    }
    Ok(())
}

/// Whether the disk of a file has no space left.
fn is_full(path: &Path) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < MIN_FREE_BYTES)
}

fn without_password(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return "…".to_owned() };
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}
