//! Tests logging in and out, and which registry gets which token.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use super::{MockRegistry, RegistryTestEnv, piped};

const CREDENTIALS: &str = "home/.config/savoir/credentials.toml";

/// Prepares the responses for one account.
fn accounts(test_env: &RegistryTestEnv) {
    let server = &test_env.server;
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
fn login_whoami_and_logout() {
    let test_env = RegistryTestEnv::new();
    accounts(&test_env);
    let url = test_env.url();
    let login = ["login", "--registry", &url, "--email", "ada@example.com"];
    let ran = test_env.typed(&login, "correct horse\n");
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(test_env.without_addresses(&ran));
    assert!(!ran.to_string().contains("sv_new") && !ran.to_string().contains("horse"), "{ran}");
    let seen = test_env.server.seen();
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
    let mode =
        fs::metadata(test_env.sandbox.path(CREDENTIALS)).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let who = test_env.run_ok(&["whoami", "--registry", &url, "--json"]).json();
    assert_eq!((&who["email"], &who["namespaces"][0]), (&json!("ada@example.com"), &json!("acme")));
    // Logging in again revokes the replaced token.
    test_env.server.on("DELETE", "/api/v1/auth/tokens/t9", 204, &Value::Null);
    assert_eq!(test_env.typed(&login, "correct horse\n").code, 0);
    let ended = |asked: &super::server::RecordedRequest| asked.method == "DELETE";
    assert!(test_env.server.seen().iter().any(ended));
    test_env.server.on("DELETE", "/registry/api/v1/tokens/t9", 204, &Value::Null);
    let out = test_env.run_ok(&["logout", "--registry", &url]);
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let last = test_env.server.seen().pop().expect("a question");
    assert_eq!((last.method.as_str(), last.token.as_deref()), ("DELETE", Some("sv_new")));
    assert!(!test_env.sandbox.read(CREDENTIALS).contains("sv_new"));
    let gone = test_env.run(&["whoami", "--registry", &url]);
    assert!(gone.code == 1 && gone.stderr.contains("savoir login"), "{gone}");
    assert_eq!(
        test_env.run_ok(&["logout", "--registry", &url, "--json"]).json()["forgotten"],
        false
    );
}

#[test]
fn logout_removes_the_token_even_if_revoking_fails() {
    let test_env = RegistryTestEnv::new().with_token();
    let refused = json!({"detail": "Only a person who logged in can do this"});
    test_env.server.on("DELETE", "/registry/api/v1/tokens/t1", 403, &refused);
    let out = test_env.run_ok(&["logout"]);
    assert!(out.stdout.contains("but not revoked"), "{out}");
    assert!(out.stderr.contains("savoir registry tokens revoke t1 --email"), "{out}");
    assert!(!test_env.sandbox.read(CREDENTIALS).contains("sv_kept"));
}

#[test]
fn given_token_is_not_revoked_on_logout() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    accounts(&test_env);
    let given = || test_env.typed(&["login", "--token", "-"], "sv_given\n");
    assert_eq!(given().code, 0);
    test_env.server.seen();
    let out = test_env.run_ok(&["logout"]);
    assert!(out.stdout.contains("is removed from this machine, and still valid"), "{out}");
    let whose = format!("--email ada@example.com --registry {}\n", test_env.url());
    for way in ["savoir registry tokens list ", "savoir registry tokens revoke ID "] {
        assert!(out.stderr.contains(&format!("{way}{whose}")), "{way}: {out}");
    }
    assert!(test_env.server.seen().is_empty(), "nobody is asked to end it");
    assert!(!test_env.sandbox.read(CREDENTIALS).contains("sv_given"));
    assert_eq!(given().code, 0);
    let json = test_env.run_ok(&["logout", "--json"]).json();
    assert_eq!((&json["forgotten"], &json["ended"]), (&json!(true), &json!(false)), "{json}");
}

