//! Searching, and what a registry knows of a skill.

use savoir_package::{registry::Name, trust::Tier};
use serde_json::{Value, json};

use super::{House, Server};

fn summary(name: &str, version: &str, description: &str, tags: &[&str]) -> Value {
    json!({
        "name": name, "latest_version": version, "description": description, "author": "acme",
        "security_tier": "community", "tags": tags, "updated_at": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn skills_are_found() {
    let house = House::new().set();
    let long = "Reads PDF files, fills forms in, and splits or joins pages as often as you like.";
    let items = json!([
        summary("acme/pdf", "1.2.0", long, &["pdf", "forms"]),
        summary("paper", "0.1.0-rc.1", "Evil \u{1b}[31mred\nlines.", &[]),
    ]);
    house.server.get("/registry/api/v1/search", &json!({"query": "x", "items": items}));
    let args = ["search", "fill", "forms", "--tier", "community", "--tag", "pdf", "--limit", "5"];
    let found = house.well(&args);
    insta::assert_snapshot!(house.shown(&found));
    let query = house.server.seen().pop().expect("a question").query;
    assert_eq!(query, "q=fill+forms+tag%3Apdf+tier%3Acommunity&per_page=5");
    let found = house.well(&["search", "pdf", "--json", "--limit", "1"]).json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!((&found["items"][0]["name"], &found["problems"]), (&json!("acme/pdf"), &json!([])));
    house.server.get("/registry/api/v1/search", &json!({"items": []}));
    assert_eq!(house.well(&["search", "nothing"]).stdout, "no skills found\n");
}

#[test]
fn without_words_the_newest_come_first() {
    let house = House::new().set();
    let mut old = summary("old", "1.0.0", "Old.", &[]);
    old["updated_at"] = json!("2025-01-01T00:00:00Z");
    let items = [old, summary("young", "1.0.0", "Young.", &[])];
    house.server.get("/registry/api/v1/skills", &json!({"items": items, "next_cursor": null}));
    let found = house.well(&["search", "--author", "acme", "--json"]).json();
    assert_eq!(
        (&found["items"][0]["name"], &found["items"][1]["name"]),
        (&json!("young"), &json!("old"))
    );
    let query = house.server.seen().pop().expect("a question").query;
    assert_eq!(query, "per_page=20&author=acme&sort=recent");
}

#[test]
fn several_registries_are_asked_and_a_silent_one_is_passed_over() {
    let (house, copy) = (House::new(), Server::start());
    let manifest = format!(
        "[registries.house]\nurl = \"{}\"\nnamespaces = [\"acme\"]\n\n\
         [registries.copy]\nurl = \"{}\"\n",
        house.url(),
        copy.address()
    );
    house.sandbox.write("project/savoir.toml", manifest);
    copy.get("/index/v1/config.json", &json!({"version": 1}));
    let found = |name: &str| json!({"items": [summary(name, "1.0.0", "Reads.", &["a"])]});
    house.server.get("/registry/api/v1/search", &found("acme/pdf"));
    let one = house.well(&["search", "pdf"]);
    insta::assert_snapshot!(one.to_string().replace(copy.address(), "http://copy.test"));
    // Nobody offers what belongs to another one.
    copy.get("/api/v1/search", &found("acme/pdf"));
    let both = house.well(&["search", "pdf", "--json"]).json();
    let registries: Vec<&Value> =
        both["items"].as_array().expect("items").iter().map(|item| &item["registry"]).collect();
    assert_eq!(registries, ["house"]);
    copy.get("/api/v1/search", &found("paper"));
    let named = house.well(&["search", "pdf", "--registry", "copy", "--json"]).json();
    assert_eq!(named["items"][0]["name"], "paper");
    copy.on("GET", "/api/v1/search", 503, &Value::Null);
    house.server.on("GET", "/registry/api/v1/search", 404, &Value::Null);
    let none = house.run(&["search", "pdf", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &json!("no_answer")), "{none}");
    let alone = house.run(&["search", "pdf", "--registry", "house"]);
    assert!(alone.code == 1 && alone.stderr.contains("a copy that has files only"), "{alone}");
    let outside = House::new().run(&["search", "pdf"]);
    assert!(outside.code == 2 && outside.stderr.contains("no registry is set"), "{outside}");
}

#[test]
fn a_registry_tells_what_it_knows_of_a_skill() {
    let house = House::new().set();
    house.publish("acme/pdf", "1.1.0", |line| line.yanked = true);
    let line = house.publish("acme/pdf", "1.0.0", |line| {
        line.deprecated = Some("use acme/paper".into());
        line.signer = Some("acme".into());
        line.attested = Some(Tier::Community);
        line.claimed = Some(Tier::Experimental);
        line.permissions = vec!["network:read:example.com".into()];
        line.published_at = Some("2026-01-01T00:00:00Z".into());
    });
    let files = house.well(&["info", "acme/pdf"]);
    assert!(files.stdout.contains("this registry is a static mirror"), "{files}");
    // The tier that was earned, as `search` and `publish` name it; and what is claimed beside it.
    for words in
        ["registry tier  community\n", "claimed tier   experimental, which limits its trust\n"]
    {
        assert!(files.stdout.contains(words), "{files}");
    }
    assert!(files.stdout.contains("Does acme/pdf. Use when needed."), "{files}");
    let detail = json!({
        "name": "acme/pdf", "version": "1.0.0", "security_tier": "community",
        "publisher": "ada", "manifest": {"description": "Reads PDF.\u{1b}[2J", "license": "MIT"},
        "artifact": {"filename": "pdf-1.0.0.zip", "size": 4, "sha256": "00"},
        "audit": {"verdict": "REVIEW", "engine": "savoir", "findings": [
            {"severity": "high", "code": "SCAN1", "message": "It sends files.", "path": "a.py"}]},
    });
    house.server.get("/registry/api/v1/skills/acme/pdf/1.0.0", &detail);
    let told = house.well(&["info", "acme/pdf@^1"]);
    let sizes = [(line.integrity.as_str(), "sha256-…"), (&*line.size.to_string(), "N")];
    let text = sizes.iter().fold(house.shown(&told), |text, (from, to)| text.replace(from, to));
    insta::assert_snapshot!(text);
    let json = house.well(&["info", "acme/pdf@1.1.0", "--json"]).json();
    assert_eq!((&json["published"]["yanked"], &json["detail"]), (&json!(true), &Value::Null));
    assert_eq!(json["versions"].as_array().map(Vec::len), Some(2));
    let tiers = json!(["community", "experimental"]);
    let known = house.well(&["info", "acme/pdf@1.0.0", "--json"]).json();
    assert_eq!(json!([known["tier"], known["claimed_tier"]]), tiers, "{known}");
    assert_eq!(json!([known["versions"][0]["tier"], known["versions"][1]["tier"]]), tiers);
    let none = house.run(&["info", "acme/pdf@^9", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &json!("unknown_version")));
    let unknown = house.run(&["info", "nothing"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("has no skill `nothing`"), "{unknown}");
    let url = house.url();
    assert_eq!(house.run(&["info", "./x", "--registry", &url]).code, 2);
}

#[test]
fn who_forgets_the_end_of_an_address_is_told_the_whole() {
    let house = House::new();
    let (root, url) = (house.server.address().to_owned(), house.url());
    let folder = house.write(&Name::parse("acme/pdf").expect("a name"), "1.0.0");
    let folder = house.sandbox.path(&folder).display().to_string();
    // What the rest of the server says there is not what a registry would say.
    let other = json!({"detail": "Method Not Allowed"});
    house.server.on("POST", "/api/v1/auth/login", 200, &json!({"token": "session", "user": {}}));
    house.server.on("POST", "/api/v1/skills", 405, &other);
    house.server.on("POST", "/api/v1/skills/acme/pdf/1.0.0/yank", 404, &other);
    for args in [
        &["search", "pdf"][..],
        &["info", "acme/pdf"],
        &["install", "acme/pdf"],
        &["registry", "yank", "acme/pdf@1.0.0"],
        &["registry", "mirror", &root, "copy"],
        &["publish", &folder, "--yes"],
    ] {
        let named = ["--registry", root.as_str()];
        let named = if args.contains(&"mirror") { &[][..] } else { &named[..] };
        let mut command = house.command(&[args, named].concat());
        let ran = super::piped(
            {
                command.env("SAVOIR_TOKEN", "sv_x").env("SAVOIR_REGISTRY", &root);
                command
            },
            "",
        );
        assert_eq!(ran.code, 1, "{args:?}: {ran}");
        let tried = format!("there is no {root}/index/v1/config.json");
        for words in [tried.as_str(), "ends with /registry", &format!("--registry {url}")] {
            assert!(ran.stderr.contains(words), "{args:?}, {words}: {ran}");
        }
    }
    // Where there is none, none is named.
    let nothing = Server::start();
    let ran = house.run(&["search", "pdf", "--registry", nothing.address()]);
    assert!(ran.stderr.contains("ends with /registry") && !ran.stderr.contains("there is one"));
}
