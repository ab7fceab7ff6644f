use std::collections::BTreeSet;

use savoir_skill::{permission::Tier, version::VersionRange};
use savoir_store::{
    Timestamp,
    registry::{Filter, IndexLine, Namespace, Order, Registry, Summary},
};

use super::{Draft, draft, for_each_registry, name, publish, version};

#[tokio::test(flavor = "multi_thread")]
async fn resolve_returns_newest_version_in_range() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        for text in ["1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "2.0.0-rc.10", "0.9.0", "1.11.0"] {
            publish(shop, &shop.alice(), "tool", text).await;
        }
        let tool = name("tool");
        registry.yank(&shop.alice(), &tool, &version("1.11.0"), None).await.unwrap();
        for (range, expected) in [
            ("*", "1.10.0"),
            ("~1.9", "1.9.0"),
            ("^1", "1.10.0"),
            (">=2.0.0-rc.1", "2.0.0-rc.10"),
            ("<1", "0.9.0"),
        ] {
            let range = VersionRange::parse(range).unwrap();
            let found = registry.resolve_version(&tool, &range).await.unwrap();
            assert_eq!(found.version, version(expected), "{range}");
        }
        for range in ["^3", "==1.11.0"] {
            let error = registry.resolve_version(&tool, &VersionRange::parse(range).unwrap()).await;
            assert_eq!(error.unwrap_err().code(), "not_found");
        }
        // A yanked version can still be read by existing installs.
        let found = registry.version(&tool, &version("1.11.0")).await.unwrap();
        assert!(found.yanked.is_some());
        let package = registry.package(&tool).await.unwrap().unwrap();
        let order: Vec<_> = package.versions.iter().map(|one| one.version.to_string()).collect();
        let expected = ["2.0.0-rc.10", "2.0.0-rc.1", "1.11.0", "1.10.0", "1.9.0", "1.0.0", "0.9.0"];
        assert_eq!(order, expected);
        assert_eq!(package.summary.latest, Some(version("1.10.0")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_follows_every_change() {
    for_each_registry(async |shop| {
        let (registry, alice, tool) = (shop.registry(), shop.alice(), name("acme/tool"));
        let mut tags = BTreeSet::new();
        let mut lines = async || {
            let index = registry.index(&tool).await.unwrap().unwrap();
            assert!(tags.insert(index.tag), "each change has another tag");
            let lines = index.text.lines().map(|line| serde_json::from_str(line).unwrap());
            lines.collect::<Vec<IndexLine>>()
        };
        publish(shop, &alice, "acme/tool", "1.0.0").await;
        let first = lines().await;
        assert_eq!(first[0].dependencies, ["auth-helpers@>=1.0.0"]);
        assert_eq!((first[0].tier.as_str(), first[0].yanked), ("experimental", false));
        publish(shop, &alice, "acme/tool", "2.0.0").await;
        let both = lines().await;
        assert_eq!((both.len(), &both[1]), (2, &first[0]));
        registry.yank(&alice, &tool, &version("2.0.0"), Some("broken")).await.unwrap();
        assert!(lines().await[0].yanked);
        registry.deprecate(&alice, &tool, None, Some("use b")).await.unwrap();
        registry.deprecate(&alice, &tool, Some(&version("1.0.0")), Some("use 2")).await.unwrap();
        let lines = lines().await;
        let messages: Vec<_> = lines.iter().map(|line| line.deprecated.as_deref()).collect();
        assert_eq!(messages, [Some("use b"), Some("use 2")]);
        let both = [name("acme/tool"), name("none")];
        let found = registry.indexes(&both).await.unwrap();
        assert_eq!(found.len(), 1);
        let size = found[0].text.len();
        assert_eq!(registry.indexes_up_to_size(&both, size).await.unwrap(), Some(found));
        assert_eq!(registry.indexes_up_to_size(&both, size - 1).await.unwrap(), None);
        assert_eq!(registry.index(&name("none")).await.unwrap(), None);
    })
    .await;
}

fn names(items: &[Summary]) -> Vec<String> {
    items.iter().map(|item| item.package.to_string()).collect()
}

async fn all(registry: Registry<'_>, filter: &Filter, order: Order, limit: u64) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = registry.list(filter, order, cursor.as_ref(), limit).await.unwrap();
        assert!(page.items.len() as u64 <= limit);
        found.extend(names(&page.items));
        match page.next {
            // Parse the cursor from text, as it is passed in URLs.
            Some(next) => cursor = Some(next.to_string().parse().unwrap()),
            None => return found,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_apply_filters() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let start = Timestamp::now();
        for (package, tag, author) in [
            ("zoo", "animals", "Ann"),
            ("acme/bear", "animals", "Ann"),
            ("acme/car", "cars", "Ann"),
            ("acme0/cat", "animals", "Ben"),
            ("bus", "cars", "Ben"),
        ] {
            let mut new = draft(package, "1.0.0");
            new.facts.tags = vec![tag.to_owned()];
            new.facts.author = Some(author.to_owned());
            new.publish(registry, &shop.admin()).await.unwrap();
        }
        publish(shop, &shop.admin(), "gone", "1.0.0").await;
        registry.yank(&shop.admin(), &name("gone"), &version("1.0.0"), None).await.unwrap();
        let list = async |filter: Filter| all(registry, &filter, Order::Name, 2).await;
        let everything = ["bus", "zoo", "acme/bear", "acme/car", "acme0/cat"];
        assert_eq!(list(Filter::default()).await, everything);
        let namespace = Some(Namespace::parse("acme").unwrap());
        let filter = Filter { namespace: namespace.clone(), ..Filter::default() };
        assert_eq!(list(filter).await, ["acme/bear", "acme/car"]);
        let namespace = Some(Namespace::default_namespace());
        assert_eq!(list(Filter { namespace, ..Filter::default() }).await, ["bus", "zoo"]);
        let tag = Some("animals".to_owned());
        let filter = Filter { tag: tag.clone(), ..Filter::default() };
        assert_eq!(list(filter).await, ["zoo", "acme/bear", "acme0/cat"]);
        let author = Some("Ann".to_owned());
        let filter = Filter { author: author.clone(), ..Filter::default() };
        assert_eq!(list(filter).await, ["zoo", "acme/bear", "acme/car"]);
        let filter = Filter { author, tag, tier: Some(Tier::Experimental), ..Filter::default() };
        assert_eq!(list(filter.clone()).await, ["zoo", "acme/bear"]);
        let filter = Filter { tier: Some(Tier::Verified), ..filter };
        assert!(list(filter).await.is_empty());

        let since = registry.package(&name("acme/car")).await.unwrap().unwrap().summary.updated_at;
        let none = Filter::default();
        let order = Order::Updated { since: Some(since) };
        assert_eq!(all(registry, &none, order, 1).await, ["acme/car", "acme0/cat", "bus"]);
        let order = Order::Recent { since: Some(since) };
        assert_eq!(all(registry, &none, order, 2).await, ["bus", "acme0/cat", "acme/car"]);
        let order = Order::Updated { since: Some(start) };
        let filter = Filter { tag: Some("cars".to_owned()), ..none };
        assert_eq!(all(registry, &filter, order, 1).await, ["acme/car", "bus"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_those_of_the_latest_version() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let tagged = |text: &str, tag: &str| {
            let mut new = draft("tool", text);
            new.facts.tags = vec![tag.to_owned()];
            new
        };
        let has = async |tag: &str| {
            let filter = Filter { tag: Some(tag.to_owned()), ..Filter::default() };
            !all(registry, &filter, Order::Name, 5).await.is_empty()
        };
        let publish = async |new: Draft| new.publish(registry, &shop.alice()).await.unwrap();
        publish(tagged("2.0.0", "two")).await;
        publish(tagged("1.0.0", "one")).await;
        assert!(has("two").await && !has("one").await);
        registry.yank(&shop.alice(), &name("tool"), &version("2.0.0"), None).await.unwrap();
        assert!(!has("two").await && has("one").await);
        registry.yank(&shop.alice(), &name("tool"), &version("1.0.0"), None).await.unwrap();
        assert!(!has("two").await && !has("one").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_complete_during_publishes() {
    for_each_registry(async |shop| {
        let count = if shop.place.is_sqlite() { 40 } else { 24 };
        for n in 0..count {
            publish(shop, &shop.alice(), &format!("old-{n:02}"), "1.0.0").await;
        }
        let old: BTreeSet<String> = (0..count).map(|n| format!("old-{n:02}")).collect();
        let (database, storage, actor) =
            (shop.database.clone(), shop.storage.clone(), shop.alice());
        let writer = tokio::spawn(async move {
            for n in (0..count).cycle() {
                let registry = database.registry(&storage);
                // Publish new packages between the old ones, and change old ones.
                let _ = draft(&format!("old-{n:02}-new"), "1.0.0").publish(registry, &actor).await;
                let why = Some("again");
                registry.deprecate(&actor, &name(&format!("old-{n:02}")), None, why).await.unwrap();
            }
        });
        for _ in 0..5 {
            let found = all(shop.registry(), &Filter::default(), Order::Name, 3).await;
            let found: Vec<_> = found.into_iter().filter(|name| old.contains(name)).collect();
            assert_eq!(found, old.iter().cloned().collect::<Vec<_>>(), "each once");
        }
        writer.abort();
        let order = Order::Updated { since: None };
        let found = all(shop.registry(), &Filter::default(), order, 3).await;
        assert!(old.is_subset(&found.into_iter().collect()), "none is missed");
    })
    .await;
}
