//! Logging in and out, and whose token goes where.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::{House, Server, piped};

const CREDENTIALS: &str = "home/.config/savoir/credentials.toml";

/// A server that knows one person.
fn accounts(house: &House) {
    let server = &house.server;
    server.on("POST", "/api/v1/auth/login", 200, &json!({"token": "session", "user": {}}));
    server.on("POST", "/api/v1/auth/logout", 200, &json!({"success": true}));
    let made = json!({
        "id": "t9", "name": "x", "scopes": ["registry:read"], "token": "sv_new",
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-04-01T00:00:00Z",
    });
    server.on("POST", "/api/v1/auth/tokens", 201, &made);
    server.get(
        "/registry/api/v1/whoami",
        &json!({"email": "ada@example.com", "role": "user", "scopes": ["registry:read"],
            "namespaces": ["acme"]}),
    );
}

#[test]
fn somebody_logs_in_is_known_and_logs_out() {
    let house = House::new();
    accounts(&house);
    let url = house.url();
    let login = ["login", "--registry", &url, "--email", "ada@example.com"];
    let ran = house.typed(&login, "correct horse\n");
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(house.shown(&ran));
    assert!(!ran.to_string().contains("sv_new") && !ran.to_string().contains("horse"), "{ran}");
    let seen = house.server.seen();
    let steps: Vec<(&str, &str, Option<&str>)> = seen
        .iter()
        .map(|asked| (asked.method.as_str(), asked.path.as_str(), asked.token.as_deref()))
        .collect();
    let expected = [
        ("POST", "/api/v1/auth/login", None),
        ("POST", "/api/v1/auth/tokens", Some("session")),
        ("GET", "/registry/api/v1/whoami", Some("sv_new")),
        ("POST", "/api/v1/auth/logout", Some("session")),
    ];
    assert_eq!(steps, expected);
    assert_eq!(seen[0].json(), json!({"email": "ada@example.com", "password": "correct horse"}));
    let wanted = seen[1].json();
    assert!(wanted["name"].as_str().is_some_and(|name| name.starts_with("savoir on ")), "{wanted}");
    assert_eq!(wanted["scopes"], json!(["registry:read", "registry:publish", "registry:yank"]));
    assert_eq!(wanted["expires_in_days"], 90);
    let mode = fs::metadata(house.sandbox.path(CREDENTIALS)).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let who = house.well(&["whoami", "--registry", &url, "--json"]).json();
    assert_eq!((&who["email"], &who["namespaces"][0]), (&json!("ada@example.com"), &json!("acme")));
    // A token that is replaced ends.
    house.server.on("DELETE", "/api/v1/auth/tokens/t9", 204, &Value::Null);
    assert_eq!(house.typed(&login, "correct horse\n").code, 0);
    let ended = |asked: &super::server::Asked| asked.method == "DELETE";
    assert!(house.server.seen().iter().any(ended));
    house.server.on("DELETE", "/registry/api/v1/tokens/t9", 204, &Value::Null);
    let out = house.well(&["logout", "--registry", &url]);
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let last = house.server.seen().pop().expect("a question");
    assert_eq!((last.method.as_str(), last.token.as_deref()), ("DELETE", Some("sv_new")));
    assert!(!house.sandbox.read(CREDENTIALS).contains("sv_new"));
    let gone = house.run(&["whoami", "--registry", &url]);
    assert!(gone.code == 1 && gone.stderr.contains("savoir login"), "{gone}");
    assert_eq!(house.well(&["logout", "--registry", &url, "--json"]).json()["forgotten"], false);
}

#[test]
fn what_cannot_be_ended_is_forgotten_anyway() {
    let house = House::new().known();
    let refused = json!({"detail": "Only a person who logged in can do this"});
    house.server.on("DELETE", "/registry/api/v1/tokens/t1", 403, &refused);
    let out = house.well(&["logout"]);
    assert!(out.stdout.contains("but not revoked"), "{out}");
    assert!(out.stderr.contains("savoir registry tokens revoke t1 --email"), "{out}");
    assert!(!house.sandbox.read(CREDENTIALS).contains("sv_kept"));
}

