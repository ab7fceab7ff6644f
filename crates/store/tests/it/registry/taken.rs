//! Tests of content that an administrator took down.

use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{Actor, AuditFilter, ScanResult, ScanVerdict};
use serde_json::json;

use super::{Shop, backup::record, draft, for_each_registry, name, publish, version};

/// Publishes the archive of `anon/tea` 0.0.1 as another version. Returns the error code if that
/// fails.
async fn publish_first_archive(shop: &Shop<'_>, number: &str) -> Result<(), &'static str> {
    let mut copy = draft("anon/tea", number);
    copy.artefact = draft("anon/tea", "0.0.1").artefact;
    let done = copy.publish(shop.registry(), &shop.alice()).await;
    done.map(drop).map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_down_content_needs_a_later_clearance() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        let first = draft("anon/tea", "0.0.1");
        let sha256 = sha256_hex(&first.artefact);
        first.publish(registry, &shop.alice()).await.unwrap();
        registry.clear(&admin, &sha256, Some(&tea), "long before").await.unwrap();
        registry.withdraw(&admin, &tea, &version("0.0.1"), "it scalds").await.unwrap();
        assert_eq!(publish_first_archive(shop, "0.0.2").await, Err("taken_down"));
        registry.clear(&admin, &sha256, Some(&tea), "it cools").await.unwrap();
        assert_eq!(publish_first_archive(shop, "0.0.2").await, Ok(()));
        let report = json!({"judged": {"verdict": "block", "reason": "it stains"}});
        let block = ScanResult { verdict: ScanVerdict::Block, report };
        registry.set_scan(&admin, &tea, &version("0.0.2"), &block).await.unwrap();
        assert_eq!(
            publish_first_archive(shop, "0.0.3").await,
            Err("taken_down"),
            "whatever was cleared"
        );
        let known = registry.version(&tea, &version("0.0.2")).await.unwrap();
        assert_eq!(known.why_blocked().as_deref(), Some("it stains"));
        registry.clear(&admin, &sha256, Some(&tea), "the stain is small").await.unwrap();
        assert_eq!(publish_first_archive(shop, "0.0.3").await, Ok(()), "a later word counts");
        let known = registry.version(&tea, &version("0.0.2")).await.unwrap();
        assert!(known.why_blocked().is_some(), "what is published stays blocked");
    })
    .await;
}

