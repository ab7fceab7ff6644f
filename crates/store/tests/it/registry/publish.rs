use std::time::Duration;

use bytes::Bytes;
use savoir_skill::permission::Tier;
use savoir_store::{
    Database, Storage,
    registry::{
        Actor, DownloadCounter, NewKey, NewSignature, RegistryError, Signer, TeamRole, VersionFacts,
    },
};

use super::{Shop, draft, for_each_registry, name, publish, version};

#[tokio::test(flavor = "multi_thread")]
async fn published_version_can_be_read() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let new = draft("acme/tool", "1.2.0");
        let done = new.publish(registry, &shop.alice()).await.unwrap();
        assert_eq!((done.attested, done.latest), (Tier::Experimental, Some(version("1.2.0"))));
        let (database, storage) = shop.again().await;
        let registry = database.registry(&storage);
        let found = registry.version(&new.package, &new.version).await.unwrap();
        assert_eq!((&found.facts, found.claimed), (&new.facts, new.claimed));
        let size = new.artefact.len() as u64;
        assert_eq!((found.sha256.as_str(), found.size), (done.sha256.as_str(), size));
        assert_eq!(found.published_by, Some(shop.alice.id));
        assert_eq!(found.scan.as_ref().unwrap().0, super::allow());
        assert_eq!(registry.blob(&found.sha256).await.unwrap().unwrap(), new.artefact);
        assert_eq!(registry.blob(&found.skill_md).await.unwrap().unwrap(), new.skill_md);
        let package = registry.package(&new.package).await.unwrap().unwrap();
        assert_eq!(package.summary.tags, ["all", "web"]);
        assert_eq!(package.versions.len(), 1);
        assert_eq!(registry.head().await.unwrap(), done.seq);
        database.close().await;
    })
    .await;
}