#[test]
fn a_token_that_was_given_goes_on_and_that_is_told() {
    let house = House::new().set();
    accounts(&house);
    let given = || house.typed(&["login", "--token", "-"], "sv_given\n");
    assert_eq!(given().code, 0);
    house.server.seen();
    let out = house.well(&["logout"]);
    assert!(out.stdout.contains("is removed from this machine, and still valid"), "{out}");
    let whose = format!("--email ada@example.com --registry {}\n", house.url());
    for way in ["savoir registry tokens list ", "savoir registry tokens revoke ID "] {
        assert!(out.stderr.contains(&format!("{way}{whose}")), "{way}: {out}");
    }
    assert!(house.server.seen().is_empty(), "nobody is asked to end it");
    assert!(!house.sandbox.read(CREDENTIALS).contains("sv_given"));
    assert_eq!(given().code, 0);
    let json = house.well(&["logout", "--json"]).json();
    assert_eq!((&json["forgotten"], &json["ended"]), (&json!(true), &json!(false)), "{json}");
}

#[test]
fn a_token_that_was_given_ends_if_that_is_wanted() {
    let house = House::new().set();
    accounts(&house);
    let given = || assert_eq!(house.typed(&["login", "--token", "-"], "sv_given\n").code, 0);
    given();
    // An older registry does not tell by which id it knows the token.
    let out = house.well(&["logout", "--end"]);
    assert!(out.stdout.contains("is removed from this machine, but not revoked"), "{out}");
    for words in ["did not return the id", "savoir registry tokens revoke ID "] {
        assert!(out.stderr.contains(words), "{words}: {out}");
    }
    assert!(!house.sandbox.read(CREDENTIALS).contains("sv_given"));
    let whoami = json!({"email": "ada@example.com", "token_id": "t7"});
    house.server.get("/registry/api/v1/whoami", &whoami);
    house.server.on("DELETE", "/registry/api/v1/tokens/t7", 204, &Value::Null);
    given();
    let out = house.well(&["logout", "--end"]);
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let last = house.server.seen().pop().expect("a question");
    assert_eq!((last.method.as_str(), last.token.as_deref()), ("DELETE", Some("sv_given")));
    // Who gives a password wants the same, and the server is asked as that person.
    house.server.on("DELETE", "/api/v1/auth/tokens/t7", 204, &Value::Null);
    given();
    house.server.seen();
    let out = house.typed(&["logout", "--email", "ada@example.com"], "correct horse\n");
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let ended = |asked: &super::server::Asked| asked.method == "DELETE";
    let ended = house.server.seen().into_iter().find(ended).expect("it was ended");
    assert_eq!(ended.token.as_deref(), Some("session"));
    // Without that it goes on, and nobody is asked.
    given();
    house.server.seen();
    let json = house.well(&["logout", "--json"]).json();
    assert_eq!((&json["forgotten"], &json["ended"]), (&json!(true), &json!(false)), "{json}");
    assert!(house.server.seen().is_empty());
}

#[test]
fn a_wrong_password_and_a_token_that_is_none() {
    let house = House::new().set();
    house.server.on("POST", "/api/v1/auth/login", 401, &json!({"detail": "Invalid"}));
    let wrong = house.typed(&["login", "--email", "ada@example.com"], "secret one\n");
    assert!(wrong.code == 3 && !wrong.to_string().contains("secret one"), "{wrong}");
    let none = house.typed(&["login", "--email", "ada@example.com"], "");
    assert!(none.code == 2 && none.stderr.contains("the password is empty"), "{none}");
    let open = house.run(&["login", "--token", "sv_typed"]);
    assert_eq!(open.code, 2, "others can see what is typed: {open}");
    house.server.on("GET", "/registry/api/v1/whoami", 401, &json!({"detail": "Invalid token"}));
    let stale = house.typed(&["login", "--token", "-"], "sv_stale\n");
    assert!(stale.code == 1 && !house.sandbox.path(CREDENTIALS).exists(), "{stale}");
    house.server.get("/registry/api/v1/whoami", &json!({"email": "ada@example.com"}));
    let good = house.typed(&["login", "--token", "-", "--json"], "sv_good\n");
    assert_eq!((good.code, &good.json()["email"]), (0, &json!("ada@example.com")), "{good}");
    assert!(house.sandbox.read(CREDENTIALS).contains("sv_good"));
}

#[test]
fn a_project_does_not_get_a_password() {
    let house = House::new();
    accounts(&house);
    let manifest = format!("[registries]\nhouse = \"{}\"\n", house.url());
    house.sandbox.write("project/savoir.toml", manifest);
    let refused = house.typed(&["login", "--email", "ada@example.com"], "secret\n");
    assert_eq!((refused.code, house.server.seen().len()), (2, 0), "{refused}");
    let named = ["login", "--email", "ada@example.com", "--registry", "house"];
    assert_eq!(house.typed(&named, "secret\n").code, 0);
    let unknown = house.typed(&["login", "--email", "a@b.example", "--registry", "barn"], "x\n");
    assert!(unknown.code == 2 && unknown.stderr.contains("there are `house`"), "{unknown}");
}

