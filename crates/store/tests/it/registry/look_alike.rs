use savoir_store::registry::Namespace;

use super::{draft, for_each_registry, publish, run_concurrently};

#[tokio::test(flavor = "multi_thread")]
async fn look_alike_namespace_is_rejected() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        let refused =
            draft("acrne/tool", "1.0.0").publish(registry, &shop.bob()).await.unwrap_err();
        assert_eq!(refused.code(), "looks_alike");
        let text = refused.to_string();
        assert!(text.contains("`acrne` looks like the namespace `acme`"), "{text}");
        assert!(text.contains("administrator"), "{text}");
        let space = |text: &str| Namespace::parse(text).unwrap();
        let taken = registry.create_namespace(&shop.bob(), &space("acrne")).await.unwrap_err();
        assert_eq!(taken.code(), "looks_alike");
        let anonymous = registry.create_namespace(&shop.bob(), &space("an0n")).await.unwrap_err();
        assert_eq!(anonymous.code(), "looks_alike");
        // Owners may create look-alikes of their own namespaces, and an administrator may create
        // any.
        registry.create_namespace(&shop.alice(), &space("acrne")).await.unwrap();
        publish(shop, &shop.bob(), "vvave/tool", "1.0.0").await;
        registry.create_namespace(&shop.admin(), &space("wave")).await.unwrap();
        // A name with a clearly different character is free.
        publish(shop, &shop.bob(), "acne/tool", "1.0.0").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_look_alikes_create_one_namespace() {
    for_each_registry(async |shop| {
        let (other, storage) = shop.again().await;
        let tasks = ["lily", "1i1y"].into_iter().enumerate().map(|(n, space)| {
            let (database, storage) =
                (if n == 0 { shop.database.clone() } else { other.clone() }, storage.clone());
            let actor = if n == 0 { shop.alice() } else { shop.bob() };
            let space = Namespace::parse(space);
            async move {
                let space = space.unwrap();
                database.registry(&storage).create_namespace(&actor, &space).await.is_ok()
            }
        });
        assert_eq!(run_concurrently(tasks).await.into_iter().filter(|made| *made).count(), 1);
        other.close().await;
    })
    .await;
}
