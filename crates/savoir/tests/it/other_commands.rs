//! Tests `show`, `render`, `new`, `rules`, `conformance`, `completions` and `man`.

use crate::support::{Sandbox, repository};

#[test]
fn show_prints_dialect_and_evidence() {
    let sandbox = Sandbox::with_examples();
    insta::assert_snapshot!(sandbox.run(&["show", "examples/git-helper"]));
}

#[test]
fn show_json_has_the_documented_fields() {
    let sandbox = Sandbox::with_examples();
    let shown = sandbox.run(&["show", "examples/pull-request-review", "--json"]).json();
    for field in [
        "dialect", "why", "mode", "name", "version", "description", "inputs", "outputs", "tools",
        "permissions", "requirements", "policy", "resources", "extra", "body",
    ] {
        assert!(shown.get(field).is_some(), "{field}: {shown}");
    }
    assert_eq!(shown["dialect"], "skillrt");
    assert_eq!(shown["inputs"][0]["type"], "url");
    assert_eq!(shown["permissions"][0], "network:read:github.com");
}

#[test]
fn a_lenient_reading_is_refused_by_strict() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", "---\nname: demo\ndescription: Use for: demos\n---\nx\n");
    let run = sandbox.run(&["show", "demo", "--json"]);
    assert_eq!(run.json()["description"], "Use for: demos");
    assert_eq!(run.code, 0, "{run}");
    let strict = sandbox.run(&["show", "demo", "--strict"]);
    assert_eq!(strict.code, 1, "{strict}");
    assert!(strict.stderr.contains("demo/SKILL.md:3:21"), "{strict}");
}

#[test]
fn render_follows_the_dialect() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run(&["render", "examples/article-summary", "--input", "article={{tone}}"]);
    assert!(
        run.stdout.contains("in a matter-of-fact tone") && run.stdout.ends_with("{{tone}}"),
        "{run}"
    );
    let run = sandbox.run(&["render", "examples/article-summary"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("article"), "{run}");
    let run = sandbox.run(&[
        "render", "examples/pull-request-review", "--input", "pull_request=https://x.org/1",
    ]);
    assert!(
        run.stdout.contains("# Review https://x.org/1") && run.stdout.contains("3 of 5"),
        "{run}"
    );
    let run =
        sandbox.run(&["render", "examples/pull-request-review", "--input", "pull_request=none"]);
    assert_eq!(run.code, 2, "{run}");
    sandbox.write("values.json", "{\"issue\": \"42\", \"branch\": \"fix\"}");
    let run = sandbox.run(&["render", "examples/fix-issue", "--inputs", "values.json"]);
    assert!(run.stdout.contains("# Fix issue 42") && run.stdout.contains("`fix`"), "{run}");
}

#[test]
fn new_skills_pass_a_strict_check_except_for_template_text() {
    let sandbox = Sandbox::new();
    for dialect in [
        "agentskills", "claude-code", "codex", "openclaw", "agent-flow", "gibberish", "gaia",
        "skillrt", "personal-agent", "prose",
    ] {
        let name = format!("new-{dialect}");
        let run = sandbox.run(&["new", &name, "--dialect", dialect]);
        assert_eq!(run.code, 0, "{run}");
        let check = |options: &[&str]| {
            let run = sandbox.run(&[&["check", &name, "--strict"], options].concat());
            (run.code, run.stdout)
        };
        let placeholders = check(&[]).1;
        assert!(placeholders.contains("placeholder") || dialect == "prose", "{placeholders}");
        let ignored = "placeholder-body,unrendered-template,missing-frontmatter";
        assert_eq!(check(&["--ignore", ignored]).0, 0, "{dialect}: {placeholders}");
        let explicit = check(&["--ignore", ignored, "--dialect", dialect]);
        assert_eq!(explicit.0, 0, "{dialect}: {}", explicit.1);
        let again = sandbox.run(&["new", &name, "--dialect", dialect]);
        assert_eq!(again.code, 2, "{again}");
    }
}

