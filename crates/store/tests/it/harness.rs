//! Runs a test on every kind of database or storage.

use std::io::{Read as _, Write as _};

use savoir_store::{Database, DatabaseKind, Storage};
use sqlx::{AssertSqlSafe, Connection as _};
use tempfile::TempDir;

/// An empty database.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) url: String,
    pub(crate) pgvector: bool,
}

impl Place {
    /// Opens a second handle, like another process.
    pub(crate) async fn again(&self) -> Database {
        Database::open(&self.url).await.unwrap()
    }

    /// Runs SQL statements directly.
    pub(crate) async fn raw(&self, statements: &str) {
        let mut connection = sqlx::AnyConnection::connect(&self.url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.database.kind() == DatabaseKind::Sqlite
    }
}

#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
pub(crate) fn server(variable: &str, what: &str) -> Option<String> {
    let found = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if found.is_none() {
        eprintln!("=== SKIPPED: {what}, since {variable} is not set ===");
    }
    found
}

/// Passes the URL of each kind of database to a test, and removes the database afterwards.
pub(crate) async fn for_each_url(test: impl AsyncFn(String, bool)) {
    sqlx::any::install_default_drivers();
    let folder = TempDir::new().unwrap();
    test(format!("sqlite://{}/test.sqlite", folder.path().display()), false).await;
    for (variable, what, pgvector) in [
        ("SAVOIR_TEST_POSTGRES", "PostgreSQL", false),
        ("SAVOIR_TEST_PGVECTOR", "PostgreSQL with pgvector", true),
    ] {
        let Some(server) = server(variable, what) else { continue };
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        run(&server, &format!("CREATE DATABASE {name}")).await;
        let (head, _) = server.rsplit_once('/').unwrap();
        test(format!("{head}/{name}"), pgvector).await;
        run(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }
}

/// Passes each kind of database to a test.
pub(crate) async fn for_each_database(test: impl AsyncFn(&Place)) {
    for_each_url(async |url, pgvector| {
        let place = Place { database: Database::open(&url).await.unwrap(), url, pgvector };
        test(&place).await;
        place.database.close().await;
    })
    .await;
}

async fn run(server: &str, statement: &str) {
    let mut connection = sqlx::AnyConnection::connect(server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// An empty storage.
pub(crate) struct Files {
    pub(crate) storage: Storage,
    open: Box<dyn Fn() -> Storage + Send + Sync>,
}

impl Files {
    /// Opens a second handle, like another process.
    pub(crate) fn again(&self) -> Storage {
        (self.open)()
    }
}

/// Passes a folder and a bucket to a test.
pub(crate) async fn for_each_storage(test: impl AsyncFn(&Files)) {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let open = Box::new(move || Storage::folder(&path).unwrap());
    test(&Files { storage: open(), open }).await;
    let Some(server) = server("SAVOIR_TEST_S3", "S3") else { return };
    let bucket = format!("test-{}", uuid::Uuid::new_v4().simple());
    http(&server, &format!("PUT /{bucket}"));
    for url in [format!("s3://{bucket}"), format!("s3://{bucket}/some/prefix")] {
        let settings = server.clone();
        let open = Box::new(move || s3(&url, &settings));
        test(&Files { storage: open(), open }).await;
    }
}

pub(crate) fn s3(url: &str, server: &str) -> Storage {
    Storage::open_with(
        url,
        [
            ("AWS_ENDPOINT_URL", server),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
        ],
    )
    .unwrap()
}

pub(crate) fn http(server: &str, request: &str) {
    let address = server.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
