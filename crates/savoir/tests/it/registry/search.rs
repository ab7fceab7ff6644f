//! Tests searching, and details of published skills.

use savoir_package::{registry::Name, trust::Tier};
use serde_json::{Value, json};

use super::{MockRegistry, RegistryTestEnv};

fn summary(name: &str, version: &str, description: &str, tags: &[&str]) -> Value {
    json!({
        "name": name, "latest_version": version, "description": description, "author": "acme",
        "security_tier": "community", "tags": tags, "updated_at": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn skills_are_found() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    let long = "Reads PDF files, fills forms in, and splits or joins pages as often as you like.";
    let items = json!([
        summary("acme/pdf", "1.2.0", long, &["pdf", "forms"]),
        summary("paper", "0.1.0-rc.1", "Evil \u{1b}[31mred\nlines.", &[]),
    ]);
    test_env.server.get("/registry/api/v1/search", &json!({"query": "x", "items": items}));
    let args = ["search", "fill", "forms", "--tier", "community", "--tag", "pdf", "--limit", "5"];
    let found = test_env.run_ok(&args);
    insta::assert_snapshot!(test_env.without_addresses(&found));
    let query = test_env.server.seen().pop().expect("a question").query;
    assert_eq!(query, "q=fill+forms+tag%3Apdf+tier%3Acommunity&per_page=5");
    let found = test_env.run_ok(&["search", "pdf", "--json", "--limit", "1"]).json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!((&found["items"][0]["name"], &found["problems"]), (&json!("acme/pdf"), &json!([])));
    test_env.server.get("/registry/api/v1/search", &json!({"items": []}));
    assert_eq!(test_env.run_ok(&["search", "nothing"]).stdout, "no skills found\n");
}

#[test]
fn empty_search_lists_newest_first() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    let mut old = summary("old", "1.0.0", "Old.", &[]);
    old["updated_at"] = json!("2025-01-01T00:00:00Z");
    let items = [old, summary("young", "1.0.0", "Young.", &[])];
    test_env.server.get("/registry/api/v1/skills", &json!({"items": items, "next_cursor": null}));
    let found = test_env.run_ok(&["search", "--author", "acme", "--json"]).json();
    assert_eq!(
        (&found["items"][0]["name"], &found["items"][1]["name"]),
        (&json!("young"), &json!("old"))
    );
    let query = test_env.server.seen().pop().expect("a question").query;
    assert_eq!(query, "per_page=20&author=acme&sort=recent");
}

#[test]
fn search_asks_all_registries_and_skips_unreachable_ones() {
    let (test_env, copy) = (RegistryTestEnv::new(), MockRegistry::start());
    let manifest = format!(
        "[registries.house]\nurl = \"{}\"\nnamespaces = [\"acme\"]\n\n\
         [registries.copy]\nurl = \"{}\"\n",
        test_env.url(),
        copy.address()
    );
    test_env.sandbox.write("project/savoir.toml", manifest);
    copy.get("/index/v1/config.json", &json!({"version": 1}));
    let found = |name: &str| json!({"items": [summary(name, "1.0.0", "Reads.", &["a"])]});
    test_env.server.get("/registry/api/v1/search", &found("acme/pdf"));
    let one = test_env.run_ok(&["search", "pdf"]);
    insta::assert_snapshot!(one.to_string().replace(copy.address(), "http://copy.test"));
    // A registry must not list skills of a namespace that belongs to another registry.
    copy.get("/api/v1/search", &found("acme/pdf"));
    let both = test_env.run_ok(&["search", "pdf", "--json"]).json();
    let registries: Vec<&Value> =
        both["items"].as_array().expect("items").iter().map(|item| &item["registry"]).collect();
    assert_eq!(registries, ["house"]);
    copy.get("/api/v1/search", &found("paper"));
    let named = test_env.run_ok(&["search", "pdf", "--registry", "copy", "--json"]).json();
    assert_eq!(named["items"][0]["name"], "paper");
    copy.on("GET", "/api/v1/search", 503, &Value::Null);
    test_env.server.on("GET", "/registry/api/v1/search", 404, &Value::Null);
    let none = test_env.run(&["search", "pdf", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &json!("no_answer")), "{none}");
    let alone = test_env.run(&["search", "pdf", "--registry", "house"]);
    assert!(alone.code == 1 && alone.stderr.contains("a copy that has files only"), "{alone}");
    let outside = RegistryTestEnv::new().run(&["search", "pdf"]);
    assert!(outside.code == 2 && outside.stderr.contains("no registry is set"), "{outside}");
}

#[test]
fn info_shows_published_details() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    test_env.publish("acme/pdf", "1.1.0", |line| line.yanked = true);
    let line = test_env.publish("acme/pdf", "1.0.0", |line| {
        line.deprecated = Some("use acme/paper".into());
        line.signer = Some("acme".into());
        line.attested = Some(Tier::Community);
        line.claimed = Some(Tier::Experimental);
        line.permissions = vec!["network:read:example.com".into()];
        line.published_at = Some("2026-01-01T00:00:00Z".into());
    });
    let files = test_env.run_ok(&["info", "acme/pdf"]);
    assert!(files.stdout.contains("this registry is a static mirror"), "{files}");
    // The earned tier, and the claimed tier if it differs.
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
    test_env.server.get("/registry/api/v1/skills/acme/pdf/1.0.0", &detail);
    let output = test_env.run_ok(&["info", "acme/pdf@^1"]);
    let sizes = [(line.integrity.as_str(), "sha256-…"), (&*line.size.to_string(), "N")];
    let text = sizes
        .iter()
        .fold(test_env.without_addresses(&output), |text, (from, to)| text.replace(from, to));
    insta::assert_snapshot!(text);
    let json = test_env.run_ok(&["info", "acme/pdf@1.1.0", "--json"]).json();
    assert_eq!((&json["published"]["yanked"], &json["detail"]), (&json!(true), &Value::Null));
    assert_eq!(json["versions"].as_array().map(Vec::len), Some(2));
    let tiers = json!(["community", "experimental"]);
    let known = test_env.run_ok(&["info", "acme/pdf@1.0.0", "--json"]).json();
    assert_eq!(json!([known["tier"], known["claimed_tier"]]), tiers, "{known}");
    assert_eq!(json!([known["versions"][0]["tier"], known["versions"][1]["tier"]]), tiers);
    let none = test_env.run(&["info", "acme/pdf@^9", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &json!("unknown_version")));
    let unknown = test_env.run(&["info", "nothing"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("has no skill `nothing`"), "{unknown}");
    let url = test_env.url();
    assert_eq!(test_env.run(&["info", "./x", "--registry", &url]).code, 2);
}

#[test]
fn incomplete_registry_url_is_suggested() {
    let test_env = RegistryTestEnv::new();
    let (root, url) = (test_env.server.address().to_owned(), test_env.url());
    let folder = test_env.write(&Name::parse("acme/pdf").expect("a name"), "1.0.0");
    let folder = test_env.sandbox.path(&folder).display().to_string();
    // Responses of other routes of the server are not in the registry's format.
    let other = json!({"detail": "Method Not Allowed"});
    test_env.server.on("POST", "/api/v1/auth/login", 200, &json!({"token": "session", "user": {}}));
    test_env.server.on("POST", "/api/v1/skills", 405, &other);
    test_env.server.on("POST", "/api/v1/skills/acme/pdf/1.0.0/yank", 404, &other);
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
        let mut command = test_env.command(&[args, named].concat());
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
    // Without a login route, the hint does not name one.
    let nothing = MockRegistry::start();
    let ran = test_env.run(&["search", "pdf", "--registry", nothing.address()]);
    assert!(ran.stderr.contains("ends with /registry") && !ran.stderr.contains("there is one"));
}
