//! SQLite or PostgreSQL behind one door.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sqlx::{
    Any, AnyConnection, AnyPool, ConnectOptions, Connection, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use url::Url;

use crate::{
    Accounts, CatalogSources, Knowledge, Leases, RateLimits, Sessions, Settings, SkillFacts,
    Storage, StoreError, Usage, VectorSearch, Workflows,
    accounts::Memory,
    knowledge::VectorCache,
    migrations::migrate,
    registry::{Registry, renew_withdrawn},
    sql::sql,
};

/// How long a writer waits for another process, in milliseconds.
const BUSY_TIMEOUT: u32 = 20_000;
/// How many of a process read a file at once.
const SQLITE_READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file, in WAL mode.
    Sqlite,
    /// A server.
    Postgres,
}

/// An open database with its migrations done. Cloning shares the connections.
#[derive(Clone, Debug)]
pub struct Database {
    kind: Kind,
    reader: AnyPool,
    /// In SQLite a single connection: writers of one process queue here instead of in the file.
    writer: AnyPool,
    vectors: Arc<OnceLock<VectorSearch>>,
    cache: Arc<VectorCache>,
    people: Arc<Memory>,
}

impl Database {
    /// Opens `postgres://…` or `sqlite://path`, and brings it up to date under a lock.
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
                "`{}` is no database; use postgres://… or sqlite://path",
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
        let people = Memory::beside(&path)?;
        let options = sqlite_options(&path).map_err(|error| fail(error.to_string()))?;
        let writer = sqlite_pool(&options, 1).await.map_err(|error| fail(error.to_string()))?;
        let reader = AnyPoolOptions::new()
            .max_connections(SQLITE_READERS)
            .test_before_acquire(false)
            .after_connect(|connection, _| Box::pin(prepare_sqlite(connection)))
            .connect_lazy_with(options);
        Self::finish(Kind::Sqlite, reader, writer, people).await
    }

    async fn open_server(url: &str) -> Result<Self, StoreError> {
        let fail = |error: sqlx::Error| StoreError::Open {
            url: without_password(url),
            message: error.to_string(),
        };
        sqlx::any::install_default_drivers();
        let options = AnyConnectOptions::from_str(url).map_err(fail)?.disable_statement_logging();
        // A pool would try for long before it says that there is no server.
        AnyConnection::connect_with(&options).await.map_err(fail)?.close().await.map_err(fail)?;
        let pool = AnyPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .acquire_timeout(Duration::from_secs(15))
            // A server that was restarted left dead connections; one that was just used is good.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > Duration::from_secs(2) {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Self::finish(Kind::Postgres, pool.clone(), pool, Memory::default()).await
    }

    async fn finish(
        kind: Kind,
        reader: AnyPool,
        writer: AnyPool,
        people: Memory,
    ) -> Result<Self, StoreError> {
        let (vectors, cache) = (Arc::default(), Arc::default());
        let database = Self { kind, reader, writer, vectors, cache, people: Arc::new(people) };
        let search = migrate(&database).await?;
        let _ = database.vectors.set(search);
        renew_withdrawn(&database).await?;
        Ok(database)
    }

    /// Which database it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sql("SELECT 1").one(self.reader()).await.map(drop)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }

    /// People, their tokens, and their failed attempts to log in.
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts(self)
    }

    /// Switches and keys.
    pub fn settings(&self) -> Settings<'_> {
        Settings(self)
    }

    /// Who asked how often.
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

    /// What models were asked for.
    pub fn usage(&self) -> Usage<'_> {
        Usage(self)
    }

    /// Locks that all processes see.
    pub fn leases(&self) -> Leases<'_> {
        Leases(self)
    }

    /// What is known of skills besides their files.
    pub fn skill_facts(&self) -> SkillFacts<'_> {
        SkillFacts(self)
    }

    /// Repositories from which people may take skills.
    pub fn catalog_sources(&self) -> CatalogSources<'_> {
        CatalogSources(self)
    }

    /// Packages that many publish, whose bytes lie in a storage.
    pub fn registry<'a>(&'a self, storage: &'a Storage) -> Registry<'a> {
        Registry::new(self, storage)
    }

    pub(crate) fn reader(&self) -> &AnyPool {
        &self.reader
    }

    pub(crate) fn writer(&self) -> &AnyPool {
        &self.writer
    }

    /// Begins a transaction that writes. In SQLite it takes the lock at once: one that reads first
    /// and writes later would fail when another wrote in between.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        begin_whole(
            self.writer.clone(),
            match self.kind {
                Kind::Sqlite => "BEGIN IMMEDIATE",
                Kind::Postgres => "BEGIN",
            },
        )
        .await
    }

    pub(crate) fn vectors(&self) -> VectorSearch {
        self.vectors.get().copied().unwrap_or(VectorSearch::Scan)
    }

    pub(crate) fn people(&self) -> &Memory {
        &self.people
    }

    pub(crate) fn cache(&self) -> &VectorCache {
        &self.cache
    }
}

/// Begins a transaction in a task of its own. Whoever asks may stop waiting at any moment, as a server
/// does whose client went away: a connection that was just beginning would go back to the others with
/// a transaction that nobody ends, and that holds its locks.
pub(crate) async fn begin_whole(
    pool: AnyPool,
    statement: &'static str,
) -> Result<Transaction<'static, Any>, StoreError> {
    match tokio::spawn(async move { pool.begin_with(statement).await }).await {
        Ok(begun) => Ok(begun?),
        Err(error) => Err(StoreError::Setting(error.to_string())),
    }
}

/// Makes the file for its owner alone. SQLite gives its journal the same mode.
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

async fn sqlite_pool(options: &AnyConnectOptions, size: u32) -> Result<AnyPool, sqlx::Error> {
    AnyPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_millis(u64::from(BUSY_TIMEOUT) * 2))
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(|connection, _| Box::pin(prepare_sqlite(connection)))
        .connect_with(options.clone())
        .await
}

async fn prepare_sqlite(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let statements = format!(
        "PRAGMA busy_timeout = {BUSY_TIMEOUT}; PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut *connection).await?;
    // Two that change the mode at once do not wait for each other.
    let mut tries = 0;
    loop {
        match sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
            Ok(_) => return Ok(()),
            Err(error) if tries >= 100 => return Err(error),
            Err(_) => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn without_password(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return "…".to_owned() };
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}