#[test]
fn tokens_go_to_the_registry_that_they_belong_to() {
    let (house, other) = (House::new(), Server::start());
    let found = json!({"query": "pdf", "items": []});
    house.server.get("/registry/api/v1/search", &found);
    other.get("/registry/api/v1/search", &found);
    let manifest = format!(
        "[registries]\nfirst = \"{}/registry\"\nsecond = \"{}\"\n",
        other.address(),
        house.url()
    );
    house.sandbox.write("project/savoir.toml", manifest);
    let run = |registry: Option<String>, args: &[&str]| {
        let mut command = house.command(args);
        command.env("SAVOIR_TOKEN", "sv_env");
        if let Some(registry) = registry {
            command.env("SAVOIR_REGISTRY", registry);
        }
        let ran = piped(command, "");
        assert_eq!(ran.code, 0, "{ran}");
        let token = |server: &Server| server.seen().pop().map(|asked| asked.token);
        (token(&house.server), token(&other), ran)
    };
    let env = Some("sv_env".to_owned());
    let (own, foreign, _) = run(Some(house.url()), &["search", "pdf"]);
    assert_eq!((own, foreign), (Some(env.clone()), Some(None)));
    let (own, foreign, told) = run(None, &["search", "pdf"]);
    assert_eq!((own, foreign), (Some(None), Some(None)), "a project gets nothing");
    assert!(told.stderr.contains("SAVOIR_TOKEN is ignored"), "{told}");
    let (own, foreign, _) = run(None, &["search", "pdf", "--registry", &house.url()]);
    assert_eq!((own, foreign), (Some(env), None));
    let address = format!("{}/registry", other.address());
    let (own, foreign, _) = run(Some(house.url()), &["search", "pdf", "--registry", &address]);
    assert_eq!((own, foreign), (None, Some(None)), "it belongs to the one of the environment");
}

#[test]
fn what_others_can_read_is_refused() {
    let house = House::new().known();
    let path = house.sandbox.path(CREDENTIALS);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    for args in [&["whoami"][..], &["search", "pdf"], &["logout"]] {
        let refused = house.run(args);
        assert!(refused.code == 3 && refused.stderr.contains("chmod 600"), "{refused}");
        assert!(!refused.to_string().contains("sv_kept"), "{refused}");
    }
    assert!(house.server.seen().is_empty());
}

