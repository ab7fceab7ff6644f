use super::{Shop, draft, for_each_registry, name, publish, version};

async fn code(shop: &Shop<'_>, package: &str, number: &str) -> &'static str {
    match draft(package, number).publish(shop.registry(), &shop.bob()).await {
        Ok(_) => "",
        Err(error) => error.code(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_names_of_a_namespace_are_reserved() {
    for_each_registry(async |shop| {
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        publish(shop, &shop.alice(), "two-words/tool", "1.0.0").await;
        let squats = ["acme-bills", "acme-big-bills", "acme-big/bills", "two-words-bills"];
        for squat in squats {
            let refused =
                draft(squat, "1.0.0").publish(shop.registry(), &shop.bob()).await.unwrap_err();
            assert_eq!(refused.code(), "invalid_name", "{squat}");
            let space = if squat.starts_with("acme") { "`acme`" } else { "`two-words`" };
            assert!(refused.to_string().contains(space), "{refused}");
            assert!(shop.registry().package(&name(squat)).await.unwrap().is_none());
        }
        let space = savoir_store::registry::Namespace::parse("acme-tools").unwrap();
        let taken = shop.registry().create_namespace(&shop.bob(), &space).await;
        assert_eq!(taken.unwrap_err().code(), "invalid_name");
        shop.registry().create_namespace(&shop.alice(), &space).await.unwrap();
        assert_eq!(code(shop, "acmebills", "1.0.0").await, "");
        assert_eq!(code(shop, "two-bills", "1.0.0").await, "");
        // Members of the namespace may use its prefix, and administrators may use every name.
        publish(shop, &shop.alice(), "acme-bills", "1.0.0").await;
        publish(shop, &shop.admin(), "acme-letters", "1.0.0").await;
        publish(shop, &shop.alice(), "acme/big-bills", "1.0.0").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn package_older_than_namespace_keeps_its_name() {
    for_each_registry(async |shop| {
        assert_eq!(code(shop, "acme-bills", "1.0.0").await, "");
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        assert_eq!(code(shop, "acme-bills", "1.1.0").await, "", "it is theirs");
        let taken = draft("acme/bills", "1.0.0").publish(shop.registry(), &shop.alice()).await;
        assert_eq!(taken.unwrap_err().code(), "invalid_name");
        // The name stays taken after all versions were withdrawn, so that nobody else can be
        // mistaken for it.
        for number in ["1.0.0", "1.1.0"] {
            let at = (name("acme-bills"), version(number));
            shop.registry().withdraw(&shop.admin(), &at.0, &at.1, "x").await.unwrap();
        }
        let taken = draft("acme/bills", "1.0.0").publish(shop.registry(), &shop.alice()).await;
        assert_eq!(taken.unwrap_err().code(), "invalid_name");
        assert_eq!(code(shop, "acme-bills", "1.2.0").await, "", "it is theirs still");
        let alice = draft("acme-bills", "1.3.0").publish(shop.registry(), &shop.alice()).await;
        assert_eq!(alice.unwrap_err().code(), "not_member");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_without_members_stays_taken() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        publish(shop, &shop.admin(), "acme/tool", "1.0.0").await;
        publish(shop, &shop.admin(), "alone", "1.0.0").await;
        shop.place.raw("DELETE FROM members").await;
        let digest = "0f".repeat(32);
        for package in ["acme/tool", "acme/other", "alone"] {
            let at = (name(package), version("9.0.0"));
            let early = registry.may_publish(&shop.bob(), &at.0, &at.1).await;
            assert_eq!(early.unwrap_err().code(), "not_member", "{package}");
            let appeal = registry.appeal(&shop.bob(), &at.0, &at.1, &digest, "mine").await;
            assert_eq!(appeal.unwrap_err().code(), "not_member", "{package}");
            assert_eq!(code(shop, package, "9.0.0").await, "not_member", "{package}");
        }
        let free = (name("free/tool"), version("1.0.0"));
        registry.may_publish(&shop.bob(), &free.0, &free.1).await.unwrap();
        registry.appeal(&shop.bob(), &free.0, &free.1, &digest, "mine").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_lists_withdrawn_and_blocked_versions() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        for number in ["1.0.0", "1.1.0", "1.2.0"] {
            publish(shop, &shop.alice(), "acme/tool", number).await;
        }
        let package = name("acme/tool");
        registry.withdraw(&shop.admin(), &package, &version("1.1.0"), "it steals").await.unwrap();
        let mut scan = super::allow();
        scan.verdict = savoir_store::registry::ScanVerdict::Block;
        scan.report["judged"] = serde_json::json!({"verdict": "block", "reason": "it leaks"});
        registry.set_scan(&shop.admin(), &package, &version("1.2.0"), &scan).await.unwrap();
        let index = registry.index(&package).await.unwrap().unwrap();
        let lines: Vec<serde_json::Value> =
            index.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(
            (&lines[0]["yanked"], &lines[0]["yanked_reason"]),
            (&true.into(), &"it leaks".into())
        );
        assert_eq!(
            lines[1],
            serde_json::json!({
                "name": "acme/tool", "version": "1.1.0", "withdrawn": true,
                "withdrawn_reason": "it steals",
            })
        );
        assert!(lines[2].get("withdrawn").is_none());
        let known = registry.version(&package, &version("1.2.0")).await.unwrap();
        assert!(known.yanked.is_none(), "nobody yanked it");
        // A backup contains the short name, too.
        let latest = registry.package(&package).await.unwrap().unwrap().summary.latest;
        assert_eq!(latest, Some(version("1.0.0")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clearance_applies_to_the_appealing_package() {
    for_each_registry(async |shop| {
        let (registry, admin) = (shop.registry(), shop.admin());
        let [one, two] = ["0a".repeat(32), "0b".repeat(32)];
        let [acme, evil] = ["acme/tool", "evil/tool"].map(name);
        let nobody = registry.clear(&admin, &one, None, "x").await.unwrap_err();
        assert_eq!(nobody.code(), "invalid_request");
        registry.appeal(&shop.alice(), &acme, &version("1.0.0"), &one, "mine").await.unwrap();
        assert_eq!(registry.clear(&admin, &one, None, "looked").await.unwrap(), acme);
        assert_eq!(registry.cleared(&one, &acme).await.unwrap().as_deref(), Some("looked"));
        registry.appeal(&shop.bob(), &evil, &version("1.0.0"), &one, "mine").await.unwrap();
        assert_eq!(registry.cleared(&one, &evil).await.unwrap(), None);
        let which = registry.clear(&admin, &one, None, "looked").await.unwrap_err();
        assert!(which.to_string().contains("acme/tool, evil/tool"), "{which}");
        // The log entry belongs to the package, so that its owners see it.
        let filter =
            savoir_store::registry::AuditFilter { package: Some(acme.clone()), ..<_>::default() };
        let log = registry.audit(&filter, None, 10).await.unwrap();
        assert_eq!(log[0].change.act.as_str(), "cleared");
        assert!(registry.unclear(&admin, &one).await.unwrap());
        assert_eq!(registry.cleared(&one, &acme).await.unwrap(), None);

        // A clearance of an older version, without a package, counts for the packages that had
        // appealed.
        registry.appeal(&shop.alice(), &acme, &version("1.0.0"), &two, "mine").await.unwrap();
        registry.clear(&admin, &two, None, "long ago").await.unwrap();
        let rename = format!(
            "UPDATE settings SET name = 'registry.cleared.{two}'
             WHERE name = 'registry.cleared.{two}/acme/tool'"
        );
        shop.place.raw(&rename).await;
        registry.appeal(&shop.bob(), &evil, &version("1.0.0"), &two, "mine").await.unwrap();
        assert_eq!(registry.cleared(&two, &acme).await.unwrap().as_deref(), Some("long ago"));
        assert_eq!(registry.cleared(&two, &evil).await.unwrap(), None);
        assert!(registry.unclear(&admin, &two).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_include_withdrawn_versions() {
    for_each_registry(async |shop| {
        for number in ["0.0.1", "0.0.2"] {
            publish(shop, &shop.alice(), "prose", number).await;
        }
        let prose = name("prose");
        shop.registry().withdraw(&shop.admin(), &prose, &version("0.0.2"), "x").await.unwrap();
        let numbers = shop.registry().numbers(&prose).await.unwrap();
        assert_eq!(numbers, ["0.0.2", "0.0.1"].map(version));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_per_account_are_limited() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        for number in 0..20 {
            assert_eq!(code(shop, &format!("space{number}/tool"), "1.0.0").await, "");
        }
        let refused = draft("one-more/tool", "1.0.0").publish(registry, &shop.bob()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), "too_many_names");
        assert!(refused.to_string().contains("20"), "{refused}");
        let space = savoir_store::registry::Namespace::parse("another").unwrap();
        let made = registry.create_namespace(&shop.bob(), &space).await;
        assert_eq!(made.unwrap_err().code(), "too_many_names");
        // Existing namespaces, other accounts and administrators are not limited.
        assert_eq!(code(shop, "space3/tool", "1.1.0").await, "");
        assert_eq!(code(shop, "alone", "1.0.0").await, "");
        publish(shop, &shop.alice(), "one-more/tool", "1.0.0").await;
        for number in 0..21 {
            let space =
                savoir_store::registry::Namespace::parse(&format!("ruled{number}")).unwrap();
            registry.create_namespace(&shop.admin(), &space).await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_of_older_database_gets_withdrawn_versions() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        for package in ["acme/tool", "acme/other", "alone"] {
            for number in ["1.0.0", "1.1.0"] {
                publish(shop, &shop.alice(), package, number).await;
            }
        }
        let gone = ["acme/tool", "alone"].map(name);
        for package in &gone {
            let one = version("1.0.0");
            registry.withdraw(&shop.admin(), package, &one, "it steals").await.unwrap();
        }
        let untouched = registry.index(&name("acme/other")).await.unwrap().unwrap();
        let before = registry.index(&gone[0]).await.unwrap().unwrap();
        // Remove the withdrawn versions from the index, as older versions wrote it.
        for package in &gone {
            let whole = registry.index(package).await.unwrap().unwrap().text;
            let line = whole.lines().find(|line| !line.contains("withdrawn")).unwrap();
            let id = if package.to_string().contains('/') { "" } else { "_/" };
            let update = format!(
                "UPDATE packages SET index_text = '{line}\n', index_tag = 'old'
                 WHERE id = '{id}{package}'"
            );
            shop.place.raw(&update).await;
        }
        shop.place.raw("DELETE FROM settings WHERE name LIKE 'registry.renewed%'").await;
        let (one, two) = tokio::join!(shop.again(), shop.again());
        for package in &gone {
            let now = registry.index(package).await.unwrap().unwrap();
            assert_eq!(now.text.matches("\"withdrawn\":true").count(), 1, "{}", now.text);
            assert_ne!(now.tag, "old");
        }
        let after = registry.index(&gone[0]).await.unwrap().unwrap();
        assert_eq!((after.tag, after.updated_at), (before.tag, before.updated_at));
        let other = registry.index(&name("acme/other")).await.unwrap().unwrap();
        assert_eq!((other.tag, other.text), (untouched.tag, untouched.text));
        // The index is rebuilt only once.
        shop.place.raw("UPDATE packages SET index_tag = 'again' WHERE id = 'acme/tool'").await;
        let third = shop.again().await;
        assert_eq!(registry.index(&gone[0]).await.unwrap().unwrap().tag, "again");
        for (database, _) in [one, two, third] {
            database.close().await;
        }
    })
    .await;
}
