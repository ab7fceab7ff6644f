//! Tests of which skills a query finds.

use super::{super::MatchKind, *};

fn shop() -> TestIndex {
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
fn questions_and_their_first_answer() {
    let shop = shop();
    let table = [
        // Hyphens, spaces and none.
        ("web-search", "web-search"),
        ("web search", "web-search"),
        ("websearch", "web-search"),
        ("WEB_SEARCH", "web-search"),
        // While typing.
        ("web sea", "web-search"),
        ("websea", "web-search"),
        ("kube", "kubernetes-deployer"),
        ("ships kuber", "kubernetes-deployer"),
        // Typing errors: one more, one less, another, two swapped; two in long words.
        ("serch", "web-search"),
        ("saerch", "web-search"),
        ("seaarch", "web-search"),
        ("search", "web-search"),
        ("web saerch", "web-search"),
        ("websaerch", "web-search"),
        ("kuberntees", "kubernetes-deployer"),
        ("kubrnetse", "kubernetes-deployer"),
        ("dtabaess", "databases"),
        // Endings, in prose only.
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
        assert_eq!(shop.keys(text).first().map(String::as_str), Some(first), "{text}");
    }
}

#[test]
fn questions_without_an_answer() {
    let shop = shop();
    let table = [
        "xyzzy",
        // Too short for an error.
        "wbe",
        // Two errors in a word of seven letters.
        "saercch",
        // Not in this order.
        "\"request pull\"",
        // Not together in one skill.
        "review tag:research",
        "tag:research tag:kitchen",
        "author:acme author:jo",
        "tier:golden",
        "京東",
        "\"観光東京\"",
    ];
    for text in table {
        assert_eq!(shop.keys(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn names_are_not_stemmed() {
    let shop = TestIndex::new(vec![skill("searches", "x"), skill("search-y", "x")]);
    assert_eq!(shop.keys("searches")[0], "searches");
    assert_eq!(shop.keys("search")[0], "search-y");
}

#[test]
fn errors_are_forgiven_only_when_nothing_fits() {
    let shop = TestIndex::new(vec![skill("form-filler", "x"), skill("from-csv", "x")]);
    let hits = found(&shop.index, "form ").items;
    assert_eq!((hits[0].key.as_str(), hits[0].how), ("form-filler", MatchKind::AllWords));
    assert_eq!((hits[1].key.as_str(), hits[1].how), ("from-csv", MatchKind::Similar));
}

#[test]
fn filters_beside_the_text() {
    let shop = shop();
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
        assert_eq!(shop.index.search(&query, 10, 0).unwrap().items.len(), count, "{query:?}");
    }
}

#[test]
fn an_empty_question_finds_everything_but_what_was_yanked() {
    let mut yanked = skill("gone-bad", "do not use");
    yanked.yanked_all = true;
    yanked.downloads = 1_000_000;
    yanked.tags = vec!["x".into()];
    let shop = TestIndex::new(vec![yanked, skill("good", "use")]);
    assert_eq!(shop.keys(""), ["good"]);
    for text in ["gone", "tag:x", "do not", "gone-bda"] {
        assert!(!shop.keys(text).contains(&"gone-bad".to_owned()), "{text}");
    }
    assert_eq!(shop.keys("gone-bad"), ["gone-bad"], "who knows its name may read why");
}

#[test]
fn changes_replace_and_remove() {
    let shop = TestIndex::new(vec![skill("first", "alpha"), skill("second", "alpha")]);
    let changed = skill("first", "beta");
    let entries = [
        IndexChange::Put(skill("first", "gamma")),
        IndexChange::Put(changed),
        IndexChange::Remove("second".into()),
        IndexChange::Remove("never there".into()),
        IndexChange::Put(skill("third", "alpha")),
        IndexChange::Remove("third".into()),
    ];
    shop.index.apply(entries, 2).unwrap();
    assert_eq!((shop.keys("alpha"), shop.keys("gamma")), (vec![], vec![]));
    assert_eq!(shop.keys("beta"), ["first"]);
    assert_eq!(shop.index.skill_count(), 1);
    shop.index.clear().unwrap();
    assert_eq!((shop.index.skill_count(), shop.keys("")), (0, vec![]));
    shop.index.apply([IndexChange::Put(skill("again", "beta"))], 1).unwrap();
    assert_eq!(shop.keys("beta"), ["again"]);
}

#[test]
fn only_the_beginning_of_a_body_is_indexed() {
    let mut long = skill("long", "x");
    long.body = format!("needle {} haystack", "ä ".repeat(64 * 1024));
    let shop = TestIndex::new(vec![long]);
    assert_eq!(shop.keys("needle"), ["long"]);
    assert_eq!(shop.keys("haystack"), Vec::<String>::new());
}

#[test]
fn tidying_up_changes_no_answer_and_keeps_the_number() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    for (number, name) in ["web-search", "web-reader", "csv-reader"].iter().enumerate() {
        let new = IndexChange::New(skill(name, "reads what is there"));
        index.apply([new], number as u64 + 1).unwrap();
    }
    index.apply([IndexChange::Remove("csv-reader".into())], 4).unwrap();
    let before = keys(&index, "reads");
    index.tidy_up().unwrap();
    assert_eq!((keys(&index, "reads"), index.skill_count(), index.applied()), (before, 2, 4));
    index.tidy_up().unwrap();
    drop(index);
    let (index, applied) = SearchIndex::open(folder.path(), DATABASE).unwrap();
    assert_eq!(
        (applied, index.applied(), keys(&index, "web-reader")[0].as_str()),
        (4, 4, "web-reader")
    );
}

#[test]
fn who_makes_two_errors_knows_the_first_letter() {
    let shop = TestIndex::new(vec![skill("kubernetes", "runs things")]);
    assert_eq!(shop.keys("kubrenetse"), ["kubernetes"]);
    assert_eq!(shop.keys("gubernetes"), ["kubernetes"], "one error may be anywhere");
    assert_eq!(shop.keys("gubrenetes"), Vec::<String>::new());
}

/// However many others fit as well or better.
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
    let shop = TestIndex::new(all);
    let found = |text: &str, namespaces: &[&str]| {
        let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
        let hits = shop.index.search(&Query { namespaces, ..asked(text) }, 10, 0).unwrap();
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
