//! Tests workflows that answer in a conversation.

use savoir_model::Message;
use serde_json::{Value, json};

use crate::{
    chat::{CHAT, Place},
    harness::Reply,
    knowledge::base_with,
    model::Answer,
    run::read_until,
    workflows::{graph, keep},
};

async fn say(place: &Place, message: &str, workflow: &str) -> Reply {
    let body = json!({"session_id": "s", "message": message, "workflow_id": workflow});
    place.ada.post(CHAT, &body).await
}

const BEGIN: (&str, &str) =
    ("thought", r#"{"type": "workflow", "status": "start", "workflow_name": "W"}"#);
const START: (&str, &str) =
    ("thought", r#"{"type": "node", "status": "start", "node_id": "s", "node_type": "start"}"#);
const STARTED: (&str, &str) =
    ("thought", r#"{"type": "node", "status": "complete", "node_id": "s"}"#);

fn short() -> Value {
    graph(&[("s", "start", json!({})), ("m", "llm", json!({}))], &["s m"])
}

#[tokio::test]
async fn workflow_events_are_streamed() {
    let place = Place::new(&[]).await;
    let kb = base_with(&place.server, &place.ada, "zoo", &[("a.txt".to_owned(), "zebra")]).await;
    let search = place.ada.get(&format!("/api/v1/knowledge/{kb}/search?query=zebra")).await.json();
    let (doc, score) =
        (&search["results"][0]["metadata"]["doc_id"], &search["results"][0]["score"]);
    place.server.write_skill("ask", "---\nknowledge_base: zoo\n---\nzebra");
    let drawn = graph(
        &[
            ("s", "start", json!({})),
            ("c", "condition", json!({"expression": "true"})),
            ("g", "skill", json!({"skillName": "ask"})),
            ("e", "end", json!({})),
        ],
        &["s c", "c g true", "g e"],
    );
    let id = keep(&place.ada, &drawn).await;
    let node = |status: &str, id: &str, rest: &str| {
        format!(r#"{{"type": "node", "status": "{status}", "node_id": "{id}"{rest}}}"#)
    };
    let step =
        |topic: &str, rest: &str| format!(r#"{{"type": "{topic}", "node_id": "g", {rest}}}"#);
    let found = format!(
        r#""status": "complete", "kb_id": "zoo", "results_count": 1, "top_results": [{{"text": "zebra", "doc_id": {doc}, "score": {score}}}]"#
    );
    let cited = format!(
        r#"{{"node_id": "g", "sources": [{{"doc_id": {doc}, "chunk_index": 0, "score": {score}, "text": "zebra"}}]}}"#
    );
    // With a workflow id, `@name` does not call a skill.
    say(&place, "@ask x", &id).await.streams(&[
        BEGIN,
        START,
        STARTED,
        ("thought", &node("start", "c", r#", "node_type": "condition""#)),
        (
            "thought",
            r#"{"type": "condition", "node_id": "c", "expression": "true", "branch": "true"}"#,
        ),
        ("thought", &node("complete", "c", "")),
        ("thought", &node("start", "g", r#", "node_type": "skill""#)),
        ("thought", &step("validation", r#""status": "start""#)),
        (
            "thought",
            &step(
                "validation",
                r#""status": "complete", "message": "All required inputs provided""#,
            ),
        ),
        ("thought", &step("substitution", r#""status": "start""#)),
        (
            "thought",
            &step("substitution", r#""status": "complete", "message": "Variables substituted""#),
        ),
        ("thought", &step("retrieval", r#""status": "start", "kb_id": "zoo""#)),
        (
            "thought",
            &step("retrieval", r#""status": "searching", "kb_id": "zoo", "query": "zebra""#),
        ),
        ("thought", &step("retrieval", &found)),
        ("citation", &cited),
        ("thought", &step("generation", r#""status": "start""#)),
        ("token", r#"{"content": "Hello"}"#),
        ("token", r#"{"content": " you"}"#),
        ("thought", &node("complete", "g", "")),
        ("thought", &node("start", "e", r#", "node_type": "end""#)),
        ("thought", &node("complete", "e", "")),
        ("done", r#"{"status": "success", "message": "Workflow completed"}"#),
    ]);
    assert_eq!(place.kept().await, ["user: @ask x", "assistant: Hello you"]);
    let session = place.ada.get("/api/v1/chat/sessions/s").await.json();
    assert_eq!(session["workflow_id"], json!(id));
}

#[tokio::test]
async fn final_output_is_stored_as_the_answer() {
    let place = Place::new(&[]).await;
    let drawn = graph(
        &[("s", "start", json!({})), ("m", "llm", json!({})), ("e", "end", json!({}))],
        &["s m", "s e", "m e"],
    );
    let id = keep(&place.ada, &drawn).await;
    say(&place, "in", &id).await;
    // The end node waits for both of its incoming edges.
    assert_eq!(place.kept().await, ["user: in", "assistant: in\n\nHello you"]);
}

#[tokio::test]
async fn failed_node_ends_the_conversation_turn() {
    let place = Place::new(&[Answer::Fails(&["Hel"]), Answer::Hangs(&["Hel"])]).await;
    let id = keep(&place.ada, &short()).await;
    let model =
        ("thought", r#"{"type": "node", "status": "start", "node_id": "m", "node_type": "llm"}"#);
    let hel = ("token", r#"{"content": "Hel"}"#);
    let why = "LLM call failed: stub answered 500";
    say(&place, "one", &id).await.streams(&[
        BEGIN,
        START,
        STARTED,
        model,
        hel,
        (
            "warning",
            r#"{"node_id": "m", "message": "stub answered 500; the provider has a problem; try again later"}"#,
        ),
        ("error", &format!(r#"{{"message": "{why}"}}"#)),
        ("done", &format!(r#"{{"status": "error", "message": "{why}"}}"#)),
    ]);
    say(&place, "two", &id).await.streams(&[
        BEGIN,
        START,
        STARTED,
        model,
        hel,
        ("error", r#"{"message": "Workflow execution timed out (1s)"}"#),
        ("done", r#"{"status": "error", "message": "Timeout"}"#),
    ]);
    let empty = keep(&place.ada, &json!({})).await;
    let why = "Workflow has no start node";
    say(&place, "three", &empty).await.streams(&[
        BEGIN,
        ("error", &format!(r#"{{"message": "{why}"}}"#)),
        ("done", &format!(r#"{{"status": "error", "message": "{why}"}}"#)),
    ]);
    assert_eq!(
        place.kept().await,
        ["user: one", "assistant: Hel", "user: two", "assistant: Hel", "user: three"]
    );
}

#[tokio::test]
async fn missing_or_foreign_workflow_is_an_error() {
    let place = Place::new(&[]).await;
    let bob = place.server.register("bob@example.org").await;
    let foreign = keep(&bob, &short()).await;
    for id in ["none", "", foreign.as_str()] {
        let error = format!(r#"{{"message": "Workflow {id} not found"}}"#);
        let done = format!(r#"{{"status": "error", "message": "Workflow {id} not found"}}"#);
        say(&place, "x", id).await.streams(&[("error", &error), ("done", &done)]);
    }
    assert_eq!(place.kept().await.len(), 3);
    assert_eq!(place.model.asked().len(), 0);
    let noted =
        async || place.ada.get("/api/v1/chat/sessions/s").await.json()["workflow_id"].take();
    assert_eq!(noted().await, Value::Null);
    let own = keep(&place.ada, &short()).await;
    say(&place, "x", &own).await;
    say(&place, "x", &foreign).await;
    assert_eq!(noted().await, own.as_str());
}

#[tokio::test]
async fn disconnect_stops_the_workflow() {
    let place = Place::new(&[Answer::Hangs(&["Hel"])]).await;
    let id = keep(&place.ada, &short()).await;
    let body = json!({"session_id": "s", "message": "x", "workflow_id": id});
    let (stream, _) = read_until(&place.ada, CHAT, &body, "Hel").await;
    place.model.has_open(1).await;
    let began = std::time::Instant::now();
    drop(stream);
    place.model.has_open(0).await;
    assert!(began.elapsed().as_millis() < 1000);
}

#[tokio::test]
async fn node_can_inherit_the_chat_history() {
    let place = Place::new(&[]).await;
    let nodes = |inherit: bool| {
        let data = json!({"inheritChatHistory": inherit, "systemPrompt": "Be brief"});
        graph(&[("s", "start", json!({})), ("m", "llm", data)], &["s m"])
    };
    let (knows, ignores) =
        (keep(&place.ada, &nodes(true)).await, keep(&place.ada, &nodes(false)).await);
    place.say("first").await;
    say(&place, "second", &knows).await;
    let user = |text: &str| Message::User(text.to_owned());
    let system = Message::System("Be brief".to_owned());
    let hello = Message::Assistant { text: "Hello you".to_owned(), tool_calls: Vec::new() };
    let asked = place.model.asked().pop().unwrap().messages;
    assert_eq!(asked, [system.clone(), user("first"), hello, user("second")]);
    say(&place, "third", &ignores).await;
    assert_eq!(place.model.asked().pop().unwrap().messages, [system, user("third")]);
}