#[test]
fn given_token_is_revoked_on_request() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    accounts(&test_env);
    let given = || assert_eq!(test_env.typed(&["login", "--token", "-"], "sv_given\n").code, 0);
    given();
    // An older registry does not return the id of the token.
    let out = test_env.run_ok(&["logout", "--end"]);
    assert!(out.stdout.contains("is removed from this machine, but not revoked"), "{out}");
    for words in ["did not return the id", "savoir registry tokens revoke ID "] {
        assert!(out.stderr.contains(words), "{words}: {out}");
    }
    assert!(!test_env.sandbox.read(CREDENTIALS).contains("sv_given"));
    let whoami = json!({"email": "ada@example.com", "token_id": "t7"});
    test_env.server.get("/registry/api/v1/whoami", &whoami);
    test_env.server.on("DELETE", "/registry/api/v1/tokens/t7", 204, &Value::Null);
    given();
    let out = test_env.run_ok(&["logout", "--end"]);
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let last = test_env.server.seen().pop().expect("a question");
    assert_eq!((last.method.as_str(), last.token.as_deref()), ("DELETE", Some("sv_given")));
    // With a password, the token is revoked in a session of the user.
    test_env.server.on("DELETE", "/api/v1/auth/tokens/t7", 204, &Value::Null);
    given();
    test_env.server.seen();
    let out = test_env.typed(&["logout", "--email", "ada@example.com"], "correct horse\n");
    assert!(out.stdout.contains("the token is revoked"), "{out}");
    let ended = |asked: &super::server::RecordedRequest| asked.method == "DELETE";
    let ended = test_env.server.seen().into_iter().find(ended).expect("it was ended");
    assert_eq!(ended.token.as_deref(), Some("session"));
    // Without it, the token stays valid, and no request is sent.
    given();
    test_env.server.seen();
    let json = test_env.run_ok(&["logout", "--json"]).json();
    assert_eq!((&json["forgotten"], &json["ended"]), (&json!(true), &json!(false)), "{json}");
    assert!(test_env.server.seen().is_empty());
}

#[test]
fn wrong_password_and_invalid_token_are_rejected() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    test_env.server.on("POST", "/api/v1/auth/login", 401, &json!({"detail": "Invalid"}));
    let wrong = test_env.typed(&["login", "--email", "ada@example.com"], "secret one\n");
    assert!(wrong.code == 3 && !wrong.to_string().contains("secret one"), "{wrong}");
    let none = test_env.typed(&["login", "--email", "ada@example.com"], "");
    assert!(none.code == 2 && none.stderr.contains("the password is empty"), "{none}");
    let open = test_env.run(&["login", "--token", "sv_typed"]);
    assert_eq!(open.code, 2, "others can see what is typed: {open}");
    test_env.server.on("GET", "/registry/api/v1/whoami", 401, &json!({"detail": "Invalid token"}));
    let stale = test_env.typed(&["login", "--token", "-"], "sv_stale\n");
    assert!(stale.code == 1 && !test_env.sandbox.path(CREDENTIALS).exists(), "{stale}");
    test_env.server.get("/registry/api/v1/whoami", &json!({"email": "ada@example.com"}));
    let good = test_env.typed(&["login", "--token", "-", "--json"], "sv_good\n");
    assert_eq!((good.code, &good.json()["email"]), (0, &json!("ada@example.com")), "{good}");
    assert!(test_env.sandbox.read(CREDENTIALS).contains("sv_good"));
}

#[test]
fn project_registry_does_not_get_the_password() {
    let test_env = RegistryTestEnv::new();
    accounts(&test_env);
    let manifest = format!("[registries]\nhouse = \"{}\"\n", test_env.url());
    test_env.sandbox.write("project/savoir.toml", manifest);
    let refused = test_env.typed(&["login", "--email", "ada@example.com"], "secret\n");
    assert_eq!((refused.code, test_env.server.seen().len()), (2, 0), "{refused}");
    let named = ["login", "--email", "ada@example.com", "--registry", "house"];
    assert_eq!(test_env.typed(&named, "secret\n").code, 0);
    let unknown = test_env.typed(&["login", "--email", "a@b.example", "--registry", "barn"], "x\n");
    assert!(unknown.code == 2 && unknown.stderr.contains("there are `house`"), "{unknown}");
}

