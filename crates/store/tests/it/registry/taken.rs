//! What an administrator took down, on both kinds of databases.

use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{AuditFilter, ScanResult, ScanVerdict};
use serde_json::json;

use super::{Shop, draft, for_each_registry, name, version};

/// The number under which the bytes of the first version of some prose come back, or why not.
async fn again(shop: &Shop<'_>, number: &str) -> Result<(), &'static str> {
    let mut again = draft("anon/tea", number);
    again.artefact = draft("anon/tea", "0.0.1").artefact;
    let done = again.publish(shop.registry(), &shop.alice()).await;
    done.map(drop).map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_down_comes_back_only_if_it_is_cleared_afterwards() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        let first = draft("anon/tea", "0.0.1");
        let sha256 = sha256_hex(&first.artefact);
        first.publish(registry, &shop.alice()).await.unwrap();
        registry.clear(&admin, &sha256, Some(&tea), "long before").await.unwrap();
        registry.withdraw(&admin, &tea, &version("0.0.1"), "it scalds").await.unwrap();
        assert_eq!(again(shop, "0.0.2").await, Err("taken_down"));
        registry.clear(&admin, &sha256, Some(&tea), "it cools").await.unwrap();
        assert_eq!(again(shop, "0.0.2").await, Ok(()));
        let report = json!({"judged": {"verdict": "block", "reason": "it stains"}});
        let block = ScanResult { verdict: ScanVerdict::Block, report };
        registry.set_scan(&admin, &tea, &version("0.0.2"), &block).await.unwrap();
        assert_eq!(again(shop, "0.0.3").await, Err("taken_down"), "whatever was cleared");
        let known = registry.version(&tea, &version("0.0.2")).await.unwrap();
        assert_eq!(known.why_blocked().as_deref(), Some("it stains"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_appeal_has_what_was_found() {
    for_each_registry(async |shop| {
        let (registry, admin) = (shop.registry(), shop.admin());
        let (tool, other) = (name("_/tool"), name("a/tool"));
        let (one, zero) = (version("1.0.0"), "0".repeat(64));
        let findings = json!([{"rule": "download-and-execute", "file": "SKILL.md", "line": 9}]);
        registry.note_refused(&tool, &zero, &json!([])).await.unwrap();
        registry.note_refused(&tool, &zero, &findings).await.unwrap();
        registry.appeal(&shop.alice(), &tool, &one, &zero, "mine").await.unwrap();
        registry.appeal(&shop.bob(), &other, &one, &zero, "mine").await.unwrap();
        let log = registry.audit(&AuditFilter::default(), None, 2).await.unwrap();
        assert_eq!(log[1].details["findings"], findings);
        assert_eq!(log[0].details.get("findings"), None, "others are not shown it");
        // One clearance ends alone, also where a name looks like a pattern.
        for package in [&tool, &other] {
            registry.clear(&admin, &zero, Some(package), "x").await.unwrap();
        }
        assert!(registry.unclear_for(&admin, &zero, &tool).await.unwrap());
        assert!(!registry.unclear_for(&admin, &zero, &tool).await.unwrap());
        assert_eq!(registry.cleared(&zero, &tool).await.unwrap(), None);
        assert!(registry.cleared(&zero, &other).await.unwrap().is_some());
    })
    .await;
}
