//! Tests of the order of results.

use super::{super::MatchKind, *};

/// Skills with the same word in different fields.
fn places() -> Vec<Document> {
    let filler = "several other things that have nothing to do with it";
    let mut tagged = skill("in-tags", filler);
    tagged.tags = vec!["kubernetes".into()];
    let mut body = skill("in-body", filler);
    body.body = format!("{filler} kubernetes {filler}");
    vec![
        body,
        skill("in-description", "kubernetes and several other things"),
        tagged,
        skill("kubernetes-helper", filler),
        skill("kubernetes", filler),
        skill("unrelated", filler),
    ]
}

#[test]
fn field_weights_order_results() {
    let sample_index = TestIndex::new(places());
    let order = ["kubernetes", "kubernetes-helper", "in-tags", "in-description", "in-body"];
    assert_eq!(sample_index.keys("kubernetes"), order);
}

#[test]
fn weight_breaks_ties() {
    let skill = |key: &str, tier, downloads, updated_at| Document {
        key: key.to_owned(),
        tier,
        downloads,
        updated_at,
        ..super::skill("csv-reader", "reads tables")
    };
    let today = i64::try_from(super::super::today()).unwrap() * 86_400;
    let table = [
        ("tier", skill("a", Tier::Community, 10, 0), skill("b", Tier::Verified, 10, 0)),
        ("lowest tier", skill("a", Tier::Experimental, 10, 0), skill("b", Tier::Community, 10, 0)),
        ("downloads", skill("a", Tier::Community, 10, 0), skill("b", Tier::Community, 9000, 0)),
        ("recency", skill("a", Tier::Community, 10, 0), skill("b", Tier::Community, 10, today)),
        ("key", skill("z", Tier::Community, 10, 0), skill("b", Tier::Community, 10, 0)),
    ];
    for (what, worse, better) in table {
        for documents in [vec![worse.clone(), better.clone()], vec![better.clone(), worse.clone()]]
        {
            let sample_index = TestIndex::new(documents);
            for text in ["reads tables", "csv-reader", "csv", "csv raeder", ""] {
                assert_eq!(sample_index.keys(text)[0], better.key, "{what}: {text}");
            }
        }
    }
}

#[test]
fn relevance_beats_weight_across_places() {
    let mut popular = skill("everything", "mentions invoices in passing, among many other things");
    popular.downloads = 1_000_000;
    popular.tier = Tier::Verified;
    let sample_index = TestIndex::new(vec![popular, skill("invoices-reader", "reads them")]);
    assert_eq!(sample_index.keys("invoices")[0], "invoices-reader");
}

#[test]
fn closer_matches_rank_first() {
    let sample_index = TestIndex::new(vec![
        skill("deploy", "brings things to servers"),
        skill("deploy-cloud", "brings things to clouds"),
        skill("cloud-thing", "to deploy"),
        skill("deployment-of-x", "other"),
        skill("cloudy", "weather"),
    ]);
    let hits = found(&sample_index.index, "deploy cloud").items;
    let order: Vec<_> = hits.iter().map(|hit| (hit.key.as_str(), hit.how)).collect();
    let expected = [("deploy-cloud", MatchKind::JoinedName), ("cloud-thing", MatchKind::AllWords)];
    assert_eq!(order[..2], expected);
    assert!(order.contains(&("deploy", MatchKind::SomeWords)), "{order:?}");
    assert!(hits.is_sorted_by_key(|hit| hit.how), "{order:?}");
}

#[test]
fn exact_name_ranks_first() {
    let mut popular = skill("git", "everything about git, git and git");
    popular.downloads = 10_000_000;
    popular.tier = Tier::Verified;
    let mut scoped = skill("git-blame", "who was it");
    scoped.key = "acme/git-blame".into();
    scoped.namespace = Some("acme".into());
    let mut joined = skill("gitblame", "who was it");
    joined.downloads = 5000;
    let sample_index = TestIndex::new(vec![popular, joined, scoped]);
    for text in ["git-blame", "Git-Blame", "acme/git-blame"] {
        assert_eq!(sample_index.keys(text)[0], "acme/git-blame", "{text}");
    }
    assert_eq!(sample_index.keys("gitblame")[..2], ["gitblame", "acme/git-blame"]);
    assert_eq!(
        sample_index.keys("git blame")[..2],
        ["gitblame", "acme/git-blame"],
        "both are the name"
    );
}

#[test]
fn pages_are_slices_of_one_list() {
    let named = |number| skill(&format!("page-{number:03}"), "turns pages");
    let sample_index = TestIndex::new((0..50).map(named).collect());
    let whole = sample_index.index.search(&asked("pages"), 50, 0).unwrap();
    assert_eq!((whole.items.len(), whole.more), (50, false));
    assert!(whole.items.is_sorted_by_key(|hit| hit.key.clone()), "ties go by key");
    let mut pages = Vec::new();
    loop {
        let page = sample_index.index.search(&asked("pages"), 7, pages.len()).unwrap();
        pages.extend(page.items);
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, whole.items);
    assert_eq!(
        sample_index.index.search(&asked("pages"), 10, usize::MAX).unwrap(),
        SearchHits::default()
    );
    assert_eq!(sample_index.index.search(&asked("pages"), 0, 0).unwrap(), SearchHits::default());
}

#[test]
fn order_is_independent_of_insertion() {
    let documents: Vec<_> = (0..60).map(|number| skill(&format!("tie-{number}"), "same")).collect();
    let at_once = TestIndex::new(documents.clone());
    let one_by_one = TestIndex::new(Vec::new());
    for (number, document) in documents.into_iter().rev().enumerate() {
        one_by_one.index.apply([IndexChange::Put(document)], 2 + number as u64).unwrap();
    }
    for text in ["same", "", "tie"] {
        assert_eq!(at_once.keys(text), one_by_one.keys(text), "{text}");
    }
}