#[test]
fn tokens_go_to_the_registry_that_they_belong_to() {
    let (test_env, other) = (RegistryTestEnv::new(), MockRegistry::start());
    let found = json!({"query": "pdf", "items": []});
    test_env.server.get("/registry/api/v1/search", &found);
    other.get("/registry/api/v1/search", &found);
    let manifest = format!(
        "[registries]\nfirst = \"{}/registry\"\nsecond = \"{}\"\n",
        other.address(),
        test_env.url()
    );
    test_env.sandbox.write("project/savoir.toml", manifest);
    let run = |registry: Option<String>, args: &[&str]| {
        let mut command = test_env.command(args);
        command.env("SAVOIR_TOKEN", "sv_env");
        if let Some(registry) = registry {
            command.env("SAVOIR_REGISTRY", registry);
        }
        let ran = piped(command, "");
        assert_eq!(ran.code, 0, "{ran}");
        let token = |server: &MockRegistry| server.seen().pop().map(|asked| asked.token);
        (token(&test_env.server), token(&other), ran)
    };
    let env = Some("sv_env".to_owned());
    let (own, foreign, _) = run(Some(test_env.url()), &["search", "pdf"]);
    assert_eq!((own, foreign), (Some(env.clone()), Some(None)));
    let (own, foreign, output) = run(None, &["search", "pdf"]);
    assert_eq!((own, foreign), (Some(None), Some(None)), "a project gets nothing");
    assert!(output.stderr.contains("SAVOIR_TOKEN is ignored"), "{output}");
    let (own, foreign, _) = run(None, &["search", "pdf", "--registry", &test_env.url()]);
    assert_eq!((own, foreign), (Some(env), None));
    let address = format!("{}/registry", other.address());
    let (own, foreign, _) = run(Some(test_env.url()), &["search", "pdf", "--registry", &address]);
    assert_eq!((own, foreign), (None, Some(None)), "it belongs to the one of the environment");
}

#[test]
fn readable_credentials_file_is_rejected() {
    let test_env = RegistryTestEnv::new().with_token();
    let path = test_env.sandbox.path(CREDENTIALS);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    for args in [&["whoami"][..], &["search", "pdf"], &["logout"]] {
        let refused = test_env.run(args);
        assert!(refused.code == 3 && refused.stderr.contains("chmod 600"), "{refused}");
        assert!(!refused.to_string().contains("sv_kept"), "{refused}");
    }
    assert!(test_env.server.seen().is_empty());
}

#[test]
fn creating_tokens_needs_a_password() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    accounts(&test_env);
    let person = ["--email", "ada@example.com"];
    let create = ["registry", "tokens", "create", "build", "--namespace", "acme", "--days", "7"];
    let made = test_env.typed(&[&create[..], &person].concat(), "secret\n");
    assert_eq!((made.code, made.stdout.as_str()), (0, "sv_new\n"), "{made}");
    let wanted = test_env.server.seen()[1].json();
    // The suggested command revokes it.
    let way = made.stderr.split("to revoke it: savoir ").nth(1).and_then(|way| way.lines().next());
    test_env.server.on("DELETE", "/api/v1/auth/tokens/t9", 204, &Value::Null);
    let way: Vec<&str> = way.expect("a way").split(' ').collect();
    let ended = test_env.typed(&way, "secret\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "revoked t9\n"), "{way:?}: {ended}");
    test_env.server.seen();
    let scopes = ["registry:read", "registry:publish:acme", "registry:yank:acme"];
    assert_eq!(wanted, json!({"name": "build", "scopes": scopes, "expires_in_days": 7}));
    let read = ["registry", "tokens", "create", "installs", "--read-only"];
    assert_eq!(test_env.typed(&[&read[..], &person].concat(), "secret\n").code, 0);
    assert_eq!(test_env.server.seen()[1].json()["scopes"], json!(["registry:read"]));
    let tokens = json!({"tokens": [{"id": "t1", "name": "build\u{1b}[2J", "scopes": ["a", "b"]}]});
    test_env.server.get("/api/v1/auth/tokens", &tokens);
    let listed =
        test_env.typed(&[&["registry", "tokens", "list"][..], &person].concat(), "secret\n");
    insta::assert_snapshot!(listed.stdout);
    test_env.server.on(
        "DELETE",
        "/api/v1/auth/tokens/t1",
        404,
        &json!({"detail": "Token not found"}),
    );
    let revoke = [&["registry", "tokens", "revoke", "t1", "--json"][..], &person].concat();
    let gone = test_env.typed(&revoke, "secret\n");
    assert!(gone.code == 1 && gone.json()["error"]["message"] != Value::Null, "{gone}");
    let last = test_env.server.seen().pop().expect("a question");
    assert_eq!(last.path, "/api/v1/auth/logout", "the session ends whatever comes of it");
}

