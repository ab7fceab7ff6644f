//! Tests of which skills a query finds.

use super::{super::MatchKind, *};

fn sample_index() -> TestIndex {
    let mut chinese = skill("translate-docs", "把文档翻译成中文，支持多种语言");
    chinese.body = "使用方法：打开文件".into();
    let japanese = skill("tokyo-guide", "東京都の観光案内をします");
    let korean = skill("seoul-guide", "서울 여행 안내를 도와줍니다");
    let mut tagged = skill("web-search", "Finds pages on the internet and summarises the findings");
    tagged.tags = vec!["Research".into(), "web".into()];
    tagged.author = "Jo Doe".into();
    tagged.tier = Tier::Verified;
    let mut review = skill("code-review", "Reviews a pull request before it is merged");
    review.body = "First read the request, then pull the branch.".into();
    review.author = "acme".into();
    TestIndex::new(vec![
        chinese,
        japanese,
        korean,
        tagged,
        review,
        skill("crème-brûlée", "Ein Rezept für Süßes, größer als die Straße"),
        skill("databases", "Indexes, migrations and queries"),
        skill("how-to", "answers"),
        skill("kubernetes-deployer", "ships containers"),
    ])
}

#[test]
fn queries_and_expected_first_result() {
    let sample_index = sample_index();
    let table = [
        // With hyphens, spaces and none.
        ("web-search", "web-search"),
        ("web search", "web-search"),
        ("websearch", "web-search"),
        ("WEB_SEARCH", "web-search"),
        // While the user is typing.
        ("web sea", "web-search"),
        ("websea", "web-search"),
        ("kube", "kubernetes-deployer"),
        ("ships kuber", "kubernetes-deployer"),
        // Typos: one letter added, missing, replaced or swapped; two typos in long words.
        ("serch", "web-search"),
        ("saerch", "web-search"),
        ("seaarch", "web-search"),
        ("search", "web-search"),
        ("web saerch", "web-search"),
        ("websaerch", "web-search"),
        ("kuberntees", "kubernetes-deployer"),
        ("kubrnetse", "kubernetes-deployer"),
        ("dtabaess", "databases"),
        // Word endings, in prose only.
        ("summarising finding", "web-search"),
        ("reviewing requests", "code-review"),
        ("migration query", "databases"),
        // Phrases.
        ("\"pull request\"", "code-review"),
        ("\"it is merged\"", "code-review"),
        ("\"Pull Requests\" merge", "code-review"),
        // Accents, case, width.
        ("creme brulee", "crème-brûlée"),
        ("CRÈME", "crème-brûlée"),
        ("süsses", "crème-brûlée"),
        ("strasse", "crème-brûlée"),
        ("ｗｅｂ ｓｅａｒｃｈ", "web-search"),
        // Scripts without spaces.
        ("翻译", "translate-docs"),
        ("中文", "translate-docs"),
        ("文", "translate-docs"),
        ("打开文件", "translate-docs"),
        ("観光", "tokyo-guide"),
        ("東京", "tokyo-guide"),
        ("여행", "seoul-guide"),
        ("\"東京都の観光\"", "tokyo-guide"),
        // Common words.
        ("how to", "how-to"),
        ("the internet", "web-search"),
        // Filters.
        ("tag:research", "web-search"),
        ("author:\"jo doe\"", "web-search"),
        ("tier:verified", "web-search"),
        ("review author:acme", "code-review"),
    ];
    for (text, first) in table {
        assert_eq!(sample_index.keys(text).first().map(String::as_str), Some(first), "{text}");
    }
}