/// Publishes the archive of `anon/tea` 0.0.1 under another name.
async fn publish_under_other_name(shop: &Shop<'_>, package: &str) -> Result<(), &'static str> {
    let mut copy = draft(package, "1.0.0");
    copy.artefact = draft("anon/tea", "0.0.1").artefact;
    let done = copy.publish(shop.registry(), &shop.alice()).await;
    done.map(drop).map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_down_content_is_rejected_under_other_names() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        let first = draft("anon/tea", "0.0.1");
        let sha256 = sha256_hex(&first.artefact);
        first.publish(registry, &shop.alice()).await.unwrap();
        assert_eq!(publish_under_other_name(shop, "copy/tea").await, Ok(()));
        let same = registry.same_content(&tea, &version("0.0.1")).await.unwrap();
        assert_eq!(same, [(name("copy/tea"), version("1.0.0"))]);
        registry.withdraw(&admin, &tea, &version("0.0.1"), "it scalds").await.unwrap();
        let same = registry.same_content(&tea, &version("0.0.1")).await.unwrap();
        assert_eq!(same, [(name("copy/tea"), version("1.0.0"))], "same content is listed");
        assert_eq!(publish_under_other_name(shop, "more/tea").await, Err("taken_down"));
        let error = registry.must_not_be_taken_down(&name("more/tea"), &sha256, "x").await;
        assert!(error.unwrap_err().to_string().contains("what anon/tea 0.0.1 was"));
        // The same files in another archive are rejected, too.
        let packed =
            registry.must_not_be_taken_down(&tea, &"0".repeat(64), &first.integrity()).await;
        assert_eq!(packed.unwrap_err().code(), "taken_down");
        // A clearance applies to one package.
        registry.clear(&admin, &sha256, Some(&name("more/tea")), "it is theirs").await.unwrap();
        assert_eq!(publish_under_other_name(shop, "most/tea").await, Err("taken_down"));
        assert_eq!(publish_under_other_name(shop, "more/tea").await, Ok(()));
        // Content of a blocked version can be published again after the verdict changes.
        let copy = name("copy/tea");
        for (verdict, expected) in
            [(ScanVerdict::Block, Err("taken_down")), (ScanVerdict::Review, Err("taken_down"))]
        {
            let report = json!({"judged": {"verdict": verdict.as_str(), "reason": "it stains"}});
            let scan = ScanResult { verdict, report };
            registry.set_scan(&admin, &copy, &version("1.0.0"), &scan).await.unwrap();
            assert_eq!(
                publish_under_other_name(shop, "most/tea").await,
                expected,
                "anon/tea stays taken down"
            );
        }
        let same = registry.same_content(&copy, &version("1.0.0")).await.unwrap();
        assert_eq!(same, [(name("more/tea"), version("1.0.0"))]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lifted_block_allows_its_content_again() {
    for_each_registry(async |shop| {
        let (registry, admin, tea) = (shop.registry(), shop.admin(), name("anon/tea"));
        draft("anon/tea", "0.0.1").publish(registry, &shop.alice()).await.unwrap();
        let judge = async |verdict: ScanVerdict| {
            let report = json!({"judged": {"verdict": verdict.as_str(), "reason": "it stains"}});
            let scan = ScanResult { verdict, report };
            registry.set_scan(&admin, &tea, &version("0.0.1"), &scan).await.unwrap();
        };
        judge(ScanVerdict::Block).await;
        assert_eq!(publish_under_other_name(shop, "copy/tea").await, Err("taken_down"));
        // A scan without findings does not override an administrator's decision.
        let scan = ScanResult { verdict: ScanVerdict::Allow, report: json!({}) };
        registry.set_scan(&shop.alice(), &tea, &version("0.0.1"), &scan).await.unwrap();
        assert_eq!(publish_under_other_name(shop, "copy/tea").await, Err("taken_down"));
        judge(ScanVerdict::Allow).await;
        assert_eq!(publish_under_other_name(shop, "copy/tea").await, Ok(()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appeal_contains_scan_findings() {
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
        // Revoking one clearance keeps the others, even if a package name looks like a LIKE
        // pattern.
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

/// Only PostgreSQL allows other writes during an import.
#[tokio::test(flavor = "multi_thread")]
async fn import_rejects_content_taken_down_meanwhile() {
    for_each_registry(async |shop| {
        if shop.place.is_sqlite() {
            return;
        }
        let (other, storage) = shop.again().await;
        let (registry, meanwhile) = (shop.registry(), other.registry(&storage));
        let one = version("1.0.0");
        // The registry is empty when the first import starts.
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
        // A takedown after the import applies to imported versions.
        publish(shop, &shop.alice(), "third/tool", "1.0.0").await;
        let mut import = registry.import(&Actor::operator()).await.unwrap();
        let sha256 = sha256_hex(&draft("third/tool", "1.0.0").artefact);
        import.push(record("copy/tool", "1.0.0", &sha256)).await.unwrap();
        import.settle().await.unwrap();
        import.finish().await.unwrap();
        meanwhile.withdraw(&shop.admin(), &name("third/tool"), &one, "it steals").await.unwrap();
        let same = registry.same_content(&name("third/tool"), &one).await.unwrap();
        assert_eq!(same, [(name("copy/tool"), one.clone())]);
        // Existing versions with taken-down content do not reject an import of other content.
        let mut import = registry.import(&Actor::operator()).await.unwrap();
        import.push(record("good/tool", "1.0.0", &"0".repeat(64))).await.unwrap();
        assert_eq!(import.finish().await.unwrap().packages, 1);
        other.close().await;
    })
    .await;
}