#[test]
fn login_requests_the_given_token_scopes() {
    let test_env = RegistryTestEnv::new().with_default_registry();
    accounts(&test_env);
    let usual = ["registry:read", "registry:publish", "registry:yank", "registry:owner"];
    for (more, scopes, days) in [
        (&["--owner"][..], usual.to_vec(), 90),
        (&["--scope", "owner"], usual.to_vec(), 90),
        // A token with all scopes has a shorter default lifetime.
        (&["--scope", "admin"], [&usual[..], &["admin"]].concat(), 7),
        (&["--scope", "admin", "--days", "30"], [&usual[..], &["admin"]].concat(), 30),
    ] {
        let login = [&["login", "--email", "ada@example.com"], more].concat();
        let ran = test_env.typed(&login, "secret\n");
        assert_eq!(ran.code, 0, "{ran}");
        let asked =
            test_env.server.seen().into_iter().find(|one| one.path == "/api/v1/auth/tokens");
        let wanted = asked.expect("a token").json();
        assert_eq!(wanted["scopes"], json!(scopes), "{more:?}");
        assert_eq!(wanted["expires_in_days"], days, "{more:?}");
    }
    let wrong = test_env.typed(&["login", "--email", "ada@example.com", "--scope", "all"], "x\n");
    assert_eq!(wrong.code, 2, "{wrong}");
}

#[test]
fn the_only_logged_in_registry_is_the_default() {
    let test_env = RegistryTestEnv::new();
    accounts(&test_env);
    test_env.publish("acme/pdf", "1.0.0", |_| ());
    test_env.server.get("/registry/api/v1/search", &json!({"query": "pdf", "items": []}));
    let url = test_env.url();
    let login = ["login", "--registry", &url, "--email", "ada@example.com"];
    assert_eq!(test_env.typed(&login, "secret\n").code, 0);
    assert!(!test_env.sandbox.path("home/.config/savoir/config.toml").exists());
    test_env.server.seen();
    test_env.run_ok(&["search", "pdf"]);
    assert_eq!(test_env.run_ok(&["whoami", "--json"]).json()["email"], "ada@example.com");
    test_env.run_ok(&["install", "registry:acme/pdf", "--allow-experimental"]);
    let asked = test_env.server.seen();
    let known = asked.iter().all(|one| one.token.as_deref() == Some("sv_new"));
    assert!(asked.len() >= 3 && known, "{asked:?}");
    // With two registries, one must be chosen.
    let other = MockRegistry::start();
    let whoami = json!({"email": "ada@example.com"});
    other.get("/registry/api/v1/whoami", &whoami);
    let second = format!("{}/registry", other.address());
    let login = ["login", "--registry", &second, "--token", "-"];
    assert_eq!(test_env.typed(&login, "sv_second\n").code, 0);
    let unclear = test_env.run(&["whoami", "--json"]);
    assert_eq!((unclear.code, &unclear.json()["error"]["code"]), (2, &json!("no_registry")));
}

#[test]
fn logged_in_user_installs_private_skills() {
    let test_env = RegistryTestEnv::new().with_token();
    test_env.publish("acme/pdf", "1.0.0", |_| ());
    test_env.run_ok(&["install", "acme/pdf@^1.0", "--allow-experimental"]);
    let all_known = || {
        let seen = test_env.server.seen();
        assert!(!seen.is_empty());
        seen.iter().all(|asked| asked.token.as_deref() == Some("sv_kept"))
    };
    assert!(all_known());
    test_env.publish("acme/pdf", "1.1.0", |_| ());
    let looked = test_env.run_ok(&["outdated"]);
    assert!(looked.stdout.contains("from 1.0.0 to 1.1.0") && all_known(), "{looked}");
    // Only the lock contains the registry.
    fs::remove_file(test_env.sandbox.path("home/.config/savoir/config.toml"))
        .expect("it was there");
    for folder in ["home/.local", "home/.cache", "project/.claude"] {
        fs::remove_dir_all(test_env.sandbox.path(folder)).expect("it was there");
    }
    test_env.run_ok(&["sync", "--frozen", "--allow-experimental"]);
    assert!(all_known());
}
