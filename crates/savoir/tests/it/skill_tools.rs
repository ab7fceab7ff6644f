//! Tests `serve --skill-tools`: tools of skills in conversations of the server.

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior, TestServer},
    support::Sandbox,
};

/// A skill with a program that every machine has.
const DEMO: &str = "---\nname: demo\nversion: 1.0.0\ndescription: Says hello. Use when greeting.\nread_only: true\n---\n\n# Demo\n\n### hello\n\nSay hello.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\necho \"hello world\"\n```\n";

const CALLS: &[(&str, &str)] = &[("use_skill", r#"{"name": "demo"}"#), ("demo__hello", "{}")];

/// Returns the last tool result that the model got in a new conversation.
fn last_tool_result(
    server: &TestServer,
    provider: &Provider,
    token: &str,
    session: &str,
) -> String {
    last_tool_result_in_mode(server, provider, token, session, None)
}

/// Like [`last_tool_result`], in a mode.
fn last_tool_result_in_mode(
    server: &TestServer,
    provider: &Provider,
    token: &str,
    session: &str,
    mode: Option<&str>,
) -> String {
    let body = json!({"session_id": session, "message": "Greet me.", "mode": mode});
    let answer = server.ask("POST", "/api/v1/chat/completions", token, Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let asked = provider.questions();
    let messages = asked.last().and_then(|last| last["messages"].as_array()).expect("messages");
    let output = messages.iter().rev().find(|message| message["role"] == "tool");
    output.map_or_else(|| panic!("no tool was called: {messages:?}"), Value::to_string)
}

fn create_skill(server: &TestServer, token: &str) {
    create_skill_with(server, token, DEMO);
}

fn create_skill_with(server: &TestServer, token: &str, text: &str) {
    let body = json!({"name": "demo", "content": text});
    let made = server.ask("POST", "/api/v1/skills", token, Some(&body));
    assert_eq!(made.status, 201, "{}", made.body);
}

#[test]
fn a_tool_runs_once_the_operator_approved_its_skill() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let temporary = sandbox.path("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let server = TestServer::start_with(&sandbox, &["--chat-tools", "--skill-tools"], |command| {
        provider.of(command);
        command.env("TMPDIR", &temporary);
    });
    let token = server.log_in(&sandbox);
    create_skill(&server, &token);
    let output = last_tool_result(&server, &provider, &token, "first");
    assert!(output.contains("needs approval"), "{output}");
    let place = sandbox.path(".savoir/data/skills/demo").canonicalize().expect("a folder");
    assert!(output.contains(&format!("savoir approve {}", place.display())), "{output}");
    let approved = sandbox.run(&["approve", &place.to_string_lossy(), "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    let output = last_tool_result(&server, &provider, &token, "second");
    assert!(output.contains("hello world"), "{output}");
    let runs = sandbox.run(&["runs", "--json"]);
    assert!(runs.stdout.contains("demo"), "it is in the records: {runs}");
    let folders = || {
        let there = std::fs::read_dir(&temporary).expect("a folder").flatten();
        there.filter(|one| one.file_name().to_string_lossy().starts_with("savoir-")).collect()
    };
    server.signal("-TERM");
    assert_eq!(server.wait().0, Some(0));
    let after: Vec<std::fs::DirEntry> = folders();
    assert!(after.is_empty(), "{after:?}");
}

#[test]
fn a_conversation_has_the_tools_of_its_mode() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let server = TestServer::start(&sandbox, &["--chat-tools", "--skill-tools"], Some(&provider));
    let token = server.log_in(&sandbox);
    create_skill_with(
        &server,
        &token,
        &DEMO.replace("read_only: true", "modes: [Dev]\nread_only: true"),
    );
    let place = sandbox.path(".savoir/data/skills/demo");
    let approved = sandbox.run(&["approve", &place.to_string_lossy(), "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    for (session, mode, runs) in
        [("none", None, false), ("meeting", Some("Meeting"), false), ("dev", Some("dev"), true)]
    {
        let output = last_tool_result_in_mode(&server, &provider, &token, session, mode);
        assert_eq!(output.contains("hello world"), runs, "{session}: {output}");
    }
    let body = json!({"session_id": "other", "message": "Greet me.", "mode": "Party"});
    let refused = server.ask("POST", "/api/v1/chat/completions", &token, Some(&body));
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("Global, Dev, Meeting, Writer"), "{}", refused.body);
}

#[test]
fn skill_tools_are_disabled_by_default() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let server = TestServer::start(&sandbox, &["--chat-tools"], Some(&provider));
    let token = server.log_in(&sandbox);
    create_skill(&server, &token);
    let approved = sandbox.run(&["approve", ".savoir/data/skills/demo", "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    let output = last_tool_result(&server, &provider, &token, "first");
    assert!(!output.contains("hello world") && output.contains("demo__hello"), "{output}");
}

#[test]
fn skills_in_a_bucket_have_no_tools() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["serve", "--skill-tools", "--storage", "s3://skills"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--skill-tools") && run.stderr.contains("S3"), "{run}");
}
