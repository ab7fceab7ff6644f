use std::time::Duration;

use savoir_skill::dialect::personal_agent::{Lifecycle, Provenance};
use savoir_store::{NewCatalogSource, SkillFacts, Timestamp};

use crate::harness::for_each_database;

fn catalog(owner: &str) -> SkillFacts {
    SkillFacts {
        enabled: false,
        pinned: true,
        source: Provenance::Catalog,
        source_id: Some("acme/skills@main:pdf".to_owned()),
        source_version: Some("abc".to_owned()),
        digest: Some("def".to_owned()),
        ..SkillFacts::authored(Some(owner.to_owned()), Timestamp::now())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_follow_their_skill() {
    for_each_database(async |place| {
        let facts = place.database.skill_facts();
        assert_eq!(facts.get("pdf").await.unwrap(), None);
        let noted = catalog("7");
        facts.put("pdf", &noted).await.unwrap();
        facts.put("pdf", &noted).await.unwrap();
        let from = async |owner: Option<&str>, id: &str| {
            facts.names_imported_from(owner, Provenance::Catalog, id).await.unwrap()
        };
        assert_eq!(from(Some("7"), "acme/skills@main:pdf").await, ["pdf"]);
        assert!(from(Some("8"), "acme/skills@main:pdf").await.is_empty());
        assert!(from(None, "acme/skills@main:pdf").await.is_empty());
        assert!(from(Some("7"), "acme/skills@main").await.is_empty());
        let other = place.again().await;
        assert_eq!(other.skill_facts().get("pdf").await.unwrap().as_ref(), Some(&noted));
        assert_eq!(other.skill_facts().all().await.unwrap()["pdf"], noted);
        other.close().await;

        let orphan = SkillFacts::authored(None, Timestamp::now());
        facts.put("papers", &orphan).await.unwrap();
        facts.rename("pdf", "papers").await.unwrap();
        assert_eq!(facts.get("pdf").await.unwrap(), None);
        assert_eq!(facts.get("papers").await.unwrap(), Some(noted.clone()));
        facts.set_owner("papers", Some("8")).await.unwrap();
        assert_eq!(facts.get("papers").await.unwrap().unwrap().owner.as_deref(), Some("8"));
        facts.forget("papers").await.unwrap();
        facts.forget("papers").await.unwrap();
        assert!(facts.all().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn use_wakes_a_skill() {
    for_each_database(async |place| {
        let facts = place.database.skill_facts();
        let long_ago = Timestamp::now().minus(Duration::from_hours(24 * 100));
        let fresh = SkillFacts::authored(Some("7".to_owned()), long_ago);
        let archived = SkillFacts { lifecycle: Lifecycle::Archived, ..fresh.clone() };
        assert!(facts.age("a", None, &archived).await.unwrap());
        assert!(!facts.age("a", None, &archived).await.unwrap(), "it is noted already");
        let found = facts.get("a").await.unwrap().unwrap();
        assert_eq!(found, archived);
        assert!(found.enabled && !found.is_offered());

        facts.used("a", &fresh).await.unwrap();
        let used = facts.get("a").await.unwrap().unwrap();
        assert_eq!(used.lifecycle, Lifecycle::Active);
        assert!(used.last_used.unwrap() > long_ago);
        assert_eq!(used.idle_since(long_ago), used.last_used.unwrap());
        // Somebody saw it before it was used.
        let stale = SkillFacts { lifecycle: Lifecycle::Stale, ..found.clone() };
        assert!(!facts.age("a", Some(&found), &stale).await.unwrap());
        assert!(facts.age("a", Some(&used), &stale).await.unwrap());
        assert_eq!(facts.get("a").await.unwrap().unwrap().lifecycle, Lifecycle::Stale);

        // A skill that waits for somebody to look at it waits also if its owner is another now.
        let of_8 = SkillFacts::authored(Some("8".to_owned()), long_ago);
        facts.put("b", &catalog("7")).await.unwrap();
        facts.used("b", &of_8).await.unwrap();
        let noted = facts.get("b").await.unwrap().unwrap();
        assert_eq!((noted.owner.as_deref(), noted.enabled), (Some("7"), false));
        assert!(!SkillFacts::holding(Some(&noted), of_8.owner.clone(), long_ago).is_offered());
        // Of one that is enabled, what was noted of another's is not kept.
        facts.put("b", &SkillFacts { enabled: true, ..catalog("7") }).await.unwrap();
        facts.used("b", &of_8).await.unwrap();
        let used = facts.get("b").await.unwrap().unwrap();
        assert_eq!((used.owner.as_deref(), used.source), (Some("8"), Provenance::Authored));
        assert!(used.enabled && used.last_used.is_some());
        facts.used("c", &of_8).await.unwrap();
        assert!(facts.get("c").await.unwrap().unwrap().last_used.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sources_of_the_catalogue() {
    for_each_database(async |place| {
        let sources = place.database.catalog_sources();
        let new = NewCatalogSource {
            label: "Acme".to_owned(),
            repo_url: "https://github.com/acme/skills".to_owned(),
            reference: None,
            enabled: true,
        };
        let first = sources.add(&new).await.unwrap();
        let second = sources.add(&new).await.unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(sources.list().await.unwrap(), [first.clone(), second.clone()]);
        let changed =
            NewCatalogSource { reference: Some("v1".to_owned()), enabled: false, ..new.clone() };
        let changed = sources.replace(&first.id, &changed).await.unwrap().unwrap();
        assert_eq!(sources.get(&first.id).await.unwrap(), Some(changed.clone()));
        assert_eq!((changed.reference.as_deref(), changed.enabled), (Some("v1"), false));
        assert_eq!(sources.replace("nothing", &new).await.unwrap(), None);
        assert!(sources.remove(&first.id).await.unwrap());
        assert!(!sources.remove(&first.id).await.unwrap());
        assert_eq!(sources.list().await.unwrap(), [second]);
    })
    .await;
}
