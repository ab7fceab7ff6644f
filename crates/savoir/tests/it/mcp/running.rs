//! Tools of skills: offered when their skill is in use, fenced in by the one that is followed, asked
//! about, and run.

use serde_json::{Value, json};

use super::{Client, code, stage};

/// What a client says that lets a person fill in forms.
fn asks() -> Value {
    json!({"elicitation": {"form": {}}})
}

const COUNT: &str = "text-statistics__count_words";

fn words() -> Value {
    json!({"text": "one two three."})
}

/// Calls a tool, and answers the question that comes.
fn answered(client: &mut Client, tool: &str, arguments: &Value, result: &Value) -> Value {
    let id = client.send("tools/call", json!({"name": tool, "arguments": arguments}));
    let question = loop {
        let heard = client.hear();
        if heard["method"] == "elicitation/create" {
            break heard;
        }
        assert_ne!(heard["id"], id, "it was not asked: {heard}");
    };
    let text = question["params"]["message"].as_str().expect("a text");
    assert!(text.contains("text-statistics") && text.contains("not been approved"), "{text}");
    let words = &question["params"]["requestedSchema"]["properties"]["answer"]["enum"];
    assert_eq!(words, &json!(["once", "always"]), "{question}");
    client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string());
    client.answer(id)["result"].clone()
}

#[test]
fn a_skill_in_use_brings_its_tools() {
    let sandbox = stage(&["text-statistics", "git-helper"]);
    let mut client = Client::new(&sandbox);
    let first = client.tools();
    assert_eq!(first.len(), 5, "{first:?}");
    assert_eq!(code(&client.call(COUNT, &words())), "unknown-tool");
    let used = client.call("use_skill", &json!({"name": "text-statistics"}));
    let brought = &used["structuredContent"]["tools"];
    assert!(brought.as_array().unwrap().contains(&json!(COUNT)), "{used}");
    assert_eq!(used["content"][1]["_meta"]["savoir/skill"], "text-statistics", "{used}");
    assert!(client.tools().contains(&COUNT.to_owned()));
    let told = |notice: &Value| notice["method"] == "notifications/tools/list_changed";
    assert!(client.notices.iter().any(told), "{:?}", client.notices);

    let mut pinned = Client::with(&sandbox, &["../skills", "--pin", "git-helper"], &json!({}));
    let tools = pinned.ask("tools/list", json!({}))["result"]["tools"].clone();
    let status =
        tools.as_array().unwrap().iter().find(|tool| tool["name"] == "git-helper__git_status");
    let status = status.expect("a tool of the pinned skill");
    assert_eq!(status["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(status["_meta"]["savoir/origin"], "skill");
}

#[test]
fn what_nobody_approved_is_refused_with_the_way_out() {
    let sandbox = stage(&["text-statistics"]);
    let mut client = Client::new(&sandbox);
    let call = json!({"skill": "text-statistics", "tool": "count_words", "arguments": words()});
    let refused = client.call("run_skill_tool", &call);
    assert_eq!(code(&refused), "approval-needed");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("savoir approve"), "{text}");
    let mut approve = sandbox.command(&["approve", "../skills/text-statistics", "--yes"]);
    approve.current_dir(sandbox.path("work")).env("HOME", sandbox.path("home"));
    assert!(approve.output().unwrap().status.success());
    let run = client.call("run_skill_tool", &call);
    assert_eq!(run["isError"], false, "{run}");
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
    assert_eq!(run["content"][1]["_meta"]["savoir/origin"], "skill", "{run}");
}

#[test]
fn the_person_behind_the_client_decides() {
    let sandbox = stage(&["text-statistics"]);
    let mut client = Client::with(&sandbox, &["../skills", "--pin", "text-statistics"], &asks());
    for no in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"answer": "sure"}}),
    ] {
        assert_eq!(code(&answered(&mut client, COUNT, &words(), &no)), "declined");
    }
    let yes = |word: &str| json!({"action": "accept", "content": {"answer": word}});
    for word in ["once", "always"] {
        let run = answered(&mut client, COUNT, &words(), &yes(word));
        assert_eq!(run["structuredContent"]["success"], true, "{run}");
    }
    // Nobody is asked again.
    let run = client.call(COUNT, &words());
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
}

#[test]
fn without_sessions_the_question_is_an_answer() {
    let sandbox = stage(&["text-statistics"]);
    let mut client = Client::silent(&sandbox, &["../skills", "--pin", "text-statistics"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": asks(),
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    });
    let params = |more: Value| {
        let mut params = json!({"name": COUNT, "arguments": words(), "_meta": meta});
        let Value::Object(more) = more else { panic!("no object") };
        params.as_object_mut().unwrap().extend(more);
        params
    };
    let asked = client.ask("tools/call", params(json!({})));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let question = &asked["result"]["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    let state = asked["result"]["requestState"].clone();
    let yes = json!({"approval": {"action": "accept", "content": {"answer": "once"}}});
    // The answer to one call is none to another.
    let other = client.ask(
        "tools/call",
        json!({
            "name": COUNT, "arguments": {"text": "other"}, "_meta": meta,
            "inputResponses": yes, "requestState": state,
        }),
    );
    assert_eq!(code(&other["result"]), "question-closed", "{other}");
    let asked = client.ask("tools/call", params(json!({})));
    let state = asked["result"]["requestState"].clone();
    let run =
        client.ask("tools/call", params(json!({"inputResponses": yes, "requestState": state})));
    assert_eq!(run["result"]["structuredContent"]["success"], true, "{run}");
}

#[test]
fn the_skill_that_is_followed_is_a_fence() {
    let sandbox = stage(&["text-statistics"]);
    for (name, allowed) in [("reader", "Read"), ("counter", COUNT), ("free", "")] {
        let line =
            if allowed.is_empty() { String::new() } else { format!("allowed-tools: {allowed}\n") };
        sandbox.write(
            &format!("skills/{name}/SKILL.md"),
            format!("---\nname: {name}\ndescription: Tries it. Use in tests.\n{line}---\nDo it.\n"),
        );
    }
    let mut client = Client::with(&sandbox, &["../skills", "--pin", "text-statistics"], &asks());
    let by_names = json!({"skill": "text-statistics", "tool": "count_words", "arguments": words()});
    let never = json!({"action": "decline"});
    client.call("use_skill", &json!({"name": "reader"}));
    assert!(!client.tools().contains(&COUNT.to_owned()));
    // Neither by its name nor around it; and nobody is asked.
    assert_eq!(code(&client.call(COUNT, &words())), "tool-not-allowed");
    assert_eq!(code(&client.call("run_skill_tool", &by_names)), "tool-not-allowed");
    assert_eq!(client.call("search_skills", &json!({"query": "x"}))["isError"], false);
    for (skill, tools) in [("counter", 6), ("free", 7)] {
        client.call("use_skill", &json!({"name": skill}));
        assert_eq!(client.tools().len(), tools, "{skill}");
        let declined = answered(&mut client, COUNT, &words(), &never);
        assert_eq!(code(&declined), "declined", "{skill}");
    }
}
