use std::time::Duration;

use bytes::Bytes;
use savoir_store::{Database, Storage};

use super::{Shop, for_each_registry};

/// What a database knows of its mark, and a copy of its disk, too.
async fn memory_of_marks(shop: &Shop<'_>) -> [Option<String>; 2] {
    let settings = shop.database.settings();
    [
        settings.get("registry.database").await.unwrap(),
        settings.get("registry.generation").await.unwrap(),
    ]
}

/// Makes this database another one that lies at the same place, as far as it can see.
async fn become_the_one_with(shop: &Shop<'_>, [name, generation]: &[Option<String>; 2]) {
    shop.place.raw("DELETE FROM settings WHERE name LIKE 'registry.%'").await;
    for (key, value) in [("registry.database", name), ("registry.generation", generation)] {
        if let Some(value) = value {
            let insert = format!("INSERT INTO settings (name, value) VALUES ('{key}', '{value}')");
            shop.place.raw(&insert).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_looks_the_same_is_another_one() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let refused = async || {
            let refused = registry.sweep(Duration::ZERO).await.unwrap_err();
            assert_eq!(refused.code(), "shared_storage");
        };
        // The first to come keeps the name: the original, or its copy.
        let before = registry.mark().await.unwrap();
        let copied = memory_of_marks(shop).await;
        assert_eq!(registry.mark().await.unwrap(), before, "nobody else was here");
        let first = memory_of_marks(shop).await;
        become_the_one_with(shop, &copied).await;
        refused().await;
        let second = registry.mark().await.unwrap();
        assert_ne!(second, before);
        let digest = registry.put_blob(Bytes::from_static(b"of the second")).await.unwrap();
        let other = memory_of_marks(shop).await;
        become_the_one_with(shop, &first).await;
        assert_eq!(registry.mark().await.unwrap(), before, "it has its name still");
        refused().await;
        assert!(registry.blob(&digest).await.unwrap().is_some());
        // Both stay what they are, and who is gone can be forgotten.
        let first = memory_of_marks(shop).await;
        become_the_one_with(shop, &other).await;
        assert_eq!(registry.mark().await.unwrap(), second);
        refused().await;
        become_the_one_with(shop, &first).await;
        assert!(registry.unmark(&second).await.unwrap());
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_died_while_it_left_its_mark_is_no_copy() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let name = registry.mark().await.unwrap();
        let [kept, generation] = memory_of_marks(shop).await;
        let now = generation.unwrap().split(' ').nth(1).unwrap().to_owned();
        // Before the mark changed, and after.
        let planned = [kept.clone(), Some(format!("{name} {now} next"))];
        become_the_one_with(shop, &planned).await;
        assert_eq!(registry.mark().await.unwrap(), name);
        become_the_one_with(shop, &[kept, Some(format!("{name} {now} next"))]).await;
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
async fn a_mark_of_an_older_program_is_ones_own_and_many_processes_leave_one() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let name = registry.mark().await.unwrap();
        let [kept, _] = memory_of_marks(shop).await;
        become_the_one_with(shop, &[kept, None]).await;
        shop.storage.put(&format!("registry/databases/{name}"), Bytes::new()).await.unwrap();
        assert_eq!(registry.mark().await.unwrap(), name);
        let all = futures::future::join_all((0..6).map(|_| registry.mark())).await;
        assert!(all.into_iter().all(|marked| marked.unwrap() == name));
        registry.sweep(Duration::ZERO).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_copied_into_the_same_place_is_another_database() {
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
    // Written into the same file, it has the same number and the same birthday.
    std::fs::write(&file, copied).unwrap();
    let (other, swept) = marked().await;
    assert!(other != name && !swept);
    std::fs::write(&file, original).unwrap();
    assert_eq!(marked().await, (name, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_not_know_the_server_does_without() {
    for_each_registry(async |shop| {
        if shop.place.is_sqlite() {
            return;
        }
        let name = shop.registry().mark().await.unwrap();
        // A connection that knows the function already would not notice.
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