#[test]
fn queries_without_result() {
    let sample_index = sample_index();
    // Queries without results: an unknown word, a word too short for a typo, two typos in seven
    // letters, another word order, words of different skills.
    let table = [
        "xyzzy", "wbe", "saercch", "\"request pull\"", "review tag:research",
        "tag:research tag:kitchen", "author:acme author:jo", "tier:golden", "京東", "\"観光東京\"",
    ];
    for text in table {
        assert_eq!(sample_index.keys(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn names_are_not_stemmed() {
    let sample_index = TestIndex::new(vec![skill("searches", "x"), skill("search-y", "x")]);
    assert_eq!(sample_index.keys("searches")[0], "searches");
    assert_eq!(sample_index.keys("search")[0], "search-y");
}

#[test]
fn typos_are_corrected_only_without_exact_match() {
    let sample_index = TestIndex::new(vec![skill("form-filler", "x"), skill("from-csv", "x")]);
    let hits = found(&sample_index.index, "form ").items;
    assert_eq!((hits[0].key.as_str(), hits[0].how), ("form-filler", MatchKind::AllWords));
    assert_eq!((hits[1].key.as_str(), hits[1].how), ("from-csv", MatchKind::Similar));
}

#[test]
fn filters_beside_the_text() {
    let sample_index = sample_index();
    let query = |tags: &[&str], author: Option<&str>, tier| Query {
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        author: author.map(str::to_owned),
        tier,
        ..asked("pages")
    };
    let table = [
        (query(&["research", "WEB"], None, None), 1),
        (query(&["research", "kitchen"], None, None), 0),
        (query(&[], Some("Jo Doe"), Some(Tier::Verified)), 1),
        (query(&[], None, Some(Tier::Experimental)), 0),
    ];
    for (query, count) in table {
        assert_eq!(
            sample_index.index.search(&query, 10, 0).unwrap().items.len(),
            count,
            "{query:?}"
        );
    }
}

#[test]
fn empty_query_finds_all_not_yanked() {
    let mut yanked = skill("gone-bad", "do not use");
    yanked.yanked_all = true;
    yanked.downloads = 1_000_000;
    yanked.tags = vec!["x".into()];
    let sample_index = TestIndex::new(vec![yanked, skill("good", "use")]);
    assert_eq!(sample_index.keys(""), ["good"]);
    for text in ["gone", "tag:x", "do not", "gone-bda"] {
        assert!(!sample_index.keys(text).contains(&"gone-bad".to_owned()), "{text}");
    }
    assert_eq!(sample_index.keys("gone-bad"), ["gone-bad"], "who knows its name may read why");
}

#[test]
fn changes_replace_and_remove() {
    let sample_index = TestIndex::new(vec![skill("first", "alpha"), skill("second", "alpha")]);
    let changed = skill("first", "beta");
    let entries = [
        IndexChange::Put(skill("first", "gamma")),
        IndexChange::Put(changed),
        IndexChange::Remove("second".into()),
        IndexChange::Remove("never there".into()),
        IndexChange::Put(skill("third", "alpha")),
        IndexChange::Remove("third".into()),
    ];
    sample_index.index.apply(entries, 2).unwrap();
    assert_eq!((sample_index.keys("alpha"), sample_index.keys("gamma")), (vec![], vec![]));
    assert_eq!(sample_index.keys("beta"), ["first"]);
    assert_eq!(sample_index.index.skill_count(), 1);
    sample_index.index.clear().unwrap();
    assert_eq!((sample_index.index.skill_count(), sample_index.keys("")), (0, vec![]));
    sample_index.index.apply([IndexChange::Put(skill("again", "beta"))], 1).unwrap();
    assert_eq!(sample_index.keys("beta"), ["again"]);
}

#[test]
fn only_the_beginning_of_a_body_is_indexed() {
    let mut long = skill("long", "x");
    long.body = format!("needle {} haystack", "ä ".repeat(64 * 1024));
    let sample_index = TestIndex::new(vec![long]);
    assert_eq!(sample_index.keys("needle"), ["long"]);
    assert_eq!(sample_index.keys("haystack"), Vec::<String>::new());
}

#[test]
fn merging_segments_keeps_results_and_number() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    for (number, name) in ["web-search", "web-reader", "csv-reader"].iter().enumerate() {
        let new = IndexChange::New(skill(name, "reads what is there"));
        index.apply([new], number as u64 + 1).unwrap();
    }
    index.apply([IndexChange::Remove("csv-reader".into())], 4).unwrap();
    let before = keys(&index, "reads");
    index.merge_all_segments().unwrap();
    assert_eq!((keys(&index, "reads"), index.skill_count(), index.applied()), (before, 2, 4));
    index.merge_all_segments().unwrap();
    drop(index);
    let (index, applied) = SearchIndex::open(folder.path(), DATABASE).unwrap();
    assert_eq!(
        (applied, index.applied(), keys(&index, "web-reader")[0].as_str()),
        (4, 4, "web-reader")
    );
}

#[test]
fn two_typos_need_correct_first_letter() {
    let sample_index = TestIndex::new(vec![skill("kubernetes", "runs things")]);
    assert_eq!(sample_index.keys("kubrenetse"), ["kubernetes"]);
    assert_eq!(sample_index.keys("gubernetes"), ["kubernetes"], "one error may be anywhere");
    assert_eq!(sample_index.keys("gubrenetes"), Vec::<String>::new());
}

/// Skills of the namespaces are found even if many others match as well or better.
#[test]
fn skills_of_some_namespaces() {
    let of = |namespace: &str, name: &str| Document {
        key: format!("{namespace}/{name}"),
        namespace: Some(namespace.to_owned()),
        ..skill(name, "Reads PDF files.")
    };
    let mut all: Vec<Document> =
        (0..300).map(|number| of("evil", &format!("pdf-{number}"))).collect();
    all.push(Document { body: "It also reads pdf.".into(), ..of("acme", "paper") });
    all.extend([of("inner", "forms"), skill("inner", "Reads PDF."), skill("lone", "Reads PDF.")]);
    let sample_index = TestIndex::new(all);
    let found = |text: &str, namespaces: &[&str]| {
        let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
        let hits = sample_index.index.search(&Query { namespaces, ..asked(text) }, 10, 0).unwrap();
        let mut keys: Vec<String> = hits.items.into_iter().map(|hit| hit.key).collect();
        keys.sort();
        keys
    };
    for text in ["pdf", "reads pdf", "\"reads pdf\"", ""] {
        assert_eq!(found(text, &[]).len(), 10, "{text}");
        assert_eq!(found(text, &["acme", "inner"]), ["acme/paper", "inner/forms"], "{text}");
    }
    assert_eq!(found("pdf", &["_/inner", "acme"]), ["acme/paper", "inner"]);
    for text in ["paper", "papar", "pap"] {
        assert_eq!(found(text, &["acme"]), ["acme/paper"], "{text}");
    }
    assert_eq!(found("paper", &["inner"]), [""; 0]);
    assert_eq!(found("pdf", &["none", "\u{0}", "_/"]), [""; 0]);
}

#[test]
fn synonyms_and_verbs_are_understood() {
    let sample_index = TestIndex::new(vec![
        skill("pptx", "Create and edit presentations with speaker notes."),
        skill("xlsx", "Reads and edits spreadsheets with formulas."),
        skill("cooking", "Makes plans for dinner."),
    ]);
    for (text, key) in [
        ("make slides", "pptx"),
        ("powerpoint deck", "pptx"),
        ("build an excel sheet", "xlsx"),
        ("write a spreadsheet", "xlsx"),
    ] {
        let found = sample_index.keys(text);
        assert_eq!(found.first().map(String::as_str), Some(key), "{text}: {found:?}");
    }
    let hits = found(&sample_index.index, "make slides").items;
    assert_eq!(hits[0].how, MatchKind::Synonyms);
}

#[test]
fn typos_in_words_of_descriptions_are_corrected() {
    let sample_index = TestIndex::new(vec![
        skill("xlsx", "Reads and edits spreadsheets with formulas."),
        skill("pptx", "Create and edit presentations."),
    ]);
    assert_eq!(sample_index.keys("speadsheet"), ["xlsx"]);
    assert_eq!(sample_index.keys("presentatoin"), ["pptx"]);
    assert_eq!(sample_index.keys("edti"), Vec::<String>::new(), "four letters are too few");
}

#[test]
fn total_counts_all_pages() {
    let all = (0..30).map(|number| skill(&format!("pdf-{number}"), "Reads PDF files.")).collect();
    let sample_index = TestIndex::new(all);
    let hits = sample_index.index.search(&asked("pdf"), 10, 10).unwrap();
    assert_eq!((hits.items.len(), hits.more, hits.total), (10, true, 30));
    let last = sample_index.index.search(&asked("pdf"), 10, 20).unwrap();
    assert_eq!((last.items.len(), last.more, last.total), (10, false, 30));
}

#[test]
fn only_evaluated_skills() {
    let test_index = TestIndex::new(vec![
        Document { evaluated: true, ..skill("pdf-forms", "Fills forms.") },
        skill("pdf-pages", "Splits pages."),
    ]);
    assert_eq!(test_index.keys("pdf evaluated:yes"), ["pdf-forms"]);
    let query = Query { evaluated: true, ..asked("") };
    let hits = test_index.index.search(&query, 10, 0).unwrap();
    assert_eq!(hits.items.len(), 1, "{hits:?}");
    assert_eq!(test_index.keys("pdf").len(), 2);
}
