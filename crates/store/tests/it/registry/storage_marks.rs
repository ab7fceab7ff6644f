use std::time::Duration;

use bytes::Bytes;
use savoir_store::{Database, Storage};

use super::{Shop, for_each_registry};

/// What this database stores about its mark. A copy of its disk stores the same.
async fn stored_mark(shop: &Shop<'_>) -> [Option<String>; 2] {
    let settings = shop.database.settings();
    [
        settings.get("registry.database").await.unwrap(),
        settings.get("registry.generation").await.unwrap(),
    ]
}

/// Replaces the stored name and generation, so that this database behaves like a copy of a disk.
async fn restore_copied_marks(shop: &Shop<'_>, [name, generation]: &[Option<String>; 2]) {
    shop.place.raw("DELETE FROM settings WHERE name LIKE 'registry.%'").await;
    for (key, value) in [("registry.database", name), ("registry.generation", generation)] {
        if let Some(value) = value {
            let insert = format!("INSERT INTO settings (name, value) VALUES ('{key}', '{value}')");
            shop.place.raw(&insert).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_a_disk_counts_as_another_database() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let refused = async || {
            let refused = registry.sweep(Duration::ZERO).await.unwrap_err();
            assert_eq!(refused.code(), "shared_storage");
        };
        // The first to write the mark keeps the name, whether it is the original or the copy.
        let before = registry.mark().await.unwrap();
        let copied = stored_mark(shop).await;
        assert_eq!(registry.mark().await.unwrap(), before, "nobody else was here");
        let first = stored_mark(shop).await;
        restore_copied_marks(shop, &copied).await;
        refused().await;
        let second = registry.mark().await.unwrap();
        assert_ne!(second, before);
        let digest = registry.put_blob(Bytes::from_static(b"of the second")).await.unwrap();
        let other = stored_mark(shop).await;
        restore_copied_marks(shop, &first).await;
        assert_eq!(registry.mark().await.unwrap(), before, "it has its name still");
        refused().await;
        assert!(registry.blob(&digest).await.unwrap().is_some());
        // Both databases keep their names, and the mark of a deleted database can be removed.
        let first = stored_mark(shop).await;
        restore_copied_marks(shop, &other).await;
        assert_eq!(registry.mark().await.unwrap(), second);
        refused().await;
        restore_copied_marks(shop, &first).await;
        assert!(registry.unmark(&second).await.unwrap());
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_while_writing_a_mark_is_not_a_copy() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let name = registry.mark().await.unwrap();
        let [kept, generation] = stored_mark(shop).await;
        let now = generation.unwrap().split(' ').nth(1).unwrap().to_owned();
        // A crash before the mark was written, and one after it.
        let planned = [kept.clone(), Some(format!("{name} {now} next"))];
        restore_copied_marks(shop, &planned).await;
        assert_eq!(registry.mark().await.unwrap(), name);
        restore_copied_marks(shop, &[kept, Some(format!("{name} {now} next"))]).await;
        shop.storage
            .put(&format!("registry/databases/{name}"), Bytes::from_static(b"next"))
            .await
            .unwrap();
        assert_eq!(registry.mark().await.unwrap(), name);
        registry.sweep(Duration::ZERO).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_of_older_versions_and_concurrent_processes_are_kept() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let name = registry.mark().await.unwrap();
        let [kept, _] = stored_mark(shop).await;
        restore_copied_marks(shop, &[kept, None]).await;
        shop.storage.put(&format!("registry/databases/{name}"), Bytes::new()).await.unwrap();
        assert_eq!(registry.mark().await.unwrap(), name);
        let all = futures::future::join_all((0..6).map(|_| registry.mark())).await;
        assert!(all.into_iter().all(|marked| marked.unwrap() == name));
        registry.sweep(Duration::ZERO).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_file_copied_over_itself_counts_as_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("savoir.sqlite");
    let storage = Storage::folder(&folder.path().join("storage")).unwrap();
    let marked = async || {
        let database = Database::open_folder(folder.path()).await.unwrap();
        let name = database.registry(&storage).mark().await.unwrap();
        let swept = database.registry(&storage).sweep(Duration::ZERO).await.is_ok();
        database.close().await;
        (name, swept)
    };
    let (name, _) = marked().await;
    let copied = std::fs::read(&file).unwrap();
    assert_eq!(marked().await, (name.clone(), true));
    let original = std::fs::read(&file).unwrap();
    // Writing into the same file keeps its inode number and creation time.
    std::fs::write(&file, copied).unwrap();
    let (other, swept) = marked().await;
    assert!(other != name && !swept);
    std::fs::write(&file, original).unwrap();
    assert_eq!(marked().await, (name, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_identity_is_optional_without_privileges() {
    for_each_registry(async |shop| {
        if shop.place.is_sqlite() {
            return;
        }
        let name = shop.registry().mark().await.unwrap();
        // A pooled connection may have cached the function, so open a new one.
        let mark = async || {
            let (database, storage) = shop.again().await;
            let marked = database.registry(&storage).mark().await;
            database.close().await;
            marked
        };
        let away = "ALTER FUNCTION pg_catalog.pg_control_system() RENAME TO pg_control_gone";
        shop.place.raw(away).await;
        let failed = mark().await.unwrap_err().to_string();
        assert!(failed.contains("pg_control_system"), "{failed}");
        let forbidding = "CREATE FUNCTION public.pg_control_system()
            RETURNS TABLE (system_identifier BIGINT) LANGUAGE plpgsql
            AS 'BEGIN RAISE insufficient_privilege; END'";
        shop.place.raw(forbidding).await;
        assert_ne!(mark().await.unwrap(), name, "its place cannot be known");
    })
    .await;
}
