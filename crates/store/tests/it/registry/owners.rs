use std::time::Duration;

use savoir_store::{
    NewToken, Timestamp, User,
    registry::{Actor, Namespace, NewKey, OwnerScope, RegistryError, TeamRole},
};

use super::{Shop, draft, for_each_registry, name, publish, version};

fn code<T: std::fmt::Debug>(result: Result<T, RegistryError>) -> &'static str {
    result.unwrap_err().code()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_members_publish_in_a_namespace() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let acme: OwnerScope = "acme".parse().unwrap();
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        let bob = shop.bob.id;
        let new = draft("acme/other", "1.0.0");
        assert_eq!(code(new.publish(registry, &shop.bob()).await), "not_member");
        registry.set_member(&shop.alice(), &acme, bob, TeamRole::Publisher).await.unwrap();
        new.publish(registry, &shop.bob()).await.unwrap();
        let publisher = shop.bob();
        let yes = registry.yank(&publisher, &name("acme/tool"), &version("1.0.0"), None).await;
        assert!(yes.unwrap());
        let result = registry.set_member(&publisher, &acme, bob, TeamRole::Owner).await;
        assert_eq!(code(result), "not_owner");
        let result = registry.remove_member(&publisher, &acme, shop.alice.id).await;
        assert_eq!(code(result), "not_owner");
        let (alice, lower) = (shop.alice(), TeamRole::Publisher);
        let result = registry.set_member(&alice, &acme, shop.alice.id, lower).await;
        assert_eq!(code(result), "last_owner");
        let result = registry.remove_member(&shop.alice(), &acme, shop.alice.id).await;
        assert_eq!(code(result), "last_owner");
        let result = registry.set_member(&shop.alice(), &acme, 4711, TeamRole::Owner).await;
        assert_eq!(code(result), "not_found");
        registry.remove_member(&publisher, &acme, bob).await.unwrap();
        let next = draft("acme/other", "2.0.0");
        assert_eq!(code(next.publish(registry, &shop.bob()).await), "not_member");
        assert_eq!(registry.members(&acme).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_in_shared_namespaces_have_own_owners() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        for package in ["tool", "anon/note"] {
            publish(shop, &shop.alice(), package, "1.0.0").await;
            let next = draft(package, "1.1.0");
            assert_eq!(code(next.publish(registry, &shop.bob()).await), "not_member");
            publish(shop, &shop.bob(), &format!("{package}-of-bob"), "1.0.0").await;
            let owner_scope = name(package).owner_scope();
            registry
                .transfer(&shop.alice(), &owner_scope, shop.alice.id, shop.bob.id)
                .await
                .unwrap();
            next.publish(registry, &shop.bob()).await.unwrap();
            let next = draft(package, "1.2.0");
            assert_eq!(code(next.publish(registry, &shop.alice()).await), "not_member");
        }
        let mine = registry.memberships(shop.bob.id).await.unwrap();
        let mine: Vec<_> = mine.iter().map(|member| member.owner_scope.as_str()).collect();
        assert_eq!(mine, ["_/tool", "_/tool-of-bob", "anon/note", "anon/note-of-bob"]);
        let anon = Namespace::anonymous();
        assert_eq!(code(registry.create_namespace(&shop.alice(), &anon).await), "invalid_name");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_departures_leave_one_owner() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let acme: OwnerScope = "acme".parse().unwrap();
        let namespace = Namespace::parse("acme").unwrap();
        registry.create_namespace(&shop.alice(), &namespace).await.unwrap();
        assert_eq!(code(registry.create_namespace(&shop.bob(), &namespace).await), "exists");
        registry.set_member(&shop.alice(), &acme, shop.bob.id, TeamRole::Owner).await.unwrap();
        let (database, storage) = shop.again().await;
        let other = database.registry(&storage);
        let (alice, bob) = (shop.alice(), shop.bob());
        let (one, two) = tokio::join!(
            registry.remove_member(&alice, &acme, shop.alice.id),
            other.remove_member(&bob, &acme, shop.bob.id),
        );
        assert!(one.is_ok() ^ two.is_ok(), "{one:?} {two:?}");
        assert_eq!(registry.members(&acme).await.unwrap().len(), 1);
        database.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_prefixes_need_a_grant() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let names = ["mcp-files", "acme/gaia-core", "amd/tool", "gaia-labs/tool"];
        for package in names {
            let new = draft(package, "1.0.0");
            assert_eq!(code(new.publish(registry, &shop.alice()).await), "reserved_prefix");
        }
        let namespace = Namespace::parse("amd").unwrap();
        let result = registry.create_namespace(&shop.alice(), &namespace).await;
        assert_eq!(code(result), "reserved_prefix");
        let alice = shop.alice.id;
        assert_eq!(code(registry.grant_prefix(&shop.alice(), alice, "mcp-").await), "not_admin");
        let result = registry.grant_prefix(&shop.admin(), alice, "web-").await;
        assert_eq!(code(result), "invalid_request");
        registry.grant_prefix(&shop.admin(), alice, "mcp-").await.unwrap();
        publish(shop, &shop.alice(), "mcp-files", "1.0.0").await;
        let new = draft("amd/tool", "1.0.0");
        assert_eq!(code(new.publish(registry, &shop.alice()).await), "reserved_prefix");
        assert_eq!(registry.prefixes(alice).await.unwrap(), ["mcp-"]);
        registry.revoke_prefix(&shop.admin(), alice, "mcp-").await.unwrap();
        let next = draft("mcp-files", "1.1.0");
        assert_eq!(code(next.publish(registry, &shop.alice()).await), "reserved_prefix");
        publish(shop, &shop.admin(), "amd/tool", "1.0.0").await;
    })
    .await;
}

