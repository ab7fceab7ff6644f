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
async fn facts_are_stored_renamed_and_deleted() {
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
async fn using_a_skill_makes_it_active() {
    for_each_database(async |place| {
        let facts = place.database.skill_facts();
        let long_ago = Timestamp::now().minus(Duration::from_hours(24 * 100));
        let fresh = SkillFacts::authored(Some("7".to_owned()), long_ago);
        let archived = SkillFacts { lifecycle: Lifecycle::Archived, ..fresh.clone() };
        assert!(facts.update_lifecycle("a", None, &archived).await.unwrap());
        assert!(
            !facts.update_lifecycle("a", None, &archived).await.unwrap(),
            "it is noted already"
        );
        let found = facts.get("a").await.unwrap().unwrap();
        assert_eq!(found, archived);
        assert!(found.enabled && !found.is_offered());

        facts.used("a", &fresh).await.unwrap();
        let used = facts.get("a").await.unwrap().unwrap();
        assert_eq!(used.lifecycle, Lifecycle::Active);
        assert!(used.last_used.unwrap() > long_ago);
        assert_eq!(used.idle_since(long_ago), used.last_used.unwrap());
        // The skill was used after `found` was read, so that it does not age.
        let stale = SkillFacts { lifecycle: Lifecycle::Stale, ..found.clone() };
        assert!(!facts.update_lifecycle("a", Some(&found), &stale).await.unwrap());
        assert!(facts.update_lifecycle("a", Some(&used), &stale).await.unwrap());
        assert_eq!(facts.get("a").await.unwrap().unwrap().lifecycle, Lifecycle::Stale);

        // A skill that awaits approval stays disabled after its owner changes.
        let of_8 = SkillFacts::authored(Some("8".to_owned()), long_ago);
        facts.put("b", &catalog("7")).await.unwrap();
        facts.used("b", &of_8).await.unwrap();
        let noted = facts.get("b").await.unwrap().unwrap();
        assert_eq!((noted.owner.as_deref(), noted.enabled), (Some("7"), false));
        assert!(!SkillFacts::for_owner(Some(&noted), of_8.owner.clone(), long_ago).is_offered());
        // For an enabled skill, the data of the previous owner is discarded.
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
async fn catalog_source_lifecycle() {
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

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_a_skill_are_recorded_and_follow_it() {
    for_each_database(async |place| {
        let facts = place.database.skill_facts();
        let start = Timestamp::now().minus(Duration::from_hours(1));
        let at = |seconds| start.plus(Duration::from_secs(seconds));
        facts.record_version("pdf", "one", None, at(0)).await.unwrap();
        facts.record_version("pdf", "two", Some(7), at(1)).await.unwrap();
        facts.record_version("pdf", "two", Some(8), at(2)).await.unwrap();
        let versions = facts.versions("pdf").await.unwrap();
        let saved: Vec<_> =
            versions.iter().map(|version| (version.user_id, version.saved_at)).collect();
        assert_eq!(saved, [(Some(7), at(1)), (None, at(0))]);
        let oldest = facts.version("pdf", &versions[1].id).await.unwrap();
        assert_eq!(oldest, Some((versions[1].clone(), "one".to_owned())));
        assert_eq!(facts.version("other", &versions[1].id).await.unwrap(), None);

        facts.rename("pdf", "papers").await.unwrap();
        assert!(facts.versions("pdf").await.unwrap().is_empty());
        assert_eq!(facts.versions("papers").await.unwrap(), versions);

        for second in 10..60 {
            let text = second.to_string();
            facts.record_version("papers", &text, None, at(second)).await.unwrap();
        }
        let versions = facts.versions("papers").await.unwrap();
        assert_eq!((versions.len(), versions[0].saved_at), (30, at(59)));
        facts.forget_versions("papers").await.unwrap();
        assert!(facts.versions("papers").await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_that_another_writer_changed_is_not_replaced() {
    for_each_database(async |place| {
        let facts = place.database.skill_facts();
        let written = SkillFacts::authored(Some("1".to_owned()), Timestamp::from_micros(1));
        facts.put("a", &written).await.unwrap();
        facts.used("a", &written).await.unwrap();
        let digest = SkillFacts { digest: Some("d".to_owned()), ..written.clone() };
        assert!(facts.replace_if("a", &written, Some(&digest)).await.unwrap(), "only used");
        let disabled = SkillFacts { enabled: false, ..digest.clone() };
        facts.put("a", &disabled).await.unwrap();
        assert!(!facts.replace_if("a", &digest, Some(&written)).await.unwrap());
        assert!(!facts.replace_if("a", &digest, None).await.unwrap());
        assert_eq!(facts.get("a").await.unwrap(), Some(disabled));
    })
    .await;
}