/// Servers call the registry from spawned tasks, so its futures must be `Send`.
#[tokio::test(flavor = "multi_thread")]
async fn registry_works_in_spawned_tasks() {
    for_each_registry(async |shop| {
        let (database, storage) = shop.again().await;
        let (alice, bob, admin) = (shop.alice.clone(), shop.bob.clone(), shop.admin());
        tokio::spawn(async move {
            let (registry, actor) = (database.registry(&storage), Actor::person(&alice));
            let (tool, one, acme) = (name("acme/tool"), version("1.0.0"), "acme".parse().unwrap());
            draft("acme/tool", "1.0.0").publish(registry, &actor).await.unwrap();
            registry.set_member(&actor, &acme, bob.id, TeamRole::Publisher).await.unwrap();
            registry.transfer(&actor, &acme, alice.id, bob.id).await.unwrap();
            let (actor, key_id) = (Actor::person(&bob), "k");
            registry.remove_member(&admin, &acme, alice.id).await.unwrap_err();
            let key = NewKey {
                owner_scope: &acme,
                key_id,
                public_key: "p",
                label: "",
                account: None,
                proved: false,
            };
            registry.add_key(&actor, key).await.unwrap();
            let signature = NewSignature {
                signer: Signer::Publisher,
                key_id: key_id.to_owned(),
                record: String::new(),
            };
            registry.add_signature(&actor, &tool, &one, &signature).await.unwrap();
            registry.set_scan(&admin, &tool, &one, &super::allow()).await.unwrap();
            assert_eq!(registry.revoke_key(&actor, &acme, key_id, "").await.unwrap(), 1);
            registry.yank(&actor, &tool, &one, None).await.unwrap();
            registry.unyank(&actor, &tool, &one).await.unwrap();
            registry.deprecate(&actor, &tool, None, Some("x")).await.unwrap();
            registry.resolve_version(&tool, &"*".parse().unwrap()).await.unwrap();
            registry.list(&<_>::default(), <_>::default(), None, 1).await.unwrap();
            registry.indexes(std::slice::from_ref(&tool)).await.unwrap();
            registry.summaries(std::slice::from_ref(&tool)).await.unwrap();
            registry.indexes_after(None, 9).await.unwrap();
            registry.add_downloads(&DownloadCounter::default()).await.unwrap();
            registry.withdraw(&admin, &tool, &one, "x").await.unwrap();
            registry.sweep(Duration::ZERO).await.unwrap();
            let head = registry.head().await.unwrap();
            assert_eq!(registry.changes(0, 99).await.unwrap().len() as u64, head);
            registry.audit(&<_>::default(), None, 9).await.unwrap();
            registry.export().await.unwrap().next_page().await.unwrap();
            registry.import(&admin).await.unwrap().finish().await.unwrap();
            database.close().await;
        })
        .await
        .unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_version_cannot_be_replaced() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let first = publish(shop, &shop.alice(), "tool", "1.0.0").await;
        let head = registry.head().await.unwrap();
        for (text, actor) in
            [("1.0.0", shop.alice()), ("1.0.0+other", shop.alice()), ("1.0.0", shop.bob())]
        {
            let mut again = draft("tool", text);
            again.artefact = Bytes::from_static(b"something else");
            match again.publish(registry, &actor).await.unwrap_err() {
                RegistryError::VersionExists { package, version: found, sha256 } => {
                    assert_eq!((package, found), (name("tool"), version("1.0.0")));
                    assert_eq!(sha256, first.sha256, "a retry gets the existing digest");
                }
                other => panic!("{other}"),
            }
        }
        let found = registry.version(&name("tool"), &version("1.0.0")).await.unwrap();
        assert_eq!(found.sha256, first.sha256);
        assert_eq!(registry.head().await.unwrap(), head, "a refusal is not a change");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_version_number_cannot_be_reused() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        let gone = publish(shop, &shop.alice(), "acme/tool", "2.0.0").await;
        let (package, two) = (name("acme/tool"), version("2.0.0"));
        let error = registry.withdraw(&shop.alice(), &package, &two, "x").await.unwrap_err();
        assert_eq!(error.code(), "not_admin");
        registry.withdraw(&shop.admin(), &package, &two, "it steals").await.unwrap();
        let error = registry.version(&package, &two).await.unwrap_err();
        assert!(error.to_string().contains("it steals"), "{error}");
        assert_eq!(error.code(), "withdrawn");
        let summary = registry.package(&package).await.unwrap().unwrap();
        assert_eq!(summary.summary.latest, Some(version("1.0.0")));
        assert_eq!(summary.versions.len(), 1);
        let index = registry.index(&package).await.unwrap().unwrap().text;
        let index = index.lines().next().unwrap();
        assert!(index.contains("\"withdrawn\":true") && index.contains("it steals"), "{index}");
        assert!(!index.contains("sha256"), "digests are removed: {index}");
        for text in ["2.0.0", "2.0.0+new"] {
            let error =
                draft("acme/tool", text).publish(registry, &shop.alice()).await.unwrap_err();
            assert_eq!(error.code(), "version_exists");
        }
        for result in [
            registry.yank(&shop.alice(), &package, &two, None).await.map(drop),
            registry.withdraw(&shop.admin(), &package, &two, "again").await,
        ] {
            assert_eq!(result.unwrap_err().code(), "withdrawn");
        }
        expire_claims(shop).await;
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 2);
        assert_eq!(registry.blob(&gone.sha256).await.unwrap(), None);
        // A package without versions is in no list, but still has its owner.
        registry.withdraw(&shop.admin(), &package, &version("1.0.0"), "too").await.unwrap();
        let page = registry.list(&<_>::default(), <_>::default(), None, 10).await.unwrap();
        assert!(page.items.is_empty());
        let error = draft("acme/tool", "3.0.0").publish(registry, &shop.bob()).await.unwrap_err();
        assert_eq!(error.code(), "not_member");
        publish(shop, &shop.alice(), "acme/tool", "3.0.0").await;
    })
    .await;
}

