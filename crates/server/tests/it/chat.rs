//! Tests conversations: who answers, the events of the stream, and the stored messages.

use std::{sync::Arc, time::Duration};

use savoir_model::Message;
use serde_json::{Value, json};

use crate::{
    harness::{ADMIN, Client, Reply, TestServer},
    knowledge::base_with,
    model::{Answer, Scripted},
    run::read_until,
};

pub(crate) const CHAT: &str = "/api/v1/chat/completions";
const HELLO: (&str, &str) = ("token", r#"{"content": "Hello"}"#);
const YOU: (&str, &str) = ("token", r#"{"content": " you"}"#);
const DONE: (&str, &str) =
    ("done", r#"{"status": "success", "message": "Chat completed successfully"}"#);
const SYSTEM: &str = "You are a helpful AI assistant.";

pub(crate) struct Place {
    pub(crate) server: TestServer,
    pub(crate) model: Arc<Scripted>,
    pub(crate) ada: Client,
}

impl Place {
    pub(crate) async fn new(answers: &[Answer]) -> Self {
        let model = Scripted::new(answers);
        let server = TestServer::with_model(model.clone(), |config| {
            config.limits.runs = 0;
            config.limits.routes = 0;
            config.time_limits.answer = Duration::from_millis(1200);
            config.time_limits.workflow = Duration::from_millis(1200);
        })
        .await;
        let ada = server.register("ada@example.org").await;
        Self { server, model, ada }
    }

    pub(crate) async fn say(&self, message: &str) -> Reply {
        say(&self.ada, message).await
    }

    /// The stored messages, each with its author.
    pub(crate) async fn kept(&self) -> Vec<String> {
        let session = self.ada.get("/api/v1/chat/sessions/s").await.json();
        let messages = session["messages"].as_array().unwrap().iter();
        messages
            .map(|message| {
                let text = |key: &str| message[key].as_str().unwrap().to_owned();
                format!("{}: {}", text("role"), text("content"))
            })
            .collect()
    }
}

async fn say(client: &Client, message: &str) -> Reply {
    client.post(CHAT, &json!({"session_id": "s", "message": message})).await
}

fn user(text: &str) -> Message {
    Message::User(text.to_owned())
}

fn assistant(text: &str) -> Message {
    Message::Assistant { text: text.to_owned(), tool_calls: Vec::new() }
}

#[tokio::test]
async fn chat_streams_the_answer_of_the_model() {
    let place = Place::new(&[Answer::Says(&["Hello", " you"]), Answer::Says(&["Bye"])]).await;
    place.say("Hi é").await.streams(&[HELLO, YOU, DONE]);
    place.say(" again \n").await.streams(&[("token", r#"{"content": "Bye"}"#), DONE]);
    let asked = place.model.asked();
    let system = Message::System(SYSTEM.to_owned());
    assert_eq!(asked[0].messages, [system.clone(), user("Hi é")]);
    assert_eq!((asked[0].temperature, asked[0].max_tokens), (Some(0.7), None));
    assert_eq!(
        asked[1].messages,
        [system, user("Hi é"), assistant("Hello you"), user(" again \n")]
    );
    assert_eq!(
        place.kept().await,
        ["user: Hi é", "assistant: Hello you", "user:  again \n", "assistant: Bye"]
    );
}

#[tokio::test]
async fn chat_uses_the_requested_model() {
    let place = Place::new(&[]).await;
    for (model, chosen) in [("stub:large", "large"), ("small", "small"), ("", "stub-1")] {
        let body = json!({"session_id": "s", "message": "x", "model": model, "user_id": 7,
            "kb_id": null, "workflow_id": null, "unknown": []});
        assert_eq!(place.ada.post(CHAT, &body).await.status, 200);
        assert_eq!(place.model.asked().pop().unwrap().model, chosen);
    }
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let place = Place::new(&[]).await;
    let post = async |body: Value| place.ada.post(CHAT, &body).await;
    post(json!({})).await.is(422, &json!({"detail": [
        {"type": "missing", "loc": ["body", "session_id"], "msg": "Field required", "input": {}},
        {"type": "missing", "loc": ["body", "message"], "msg": "Field required", "input": {}},
    ]}));
    let reply = post(json!({"session_id": "s", "message": ""})).await;
    let text = "String should have at least 1 character";
    reply.differs("string_too_short", &json!(["body", "message"]), text, &json!(""));
    let text = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
    for id in ["", "a b", "é", "a\n", "../x", &"a".repeat(129)] {
        let reply = post(json!({"session_id": id, "message": "x"})).await;
        reply.differs("string_pattern_mismatch", &json!(["body", "session_id"]), text, &json!(id));
    }
    let reply = post(json!({"session_id": 5, "message": "x"})).await;
    let text = "Input should be a valid string";
    reply.differs("string_type", &json!(["body", "session_id"]), text, &json!(5));
    let reply = post(json!({"session_id": "s", "message": "x", "kb_id": 5})).await;
    reply.differs("string_type", &json!(["body", "kb_id"]), text, &json!(5));
    for blank in [" ", "\n\t ", "\u{3000}"] {
        place.say(blank).await.refuses(400, "Message cannot be empty");
    }
    assert_eq!(post(json!({"session_id": "a".repeat(128), "message": "x"})).await.status, 200);
    assert_eq!(place.ada.get("/api/v1/chat/sessions/s").await.status, 404);
}

#[tokio::test]
async fn with_a_knowledge_base() {
    let place = Place::new(&[]).await;
    let documents = [("a.txt".to_owned(), "zebra crossing")];
    let base = base_with(&place.server, &place.ada, "zoo", &documents).await;
    let search = format!("/api/v1/knowledge/{base}/search?query=A%20zebra%3F");
    let hit = place.ada.get(&search).await.json()["results"][0].clone();
    let (doc, score) = (&hit["metadata"]["doc_id"], &hit["score"]);
    let body = json!({"session_id": "s", "message": "A zebra?", "kb_id": "zoo"});
    let step = |status: &str, rest: &str| {
        format!(
            r#"{{"type": "retrieval", "status": "{status}", "kb_id": "zoo", "query": "A zebra?"{rest}}}"#
        )
    };
    let found = format!(
        r#", "results_count": 1, "top_results": [{{"text": "zebra crossing", "doc_id": {doc}, "score": {score}}}]"#
    );
    let cited = format!(
        r#"{{"sources": [{{"doc_id": {doc}, "chunk_index": 0, "score": {score}, "text": "zebra crossing"}}]}}"#
    );
    place.ada.post(CHAT, &body).await.streams(&[
        ("thought", &step("start", "")),
        ("thought", &step("searching", "")),
        ("thought", &step("complete", &found)),
        ("citation", &cited),
        HELLO,
        YOU,
        DONE,
    ]);
    assert!(place.model.last().0.ends_with("Context:\n[1] zebra crossing"));
    let body = json!({"session_id": "s", "message": "Where?", "kb_id": "nowhere"});
    let step = |status: &str, rest: &str| {
        format!(
            r#"{{"type": "retrieval", "status": "{status}", "kb_id": "nowhere", "query": "Where?"{rest}}}"#
        )
    };
    place.ada.post(CHAT, &body).await.streams(&[
        ("thought", &step("start", "")),
        ("thought", &step("searching", "")),
        ("thought", &step("error", r#", "error": "Retrieval failed""#)),
        HELLO,
        YOU,
        DONE,
    ]);
    assert_eq!(place.model.last().0, SYSTEM);
    assert_eq!(place.ada.get("/api/v1/chat/sessions/s").await.json()["kb_id"], "nowhere");
}

/// Why a model failed, which the API does not say in the error.
pub(crate) const ANSWERED_500: (&str, &str) =
    ("warning", r#"{"message": "stub answered 500; the provider has a problem; try again later"}"#);
pub(crate) const INVALID_RESPONSE: (&str, &str) = (
    "warning",
    r#"{"message": "stub sent an invalid response; check that the address belongs to a server of this kind"}"#,
);
pub(crate) const NO_MODEL: (&str, &str) = (
    "warning",
    r#"{"message": "no language model is configured; set an environment variable: OPENAI_API_KEY=…, ANTHROPIC_API_KEY=… or OLLAMA_HOST=http://127.0.0.1:11434"}"#,
);

#[tokio::test]
async fn models_that_fail() {
    let place = Place::new(&[
        Answer::Fails(&["Hello"]),
        Answer::Babbles(&[]),
        Answer::Panics(&["Hello", " you"]),
        Answer::PanicsAtOnce,
    ])
    .await;
    let error = ("error", r#"{"message": "Chat generation failed"}"#);
    let done = ("done", r#"{"status": "error", "message": "Chat generation failed"}"#);
    for (at, (words, reason)) in [
        (&[HELLO][..], ANSWERED_500),
        (&[], INVALID_RESPONSE),
        (&[HELLO, YOU], INVALID_RESPONSE),
        (&[], INVALID_RESPONSE),
    ]
    .into_iter()
    .enumerate()
    {
        let events = [words, &[reason, error, done]].concat();
        place.say(&at.to_string()).await.streams(&events);
    }
    // The text so far is stored.
    assert_eq!(
        place.kept().await,
        ["user: 0", "assistant: Hello", "user: 1", "user: 2", "assistant: Hello you", "user: 3"]
    );
}

#[tokio::test]
async fn slow_model_times_out() {
    let place = Place::new(&[Answer::Hangs(&["Hello"])]).await;
    place.say("x").await.streams(&[
        HELLO,
        ("error", r#"{"message": "LLM response timed out (1s)"}"#),
        ("done", r#"{"status": "error", "message": "LLM response timed out (1s)"}"#),
    ]);
    place.model.has_open(0).await;
    assert_eq!(place.kept().await, ["user: x", "assistant: Hello"]);
}

#[tokio::test]
async fn disconnect_keeps_the_stored_messages() {
    let place = Place::new(&[Answer::Hangs(&["Hello", " you"])]).await;
    let body = json!({"session_id": "s", "message": "x"});
    let (stream, _) = read_until(&place.ada, CHAT, &body, " you").await;
    // The user's message is stored before the answer.
    assert_eq!(place.kept().await, ["user: x"]);
    drop(stream);
    place.model.has_open(0).await;
    for _ in 0..100 {
        if place.kept().await.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(place.kept().await, ["user: x", "assistant: Hello you"]);
}

#[tokio::test]
async fn conversations_are_private_to_their_user() {
    let place = Place::new(&[]).await;
    let admin = place.server.register(ADMIN).await;
    let bob = place.server.register("bob@example.org").await;
    place.say("mine").await.streams(&[HELLO, YOU, DONE]);
    // Another user's conversation with the same id is separate.
    say(&bob, "hello").await.streams(&[HELLO, YOU, DONE]);
    assert_eq!(place.kept().await.len(), 2);
    let own = bob.get("/api/v1/chat/sessions/s").await.json();
    assert_eq!((&own["session_id"], &own["message_count"]), (&json!("s"), &json!(2)));
    // An administrator can read it, but not write in it.
    let owner = json!(place.ada.id().to_string());
    assert_eq!(admin.get("/api/v1/chat/sessions/s").await.json()["user_id"], owner);
    let refused = say(&admin, "private").await;
    refused.is(
        403,
        &json!({
            "detail": "This conversation belongs to another user",
            "hint": "start a conversation of your own, with another id",
        }),
    );
    assert_eq!(place.kept().await, ["user: mine", "assistant: Hello you"]);
    let listed = admin.get("/api/v1/chat/sessions").await.json();
    let owners = listed["sessions"].as_array().unwrap().iter().map(|one| &one["user_email"]);
    assert_eq!(owners.collect::<Vec<_>>(), ["bob@example.org", "ada@example.org"]);
    let shown = admin.get("/api/v1/chat/sessions/s").await.json();
    assert_eq!(shown["user_email"], "ada@example.org");
    // Each of several users who start a conversation concurrently gets their own.
    let people = [&admin, &place.ada, &bob, &place.ada, &bob];
    let posts = people[1..].iter().map(async |person| {
        let body = json!({"session_id": "new", "message": person.token});
        person.post(CHAT, &body).await.status.as_u16()
    });
    let statuses = futures::future::join_all(posts).await;
    assert_eq!(statuses, [200; 4]);
    for person in [&place.ada, &bob] {
        let session = person.get("/api/v1/chat/sessions/new").await.json();
        assert_eq!((&session["session_id"], &session["message_count"]), (&json!("new"), &json!(4)));
    }
}

#[tokio::test]
async fn history_has_a_budget() {
    let place = Place::new(&[]).await;
    // The budget is 5734 tokens of four characters, less 8 for the system prompt.
    let long = "x".repeat(4 * 5000);
    place.say("one").await;
    place.say(&long).await;
    place.say("three").await;
    assert_eq!(place.model.asked().pop().unwrap().messages.len(), 6);
    place.say(&"y".repeat(4 * 718)).await;
    let messages = place.model.asked().pop().unwrap().messages;
    assert!(messages.len() == 6 && messages[1] == user(&long), "{}", messages.len());
    place.say("five").await;
    let messages = place.model.asked().pop().unwrap().messages;
    assert_eq!(messages[1], assistant("Hello you"));
    assert_eq!(messages[2], user("three"));
    // The last two messages are always sent, whatever their length.
    place.say(&"z".repeat(100_000)).await;
    let messages = place.model.asked().pop().unwrap().messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1], assistant("Hello you"));
}

#[tokio::test]
async fn models_are_listed() {
    let place = Place::new(&[]).await;
    let reply = place.ada.get("/api/v1/chat/models").await;
    reply.is(200, &json!({
        "items": [{"id": "stub:stub-1", "provider": "stub", "model": "stub-1", "enabled": true}],
        "default_model": "stub:stub-1",
        "total": 1,
    }));
    let server = TestServer::with_models(savoir_model::Models::default(), |_| {}).await;
    let ada = server.register("ada@example.org").await;
    let reply = ada.get("/api/v1/chat/models").await;
    reply.is(200, &json!({"items": [], "default_model": null, "total": 0}));
    let reply = ada.post(CHAT, &json!({"session_id": "s", "message": "x"})).await;
    reply.streams(&[
        NO_MODEL,
        ("error", r#"{"message": "Chat generation failed"}"#),
        ("done", r#"{"status": "error", "message": "Chat generation failed"}"#),
    ]);
    // The API defines these texts; the record of the run has the reason.
    let run = &ada.get("/api/v1/runs").await.json()["runs"][0];
    let error = run["error"].as_str().unwrap();
    assert!(error.starts_with("no language model is configured; "), "{error}");
}

const START: (&str, &str) =
    ("thought", r#"{"type": "skill", "status": "start", "skill_name": "sum-up"}"#);
const LOADED: (&str, &str) = (
    "thought",
    r#"{"type": "skill", "status": "loaded", "skill_name": "sum-up", "description": "Sums up é"}"#,
);
const SUM_UP: &str = "---\nname: sum-up\ndescription: Sums up é\ninputs:\n  - {name: style, default: \
    short}\n  - {name: text, required: true}\nmodel: {temperature: 0.1}\n---\nSum up {{text}} {{style}}";

#[tokio::test]
async fn skill_mention_runs_the_skill() {
    let place = Place::new(&[]).await;
    place.ada.post("/api/v1/skills", &json!({"name": "sum-up", "content": SUM_UP})).await;
    let thought = |json: &'static str| ("thought", json);
    let done =
        ("done", r#"{"status": "success", "message": "Skill execution completed successfully"}"#);
    place.say("@sum-up a long\n\ntext  ").await.streams(&[
        START,
        LOADED,
        thought(r#"{"type": "validation", "status": "start"}"#),
        thought(
            r#"{"type": "validation", "status": "complete", "message": "All required inputs provided"}"#,
        ),
        thought(r#"{"type": "substitution", "status": "start"}"#),
        thought(
            r#"{"type": "substitution", "status": "complete", "message": "Variables substituted"}"#,
        ),
        thought(r#"{"type": "generation", "status": "start"}"#),
        HELLO,
        YOU,
        done,
    ]);
    assert_eq!(place.model.last().1, "Sum up a long\n\ntext   short");
    let request = place.model.asked().pop().unwrap();
    assert_eq!((request.temperature, request.max_tokens), (Some(0.1), Some(2000)));
    assert_eq!(request.messages.len(), 2);
    assert_eq!(place.kept().await, ["user: @sum-up a long\n\ntext  ", "assistant: Hello you"]);
}

#[tokio::test]
async fn skill_mention_syntax() {
    let place = Place::new(&[]).await;
    place.server.write_skill("first", "---\ninputs: [{name: a}, {name: b}]\n---\n<{{a}}|{{b}}>");
    place.server.write_skill("none", "---\nname: none\n---\nFixed");
    for (message, prompt) in [
        ("@first x", "<x|>"),
        ("@first \n\t x y", "<x y|>"),
        ("@first\u{a0}x", "<x|>"),
        ("@none text", "Fixed\n\ntext"),
        // These texts do not name a skill.
        ("@first", "@first"),
        ("@first ", "@first "),
        (" @first x", " @first x"),
        ("@First x", "@First x"),
        ("@first_x y", "@first_x y"),
        ("@ first x", "@ first x"),
        ("hi @first x", "hi @first x"),
    ] {
        place.say(message).await;
        assert_eq!(place.model.last().1, prompt, "{message:?}");
    }
}

#[tokio::test]
async fn missing_or_foreign_skill_is_an_error() {
    let place = Place::new(&[]).await;
    let bob = place.server.register("bob@example.org").await;
    bob.post("/api/v1/skills", &json!({"name": "secret", "content": "---\na: 1\n---\n"})).await;
    place.server.write_skill("broken", &format!("user_id: '{}'\nplain", place.ada.id()));
    for (name, error) in [
        ("nothing", "Skill 'nothing' not found"),
        ("secret", "Skill 'secret' not found"),
        ("broken", "Skill 'broken' has no valid YAML frontmatter"),
        ("a--b", "Skill name cannot contain consecutive hyphens"),
    ] {
        let start = format!(r#"{{"type": "skill", "status": "start", "skill_name": "{name}"}}"#);
        let error = format!(r#"{{"type": "skill", "status": "error", "error": "{error}"}}"#);
        let done = format!(r#"{{"status": "error", "message": "Skill '{name}' not found"}}"#);
        place.say(&format!("@{name} x")).await.streams(&[
            ("thought", &start),
            ("thought", &error),
            ("done", &done),
        ]);
    }
    assert_eq!(place.model.asked().len(), 0);
    assert_eq!(place.kept().await.len(), 4);
}

#[tokio::test]
async fn failed_skill_ends_with_an_error() {
    let place = Place::new(&[Answer::Fails(&["Hello"]), Answer::Hangs(&["Hello"])]).await;
    place.server.write_skill("fixed", "---\nname: fixed\n---\nFixed");
    let two = "---\ninputs: [{name: a, required: true}, {name: b, required: true}]\n---\n";
    place.server.write_skill("two", two);
    let end = |reply: &Reply| -> Vec<String> {
        let frames: Vec<&str> = reply.text.split_terminator("\n\n").collect();
        frames[frames.len() - 2..].iter().map(|frame| (*frame).to_owned()).collect()
    };
    assert_eq!(
        end(&place.say("@fixed x").await),
        [
            "event: error\ndata: {\"message\": \"Generation failed\"}",
            "event: done\ndata: {\"status\": \"error\", \"message\": \"Generation failed\"}"
        ]
    );
    assert_eq!(
        end(&place.say("@fixed x").await),
        [
            "event: error\ndata: {\"message\": \"Skill execution timed out (1s)\"}",
            "event: done\ndata: {\"status\": \"error\", \"message\": \"Timeout\"}"
        ]
    );
    assert_eq!(
        end(&place.say("@two x").await),
        [
            "event: thought\ndata: {\"type\": \"validation\", \"status\": \"error\", \"error\": \
             \"Missing required input: 'b'\"}",
            "event: done\ndata: {\"status\": \"error\", \"message\": \"Missing required input: 'b'\"}"
        ]
    );
    assert_eq!(
        place.kept().await,
        [
            "user: @fixed x", "assistant: Hello", "user: @fixed x", "assistant: Hello",
            "user: @two x"
        ]
    );
}
