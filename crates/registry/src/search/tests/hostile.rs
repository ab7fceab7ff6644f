//! Tests with malicious queries and documents.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;

/// A generous limit for a query in a debug build on a busy machine.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// A thousand skills with the same words.
static INDEX: LazyLock<TestIndex> = LazyLock::new(|| {
    let words = ["web", "search", "data", "a", "the", "東京", "пример", "x1"];
    let text = |number: usize, length: usize| {
        let word = |index| words[(number * 7 + index * index) % words.len()];
        (0..length).map(word).collect::<Vec<_>>().join(" ")
    };
    let documents = (0..1000).map(|number| {
        let mut document =
            skill(&format!("{}-{number}", text(number, 2).replace(' ', "-")), &text(number, 9));
        document.body = text(number, 60);
        document.tags = vec![text(number, 1)];
        document
    });
    TestIndex::new(documents.collect())
});

fn answers(text: &str) {
    LazyLock::force(&INDEX);
    let start = Instant::now();
    match INDEX.index.search(&asked(text), 10, 0) {
        Ok(hits) => assert!(hits.items.len() <= 10),
        Err(error) => assert_eq!(error.code(), "query_too_long", "{error}"),
    }
    let took = start.elapsed();
    assert!(took < QUERY_TIMEOUT, "{took:?} for {:?}", &text[..text.floor_char_boundary(80)]);
}

#[test]
fn hostile_queries_are_answered() {
    let tricks = [
        "\"".repeat(1999),
        "\"a".repeat(900),
        "tag:".repeat(450),
        "tag:\"".repeat(330),
        "( OR ( AND NOT ".repeat(120),
        "+-&&||!(){}[]^\"~*?:\\/".repeat(90),
        "(a+)+$ ((((.*)*)*)*)*".repeat(80),
        "web search data ".repeat(120),
        "the a ".repeat(300),
        (0..330).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" "),
        "\"web search data the a web search data the a web search data\" ".repeat(30),
        "*".into(),
        "a*".repeat(800),
        "\u{0}\u{1}\u{7f}\u{85}\u{200b}\u{202e}\u{feff}".repeat(100),
        "e\u{301}\u{301}\u{301}".repeat(280),
        "\u{fdfa}".repeat(600),
        "東".repeat(660),
        "web\u{0}search".into(),
        "kuberne".repeat(280),
        "🦀".repeat(490),
        "name:[a TO z] description:{* TO *}".into(),
        "x".repeat(10_000),
        "\" OR 1=1; DROP TABLE skills; --".into(),
        "../../etc/passwd%00<script>".into(),
    ];
    for trick in &tricks {
        answers(trick);
    }
}

#[test]
fn hostile_documents() {
    let texts = ["\u{0}", "\"", "\u{fdfa}", "e\u{301}", "東", "x", "🦀", "a-", "\u{200d}"];
    for (number, text) in texts.iter().enumerate() {
        let document = Document {
            key: text.repeat(3),
            namespace: Some(text.repeat(9000)),
            name: text.repeat(9000),
            description: text.repeat(90_000),
            tags: vec![text.repeat(9000); 200],
            author: text.repeat(9000),
            body: text.repeat(90_000),
            tier: Tier::Verified,
            downloads: u64::MAX,
            updated_at: i64::MIN,
            evaluated: true,
            yanked_all: false,
        };
        let sample_index = TestIndex::new(vec![document.clone(), skill("innocent", "beside it")]);
        assert_eq!(sample_index.index.skill_count(), 2, "{number}");
        assert_eq!(sample_index.keys("innocent")[0], "innocent");
        sample_index.index.apply([IndexChange::Remove(document.key)], 2).unwrap();
        assert_eq!(sample_index.index.skill_count(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_query_does_not_fail(text in "\\PC{0,300}") {
        answers(&text);
    }

    #[test]
    fn arbitrary_query_parts_do_not_fail(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "\"", ":", "tag:", "author:", "tier:", "web", "serach", "東京", "-", " ", "\u{0}", "*", "the",
                "(", "\\", "verified", "\u{301}", "пример",
            ]),
            0..200,
        ),
    ) {
        answers(&pieces.concat());
    }

    #[test]
    fn any_page_is_a_slice(offset in 0_usize..1200, limit in 0_usize..50) {
        let page = INDEX.index.search(&asked("web"), limit, offset).unwrap();
        let all = INDEX.index.search(&asked("web"), 1000, 0).unwrap().items;
        let end = (offset + limit).min(all.len());
        prop_assert_eq!(&page.items[..], all.get(offset..end).unwrap_or_default());
    }
}
