//! Tests third-party clients: the official Python client and the MCP Inspector.

use std::process::Command;

use serde_json::{Value, json};

use super::{sandbox_with_examples, script::programs};
use crate::{
    live_server::TestServer,
    services::{python, service},
    support::Sandbox,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_savoir");

fn seen(output: &std::process::Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn count(seen: &Value, list: &str, member: &str) -> usize {
    seen[list][member].as_array().map_or(0, Vec::len)
}

#[test]
fn the_official_client_for_python_uses_a_skill() {
    let Some(program) = service("SAVOIR_TEST_MCP_PYTHON", "the MCP client for Python") else {
        return;
    };
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    let skills = sandbox.path("skills").display().to_string();
    // The client passes only a few variables to servers, including HOME.
    let script = crate::support::repository().join("crates/savoir/tests/it/clients/mcp_client.py");
    let output = Command::new(program)
        .arg(script)
        .args(["stdio", PROGRAM, "mcp", &skills])
        .current_dir(sandbox.path("work"))
        .env("HOME", sandbox.path("home"))
        .output()
        .expect("python runs");
    let seen = seen(&output);
    assert_eq!(seen["begun"]["serverInfo"]["name"], "savoir");
    assert_eq!((count(&seen, "before", "tools"), count(&seen, "after", "tools")), (5, 7));
    assert_eq!(seen["ran"]["structuredContent"]["success"], true, "{seen}");
    let questions = seen["questions"].as_array().expect("questions");
    assert_eq!(questions.len(), 1, "{seen}");
    assert!(questions[0].as_str().is_some_and(|text| text.contains("text-statistics")), "{seen}");
    assert!(count(&seen, "resources", "resources") >= 2, "{seen}");
    assert_eq!(seen["read"]["contents"][0]["mimeType"], "text/markdown", "{seen}");
    assert_eq!(seen["refused"]["isError"], true, "{seen}");
}

#[test]
fn official_python_client_uses_a_server() {
    let Some(program) = service("SAVOIR_TEST_MCP_PYTHON", "the MCP client for Python") else {
        return;
    };
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &[], None);
    let token = server.log_in(&sandbox);
    let content = "---\nname: words\ndescription: Counts words.\ninputs:\n  - name: text\n    label: Text\n    type: text\n    required: true\n---\n\nCount {{text}}.\n";
    let made = server.ask(
        "POST",
        "/api/v1/skills",
        &token,
        Some(&json!({"name": "words", "content": content})),
    );
    assert_eq!(made.status, 201, "{}", made.body);
    let url = format!("http://{}/mcp", server.address);
    let seen = seen(&python(&program, "mcp_client.py", &["http", &url, &token]));
    assert_eq!(count(&seen, "before", "tools"), 4, "{seen}");
    // A new server also has the example skills.
    let found = &seen["found"]["structuredContent"]["skills"];
    assert!(
        found.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "words")),
        "{seen}"
    );
    assert_eq!(seen["used"]["structuredContent"]["name"], found[0]["name"], "{seen}");
    let prompts = seen["prompts"]["prompts"].as_array().expect("prompts");
    let words = prompts.iter().find(|prompt| prompt["name"] == "words").expect("a prompt");
    assert_eq!(words["arguments"][0]["name"], "text", "{words}");
    let resources = seen["resources"]["resources"].as_array().expect("resources");
    assert!(resources.iter().any(|one| one["uri"] == "skill://words/SKILL.md"), "{seen}");
}

#[test]
fn inspector_lists_tools_and_prompts() {
    let Some(program) = service("SAVOIR_TEST_MCP_INSPECTOR", "the MCP Inspector") else { return };
    let usual = std::env::var("PATH").expect("a path");
    inspected(&program, &usual);
}

#[test]
fn new_inspector_lists_tools_and_prompts() {
    let Some(program) = service("SAVOIR_TEST_MCP_INSPECTOR_NEW", "the new MCP Inspector") else {
        return;
    };
    inspected(&program, &programs());
}

fn inspected(program: &str, programs: &str) {
    let sandbox = sandbox_with_examples(&["text-statistics", "article-summary"]);
    let skills = sandbox.path("skills").display().to_string();
    let inspect = |words: &[&str]| {
        let output = Command::new(program)
            .args(["--cli", PROGRAM, "mcp", &skills])
            .args(words)
            .current_dir(sandbox.path("work"))
            .env("HOME", sandbox.path("home"))
            .env("PATH", programs)
            .output()
            .expect("the inspector runs");
        seen(&output)
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(5), "{tools}");
    let used = inspect(&[
        "--method", "tools/call", "--tool-name", "use_skill", "--tool-arg", "name=text-statistics",
    ]);
    assert_eq!(used["structuredContent"]["name"], "text-statistics", "{used}");
    let prompts = inspect(&["--method", "prompts/list"]);
    assert_eq!(prompts["prompts"][0]["name"], "article-summary", "{prompts}");
    let read =
        inspect(&["--method", "resources/read", "--uri", "skill://article-summary/SKILL.md"]);
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown", "{read}");
    let text = "prompt-args-of-the-tests";
    let got = inspect(&[
        "--method",
        "prompts/get",
        "--prompt-name",
        "article-summary",
        "--prompt-args",
        &format!("article={text}"),
    ]);
    assert_eq!(got["messages"][0]["role"], "user", "{got}");
    assert!(got["messages"].to_string().contains(text), "{got}");
}