async fn with_token(shop: &Shop<'_>, user: &User, scopes: &[&str]) -> Actor {
    let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let digest = uuid::Uuid::new_v4().to_string();
    let accounts = shop.database.accounts();
    let token = NewToken {
        user_id: user.id,
        name: "ci",
        scopes: &scopes,
        digest: &digest,
        expires_at: Some(Timestamp::now().plus(Duration::from_millis(1500))),
        since: Timestamp::now(),
    };
    accounts.add_token(&Actor::person(user), token).await.unwrap().unwrap();
    let (token, user) = accounts.by_token_digest(&digest).await.unwrap().unwrap();
    let actor = Actor::program(&user, &token);
    if scopes.iter().any(|scope| scope == "expires") {
        tokio::time::sleep(Duration::from_millis(1600)).await;
        assert!(accounts.by_token_digest(&digest).await.unwrap().is_none(), "its time is over");
    }
    actor
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_limited_to_its_scopes() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let (tool, one) = (name("acme/tool"), version("1.0.0"));
        let new = draft("acme/tool", "1.0.0");
        let here = with_token(shop, &shop.alice, &["registry:publish:acme", "skills:read"]).await;
        for scopes in
            [&["skills:write", "admin"][..], &["registry:publish:other"], &[], &["expires"]]
        {
            let actor = with_token(shop, &shop.alice, scopes).await;
            assert_eq!(code(new.publish(registry, &actor).await), "missing_scope");
        }
        new.publish(registry, &here).await.unwrap();
        let elsewhere = draft("other/tool", "1.0.0");
        assert_eq!(code(elsewhere.publish(registry, &here).await), "missing_scope");
        assert_eq!(code(registry.yank(&here, &tool, &one, None).await), "missing_scope");
        let yank = with_token(shop, &shop.alice, &["registry:yank"]).await;
        assert!(registry.yank(&yank, &tool, &one, None).await.unwrap());
        let acme: OwnerScope = "acme".parse().unwrap();
        let result = registry.set_member(&yank, &acme, shop.bob.id, TeamRole::Owner).await;
        assert_eq!(code(result), "missing_scope");
        let key = NewKey {
            owner_scope: &acme,
            key_id: "k",
            public_key: "p",
            label: "l",
            account: None,
            proved: false,
        };
        assert_eq!(code(registry.add_key(&yank, key.clone()).await), "missing_scope");
        let owner = with_token(shop, &shop.alice, &["registry:owner:acme"]).await;
        registry.add_key(&owner, key).await.unwrap();
        // The token of another account does not help, whatever its scopes are.
        let bobs = with_token(shop, &shop.bob, &["registry:publish", "registry:yank"]).await;
        assert_eq!(code(registry.unyank(&bobs, &tool, &one).await), "not_member");
        // A token of an administrator needs the scope `admin`.
        let weak = with_token(shop, &shop.admin, &["registry:yank"]).await;
        assert_eq!(code(registry.withdraw(&weak, &tool, &one, "x").await), "not_admin");
        let strong = with_token(shop, &shop.admin, &["registry:yank", "admin"]).await;
        registry.withdraw(&strong, &tool, &one, "x").await.unwrap();
        let log = registry.audit(&<_>::default(), None, 1).await.unwrap();
        assert!(log[0].token.is_some() && log[0].account == Some(shop.admin.id));
    })
    .await;
}
