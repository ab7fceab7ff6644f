use std::collections::BTreeSet;

use savoir_store::registry::{Actor, RegistryError};

use super::{draft, for_each_registry, name, run_concurrently, version};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publish_of_same_version_succeeds_once() {
    for_each_registry(async |shop| {
        let (other, storage) = shop.again().await;
        for package in ["tool", "acme/tool", "anon/note"] {
            let head = shop.registry().head().await.unwrap();
            let tasks = (0..16_usize).map(|n| {
                let (database, storage) = (
                    if n % 2 == 0 { shop.database.clone() } else { other.clone() },
                    storage.clone(),
                );
                let actor = Actor::person(if n % 3 == 0 { &shop.bob } else { &shop.alice });
                let mut new = draft(package, "1.0.0");
                new.artefact = format!("bytes of {n}").into();
                async move { new.publish(database.registry(&storage), &actor).await }
            });
            let mut winners = Vec::new();
            for result in run_concurrently(tasks).await {
                match result {
                    Ok(done) => winners.push(done.sha256),
                    Err(RegistryError::VersionExists { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(winners.len(), 1, "{package}");
            let registry = shop.registry();
            let found = registry.version(&name(package), &version("1.0.0")).await.unwrap();
            assert_eq!(found.sha256, winners[0]);
            assert!(registry.blob(&found.sha256).await.unwrap().is_some());
            let members = registry.members(&name(package).owner_scope()).await.unwrap();
            assert_eq!(members.len(), 1);
            assert_eq!(Some(members[0].user_id), found.published_by);
            let changes = registry.changes(head, 10).await.unwrap();
            let package = Some(name(package));
            assert_eq!(changes.iter().filter(|change| change.package == package).count(), 1);
        }
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publishes_of_one_package_all_succeed() {
    for_each_registry(async |shop| {
        let (other, storage) = shop.again().await;
        let tasks = (0..24_usize).map(|n| {
            let (database, storage) =
                (if n % 2 == 0 { shop.database.clone() } else { other.clone() }, storage.clone());
            let (new, actor) = (draft("acme/tool", &format!("1.{n}.0")), shop.alice());
            async move { new.publish(database.registry(&storage), &actor).await.unwrap().seq }
        });
        let seqs: BTreeSet<u64> = run_concurrently(tasks).await.into_iter().collect();
        assert_eq!(seqs.len(), 24);
        let registry = shop.registry();
        let package = registry.package(&name("acme/tool")).await.unwrap().unwrap();
        assert_eq!((package.versions.len(), package.summary.latest), (24, Some(version("1.23.0"))));
        let index = registry.index(&name("acme/tool")).await.unwrap().unwrap();
        assert_eq!(index.text.lines().count(), 24, "the index misses none");
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_namespace_creation_has_one_owner() {
    for_each_registry(async |shop| {
        let tasks = (0..10_usize).map(|n| {
            let (database, storage) = (shop.database.clone(), shop.storage.clone());
            let actor = Actor::person(if n % 2 == 0 { &shop.bob } else { &shop.alice });
            let new = draft(&format!("acme/tool-{n}"), "1.0.0");
            async move { (n, new.publish(database.registry(&storage), &actor).await) }
        });
        let mut done = BTreeSet::new();
        for (n, result) in run_concurrently(tasks).await {
            match result {
                Ok(_) => drop(done.insert(n % 2)),
                Err(RegistryError::NotMember { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(done.len(), 1, "all of one person's, none of the other's");
        assert_eq!(shop.registry().members(&"acme".parse().unwrap()).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_publish_is_atomic() {
    for_each_registry(async |shop| {
        let rounds = if shop.place.is_sqlite() { 60 } else { 30 };
        for n in 0..rounds {
            let (database, storage) = (shop.database.clone(), shop.storage.clone());
            let new = draft("acme/tool", &format!("1.0.{n}"));
            let actor = shop.alice();
            let task = tokio::spawn({
                let new = new.clone();
                async move { new.publish(database.registry(&storage), &actor).await }
            });
            tokio::time::sleep(std::time::Duration::from_micros(n * 397 % 25_000)).await;
            task.abort();
            let done = matches!(task.await, Ok(Ok(_)));
            let registry = shop.registry();
            let again = new.publish(registry, &shop.alice()).await;
            match again {
                Ok(_) => assert!(!done, "what was acknowledged is there"),
                Err(RegistryError::VersionExists { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            let found = registry.version(&new.package, &new.version).await.unwrap();
            assert_eq!(registry.blob(&found.sha256).await.unwrap().unwrap(), new.artefact);
        }
        let registry = shop.registry();
        let index = registry.index(&name("acme/tool")).await.unwrap().unwrap();
        assert_eq!(index.text.lines().count() as u64, rounds);
        assert_eq!(registry.head().await.unwrap(), rounds + 1, "one for the namespace");
    })
    .await;
}
