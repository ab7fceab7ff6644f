use savoir_store::{NewDocument, Quotas, StoreError, registry::RegistryError};

use super::{draft, for_each_registry, name, run_concurrently};

fn reached(error: &RegistryError) -> String {
    assert_eq!(error.code(), "quota_reached", "{error}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publishes_respect_the_quota() {
    for_each_registry(async |shop| {
        let quotas = Quotas { versions: 3, ..Quotas::NONE };
        let (other, storage) = shop.again().await;
        let tasks = (0..12_usize).map(|n| {
            let database = if n % 2 == 0 { shop.database.clone() } else { other.clone() };
            let (database, storage) = (database.with_quotas(quotas), storage.clone());
            let (new, actor) = (draft(&format!("tool{n}"), "1.0.0"), shop.alice());
            async move { new.publish(database.registry(&storage), &actor).await }
        });
        let results = run_concurrently(tasks).await;
        let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(refused.len(), 9);
        for error in refused {
            assert!(reached(error).contains("3 of 3 versions; "), "{error}");
        }
        // Other accounts have their own quota, and administrators have none.
        let database = shop.database.clone().with_quotas(quotas);
        let registry = database.registry(&shop.storage);
        draft("bobs", "1.0.0").publish(registry, &shop.bob()).await.unwrap();
        for n in 0..4 {
            let new = draft(&format!("ruled{n}"), "1.0.0");
            new.publish(registry, &shop.admin()).await.unwrap();
        }
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn byte_quota_covers_versions_and_documents() {
    for_each_registry(async |shop| {
        let quotas = Quotas { bytes: 1000, ..Quotas::NONE };
        let database = shop.database.clone().with_quotas(quotas);
        let knowledge = database.knowledge();
        let base = knowledge.create("notes", Some(shop.alice.id)).await.unwrap().id;
        let document = |id, file_size| NewDocument { id, kb_id: &base, filename: "a", file_size };
        knowledge.add_document(document("one", 700)).await.unwrap();
        let mut heavy = draft("heavy", "1.0.0");
        heavy.artefact = vec![7; 301].into();
        let registry = database.registry(&shop.storage);
        let error = heavy.publish(registry, &shop.alice()).await.unwrap_err();
        assert!(reached(&error).contains("700 of 1000 bytes, and this has 301;"), "{error}");
        let found = registry.package(&name("heavy")).await.unwrap();
        assert_eq!(found.map(drop), None, "nothing of it is there");
        heavy.artefact = vec![7; 300].into();
        heavy.publish(registry, &shop.alice()).await.unwrap();
        let error = knowledge.add_document(document("two", 1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Quota(_)), "{error}");
        // Deleting a document frees its quota.
        assert!(knowledge.delete_document(&base, "one").await.unwrap());
        knowledge.add_document(document("two", 1)).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn document_quota_is_separate() {
    for_each_registry(async |shop| {
        let database = shop.database.clone().with_quotas(Quotas { documents: 2, ..Quotas::NONE });
        let knowledge = database.knowledge();
        for (owner, most) in [(Some(shop.alice.id), 2), (Some(shop.admin.id), 5), (None, 5)] {
            let base = knowledge.create("notes", owner).await.unwrap().id;
            let mut added = 0;
            for n in 0..5 {
                let id = format!("{owner:?} {n}");
                let new = NewDocument { id: &id, kb_id: &base, filename: "a", file_size: 1 };
                added += u32::from(knowledge.add_document(new).await.is_ok());
            }
            assert_eq!(added, most, "{owner:?}");
        }
    })
    .await;
}
