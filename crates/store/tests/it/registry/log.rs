use std::time::Duration;

use savoir_store::registry::{AuditAction, AuditFilter, DownloadCounter};
use sqlx::Connection as _;

use super::{draft, for_each_registry, name, publish, version};

#[tokio::test(flavor = "multi_thread")]
async fn mirror_following_the_log_misses_nothing() {
    for_each_registry(async |shop| {
        let writers = 6;
        let each = if shop.place.is_sqlite() { 12 } else { 8 };
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let (database, storage) = (shop.database.clone(), shop.storage.clone());
                let actor = shop.alice();
                tokio::spawn(async move {
                    for n in 0..each {
                        let new = draft(&format!("tool-{writer}"), &format!("1.{n}.0"));
                        new.publish(database.registry(&storage), &actor).await.unwrap();
                    }
                })
            })
            .collect();
        let (database, storage) = shop.again().await;
        let mut seen = 0;
        let end = tokio::time::Instant::now() + Duration::from_mins(1);
        while seen < writers * each {
            assert!(tokio::time::Instant::now() < end, "it saw {seen}");
            for change in database.registry(&storage).changes(seen, 7).await.unwrap() {
                assert_eq!(change.seq, seen + 1, "without gaps");
                assert_eq!(change.act, AuditAction::Published);
                seen = change.seq;
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(database.registry(&storage).head().await.unwrap(), seen);
        database.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_become_visible_in_order() {
    for_each_registry(async |shop| {
        publish(shop, &shop.alice(), "tool", "1.0.0").await;
        // Another process has taken a number and not committed yet.
        let mut late = sqlx::AnyConnection::connect(&shop.place.url).await.unwrap();
        let begin = if shop.place.is_sqlite() { "BEGIN IMMEDIATE" } else { "BEGIN" };
        for statement in [
            begin,
            "UPDATE registry_counter SET seq = seq + 1",
            "INSERT INTO registry_log (seq, done_at, act, package, version, details)
             SELECT seq, 0, 'published', '_/late', '1.0.0', '{}' FROM registry_counter",
        ] {
            sqlx::query(statement).execute(&mut late).await.unwrap();
        }
        let (database, storage, actor) =
            (shop.database.clone(), shop.storage.clone(), shop.alice());
        let other = tokio::spawn(async move {
            draft("other", "1.0.0").publish(database.registry(&storage), &actor).await.unwrap().seq
        });
        tokio::time::sleep(Duration::from_millis(400)).await;
        let registry = shop.registry();
        assert!(registry.changes(1, 10).await.unwrap().is_empty(), "neither of them");
        sqlx::query("COMMIT").execute(&mut late).await.unwrap();
        assert_eq!(other.await.unwrap(), 3);
        let changes = registry.changes(1, 10).await.unwrap();
        let packages: Vec<_> =
            changes.iter().map(|change| change.package.clone().unwrap()).collect();
        assert_eq!(packages, [name("late"), name("other")]);
        late.close().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_names_account_and_token() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        publish(shop, &shop.bob(), "other", "1.0.0").await;
        let (package, one) = (name("acme/tool"), version("1.0.0"));
        assert!(registry.yank(&shop.admin(), &package, &one, Some("broken")).await.unwrap());
        assert!(!registry.yank(&shop.admin(), &package, &one, None).await.unwrap());
        registry.deprecate(&shop.alice(), &package, None, Some("use other")).await.unwrap();
        assert!(registry.unyank(&shop.alice(), &package, &one).await.unwrap());

        let all = registry.audit(&AuditFilter::default(), None, 100).await.unwrap();
        let acts: Vec<_> = all.iter().rev().map(|entry| entry.change.act.as_str()).collect();
        let expected =
            ["namespace_created", "published", "published", "yanked", "deprecated", "unyanked"];
        assert_eq!(acts, expected);
        let yank = &all[2];
        assert_eq!(yank.account, Some(shop.admin.id));
        assert_eq!((yank.details["why"].as_str(), yank.token.as_deref()), (Some("broken"), None));
        assert_eq!(yank.change.version, Some(one));

        let filter = AuditFilter { package: Some(package), ..AuditFilter::default() };
        let page = registry.audit(&filter, None, 2).await.unwrap();
        assert_eq!(page.iter().map(|entry| entry.change.seq).collect::<Vec<_>>(), [6, 5]);
        let page = registry.audit(&filter, Some(5), 2).await.unwrap();
        assert_eq!(page.iter().map(|entry| entry.change.seq).collect::<Vec<_>>(), [4, 2]);
        let filter = AuditFilter { account: Some(shop.bob.id), ..AuditFilter::default() };
        assert_eq!(registry.audit(&filter, None, 9).await.unwrap().len(), 1);
        let owner_scope = Some("acme".parse().unwrap());
        let filter = AuditFilter { owner_scope, ..AuditFilter::default() };
        assert_eq!(registry.audit(&filter, None, 9).await.unwrap().len(), 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_is_append_only() {
    for_each_registry(async |shop| {
        publish(shop, &shop.alice(), "tool", "1.0.0").await;
        let mut connection = sqlx::AnyConnection::connect(&shop.place.url).await.unwrap();
        for statement in ["UPDATE registry_log SET account = 4711", "DELETE FROM registry_log"] {
            let error = sqlx::query(statement).execute(&mut connection).await.unwrap_err();
            assert!(error.to_string().contains("cannot be changed afterwards"), "{error}");
        }
        connection.close().await.unwrap();
        assert_eq!(shop.registry().changes(0, 10).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_of_several_processes_are_summed() {
    for_each_registry(async |shop| {
        let (here, there) = (DownloadCounter::default(), DownloadCounter::default());
        let (tool, one, two) = (name("acme/tool"), version("1.0.0"), version("2.0.0"));
        for _ in 0..3 {
            here.count(&tool, &one);
            there.count(&tool, &one);
        }
        there.count(&tool, &two);
        let (database, storage) = shop.again().await;
        let other = database.registry(&storage);
        let registry = shop.registry();
        let (a, b) = tokio::join!(registry.add_downloads(&here), other.add_downloads(&there));
        a.and(b).unwrap();
        assert!(registry.add_downloads(&here).await.unwrap().is_empty(), "nothing is new");
        let found = registry.downloads(&tool).await.unwrap();
        assert_eq!(found, [(one.clone(), 6), (two, 1)]);
        let of_all = registry.downloads_of(&[tool.clone(), name("acme/other")]).await.unwrap();
        assert_eq!((of_all.len(), of_all.get(&tool)), (1, Some(&7)));
        database.close().await;
        here.count(&tool, &one);
        assert!(other.add_downloads(&here).await.is_err());
        assert_eq!(registry.add_downloads(&here).await.unwrap(), std::slice::from_ref(&tool));
        assert_eq!(
            registry.downloads(&tool).await.unwrap()[0].1,
            7,
            "nothing is lost on a failure"
        );
    })
    .await;
}
