//! `serve --skill-tools`: tools of skills in conversations of the server.

use serde_json::{Value, json};

use crate::{
    live_server::{House, Provider, ProviderBehavior},
    support::Sandbox,
};

/// A skill whose program every machine has.
const DEMO: &str = "---\nname: demo\nversion: 1.0.0\ndescription: Says hello. Use when greeting.\nread_only: true\n---\n\n# Demo\n\n### hello\n\nSay hello.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\necho \"hello world\"\n```\n";

const CALLS: &[(&str, &str)] = &[("use_skill", r#"{"name": "demo"}"#), ("demo__hello", "{}")];

/// What the last tool told the model in a new conversation.
fn heard(house: &House, provider: &Provider, token: &str, session: &str) -> String {
    heard_in(house, provider, token, session, None)
}

/// The same in a mode.
fn heard_in(
    house: &House,
    provider: &Provider,
    token: &str,
    session: &str,
    mode: Option<&str>,
) -> String {
    let body = json!({"session_id": session, "message": "Greet me.", "mode": mode});
    let answer = house.ask("POST", "/api/v1/chat/completions", token, Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let asked = provider.questions();
    let messages = asked.last().and_then(|last| last["messages"].as_array()).expect("messages");
    let told = messages.iter().rev().find(|message| message["role"] == "tool");
    told.map_or_else(|| panic!("no tool was called: {messages:?}"), Value::to_string)
}

fn keep(house: &House, token: &str) {
    keep_text(house, token, DEMO);
}

fn keep_text(house: &House, token: &str, text: &str) {
    let body = json!({"name": "demo", "content": text});
    let made = house.ask("POST", "/api/v1/skills", token, Some(&body));
    assert_eq!(made.status, 201, "{}", made.body);
}

#[test]
fn a_tool_runs_once_the_operator_approved_its_skill() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let temporary = sandbox.path("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let house = House::start_with(&sandbox, &["--chat-tools", "--skill-tools"], |command| {
        provider.of(command);
        command.env("TMPDIR", &temporary);
    });
    let token = house.log_in(&sandbox);
    keep(&house, &token);
    let told = heard(&house, &provider, &token, "first");
    assert!(told.contains("needs a person's approval"), "{told}");
    let place = sandbox.path(".savoir/data/skills/demo").canonicalize().expect("a folder");
    assert!(told.contains(&format!("savoir approve {}", place.display())), "{told}");
    let approved = sandbox.run(&["approve", &place.to_string_lossy(), "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    let told = heard(&house, &provider, &token, "second");
    assert!(told.contains("hello world"), "{told}");
    let runs = sandbox.run(&["runs", "--json"]);
    assert!(runs.stdout.contains("demo"), "it is in the records: {runs}");
    let folders = || {
        let there = std::fs::read_dir(&temporary).expect("a folder").flatten();
        there.filter(|one| one.file_name().to_string_lossy().starts_with("savoir-")).collect()
    };
    house.signal("-TERM");
    assert_eq!(house.wait().0, Some(0));
    let after: Vec<std::fs::DirEntry> = folders();
    assert!(after.is_empty(), "{after:?}");
}

#[test]
fn a_conversation_has_the_tools_of_its_mode() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let house = House::start(&sandbox, &["--chat-tools", "--skill-tools"], Some(&provider));
    let token = house.log_in(&sandbox);
    keep_text(&house, &token, &DEMO.replace("read_only: true", "modes: [Dev]\nread_only: true"));
    let place = sandbox.path(".savoir/data/skills/demo");
    let approved = sandbox.run(&["approve", &place.to_string_lossy(), "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    for (session, mode, runs) in
        [("none", None, false), ("meeting", Some("Meeting"), false), ("dev", Some("dev"), true)]
    {
        let told = heard_in(&house, &provider, &token, session, mode);
        assert_eq!(told.contains("hello world"), runs, "{session}: {told}");
    }
    let body = json!({"session_id": "other", "message": "Greet me.", "mode": "Party"});
    let refused = house.ask("POST", "/api/v1/chat/completions", &token, Some(&body));
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("Global, Dev, Meeting, Writer"), "{}", refused.body);
}

#[test]
fn without_the_option_there_are_no_tools_of_skills() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Calls(CALLS, &["Done."]));
    let house = House::start(&sandbox, &["--chat-tools"], Some(&provider));
    let token = house.log_in(&sandbox);
    keep(&house, &token);
    let approved = sandbox.run(&["approve", ".savoir/data/skills/demo", "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    let told = heard(&house, &provider, &token, "first");
    assert!(!told.contains("hello world") && told.contains("demo__hello"), "{told}");
}

#[test]
fn skills_in_a_bucket_have_no_tools() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["serve", "--skill-tools", "--storage", "s3://skills"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--skill-tools") && run.stderr.contains("S3"), "{run}");
}
