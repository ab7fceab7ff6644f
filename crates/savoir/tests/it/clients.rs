//! Tests third-party clients and real models with `savoir serve` between them. Only the format of
//! the model's answers is checked.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    live_server::TestServer,
    services::{python, service},
    support::Sandbox,
};

const SKILL: &str = "---\nname: hello\ndescription: Says hello. Use when someone comes.\nmodel:\n  temperature: 0\n  max_tokens: 12\n---\n\nSay hello.\n";

/// Runs a skill through the server with a third-party client; returns the events.
fn run(program: &str, change: impl Fn(&mut Command)) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let server = TestServer::start_with(&sandbox, &[], |command| {
        change(command.env("NO_PROXY", "127.0.0.1"));
    });
    let token = server.log_in(&sandbox);
    let body = json!({"name": "hello", "content": SKILL});
    let made = server.ask("POST", "/api/v1/skills", &token, Some(&body));
    assert_eq!(made.status, 201, "{}", made.body);
    let url = format!("http://{}/api/v1/skills/hello/run", server.address);
    let output = python(program, "stream.py", &[&url, &token, "{}"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let events: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();

    // The same skill in the terminal has the same events.
    let mut command = sandbox.command(&["run", "hello", "--json"]);
    change(command.env("NO_PROXY", "127.0.0.1"));
    let output = command.output().expect("savoir runs");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let in_terminal: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    check(&in_terminal);
    events
}

/// Checks that the events are those of a successful run, in the right order.
fn check(events: &[Value]) {
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    let tokens = names.iter().filter(|name| **name == "token").count();
    assert!(tokens > 0, "{events:?}");
    // The skill limits the answer's length, which causes a warning if the model had more to say.
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "warning").collect();
    let expected = [vec!["thought"; 5], vec!["token"; tokens], vec!["done"]].concat();
    assert_eq!(names, expected, "{events:?}");
    let words = events.iter().filter_map(|event| event["data"]["content"].as_str());
    assert!(words.clone().all(|words| !words.is_empty()), "{events:?}");
    assert!(words.collect::<String>().len() > 1, "{events:?}");
    assert_eq!(events.last().expect("events")["data"]["status"], "success");
}

#[test]
fn test_model_server_speaks_chat_completions() {
    let Some(program) = service("SAVOIR_TEST_PYTHON", "the client of OpenAI") else { return };
    let Some(model) = service("SAVOIR_TEST_MODEL", "a real model") else { return };
    let output = python(&program, "openai_stream.py", &[&model]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let (pieces, finish) = printed.trim().split_once(' ').expect("two words");
    assert!(pieces.parse::<u32>().expect("a number") > 0);
    assert!(["stop", "length"].contains(&finish), "{printed}");
}

#[test]
fn a_real_model_over_chat_completions() {
    let Some(program) = service("SAVOIR_TEST_PYTHON", "a client for events") else { return };
    let Some(model) = service("SAVOIR_TEST_MODEL", "a real model") else { return };
    check(&run(&program, |command| {
        command.env("OPENAI_BASE_URL", &model).env("OPENAI_API_KEY", "none");
    }));
}

#[test]
fn a_real_model_over_messages() {
    let Some(program) = service("SAVOIR_TEST_PYTHON", "a client for events") else { return };
    let Some(model) = service("SAVOIR_TEST_MODEL", "a real model") else { return };
    let base = model.trim_end_matches("/v1").to_owned();
    check(&run(&program, |command| {
        command
            .env("ANTHROPIC_BASE_URL", &base)
            .env("ANTHROPIC_API_KEY", "none")
            .env("ANTHROPIC_MODEL", "smollm2");
    }));
}

#[test]
fn a_scripted_model_over_ollama() {
    let Some(program) = service("SAVOIR_TEST_PYTHON", "a client for events") else { return };
    let Some(model) = service("SAVOIR_TEST_AIMOCK", "a scripted model") else { return };
    let events = run(&program, |command| {
        command.env("OLLAMA_HOST", &model).env("OLLAMA_MODEL", "any");
    });
    check(&events);
    let words: String =
        events.iter().filter_map(|event| event["data"]["content"].as_str()).collect();
    assert_eq!(words, "Hello from a script, in several pieces.");
}