#[test]
fn names_of_agent_flow_are_normalized_as_its_server_does() {
    let sandbox = Sandbox::new();
    for (name, proposal) in [("Héllo World__x", "hllo-worldx"), ("日本", "skill")] {
        let run = sandbox.run(&["new", name, "--dialect", "agent-flow"]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(&format!("hint: try `{proposal}`")), "{run}");
    }
    for name in ["1", "2fa"] {
        assert_eq!(sandbox.run(&["new", name]).code, 2);
        let run = sandbox.run(&["new", name, "--dialect", "agent-flow"]);
        assert_eq!(run.code, 0, "{run}");
    }
}

#[test]
fn rules_prints_documentation() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["rules"]);
    assert!(list.stdout.lines().count() > 60, "{list}");
    insta::assert_snapshot!(sandbox.run(&["rules", "unquoted-colon"]));
    assert_eq!(sandbox.run(&["rules", "nothing-such"]).code, 2);
    let json = sandbox.run(&["rules", "unquoted-colon", "--json"]).json();
    assert_eq!(json["severity"], "error");
    let json = sandbox.run(&["rules", "--json"]).json();
    assert!(json["rules"].as_array().is_some_and(|rules| rules.len() > 100), "{json}");
}

#[test]
fn own_vectors_pass() {
    let file = repository().join("conformance/vectors.json");
    let run = Sandbox::new().run(&["conformance", &file.to_string_lossy(), "--json"]);
    let outcome = run.json();
    assert_eq!(outcome["failed"], serde_json::json!([]), "{run}");
    assert_eq!(outcome["unsupported"], serde_json::json!([]), "{run}");
    assert!(outcome["passed"].as_array().is_some_and(|passed| passed.len() >= 150));
    assert_eq!(run.code, 0);
}

#[test]
fn a_failing_vector_fails_the_command() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "v.json",
        r#"{"format": 1, "count": 1, "vectors": [{"id": "x-1", "dialect": "afl", "op": "normalize_name", "input": "A b", "expected": "nope", "note": ""}]}"#,
    );
    let run = sandbox.run(&["conformance", "v.json"]);
    insta::assert_snapshot!(run);
    sandbox.write("w.json", "[]");
    assert_eq!(sandbox.run(&["conformance", "w.json"]).code, 2);
}

#[test]
fn completions_and_manual() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.run(&["completions", shell]).stdout.contains("savoir"));
    }
    assert!(sandbox.run(&["man"]).stdout.contains(".TH savoir"));
    sandbox.run(&["man", "-o", "pages"]);
    assert!(sandbox.read("pages/savoir-check.1").contains("check"));
}

#[test]
fn names_of_skills_agents_and_rules_are_completed() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "weather/SKILL.md",
        "---\nname: weather\ndescription: Tells the weather.\n---\nHi.\n",
    );
    let installed = sandbox.run(&["install", "./weather", "--agent", "claude-code", "-y"]);
    assert_eq!(installed.code, 0, "{installed}");
    let complete = |words: &[&str]| {
        let mut command = sandbox.command(&[&["--", "savoir"], words].concat());
        let output = command.env("SAVOIR_COMPLETE", "fish").output().expect("savoir runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(complete(&["remove", "wea"]).starts_with("weather"));
    assert!(complete(&["run", "wea"]).contains("weather"));
    assert!(complete(&["remove", "weather", "--agent", "claude-c"]).starts_with("claude-code\t"));
    assert!(complete(&["rules", "invalid-na"]).contains("invalid-name\t"));
    assert!(complete(&["inst"]).starts_with("install\t"));
}

#[test]
fn every_command_prints_its_error_as_json() {
    let sandbox = Sandbox::new();
    for command in [
        &["scan", "nowhere"][..],
        &["show", "nowhere"],
        &["info", "nowhere"],
        &["tools", "nowhere"],
        &["sign", "nowhere"],
        &["remove", "nowhere"],
        &["which", "nowhere"],
        &["runs", "show", "nowhere"],
        &["list", "--no-such-option"],
        &["context", "simulate"],
    ] {
        let run = sandbox.run(&[command, &["--json"]].concat());
        assert_ne!(run.code, 0, "{run}");
        let error = &run.json()["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{command:?}: {run}");
        assert!(error["hints"].is_array(), "{command:?}: {run}");
    }
}

#[test]
fn address_without_an_option_has_a_tip() {
    let run = Sandbox::new().run(&["login", "http://127.0.0.1:7878"]);
    assert!(run.code == 2 && run.stderr.contains("'--registry'"), "{run}");
}
