//! Tests decisions of administrators, and what the affected users see.

use serde_json::json;

use super::live_registry::{BAD, LiveRegistryEnv};

#[test]
fn appeal_shows_findings_and_clearance_target() {
    let test_env = LiveRegistryEnv::new();
    test_env.skill("greeter", "1.0.0", BAD);
    let publish = ["publish", "greeter", "--namespace", "acme", "--yes", "--despite-scan"];
    let refused = test_env.run("bob", &[&publish[..], &["--json"]].concat());
    assert_eq!(refused.code, 3, "{refused}");
    let digest = refused.json()["error"]["sha256"].as_str().expect("a digest").to_owned();
    let appeal = |who: &str, skill: &str| {
        test_env.run_ok(who, &["registry", "appeal", skill, "our own host", "--sha256", &digest]);
    };
    appeal("bob", "acme/greeter@1.0.0");
    let shown = test_env.rules_well(&["registry", "appeals"]).stdout;
    for words in ["download-and-execute", "SKILL.md:9", "acme/greeter@1.0.0", "our own host"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let found = test_env.rules_well(&["registry", "appeals", "--json"]).json();
    let finding = &found["appeals"][0]["findings"][0];
    assert_eq!(finding["rule"], "download-and-execute", "{found}");
    assert_eq!((&finding["file"], &finding["line"]), (&json!("SKILL.md"), &json!(9)), "{found}");

    let clear = ["registry", "clear", &digest, "--reason", "it is theirs"];
    let cleared = test_env.rules_well(&clear).stdout;
    assert_eq!(cleared, format!("cleared {digest} for `acme/greeter`\n"));
    // The registry does not know an archive that was never uploaded under this name.
    appeal("root", "elsewhere/greeter@1.0.0");
    let found = test_env.rules_well(&["registry", "appeals", "--json"]).json();
    assert_eq!(found["appeals"][0]["name"], "elsewhere/greeter", "{found}");
    assert_eq!(found["appeals"][0]["findings"], json!(null), "{found}");
    let which = test_env.rules(&clear);
    assert_eq!(which.code, 1, "{which}");
    for words in ["acme/greeter, elsewhere/greeter", "--for NAME"] {
        assert!(which.stderr.contains(words), "{words}: {which}");
    }
    let other = [&clear[..], &["--for", "elsewhere/greeter", "--json"]].concat();
    let output = test_env.rules_well(&other).json();
    let expected = json!({"sha256": digest, "cleared": true, "name": "elsewhere/greeter"});
    assert_eq!(output, expected);
    let unclear = ["registry", "unclear", &digest, "--for", "elsewhere/greeter"];
    let output = test_env.rules_well(&unclear).stdout;
    assert_eq!(output, format!("revoked the clearance of {digest} for `elsewhere/greeter`\n"));
    assert_eq!(test_env.rules(&unclear).code, 1, "it is not cleared for that");
    test_env.run_ok("bob", &publish);
    // A published version was scanned, and the appeal shows the findings.
    test_env.skill("waver", "1.0.0", "Wave.");
    test_env.run_ok("bob", &["publish", "waver", "--namespace", "acme", "--yes"]);
    let block = ["registry", "verdict", "acme/waver@1.0.0", "block", "--reason", "too friendly"];
    test_env.rules_well(&block);
    test_env.run_ok("bob", &["registry", "appeal", "acme/waver@1.0.0", "it is polite"]);
    let shown = test_env.rules_well(&["registry", "appeals"]).stdout;
    assert!(shown.contains("too friendly"), "{shown}");
}

#[test]
fn unyank_does_not_unblock_a_version() {
    let test_env = LiveRegistryEnv::new();
    test_env.skill("greeter", "1.0.0", "Greet.");
    test_env.run_ok("bob", &["publish", "greeter", "--namespace", "acme", "--yes"]);
    let skill = "acme/greeter@1.0.0";
    let places = [
        "/registry/acme/greeter/1.0.0/SKILL.md",
        "/registry/acme/greeter/1.0.0/skill.zip",
        "/registry/api/v1/skills/acme/greeter/download?version=1.0.0",
    ];
    let statuses = || places.map(|place| test_env.server.ask("HEAD", place, "", None).status);
    assert_eq!(statuses(), [200; 3]);
    test_env.rules_well(&["registry", "verdict", skill, "block", "--reason", "it leaks"]);
    assert_eq!(statuses(), [404; 3], "nobody gets it anew, wherever they ask");
    let output = test_env.server.ask("GET", places[0], "", None).body;
    assert!(output.contains("it leaks"), "{output}");
    for yanked in [true, false] {
        if yanked {
            test_env.run_ok("bob", &["registry", "yank", skill]);
        }
        let output = test_env.run_ok("bob", &["registry", "unyank", skill]).stdout;
        assert_eq!(output, "`acme/greeter` 1.0.0 stays blocked: it leaks\n");
    }
    let output = test_env.run_ok("bob", &["registry", "unyank", skill, "--json"]).json();
    let name = json!("acme/greeter");
    let expected =
        json!({"name": name, "version": "1.0.0", "yanked": false, "blocked": "it leaks"});
    assert_eq!(output, expected);
    test_env.rules_well(&["registry", "verdict", skill, "allow", "--reason", "it is tight"]);
    let output = test_env.run_ok("bob", &["registry", "unyank", skill]).stdout;
    assert_eq!(output, "`acme/greeter` 1.0.0 is no longer yanked\n");
    assert_eq!(statuses(), [200; 3]);
}

#[test]
fn missing_team_permission_is_an_error_with_a_hint() {
    let test_env = LiveRegistryEnv::new();
    test_env.skill("greeter", "1.0.0", "Greet.");
    test_env.run_ok("bob", &["publish", "greeter", "--namespace", "acme", "--yes"]);
    let login = ["login", "--registry", &test_env.url, "--email", "bob@example.com"];
    assert_eq!(test_env.typed("bob", &login, "secret-word\n").code, 0);
    let made = test_env.run_ok("bob", &["keys", "new", "bob", "--json"]).json();
    let key = made["public_file"].as_str().expect("a file");
    for args in [
        ["registry", "members", "add", "acme", "root@example.com"],
        ["registry", "keys", "add", "acme", key],
    ] {
        let refused = test_env.run("bob", &args);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("savoir login --owner"), "{refused}");
    }
    // Users outside the namespace do not get the hint.
    let stranger = test_env.run("root", &["registry", "keys", "add", "acme", key]);
    assert!(stranger.code == 1 && !stranger.stderr.contains("--owner"), "{stranger}");
}
