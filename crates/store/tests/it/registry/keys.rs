//! Keys that somebody else showed to be theirs, on both kinds of databases.

use savoir_store::{
    Database,
    registry::{Actor, Namespace, NewKey, OwnerScope, Registry, TeamRole},
};

use super::{
    Shop,
    backup::{export, import},
    for_each_registry,
};

/// What anybody can write who revokes a key.
const WORDS: &str = "somebody else showed that it is theirs";

/// Registers a key, or tells why not.
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

/// Two namespaces of Alice's and Bob's. Bob has shown that `displaced` is his, and Alice revoked `revoked`
/// with the words that tell of such a key.
async fn two_that_ended(shop: &Shop<'_>) -> [OwnerScope; 2] {
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
async fn one_that_was_revoked_stays_so_whatever_the_reason_says() {
    for_each_registry(async |shop| {
        let (registry, alice) = (shop.registry(), shop.alice());
        let [acme, _] = two_that_ended(shop).await;
        assert_eq!(add(registry, &alice, (&acme, "revoked"), true).await, Err("key_revoked"));
        assert_eq!(add(registry, &alice, (&acme, "displaced"), false).await, Err("key_revoked"));
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Ok(()));
        registry.revoke_key(&alice, &acme, "displaced", "lost").await.unwrap();
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Err("key_revoked"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_ended_is_revoked_for_good_by_its_owner() {
    for_each_registry(async |shop| {
        let [acme, _] = two_that_ended(shop).await;
        let (registry, alice) = (shop.registry(), shop.alice());
        let lowered = registry.revoke_key(&alice, &acme, "displaced", "stolen").await.unwrap();
        assert_eq!(lowered, 0);
        assert_eq!(add(registry, &alice, (&acme, "displaced"), true).await, Err("key_revoked"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_tells_them_apart() {
    for_each_registry(async |shop| {
        let [acme, bobs] = two_that_ended(shop).await;
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

/// Older programs knew the reason alone.
#[tokio::test(flavor = "multi_thread")]
async fn those_of_older_databases_can_be_shown_later() {
    for_each_registry(async |shop| {
        let [acme, _] = two_that_ended(shop).await;
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