/// Makes the claims of blobs expire, as if a publish had taken too long.
async fn expire_claims(shop: &Shop<'_>) {
    shop.place.raw("UPDATE blob_claims SET ends_at = 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_removes_unreferenced_blobs() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let kept = publish(shop, &shop.alice(), "tool", "1.0.0").await;
        // A publish that failed after its blobs were written.
        let mut orphan = draft("tool", "2.0.0");
        orphan.facts = VersionFacts { author: Some("x".repeat(999)), ..VersionFacts::default() };
        assert!(orphan.publish(registry, &shop.alice()).await.is_err());
        assert_eq!(
            registry.sweep(Duration::ZERO).await.unwrap(),
            0,
            "refused before it was written"
        );
        let digest = registry.put_blob(Bytes::from_static(b"orphan")).await.unwrap();
        assert_eq!(registry.sweep(Duration::from_hours(1)).await.unwrap(), 0, "too young");
        assert!(registry.blob(&digest).await.unwrap().is_some());
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 1);
        assert_eq!(registry.blob(&digest).await.unwrap(), None);
        expire_claims(shop).await;
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 0);
        assert!(registry.blob(&kept.sha256).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_keeps_claimed_blobs() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let digest = registry.put_blob(Bytes::from_static(b"soon needed")).await.unwrap();
        let later = savoir_store::Timestamp::now().plus(Duration::from_mins(5)).micros();
        let claim = format!("INSERT INTO blob_claims VALUES ('{digest}', {later})");
        shop.place.raw(&claim).await;
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 0);
        expire_claims(shop).await;
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_fails_if_another_database_uses_the_storage() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let own = registry.mark().await.unwrap();
        assert_eq!(registry.mark().await.unwrap(), own, "it keeps its name");
        let folder = tempfile::tempdir().unwrap();
        let another = Database::open_folder(folder.path()).await.unwrap();
        let other = another.registry(&shop.storage);
        let digest = other.put_blob(Bytes::from_static(b"of the other")).await.unwrap();
        let others = other.mark().await.unwrap();
        for refused in [registry.sweep(Duration::ZERO).await, other.sweep(Duration::ZERO).await] {
            assert_eq!(refused.unwrap_err().code(), "shared_storage");
        }
        assert!(registry.blob(&digest).await.unwrap().is_some());
        assert_eq!(registry.unmark(&own).await.unwrap_err().code(), "invalid_request");
        assert!(!registry.unmark("nobody").await.unwrap());
        assert!(registry.unmark(&others).await.unwrap());
        assert_eq!(registry.sweep(Duration::ZERO).await.unwrap(), 1);
        another.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_database_counts_as_another() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::fs::create_dir_all(&one).unwrap();
    std::fs::create_dir_all(&two).unwrap();
    let storage = Storage::folder(folder.path()).unwrap();
    let first = Database::open_folder(&one).await.unwrap();
    let name = first.registry(&storage).mark().await.unwrap();
    first.close().await;
    std::fs::copy(one.join("savoir.sqlite"), two.join("savoir.sqlite")).unwrap();
    let first = Database::open_folder(&one).await.unwrap();
    let second = Database::open_folder(&two).await.unwrap();
    assert_eq!(first.registry(&storage).mark().await.unwrap(), name, "it lies where it lay");
    let copied = second.registry(&storage).mark().await.unwrap();
    assert_ne!(copied, name);
    for database in [&first, &second] {
        let refused = database.registry(&storage).sweep(Duration::ZERO).await;
        assert_eq!(refused.unwrap_err().code(), "shared_storage");
    }
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_short_name_is_rejected() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        draft("acme/my-skill", "1.0.0").publish(registry, &shop.alice()).await.unwrap();
        for taken in ["acme-my-skill", "acme-my/skill"] {
            let refused = draft(taken, "9.9.9").publish(registry, &shop.bob()).await.unwrap_err();
            assert_eq!(refused.code(), "invalid_name", "{taken}");
            assert!(refused.to_string().contains("`acme/my-skill` as `acme-my-skill`"));
            assert!(registry.package(&name(taken)).await.unwrap().is_none(), "nothing is left");
        }
        draft("acme/my-skill", "1.1.0").publish(registry, &shop.alice()).await.unwrap();
        for n in 0..6 {
            let (flat, deep) =
                (draft(&format!("b-x{n}"), "1.0.0"), draft(&format!("b/x{n}"), "1.0.0"));
            let (alice, bob) = (shop.alice(), shop.bob());
            let (one, two) =
                tokio::join!(flat.publish(registry, &alice), deep.publish(registry, &bob));
            assert!(one.is_ok() != two.is_ok(), "one of both: {one:?} {two:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appeals_are_rate_limited() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let (package, one) = (name("bad"), version("1.0.0"));
        let appeal = async |n: u32| {
            let digest = format!("{n:064x}");
            registry.appeal(&shop.alice(), &package, &one, &digest, "it is ours").await
        };
        for n in 0..20 {
            appeal(n).await.unwrap();
        }
        assert_eq!(appeal(3).await.unwrap_err().code(), "exists");
        // A rejected appeal is not logged, even if it is repeated.
        for _ in 0..2 {
            assert_eq!(appeal(20).await.unwrap_err().code(), "too_often");
        }
        let other = registry.appeal(&shop.bob(), &package, &one, &"0".repeat(64), "mine").await;
        other.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sweeps_and_publishes_lose_no_blob() {
    for_each_registry(async |shop| {
        let sweeper = {
            let (database, storage) = shop.again().await;
            tokio::spawn(async move {
                loop {
                    match database.registry(&storage).sweep(Duration::ZERO).await {
                        Ok(_) | Err(RegistryError::Busy) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        };
        let rounds = if shop.place.is_sqlite() { 20 } else { 6 };
        for n in 0..rounds {
            // The same bytes as an orphaned blob that a sweep may remove at the same time.
            let bytes = Bytes::from(format!("bytes {n}"));
            shop.registry().put_blob(bytes.clone()).await.unwrap();
            let mut new = draft("tool", &format!("1.0.{n}"));
            new.artefact = bytes;
            new.publish(shop.registry(), &shop.alice()).await.unwrap();
        }
        sweeper.abort();
        for n in 0..rounds {
            let found = shop.registry().version(&name("tool"), &version(&format!("1.0.{n}"))).await;
            let bytes = shop.registry().blob(&found.unwrap().sha256).await.unwrap();
            assert_eq!(bytes.unwrap(), format!("bytes {n}"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_publish_leaves_nothing() {
    for_each_registry(async |shop| {
        // A file where the folder of blobs should be makes every write fail, like a full disk.
        let broken = tempfile::TempDir::new().unwrap();
        std::fs::write(broken.path().join("registry"), "").unwrap();
        let storage = Storage::folder(broken.path()).unwrap();
        let registry = shop.database.registry(&storage);
        let error = draft("acme/tool", "1.0.0").publish(registry, &shop.alice()).await.unwrap_err();
        assert_eq!(error.code(), "store_failed");
        let registry = shop.registry();
        assert_eq!(registry.package(&name("acme/tool")).await.unwrap(), None);
        assert_eq!(registry.head().await.unwrap(), 0);
        assert!(registry.members(&"acme".parse().unwrap()).await.unwrap().is_empty());

        let (database, storage) = shop.again().await;
        database.close().await;
        let registry = database.registry(&storage);
        let error = draft("acme/tool", "1.0.0").publish(registry, &shop.alice()).await.unwrap_err();
        assert_eq!(error.code(), "store_failed");
        publish(shop, &shop.bob(), "acme/tool", "1.0.0").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_blob_is_not_served() {
    let folder = tempfile::TempDir::new().unwrap();
    let storage = Storage::folder(folder.path()).unwrap();
    let database = savoir_store::Database::open_folder(folder.path()).await.unwrap();
    let registry = database.registry(&storage);
    let done = draft("tool", "1.0.0").publish(registry, &Actor::operator()).await.unwrap();
    let file = folder.path().join(format!("registry/blobs/{}/{0}", &done.sha256[..2]));
    let file = file.parent().unwrap().join(&done.sha256);
    std::fs::write(file, "something else").unwrap();
    assert!(registry.blob(&done.sha256).await.unwrap_err().to_string().contains("damaged"));
    for no_digest in ["", "..", "../../savoir.sqlite", &"A".repeat(64)] {
        assert_eq!(registry.blob(no_digest).await.unwrap(), None);
    }
}
