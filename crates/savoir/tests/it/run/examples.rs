//! Tests that the examples do what their documentation says.

use std::{fs, path::Path};

use serde_json::json;

use super::{RunTestEnv, find_containing, fingerprint, has_program, server::Server};
use crate::live_server::{Provider, ProviderBehavior};

const KEY: &str = "brave-3f1c9a77d0-secret";

#[test]
fn git_helper_in_a_repository() {
    let test_env = RunTestEnv::with_example("git-helper");
    test_env.repository();
    let first = test_env.write("work/first.txt", "one\n");
    test_env.git(&["add", "."]);
    for number in 1..=12 {
        test_env.git(&["commit", "--quiet", "--allow-empty", "-m", &format!("step {number}")]);
    }
    fs::write(&first, "two\n").expect("a change");
    test_env.write("work/second.txt", "new\n");
    test_env.git(&["add", "second.txt"]);
    let output = |target: &str, options: &[&str]| {
        let envelope = test_env.run(target, options).succeeds();
        assert_eq!(envelope["exit_code"], 0);
        envelope["output"].as_str().unwrap_or_default().to_owned()
    };
    let status = output("git-helper/git_status", &[]);
    assert_eq!(status, "## main\n M first.txt\nA  second.txt");
    assert_eq!(output("git-helper/git_log", &[]).lines().count(), 10);
    let log = output("git-helper/git_log", &["--param", "count=3"]);
    assert_eq!(log.lines().count(), 3);
    assert!(log.lines().next().is_some_and(|line| line.ends_with(" step 12")), "{log}");
    let all = output("git-helper/git_diff", &[]);
    assert!(all.contains("+two") && !all.contains("+new"), "{all}");
    let staged = output("git-helper/git_diff", &["--param", "staged=true"]);
    assert!(staged.contains("+new") && !staged.contains("+two"), "{staged}");
    let one = output("git-helper/git_diff", &["--params-json", r#"{"path": "first.txt"}"#]);
    assert!(one.contains("+two"), "{one}");
    // From a subfolder, the result is the same; without `--json`, only text is printed.
    let below = test_env.path("work/below");
    fs::create_dir(&below).expect("a folder");
    let skill = test_env.skill("git-helper/git_status");
    let plain =
        test_env.command(&["run", &skill]).current_dir(&below).output().expect("savoir runs");
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "## main\n M first.txt\nA  second.txt\n");
}

#[test]
fn git_helper_outside_a_repository() {
    let test_env = RunTestEnv::with_example("git-helper");
    test_env.write("home/secret.txt", "mine");
    let run = test_env.run("git-helper/git_status", &[]);
    let envelope = run.fails(128, "command-failed");
    assert_eq!(envelope["exit_code"], 128);
    assert_eq!(envelope["error"], "Command failed with exit code 128");
    let output = envelope["output"].as_str().unwrap_or_default();
    assert!(output.starts_with("fatal: not a git repository"), "{output}");
}

#[test]
fn deploy_preview_asks_every_time() {
    let test_env = RunTestEnv::with_example("deploy-preview");
    test_env.repository();
    let message = ["--param", "message=It's \"new\"; $(id)"];
    let asked = test_env.run("deploy-preview", &message);
    asked.fails(3, "not-approved");
    asked.assert_error_contains(&["it wants to be asked about every time", "--approve "]);
    assert!(!test_env.path("work/deployments.log").exists());
    let digits = fingerprint(&asked.0);

    let wrong =
        test_env.run("deploy-preview", &[&message[..], &["--approve", "0123456789ab"]].concat());
    wrong.fails(3, "not-approved");
    wrong.assert_error_contains(&["--approve is for another run", &digits]);
    let short =
        test_env.run("deploy-preview", &[&message[..], &["--approve", &digits[..12]]].concat());
    short.assert_error_contains(&["the fingerprint of --approve is too short", &digits]);

    let done = test_env.run("deploy-preview", &[&message[..], &["--approve", &digits]].concat());
    let parsed = done.succeeds()["parsed"].clone();
    assert_eq!(parsed, json!({"stage": "preview", "log": "deployments.log"}));
    let log = test_env.sandbox.read("work/deployments.log");
    assert!(log.ends_with("\tpreview\tIt's \"new\"; $(id)\n"), "{log}");
    let record = test_env.record();
    assert_eq!(record["decision"]["verdict"], "once");
    let written = record["files"]["written"].to_string();
    assert!(written.contains("deployments.log"), "{written}");

    // An approval for one run does not apply to the next run.
    test_env.run("deploy-preview", &message).fails(3, "not-approved");
}

#[test]
fn private_network_pages_need_a_grant() {
    if !has_program("curl") {
        return;
    }
    let test_env = RunTestEnv::with_example("web-page-summary");
    let (server, other) = (Server::answering("<p>Hello</p>"), Server::answering("other"));
    let page = format!("url={}", server.url("/page"));

    // The example allows any public host, but this host is on a private address.
    let run = test_env.run("web-page-summary/fetch_page", &["--param", &page]);
    let envelope = run.fails(22, "command-failed");
    assert_eq!(envelope["exit_code"], 22, "{}", run.0);
    let host = test_env.record()["hosts"][0].clone();
    assert_eq!((&host["host"], &host["port"]), (&json!("127.0.0.1"), &json!(server.port)));
    assert!(host["verdict"]["refused"].is_object(), "{host}");

    let authority = server.authority();
    let granted = ["--param", &page, "--allow-private-host", &authority];
    let run = test_env.run_agreed("web-page-summary/fetch_page", &granted);
    assert_eq!(run.succeeds()["output"], "<p>Hello</p>");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(server.seen()[0].line, "GET /page HTTP/1.1");
    let host = test_env.record()["hosts"][0].clone();
    assert_eq!((&host["path"], &host["verdict"]), (&json!("/page"), &json!("allowed")));

    // The permission is for one port.
    let elsewhere = format!("url={}", other.url("/"));
    let granted = ["--param", &elsewhere, "--allow-private-host", &authority];
    test_env.run_agreed("web-page-summary/fetch_page", &granted).fails(22, "command-failed");
    // A URL permission covers everything below its path.
    let url = server.url("/other");
    let granted = ["--param", &page, "--allow-private-host", &url];
    test_env.run_agreed("web-page-summary/fetch_page", &granted).fails(22, "command-failed");
    // A redirect to a host without permission is refused.
    let gate = Server::redirecting(&other.url("/inside"));
    let (url, authority) = (format!("url={}", gate.url("/")), gate.authority());
    let granted = ["--param", &url, "--allow-private-host", &authority];
    test_env.run_agreed("web-page-summary/fetch_page", &granted).fails(22, "command-failed");
    assert_eq!((gate.seen().len(), other.seen().len(), server.seen().len()), (1, 0, 1));
}

#[test]
fn secret_is_sent_without_being_visible_to_the_tool() {
    const FOUND: &str =
        r#"{"web": {"results": [{"title": "T", "url": "https://x.org", "description": "D"}]}}"#;
    let mut test_env = RunTestEnv::with_example("web-search");
    let (server, other) = (Server::answering(FOUND), Server::answering(FOUND));
    let query = ["--param", "query=rust lang & more"];
    test_env.variables.clear();
    let missing = test_env.run("web-search", &query);
    missing.fails(1, "missing-env-vars");
    missing.assert_error_contains(&["BRAVE_API_KEY"]);

    test_env.set("BRAVE_API_KEY", KEY);
    test_env.set("BRAVE_SEARCH_URL", &server.url("/search"));
    let authority = server.authority();
    let granted = [&query[..], &["--allow-private-host", &authority]].concat();
    let run = test_env.run_agreed("web-search/search_web", &granted);
    let parsed = run.succeeds()["parsed"].clone();
    assert_eq!(
        parsed["results"],
        json!([{"title": "T", "url": "https://x.org", "description": "D"}])
    );
    let seen = server.seen();
    assert_eq!(seen[0].line, "GET /search?q=rust+lang+%26+more&count=5 HTTP/1.1");
    assert_eq!(seen[0].header("x-subscription-token"), Some(KEY));

    // A server without permission gets no request, with or without the key.
    test_env.set("BRAVE_SEARCH_URL", &other.url("/search"));
    let run = test_env.run_agreed("web-search/search_web", &granted);
    run.fails(1, "tool-raised");
    run.assert_error_contains(&["the search answered 403"]);
    assert_eq!(other.seen().len(), 0);
    let record = test_env.record();
    assert_eq!(record["policy"]["environment"]["BRAVE_API_KEY"], "masked", "{record}");
    assert!(record["hosts"][0]["verdict"]["refused"].is_object(), "{record}");
    assert_eq!(find_containing(Path::new(&test_env.path(".savoir")), KEY), None);
    assert!(!run.0.to_string().contains(KEY));
}

#[test]
fn python_tools() {
    let test_env = RunTestEnv::with_example("hello-world");
    let parsed =
        |target: &str, options: &[&str]| test_env.run(target, options).succeeds()["parsed"].clone();
    assert_eq!(parsed("hello-world", &[]), json!({"greeting": "Hello, world!"}));
    assert_eq!(
        parsed("hello-world/say_hello", &["--param", "name=Ada = λ"]),
        json!({"greeting": "Hello, Ada = λ!"})
    );
    for name in ["text-statistics", "word-count-claw"] {
        let examples = crate::support::repository().join("examples");
        crate::support::copy(&examples.join(name), &test_env.path("skills").join(name));
        test_env.approve(name);
    }
    assert_eq!(
        parsed("text-statistics/count_words", &["--param", "text=One two. Three!"]),
        json!({"words": 3, "sentences": 2, "characters": 15})
    );
    assert_eq!(
        parsed(
            "text-statistics/frequent_words",
            &["--params-json", r#"{"text": "a b a", "limit": 1}"#]
        ),
        json!({"words": [{"word": "a", "count": 2}]})
    );
    assert_eq!(
        parsed("word-count-claw/word_count", &["--param", "text=one two\nthree"]),
        json!({"words": 3, "lines": 2, "characters": 13})
    );
    assert_eq!(test_env.record()["dialect"], "openclaw");
}

/// A skill in the format of GAIA's documentation, migrated by `savoir migrate`, runs like a GAIA
/// skill.
#[test]
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
fn a_migrated_skill_runs() {
    let test_env = RunTestEnv::new();
    if test_env.savoir(&["doctor"]).code != 0 {
        eprintln!("=== SKIPPED: a migrated skill is not run, since the sandbox cannot hold it ===");
        return;
    }
    let source = "---\nname: Text Tools\nclaw_version: '1'\ndescription: Counts. Use for texts.\n\
        actions:\n  - name: count-words\n    description: Count words\n    parameters:\n      \
        text: {type: string, required: true}\n      class: {type: string, default: plain}\n      \
        limit: {type: integer}\n    handler: handlers/count.py#run\n  - name: draw\n    \
        handler: draw.js\n---\n\nCounts the words of a text.\n";
    test_env.write("claw/SKILL.md", source);
    test_env.write("claw/draw.js", "module.exports = {}\n");
    test_env.write("claw/handlers/words.py", "def words(text):\n    return text.split()\n");
    let handler = "from words import words\n\n\nasync def run(text, limit=3, **rest):\n    \
        return {'words': len(words(text)), 'limit': limit, 'rest': rest}\n";
    test_env.write("claw/handlers/count.py", handler);
    let (claw, skills) = (test_env.path("claw"), test_env.path("skills"));
    let [claw, skills] = [claw, skills].map(|path| path.to_string_lossy().into_owned());
    let run = test_env.savoir(&["migrate", &claw, "--output", &skills, "--validate"]);
    assert_eq!(run.code, 0, "{run}");
    test_env.approve("text-tools");
    let counted = test_env.run("text-tools/count_words", &["--param", "text=one two"]);
    assert_eq!(
        counted.succeeds()["parsed"],
        json!({"words": 2, "limit": 3, "rest": {"class": "plain"}})
    );
    let given = r#"{"text": "one", "class_": "b", "limit": 1}"#;
    let counted = test_env.run("text-tools/count_words", &["--params-json", given]);
    assert_eq!(
        counted.succeeds()["parsed"],
        json!({"words": 1, "limit": 1, "rest": {"class": "b"}})
    );
    let drawn = test_env.run("text-tools/draw", &[]);
    drawn.fails(1, "tool-raised");
    drawn.assert_error_contains(&["NotImplementedError", "`draw.js` is not Python"]);
    assert_eq!(test_env.record()["dialect"], "gaia");
}

#[test]
fn a_prompt_is_answered_when_all_is_there() {
    let test_env = RunTestEnv::with_example("pull-request-review");
    let good = ["--input", "pull_request=https://example.com/pull/1"];
    let skill = test_env.skill("pull-request-review");
    let provider = Provider::new(ProviderBehavior::Says(&["{\"verdict\": ", "\"approve\"}"]));
    let mut command = test_env.command(&[&["run", &skill], &good[..]].concat());
    provider.of(&mut command);
    let output = command.output().expect("savoir runs");
    let document = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"verdict\": \"approve\"}\n",
        "{document}"
    );
    assert!(document.contains("github.com"), "the permissions are told: {document}");
    let asked = provider.questions()[0]["messages"][1]["content"].clone();
    let asked = asked.as_str().unwrap_or_default().trim_start();
    assert!(asked.starts_with("# Review https://example.com/pull/1\n\nStrictness: 3"), "{asked}");
    test_env.run("pull-request-review", &good).fails_in_events(2, "no-model");

    let bad = ["--input", "pull_request=not a url", "--input", "strictness=many", "--input", "x=1"];
    let said = test_env.run("pull-request-review", &bad).fails_in_events(2, "unknown-input");
    for part in [
        "has no input `x`",
        "`pull_request` must be an absolute URL",
        "`strictness` must be a number",
    ] {
        assert!(said.contains(part), "{said}");
    }
    test_env.run("pull-request-review", &[]).fails_in_events(2, "missing-input");
    let twice = ["--input", "strictness=1", "--input", "strictness=2"];
    test_env.run("pull-request-review", &twice).fails_in_events(2, "invalid-input");

    let text = test_env.sandbox.read("skills/pull-request-review/SKILL.md");
    let needy = text.replace("tools: [git]", "tools: [git, no-such-a, no-such-b]");
    test_env.write("skills/pull-request-review/SKILL.md", needy);
    let said = test_env.run("pull-request-review", &good).fails_in_events(1, "missing-tools");
    assert!(said.contains("no-such-a, no-such-b"), "{said}");
}
