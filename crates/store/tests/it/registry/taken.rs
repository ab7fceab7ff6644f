//! What an administrator took down, on both kinds of databases.

use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{Actor, AuditFilter, ScanResult, ScanVerdict};
use serde_json::json;

use super::{Shop, backup::record, draft, for_each_registry, name, publish, version};

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
        registry.clear(&admin, &sha256, Some(&tea), "the stain is small").await.unwrap();
        assert_eq!(again(shop, "0.0.3").await, Ok(()), "a later word counts");
        let known = registry.version(&tea, &version("0.0.2")).await.unwrap();
        assert!(known.why_blocked().is_some(), "what is published stays blocked");
    })
    .await;
}

/// Publishes the content of `anon/tea` 0.0.1 under another name.
async fn as_another(shop: &Shop<'_>, package: &str) -> Result<(), &'static str> {
    let mut copy = draft(package, "1.0.0");
    copy.artefact = draft("anon/tea", "0.0.1").artefact;
    let done = copy.publish(shop.registry(), &shop.alice()).await;
    done.map(drop).map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_down_has_no_other_name() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        let first = draft("anon/tea", "0.0.1");
        let sha256 = sha256_hex(&first.artefact);
        first.publish(registry, &shop.alice()).await.unwrap();
        assert_eq!(as_another(shop, "copy/tea").await, Ok(()));
        let same = registry.same_content(&tea, &version("0.0.1")).await.unwrap();
        assert_eq!(same, [(name("copy/tea"), version("1.0.0"))]);
        registry.withdraw(&admin, &tea, &version("0.0.1"), "it scalds").await.unwrap();
        let same = registry.same_content(&tea, &version("0.0.1")).await.unwrap();
        assert_eq!(same, [(name("copy/tea"), version("1.0.0"))], "who takes it down is told");
        assert_eq!(as_another(shop, "more/tea").await, Err("taken_down"));
        let error = registry.must_not_be_taken_down(&name("more/tea"), &sha256, "x").await;
        assert!(error.unwrap_err().to_string().contains("what anon/tea 0.0.1 was"));
        // The files count however they are packed.
        let packed =
            registry.must_not_be_taken_down(&tea, &"0".repeat(64), &first.integrity()).await;
        assert_eq!(packed.unwrap_err().code(), "taken_down");
        // A clearance is for one skill.
        registry.clear(&admin, &sha256, Some(&name("more/tea")), "it is theirs").await.unwrap();
        assert_eq!(as_another(shop, "most/tea").await, Err("taken_down"));
        assert_eq!(as_another(shop, "more/tea").await, Ok(()));
        // What was blocked is free again when the verdict is.
        let copy = name("copy/tea");
        for (verdict, expected) in
            [(ScanVerdict::Block, Err("taken_down")), (ScanVerdict::Review, Err("taken_down"))]
        {
            let report = json!({"judged": {"verdict": verdict.as_str(), "reason": "it stains"}});
            let scan = ScanResult { verdict, report };
            registry.set_scan(&admin, &copy, &version("1.0.0"), &scan).await.unwrap();
            assert_eq!(as_another(shop, "most/tea").await, expected, "anon/tea stays taken down");
        }
        let same = registry.same_content(&copy, &version("1.0.0")).await.unwrap();
        assert_eq!(same, [(name("more/tea"), version("1.0.0"))]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_is_lifted_frees_its_bytes() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        draft("anon/tea", "0.0.1").publish(registry, &shop.alice()).await.unwrap();
        let judge = async |verdict: ScanVerdict| {
            let report = json!({"judged": {"verdict": verdict.as_str(), "reason": "it stains"}});
            let scan = ScanResult { verdict, report };
            registry.set_scan(&admin, &tea, &version("0.0.1"), &scan).await.unwrap();
        };
        judge(ScanVerdict::Block).await;
        assert_eq!(as_another(shop, "copy/tea").await, Err("taken_down"));
        // A scan that finds nothing changes nothing that a person decided.
        let scan = ScanResult { verdict: ScanVerdict::Allow, report: json!({}) };
        registry.set_scan(&shop.alice(), &tea, &version("0.0.1"), &scan).await.unwrap();
        assert_eq!(as_another(shop, "copy/tea").await, Err("taken_down"));
        judge(ScanVerdict::Allow).await;
        assert_eq!(as_another(shop, "copy/tea").await, Ok(()));
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

/// Only in PostgreSQL does anybody else write while something is imported.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_down_during_an_import_is_not_imported() {
    for_each_registry(async |shop| {
        if shop.place.is_sqlite() {
            return;
        }
        let (other, storage) = shop.again().await;
        let (registry, meanwhile) = (shop.registry(), other.registry(&storage));
        let one = version("1.0.0");
        // At first the registry has nothing, when the import begins.
        for package in ["first/tool", "second/tool"] {
            let mut import = registry.import(&Actor::operator()).await.unwrap();
            let sha256 = sha256_hex(&draft(package, "1.0.0").artefact);
            import.push(record("copy/tool", "1.0.0", &sha256)).await.unwrap();
            import.push(record("good/tool", "1.0.0", &"0".repeat(64))).await.unwrap();
            import.settle().await.unwrap();
            draft(package, "1.0.0").publish(meanwhile, &shop.alice()).await.unwrap();
            meanwhile.withdraw(&shop.admin(), &name(package), &one, "it steals").await.unwrap();
            assert_eq!(import.finish().await.unwrap_err().code(), "taken_down", "{package}");
            assert_eq!(registry.package(&name("good/tool")).await.unwrap(), None);
        }
        // Whoever takes something down after the import sees what it brought.
        publish(shop, &shop.alice(), "third/tool", "1.0.0").await;
        let mut import = registry.import(&Actor::operator()).await.unwrap();
        let sha256 = sha256_hex(&draft("third/tool", "1.0.0").artefact);
        import.push(record("copy/tool", "1.0.0", &sha256)).await.unwrap();
        import.settle().await.unwrap();
        import.finish().await.unwrap();
        meanwhile.withdraw(&shop.admin(), &name("third/tool"), &one, "it steals").await.unwrap();
        let same = registry.same_content(&name("third/tool"), &one).await.unwrap();
        assert_eq!(same, [(name("copy/tool"), one.clone())]);
        // What lies in the registry already is no reason to refuse something else.
        let mut import = registry.import(&Actor::operator()).await.unwrap();
        import.push(record("good/tool", "1.0.0", &"0".repeat(64))).await.unwrap();
        assert_eq!(import.finish().await.unwrap().packages, 1);
        other.close().await;
    })
    .await;
}
