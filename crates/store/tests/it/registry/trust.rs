use savoir_skill::{permission::Tier, version::VersionRange};
use savoir_store::registry::{
    Actor, AuditAction, NewKey, NewSignature, OwnerScope, RegistryError, ScanResult, ScanVerdict,
    SignatureState, Signer,
};

use serde_json::json;

use super::{Draft, Shop, allow, draft, for_each_registry, name, run_concurrently, version};

async fn add_key(shop: &Shop<'_>, actor: &Actor, owner_scope: &OwnerScope, key_id: &str) {
    let key = NewKey {
        owner_scope,
        key_id,
        public_key: "AAAA",
        label: "laptop",
        account: None,
        proved: false,
    };
    shop.registry().add_key(actor, key).await.unwrap();
}

fn signature(signer: Signer, key_id: &str) -> NewSignature {
    NewSignature { signer, key_id: key_id.to_owned(), record: "{}".to_owned() }
}

fn signed(package: &str, text: &str, key_id: &str) -> Draft {
    let signatures = vec![signature(Signer::Publisher, key_id)];
    Draft { signatures, ..draft(package, text) }
}

/// Creates a namespace of Alice with the key `a`, and the auditors' key `z`.
async fn with_keys(shop: &Shop<'_>) -> OwnerScope {
    let acme: OwnerScope = "acme".parse().unwrap();
    let namespace = savoir_store::registry::Namespace::parse("acme").unwrap();
    shop.registry().create_namespace(&shop.alice(), &namespace).await.unwrap();
    add_key(shop, &shop.alice(), &acme, "a").await;
    add_key(shop, &shop.admin(), &OwnerScope::auditors(), "z").await;
    acme
}

