//! Tests of keys that were displaced because another owner proved possession.

use savoir_store::{
    Database,
    registry::{Actor, Namespace, NewKey, OwnerScope, Registry, TeamRole},
};

use super::{
    Shop,
    backup::{export, import},
    for_each_registry,
};

/// The reason of a displaced key, which a user can also write when revoking a key.
const WORDS: &str = "somebody else showed that it is theirs";

/// Registers a key, or returns the error code.
async fn add(
    registry: Registry<'_>,
    actor: &Actor,
    (owner_scope, key_id): (&OwnerScope, &str),
    proved: bool,
) -> Result<(), &'static str> {
    let (public_key, label) = ("AAAA", "laptop");
    let key = NewKey { owner_scope, key_id, public_key, label, account: None, proved };
    registry.add_key(actor, key).await.map_err(|error| error.code())
}

/// Creates a namespace of Alice and one of Bob. Bob has proved possession of `displaced`. Alice
/// revoked `revoked` with the reason that displaced keys have.
async fn displaced_and_revoked_keys(shop: &Shop<'_>) -> [OwnerScope; 2] {
    let registry = shop.registry();
    let [acme, bobs] = ["acme", "bobs"].map(|name| name.parse::<OwnerScope>().unwrap());
    for (actor, name) in [(shop.alice(), "acme"), (shop.bob(), "bobs")] {
        registry.create_namespace(&actor, &Namespace::parse(name).unwrap()).await.unwrap();
    }
    for key_id in ["displaced", "revoked"] {
        add(registry, &shop.alice(), (&acme, key_id), false).await.unwrap();
    }
    add(registry, &shop.bob(), (&bobs, "displaced"), true).await.unwrap();
    registry.revoke_key(&shop.alice(), &acme, "revoked", WORDS).await.unwrap();
    let keys = registry.keys(&acme).await.unwrap();
    assert!(keys.iter().all(|key| key.revoked.as_ref().is_some_and(|(_, why)| why == WORDS)));
    registry.set_member(&shop.bob(), &bobs, shop.alice.id, TeamRole::Owner).await.unwrap();
    [acme, bobs]
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_stays_revoked_whatever_its_reason() {
    for_each_registry(async |shop| {
        let (registry, alice) = (shop.registry(), shop.alice());
        let [acme, _] = displaced_and_revoked_keys(shop).await;
        assert_eq!(add(registry, &alice, (&acme, "revoked"), true).await, Err("key_revoked"));
        assert_eq!(add(registry, &alice, (&acme, "displaced"), false).await, Err("key_revoked"));
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Ok(()));
        registry.revoke_key(&alice, &acme, "displaced", "lost").await.unwrap();
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Err("key_revoked"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn displaced_key_can_be_revoked_permanently() {
    for_each_registry(async |shop| {
        let [acme, _] = displaced_and_revoked_keys(shop).await;
        let (registry, alice) = (shop.registry(), shop.alice());
        let lowered = registry.revoke_key(&alice, &acme, "displaced", "stolen").await.unwrap();
        assert_eq!(lowered, 0);
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Err("key_revoked"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_distinguishes_displaced_from_revoked_keys() {
    for_each_registry(async |shop| {
        let [acme, bobs] = displaced_and_revoked_keys(shop).await;
        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let restored = database.registry(&shop.storage);
        import(restored, &export(shop.registry()).await).await.unwrap();
        let operator = Actor::operator();
        restored.revoke_key(&operator, &bobs, "displaced", "lost").await.unwrap();
        assert_eq!(add(restored, &operator, (&acme, "revoked"), true).await, Err("key_revoked"));
        assert_eq!(add(restored, &operator, (&acme, "displaced"), true).await, Ok(()));
        database.close().await;
    })
    .await;
}

/// Older databases stored only the reason.
#[tokio::test(flavor = "multi_thread")]
async fn displaced_key_of_older_database_can_be_proved() {
    for_each_registry(async |shop| {
        let [acme, _] = displaced_and_revoked_keys(shop).await;
        let older = "ALTER TABLE registry_keys DROP COLUMN displaced_at;
            UPDATE registry_keys SET revoked_why = 'lost' WHERE key_id = 'revoked';
            DELETE FROM schema_versions WHERE version = 8";
        shop.place.raw(older).await;
        let database = shop.place.again().await;
        let (registry, alice) = (database.registry(&shop.storage), shop.alice());
        assert_eq!(add(registry, &alice, (&acme, "revoked"), true).await, Err("key_revoked"));
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Ok(()));
        database.close().await;
    })
    .await;
}