#[test]
fn tokens_for_programs_are_made_by_people() {
    let house = House::new().set();
    accounts(&house);
    let person = ["--email", "ada@example.com"];
    let create = ["registry", "tokens", "create", "build", "--namespace", "acme", "--days", "7"];
    let made = house.typed(&[&create[..], &person].concat(), "secret\n");
    assert_eq!((made.code, made.stdout.as_str()), (0, "sv_new\n"), "{made}");
    let wanted = house.server.seen()[1].json();
    // The way to end it works as it stands.
    let way = made.stderr.split("to revoke it: savoir ").nth(1).and_then(|way| way.lines().next());
    house.server.on("DELETE", "/api/v1/auth/tokens/t9", 204, &Value::Null);
    let way: Vec<&str> = way.expect("a way").split(' ').collect();
    let ended = house.typed(&way, "secret\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "revoked t9\n"), "{way:?}: {ended}");
    house.server.seen();
    let scopes = ["registry:read", "registry:publish:acme", "registry:yank:acme"];
    assert_eq!(wanted, json!({"name": "build", "scopes": scopes, "expires_in_days": 7}));
    let read = ["registry", "tokens", "create", "installs", "--read-only"];
    assert_eq!(house.typed(&[&read[..], &person].concat(), "secret\n").code, 0);
    assert_eq!(house.server.seen()[1].json()["scopes"], json!(["registry:read"]));
    let tokens = json!({"tokens": [{"id": "t1", "name": "build\u{1b}[2J", "scopes": ["a", "b"]}]});
    house.server.get("/api/v1/auth/tokens", &tokens);
    let listed = house.typed(&[&["registry", "tokens", "list"][..], &person].concat(), "secret\n");
    insta::assert_snapshot!(listed.stdout);
    house.server.on("DELETE", "/api/v1/auth/tokens/t1", 404, &json!({"detail": "Token not found"}));
    let revoke = [&["registry", "tokens", "revoke", "t1", "--json"][..], &person].concat();
    let gone = house.typed(&revoke, "secret\n");
    assert!(gone.code == 1 && gone.json()["error"]["message"] != Value::Null, "{gone}");
    let last = house.server.seen().pop().expect("a question");
    assert_eq!(last.path, "/api/v1/auth/logout", "the session ends whatever comes of it");
}

#[test]
fn login_requests_the_given_token_scopes() {
    let house = House::new().set();
    accounts(&house);
    let usual = ["registry:read", "registry:publish", "registry:yank", "registry:owner"];
    for (more, scopes, days) in [
        (&["--owner"][..], usual.to_vec(), 90),
        (&["--scope", "owner"], usual.to_vec(), 90),
        // What can do everything does not last as long, unless somebody says so.
        (&["--scope", "admin"], [&usual[..], &["admin"]].concat(), 7),
        (&["--scope", "admin", "--days", "30"], [&usual[..], &["admin"]].concat(), 30),
    ] {
        let login = [&["login", "--email", "ada@example.com"], more].concat();
        let ran = house.typed(&login, "secret\n");
        assert_eq!(ran.code, 0, "{ran}");
        let asked = house.server.seen().into_iter().find(|one| one.path == "/api/v1/auth/tokens");
        let wanted = asked.expect("a token").json();
        assert_eq!(wanted["scopes"], json!(scopes), "{more:?}");
        assert_eq!(wanted["expires_in_days"], days, "{more:?}");
    }
    let wrong = house.typed(&["login", "--email", "ada@example.com", "--scope", "all"], "x\n");
    assert_eq!(wrong.code, 2, "{wrong}");
}

#[test]
fn who_logged_in_to_one_registry_means_that_one() {
    let house = House::new();
    accounts(&house);
    house.publish("acme/pdf", "1.0.0", |_| ());
    house.server.get("/registry/api/v1/search", &json!({"query": "pdf", "items": []}));
    let url = house.url();
    let login = ["login", "--registry", &url, "--email", "ada@example.com"];
    assert_eq!(house.typed(&login, "secret\n").code, 0);
    assert!(!house.sandbox.path("home/.config/savoir/config.toml").exists());
    house.server.seen();
    house.well(&["search", "pdf"]);
    assert_eq!(house.well(&["whoami", "--json"]).json()["email"], "ada@example.com");
    house.well(&["install", "registry:acme/pdf", "--allow-experimental"]);
    let asked = house.server.seen();
    let known = asked.iter().all(|one| one.token.as_deref() == Some("sv_new"));
    assert!(asked.len() >= 3 && known, "{asked:?}");
    // With two of them somebody has to say which.
    let other = Server::start();
    let whoami = json!({"email": "ada@example.com"});
    other.get("/registry/api/v1/whoami", &whoami);
    let second = format!("{}/registry", other.address());
    let login = ["login", "--registry", &second, "--token", "-"];
    assert_eq!(house.typed(&login, "sv_second\n").code, 0);
    let unclear = house.run(&["whoami", "--json"]);
    assert_eq!((unclear.code, &unclear.json()["error"]["code"]), (2, &json!("no_registry")));
}

#[test]
fn who_is_known_installs_what_is_private() {
    let house = House::new().known();
    house.publish("acme/pdf", "1.0.0", |_| ());
    house.well(&["install", "acme/pdf@^1.0", "--allow-experimental"]);
    let all_known = || {
        let seen = house.server.seen();
        assert!(!seen.is_empty());
        seen.iter().all(|asked| asked.token.as_deref() == Some("sv_kept"))
    };
    assert!(all_known());
    house.publish("acme/pdf", "1.1.0", |_| ());
    let looked = house.well(&["outdated"]);
    assert!(looked.stdout.contains("from 1.0.0 to 1.1.0") && all_known(), "{looked}");
    // The lock alone says where it came from.
    fs::remove_file(house.sandbox.path("home/.config/savoir/config.toml")).expect("it was there");
    for folder in ["home/.local", "home/.cache", "project/.claude"] {
        fs::remove_dir_all(house.sandbox.path(folder)).expect("it was there");
    }
    house.well(&["sync", "--frozen", "--allow-experimental"]);
    assert!(all_known());
}