#[tokio::test(flavor = "multi_thread")]
async fn tier_follows_scan_and_signatures() {
    for_each_registry(async |shop| {
        with_keys(shop).await;
        let (registry, alice) = (shop.registry(), shop.alice());
        let tier = async |draft: Draft| draft.publish(registry, &alice).await.unwrap().attested;
        assert_eq!(tier(draft("acme/tool", "1.0.0")).await, Tier::Experimental);
        assert_eq!(tier(signed("acme/tool", "1.1.0", "a")).await, Tier::Community);
        assert_eq!(tier(signed("acme/tool", "1.2.0", "unknown")).await, Tier::Experimental);
        assert_eq!(
            tier(draft("acme/tool", "1.3.0")).await,
            Tier::Experimental,
            "each version separately"
        );
        let unscanned = Draft { scan: None, ..signed("acme/tool", "1.4.0", "a") };
        assert_eq!(tier(unscanned).await, Tier::Experimental);
        // A key of a namespace does not count for packages elsewhere.
        let elsewhere = signed("tool", "1.0.0", "a");
        assert_eq!(tier(elsewhere).await, Tier::Experimental);

        let (tool, last) = (name("acme/tool"), version("1.4.0"));
        assert_eq!(registry.unscanned(9).await.unwrap(), [(tool.clone(), last.clone())]);
        let result = registry.set_scan(&shop.bob(), &tool, &last, &allow()).await;
        assert_eq!(result.unwrap_err().code(), "not_member");
        let operator = Actor::operator();
        let scanned = registry.set_scan(&operator, &tool, &last, &allow()).await.unwrap();
        assert_eq!(scanned.0, Tier::Community);
        let audit = signature(Signer::Auditor, "z");
        let result = registry.add_signature(&alice, &tool, &last, &audit).await;
        assert_eq!(result.unwrap_err().code(), "not_admin");
        let audited = registry.add_signature(&shop.admin(), &tool, &last, &audit).await.unwrap();
        assert_eq!(audited, Tier::Verified);
        let summary = registry.package(&tool).await.unwrap().unwrap().summary;
        assert_eq!((summary.latest, summary.attested), (Some(last.clone()), Tier::Verified));
        let block = ScanResult { verdict: ScanVerdict::Block, ..allow() };
        let blocked = registry.set_scan(&operator, &tool, &last, &block).await.unwrap();
        assert_eq!(blocked.0, Tier::Experimental);
        // New installs no longer choose it.
        let latest = registry.package(&tool).await.unwrap().unwrap().summary.latest;
        assert_eq!(latest, Some(version("1.3.0")));
        let newest = registry.resolve_version(&tool, &VersionRange::any()).await.unwrap();
        assert_eq!(newest.version, version("1.3.0"));
        assert_eq!(registry.signatures(&tool, &last).await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tier_never_exceeds_claim() {
    for_each_registry(async |shop| {
        with_keys(shop).await;
        let registry = shop.registry();
        for (text, claimed, tier) in [
            ("1.0.0", None, Tier::Community),
            ("1.1.0", Some(Tier::Community), Tier::Community),
            ("1.2.0", Some(Tier::Verified), Tier::Community),
        ] {
            let new = Draft { claimed, ..signed("acme/tool", text, "a") };
            new.publish(registry, &shop.alice()).await.unwrap();
            let found = registry.version(&new.package, &new.version).await.unwrap();
            assert_eq!((found.attested, found.tier()), (Tier::Community, tier));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_lowers_its_versions() {
    for_each_registry(async |shop| {
        let acme = with_keys(shop).await;
        let (registry, alice) = (shop.registry(), shop.alice());
        add_key(shop, &alice, &acme, "b").await;
        for new in [
            signed("acme/one", "1.0.0", "a"),
            signed("acme/one", "1.1.0", "b"),
            signed("acme/two", "1.0.0", "a"),
        ] {
            new.publish(registry, &alice).await.unwrap();
        }
        let mut both = signed("acme/two", "1.1.0", "a");
        both.signatures.push(signature(Signer::Publisher, "b"));
        both.publish(registry, &alice).await.unwrap();
        let (one, two) = (name("acme/one"), name("acme/two"));
        let audit = signature(Signer::Auditor, "z");
        registry.add_signature(&shop.admin(), &two, &version("1.0.0"), &audit).await.unwrap();
        let before = registry.index(&one).await.unwrap().unwrap();
        let head = registry.head().await.unwrap();

        let result = registry.revoke_key(&shop.bob(), &acme, "a", "stolen").await;
        assert_eq!(result.unwrap_err().code(), "not_member");
        assert_eq!(registry.revoke_key(&alice, &acme, "a", "stolen").await.unwrap(), 3);
        let tier = async |package, text: &str| {
            registry.version(package, &version(text)).await.unwrap().attested
        };
        assert_eq!(tier(&one, "1.0.0").await, Tier::Experimental);
        assert_eq!(tier(&one, "1.1.0").await, Tier::Community, "another key signed it");
        assert_eq!(tier(&two, "1.0.0").await, Tier::Experimental, "also what was verified");
        assert_eq!(tier(&two, "1.1.0").await, Tier::Community, "another key signed it, too");
        let after = registry.index(&one).await.unwrap().unwrap();
        assert!(before.tag != after.tag && after.text.contains("experimental"));

        let changes = registry.changes(head, 100).await.unwrap();
        let unsigned = changes.iter().filter(|change| change.act == AuditAction::Unsigned).count();
        assert_eq!((changes.len(), unsigned, changes[0].act), (4, 3, AuditAction::KeyRevoked));
        assert_eq!(registry.revoke_key(&alice, &acme, "a", "again").await.unwrap(), 0);

        // A revoked key cannot be registered again.
        let key = NewKey {
            owner_scope: &acme,
            key_id: "a",
            public_key: "p",
            label: "l",
            account: None,
            proved: false,
        };
        assert_eq!(registry.add_key(&alice, key).await.unwrap_err().code(), "key_revoked");
        let again = signature(Signer::Publisher, "a");
        let result = registry.add_signature(&alice, &one, &version("1.0.0"), &again).await;
        assert_eq!(result.unwrap_err().code(), "key_revoked");
        let new = signed("acme/one", "2.0.0", "a");
        assert_eq!(new.publish(registry, &alice).await.unwrap().attested, Tier::Experimental);
        let kept = registry.signatures(&one, &version("2.0.0")).await.unwrap();
        assert_eq!(kept[0].state, SignatureState::Revoked);
        let keys = registry.keys(&acme).await.unwrap();
        assert_eq!(keys[0].revoked.as_ref().unwrap().1, "stolen");
        let result = registry.revoke_key(&alice, &acme, "none", "x").await;
        assert_eq!(result.unwrap_err().code(), "not_found");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auditors_sign_only_with_their_own_keys() {
    for_each_registry(async |shop| {
        with_keys(shop).await;
        let registry = shop.registry();
        signed("acme/tool", "1.0.0", "a").publish(registry, &shop.alice()).await.unwrap();
        let auditors = OwnerScope::auditors();
        let key = NewKey {
            owner_scope: &auditors,
            key_id: "bobs",
            public_key: "p",
            label: "Bob audits",
            account: Some(shop.bob.id),
            proved: false,
        };
        let error = registry.add_key(&shop.bob(), key.clone()).await.unwrap_err();
        assert_eq!(error.code(), "not_admin");
        registry.add_key(&shop.admin(), key).await.unwrap();
        let (tool, one) = (name("acme/tool"), version("1.0.0"));
        let bobs = signature(Signer::Auditor, "bobs");
        let result = registry.add_signature(&shop.alice(), &tool, &one, &bobs).await;
        assert!(matches!(result, Err(RegistryError::NotAdmin)));
        // The same when publishing.
        let mut both = signed("acme/tool", "1.1.0", "a");
        both.signatures.push(bobs.clone());
        assert_eq!(both.publish(registry, &shop.alice()).await.unwrap().attested, Tier::Community);
        let kept = registry.signatures(&tool, &both.version).await.unwrap();
        assert!(kept.iter().any(|one| one.state == SignatureState::Unknown), "{kept:?}");
        let tier = registry.add_signature(&shop.bob(), &tool, &one, &bobs).await.unwrap();
        assert_eq!(tier, Tier::Verified);
        registry.revoke_key(&shop.admin(), &auditors, "bobs", "he left").await.unwrap();
        let found = registry.version(&tool, &one).await.unwrap();
        assert_eq!(found.attested, Tier::Community);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publish_sees_key_revocation() {
    for_each_registry(async |shop| {
        let acme = with_keys(shop).await;
        let (other, storage) = shop.again().await;
        let tasks = (0..12_u64).map(|n| {
            let (database, storage) =
                (if n % 2 == 0 { shop.database.clone() } else { other.clone() }, storage.clone());
            let (actor, acme) = (shop.alice(), acme.clone());
            async move {
                let registry = database.registry(&storage);
                if n == 6 {
                    tokio::time::sleep(std::time::Duration::from_millis(15)).await;
                    registry.revoke_key(&actor, &acme, "a", "stolen").await.unwrap();
                } else {
                    let new = signed(&format!("acme/tool-{}", n % 3), &format!("1.{n}.0"), "a");
                    new.publish(registry, &actor).await.unwrap();
                }
            }
        });
        run_concurrently(tasks).await;
        for n in 0..3 {
            let package = shop.registry().package(&name(&format!("acme/tool-{n}"))).await.unwrap();
            for version in package.unwrap().versions {
                assert_eq!(version.attested, Tier::Experimental, "{n} {}", version.version);
            }
        }
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scan_does_not_override_administrators() {
    for_each_registry(async |shop| {
        let (registry, alice, admin) = (shop.registry(), shop.alice(), shop.admin());
        let (tool, one, two) = (name("tool"), version("1.0.0"), version("2.0.0"));
        draft("tool", "1.0.0").publish(registry, &alice).await.unwrap();
        let judged = |verdict: ScanVerdict| ScanResult {
            verdict,
            report: json!({"judged": {"verdict": verdict.as_str(), "reason": "x"}}),
        };
        let block = judged(ScanVerdict::Block);
        registry.set_scan(&admin, &tool, &one, &block).await.unwrap();
        // A publisher's scan that started before the decision does not override it, and publishers
        // cannot decide themselves.
        for scan in [allow(), judged(ScanVerdict::Allow)] {
            let (_, stands) = registry.set_scan(&alice, &tool, &one, &scan).await.unwrap();
            assert_eq!(stands.verdict, ScanVerdict::Block);
            assert_eq!(stands.report["judged"]["reason"], "x");
            let known = registry.version(&tool, &one).await.unwrap();
            assert_eq!(known.scan.unwrap().0, stands);
        }
        let allowed = judged(ScanVerdict::Allow);
        let (_, stands) = registry.set_scan(&admin, &tool, &one, &allowed).await.unwrap();
        assert_eq!(stands.verdict, ScanVerdict::Allow, "an administrator thinks again");

        let published = draft("tool", "2.0.0").publish(registry, &alice).await.unwrap();
        registry.clear(&admin, &published.sha256, Some(&tool), "looked at it").await.unwrap();
        let found = ScanResult { verdict: ScanVerdict::Block, report: json!({}) };
        let (_, stands) = registry.set_scan(&alice, &tool, &two, &found).await.unwrap();
        assert_eq!(stands.verdict, ScanVerdict::Review, "what was cleared is not blocked");
        assert_eq!(stands.report["cleared"], "looked at it");

        // Revoking a clearance blocks the archive for new versions; published versions stay.
        assert!(registry.unclear(&admin, &published.sha256).await.unwrap());
        let (_, stands) = registry.set_scan(&alice, &tool, &two, &allow()).await.unwrap();
        assert_eq!(stands.verdict, ScanVerdict::Allow);
        let (_, stands) = registry.set_scan(&alice, &tool, &two, &found).await.unwrap();
        assert_eq!(stands.verdict, ScanVerdict::Review, "what was published stays");
        assert_eq!(stands.report["cleared"], "looked at it");
        let later = version("3.0.0");
        draft("tool", "3.0.0").publish(registry, &alice).await.unwrap();
        let (_, stands) = registry.set_scan(&alice, &tool, &later, &found).await.unwrap();
        assert_eq!(stands.verdict, ScanVerdict::Block, "this version was not cleared");
    })
    .await;
}
