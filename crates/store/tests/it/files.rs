use std::collections::BTreeSet;

use bytes::Bytes;
use savoir_store::{Storage, StoreError};

use crate::harness::{for_each_storage, s3};

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_written_listed_and_deleted() {
    for_each_storage(async |files| {
        let storage = &files.storage;
        storage.ping().await.unwrap();
        assert_eq!(storage.get("a/b.txt").await.unwrap(), None);
        storage.delete("a/b.txt").await.unwrap();
        storage.put("a/b.txt", Bytes::from_static(b"one")).await.unwrap();
        storage.put("a/b.txt", Bytes::from_static(b"\0two")).await.unwrap();
        storage.put("a/c/d", Bytes::new()).await.unwrap();
        storage.put("ab", Bytes::from_static(b"x")).await.unwrap();
        let again = files.again();
        assert_eq!(again.get("a/b.txt").await.unwrap().unwrap(), b"\0two".as_slice());
        assert_eq!(again.get("a/c/d").await.unwrap().unwrap(), Bytes::new());
        assert_eq!(again.get("a").await.unwrap(), None, "a folder has no bytes");
        assert_eq!(again.list("a").await.unwrap(), ["a/b.txt", "a/c/d"]);
        assert_eq!(again.list("a/c/").await.unwrap(), ["a/c/d"]);
        assert_eq!(again.list("").await.unwrap(), ["a/b.txt", "a/c/d", "ab"]);
        assert!(again.list("none").await.unwrap().is_empty());
        storage.delete("a/c/d").await.unwrap();
        assert_eq!(storage.list("a").await.unwrap(), ["a/b.txt"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_outside_the_storage_are_rejected() {
    for_each_storage(async |files| {
        let long = "x".repeat(300);
        for key in ["", "/", "..", "a/../b", "/etc/passwd", "a//b", "a/", "a\\b", "a\0b", &long] {
            assert!(files.storage.get(key).await.is_err(), "{key:?}");
            assert!(files.storage.put(key, Bytes::new()).await.is_err(), "{key:?}");
        }
        assert!(files.storage.list("../x").await.is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_are_atomic() {
    for_each_storage(async |files| {
        let tasks: Vec<_> = (0..8_u8)
            .map(|n| {
                let storage = files.again();
                tokio::spawn(async move {
                    let bytes = Bytes::from(vec![n; 50_000]);
                    storage.put("x/y", bytes).await.unwrap();
                    let found = storage.get("x/y").await.unwrap().unwrap();
                    assert_eq!(found.len(), 50_000);
                    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 1);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(files.storage.list("").await.unwrap(), ["x/y"]);
    })
    .await;
}

#[tokio::test]
async fn a_folder_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = tempfile::TempDir::new().unwrap();
    let path = temp.path().join("a/b");
    let storage = Storage::folder(&path).unwrap();
    storage.put("k", Bytes::from_static(b"v")).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("k")), 0o600);
}

#[tokio::test]
async fn unusable_storages_are_reported() {
    for url in ["http://bucket", "bucket", "s3://"] {
        assert!(savoir_store::Storage::open(url).is_err(), "{url}");
    }
    if let Ok(server) = std::env::var("SAVOIR_TEST_S3") {
        assert!(s3("s3://there-is-no-such-bucket", &server).ping().await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_that_is_replaced_by_a_file_is_reported() {
    let folder = tempfile::TempDir::new().unwrap();
    let storage = Storage::folder(folder.path()).unwrap();
    let skills = storage.skills();
    // Before the first skill, there is no folder.
    storage.try_write().await.unwrap();
    assert_eq!(skills.list().await.unwrap(), []);
    skills.create("a", "text").await.unwrap();
    storage.try_write().await.unwrap();
    let place = folder.path().join("skills");
    std::fs::rename(&place, folder.path().join("away")).unwrap();
    std::fs::write(&place, "").unwrap();
    for failed in [
        storage.try_write().await.map(|()| "write"),
        skills.list().await.map(|_| "list"),
        skills.keys().await.map(|_| "keys"),
        skills.read("a").await.map(|_| "read"),
        skills.read_lossy("b").await.map(|_| "read_lossy"),
    ] {
        assert!(matches!(failed, Err(StoreError::File { .. })), "{failed:?}");
    }
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(folder.path().join("away"), &place).unwrap();
    storage.try_write().await.unwrap();
    assert!(skills.read("a").await.unwrap().is_some());
    let mut names = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.all(|name| !name.to_string_lossy().starts_with(".tmp-")));
}

/// Only a folder has files that are half written.
#[tokio::test]
async fn files_of_writers_that_died_are_removed() {
    let temp = tempfile::TempDir::new().unwrap();
    let storage = Storage::folder(temp.path()).unwrap();
    storage.put("knowledge/base/doc", Bytes::from_static(b"v")).await.unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
    let unfinished = |path: &str| {
        let path = temp.path().join(path);
        let file = std::fs::File::create(&path).unwrap();
        file.set_modified(old).unwrap();
        (path, file)
    };
    let (dead, file) = unfinished("knowledge/base/.tmp-dead");
    drop(file);
    let (tried, file) = unfinished(".tmp-tried");
    drop(file);
    let (alive, file) = unfinished("knowledge/base/.tmp-alive");
    file.lock().unwrap();
    let (other, _) = unfinished("notes.txt");
    let new = temp.path().join("knowledge/base/.tmp-new");
    std::fs::write(&new, "").unwrap();
    storage.remove_unfinished().await.unwrap();
    assert!(!dead.exists() && !tried.exists());
    assert!(alive.exists() && new.exists() && other.exists(), "they are not left over");
    assert_eq!(storage.list("knowledge").await.unwrap(), ["knowledge/base/doc"]);
}
