use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use savoir_store::{Database, DatabaseKind, StoreError, Timestamp};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use crate::harness::{for_each_database, for_each_url};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_migrate_once() {
    for_each_url(async |url, _| {
        let openers: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { Database::open(&url).await })
            })
            .collect();
        for opener in openers {
            let database = opener.await.unwrap().unwrap();
            database.ping().await.unwrap();
            database.close().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_newer_version_is_not_opened() {
    for_each_database(async |place| {
        place.raw("INSERT INTO schema_versions VALUES (4711, 'x', 0)").await;
        match Database::open(&place.url).await.unwrap_err() {
            StoreError::FromTheFuture { found: 4711, known } => assert!(known > 0),
            other => panic!("{other}"),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_migration_text_is_detected() {
    for_each_database(async |place| {
        place.raw("UPDATE schema_versions SET checksum = 'x' WHERE version = 2").await;
        let error = Database::open(&place.url).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_survives_reopening() {
    for_each_database(async |place| {
        place.database.settings().put("k", "v\0w").await.unwrap();
        let again = place.again().await;
        assert_eq!(again.kind(), place.database.kind());
        assert_eq!(again.settings().get("k").await.unwrap().unwrap(), "v\u{fffd}w");
        again.close().await;
        assert!(again.ping().await.is_err());
    })
    .await;
}

#[tokio::test]
async fn database_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::TempDir::new().unwrap();
    // Characters with a meaning in URLs.
    let inner = folder.path().join("ä b%20c?d#e");
    std::fs::create_dir(&inner).unwrap();
    let database = Database::open_folder(&inner).await.unwrap();
    assert_eq!(database.kind(), DatabaseKind::Sqlite);
    database.settings().put("k", "v").await.unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(&inner).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        seen += 1;
    }
    assert_eq!(seen, 4, "the file, its journal, and the mark of changes");
}

#[tokio::test]
async fn unusable_databases_are_reported() {
    let error = Database::open("postgres://me:secret@127.0.0.1:1/x?password=hidden").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1") && !error.contains("secret") && !error.contains("hidden"));
    let error = Database::open("mysql://me:secret@127.0.0.1/x").await.unwrap_err().to_string();
    assert!(error.contains("sqlite://") && !error.contains("secret"), "{error}");
    assert!(Database::open("sqlite://:memory:").await.is_err());
    let folder = tempfile::TempDir::new().unwrap();
    assert!(Database::open_folder(&folder.path().join("none").join("file\0")).await.is_err());
}

/// A server that refuses connections is reported at once, not after the timeout of the pool.
#[tokio::test(flavor = "multi_thread")]
async fn refused_connection_is_reported_at_once() {
    for_each_url(async |url, _| {
        let Some((head, rest)) = url.split_once('@') else { return };
        let (address, name) = rest.split_once('/').unwrap();
        let (address, forwarding) = forwarder(address.to_owned()).await;
        let database = Database::open(&format!("{head}@{address}/{name}")).await.unwrap();
        database.try_write().await.unwrap();
        forwarding.abort();
        assert!(forwarding.await.is_err());
        for _ in 0..3 {
            let began = Instant::now();
            let error = database.try_write().await.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
            assert!(began.elapsed() < Duration::from_millis(700), "{:?}", began.elapsed());
        }
    })
    .await;
}

/// Forwards connections to an address until the task is aborted.
async fn forwarder(to: String) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let forwarding = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut here, _) = listener.accept().await.unwrap();
            let mut there = TcpStream::connect(&to).await.unwrap();
            connections.spawn(async move {
                let _ = copy_bidirectional(&mut here, &mut there).await;
            });
        }
    });
    (address, forwarding)
}

#[test]
fn timestamp_text_has_six_decimals() {
    let time = Timestamp::from_micros(1_700_000_000_123_456);
    assert_eq!(time.to_string(), "2023-11-14T22:13:20.123456Z");
    assert_eq!(Timestamp::from_micros(-1).seconds(), -1);
    assert_eq!(Timestamp::from_micros(0).plus(std::time::Duration::MAX).micros(), i64::MAX);
}
