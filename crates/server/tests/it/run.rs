//! Tests runs of skills: the events, byte for byte, and the requests to the model.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use reqwest::Method;
use savoir_model::Message;
use serde_json::{Value, json};

use crate::{
    chat::{ANSWERED_500, INVALID_RESPONSE, NO_MODEL},
    harness::{Client, Reply, TestServer},
    knowledge::{base_with, read_all},
    model::{Answer, Scripted},
};

const VALID: (&str, &str) = (
    "thought",
    r#"{"type": "validation", "status": "complete", "message": "All required inputs provided"}"#,
);
const BEGIN: (&str, &str) = ("thought", r#"{"type": "validation", "status": "start"}"#);
const FILL: (&str, &str) = ("thought", r#"{"type": "substitution", "status": "start"}"#);
const FILLED: (&str, &str) = (
    "thought",
    r#"{"type": "substitution", "status": "complete", "message": "Variables substituted"}"#,
);
const GENERATE: (&str, &str) = ("thought", r#"{"type": "generation", "status": "start"}"#);
const HELLO: (&str, &str) = ("token", r#"{"content": "Hello"}"#);
const YOU: (&str, &str) = ("token", r#"{"content": " you"}"#);
const DONE: (&str, &str) =
    ("done", r#"{"status": "success", "message": "Skill execution completed successfully"}"#);
const FAILED: (&str, &str) = ("error", r#"{"message": "Generation failed"}"#);
const DONE_FAILED: (&str, &str) =
    ("done", r#"{"status": "error", "message": "Generation failed"}"#);

struct Place {
    server: TestServer,
    model: Arc<Scripted>,
    ada: Client,
}

impl Place {
    async fn new(answers: &[Answer]) -> Self {
        let model = Scripted::new(answers);
        let server = TestServer::with_model(model.clone(), |config| {
            config.limits.runs = 0;
            config.limits.routes = 0;
            config.time_limits.answer = Duration::from_millis(1200);
        })
        .await;
        let ada = server.register("ada@example.org").await;
        Self { server, model, ada }
    }

    async fn skill(&self, name: &str, content: &str) {
        let body = json!({"name": name, "content": content});
        let reply = self.ada.post("/api/v1/skills", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }

    /// Imports a file, which keeps its dialect.
    async fn import(&self, content: &str) {
        let request = self.ada.request(reqwest::Method::POST, "/api/v1/skills/import");
        let request = request.header("content-type", "text/markdown").body(content.to_owned());
        let reply = Reply::of(request).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }

    async fn run(&self, name: &str, inputs: &Value) -> Reply {
        let path = format!("/api/v1/skills/{name}/run");
        self.ada.post(&path, &json!({"inputs": inputs})).await
    }
}

const GREET: &str = "---\nname: greet\ninputs:\n  - {name: who, required: true}\n  - {name: how, \
    default: kindly}\nmodel: {temperature: 0.2, max_tokens: 50}\n---\n\nGreet {{who}} {{how}}.\n\n";

#[tokio::test]
async fn run_events_are_streamed() {
    let place = Place::new(&[]).await;
    place.skill("greet", GREET).await;
    let reply = place.run("greet", &json!({"who": "Zoë", "other": "x"})).await;
    reply.streams(&[BEGIN, VALID, FILL, FILLED, GENERATE, HELLO, YOU, DONE]);
    let request = place.model.asked().pop().unwrap();
    assert_eq!(request.model, "stub-1");
    assert_eq!((request.temperature, request.max_tokens), (Some(0.2), Some(50)));
    assert_eq!(
        request.messages,
        [
            Message::System("You are a helpful AI assistant.".to_owned()),
            Message::User("Greet Zoë kindly.".to_owned())
        ]
    );
}

#[tokio::test]
async fn tokens_are_streamed_unchanged() {
    let place = Place::new(&[Answer::Says(&["é\n\"知\"", "\u{2028}\0", "data: x\n\nevent: done"])]);
    let place = place.await;
    place.skill("greet", GREET).await;
    let reply = place.run("greet", &json!({"who": "x"})).await;
    let one = ("token", "{\"content\": \"é\\n\\\"知\\\"\"}");
    let two = ("token", "{\"content\": \"\u{2028}\\u0000\"}");
    let three = ("token", "{\"content\": \"data: x\\n\\nevent: done\"}");
    reply.streams(&[BEGIN, VALID, FILL, FILLED, GENERATE, one, two, three, DONE]);
}

#[tokio::test]
async fn inputs_are_inserted_into_the_prompt() {
    let place = Place::new(&[]).await;
    place.skill("greet", GREET).await;
    let content = "---\ninputs: [{name: a, default: 5}, {name: b}, {name: c-d}]\n---\n\
        {{a}}|{{b}}|{{c-d}}|{{x-y}}|{{ a }}|{{{a}}}";
    place.skill("many", content).await;
    for (name, inputs, prompt) in [
        ("greet", json!({"who": " "}), "Greet   kindly."),
        ("greet", json!({"who": "a", "how": ""}), "Greet a ."),
        // Placeholders in a value are not replaced.
        ("greet", json!({"who": "{{how}}"}), "Greet {{how}} kindly."),
        ("many", json!({}), "5||||{{ a }}|{5}"),
        ("many", json!({"a": "1", "b": "2", "c-d": "3", "x-y": "4"}), "1|2|3||{{ a }}|{1}"),
    ] {
        assert_eq!(place.run(name, &inputs).await.status, 200);
        assert_eq!(place.model.last().1, prompt);
    }
    // The default settings.
    let request = place.model.asked().pop().unwrap();
    assert_eq!((request.temperature, request.max_tokens), (Some(0.7), Some(2000)));
    for body in [json!({}), json!({"inputs": null}), json!({"inputs": {}})] {
        assert_eq!(place.ada.post("/api/v1/skills/many/run", &body).await.status, 200);
    }
}

#[tokio::test]
async fn missing_required_input_is_an_error() {
    let place = Place::new(&[]).await;
    place.skill("greet", GREET).await;
    let message = "Missing required input: 'who'";
    for inputs in [json!({}), json!({"who": ""}), json!({"how": "x"})] {
        place.run("greet", &inputs).await.blames(400, "inputs", message);
        for accept in ["application/json", "*/*", "text/*"] {
            let client = place.ada.header("accept", accept);
            let reply = client.post("/api/v1/skills/greet/run", &json!({"inputs": inputs})).await;
            reply.blames(400, "inputs", message);
        }
        for accept in ["text/event-stream", "application/json, Text/Event-Stream;q=0.9"] {
            let client = place.ada.header("accept", accept);
            let reply = client.post("/api/v1/skills/greet/run", &json!({"inputs": inputs})).await;
            let error = r#"{"type": "validation", "status": "error", "error": "Missing required input: 'who'"}"#;
            let done = r#"{"status": "error", "message": "Missing required input: 'who'"}"#;
            reply.streams(&[BEGIN, ("thought", error), ("done", done)]);
        }
    }
    assert_eq!(place.model.asked().len(), 0);
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let place = Place::new(&[]).await;
    place.skill("greet", GREET).await;
    let text = "Input should be a valid string";
    let reply = place.run("greet", &json!({"who": 5, "how": null})).await;
    reply.is(
        422,
        &json!({"detail": [
            {"type": "string_type", "loc": ["body", "inputs", "who"], "msg": text, "input": 5},
            {"type": "string_type", "loc": ["body", "inputs", "how"], "msg": text, "input": null},
        ]}),
    );
    let reply = place.run("greet", &json!(["x"])).await;
    let message = "Input should be a valid dictionary";
    reply.differs("dict_type", &json!(["body", "inputs"]), message, &json!(["x"]));
    place.run("none", &json!({})).await.blames(404, "name", "Skill 'none' not found");
    // The body is validated before the inputs.
    assert_eq!(place.run("none", &json!({"a": 1})).await.status, 422);
}

#[tokio::test]
async fn with_a_knowledge_base() {
    let place = Place::new(&[]).await;
    let texts: Vec<String> = (1..=6)
        .map(|number| format!("Returns {number} é {}", "return goods ".repeat(20 + number)))
        .collect();
    let documents: Vec<(String, &str)> =
        (1..).map(|n| format!("{n}.txt")).zip(texts.iter().map(String::as_str)).collect();
    let base = base_with(&place.server, &place.ada, "manual", &documents).await;
    for (name, kb) in [("by-id", base.as_str()), ("by-name", "manual")] {
        place.skill(name, &format!("---\nknowledge_base: {kb}\n---\nAbout returns?\n")).await;
        let query = format!("/api/v1/knowledge/{base}/search?query=About%20returns%3F&top_k=5");
        let found = place.ada.get(&query).await.json();
        let found = found["results"].as_array().unwrap();
        assert_eq!(found.len(), 5);
        let cut = |hit: &Value| -> String {
            let text = hit["text"].as_str().unwrap();
            json!(format!("{}...", text.chars().take(200).collect::<String>())).to_string()
        };
        let top: Vec<String> = found[..3]
            .iter()
            .map(|hit| {
                let (doc, score) = (&hit["metadata"]["doc_id"], &hit["score"]);
                format!(r#"{{"text": {}, "doc_id": {doc}, "score": {score}}}"#, cut(hit))
            })
            .collect();
        let all: Vec<String> = found
            .iter()
            .map(|hit| {
                let (at, score) = (&hit["metadata"], &hit["score"]);
                format!(
                    r#"{{"doc_id": {}, "chunk_index": {}, "score": {score}, "text": {}}}"#,
                    at["doc_id"],
                    at["chunk_index"],
                    cut(hit)
                )
            })
            .collect();
        let step = |status: &str, rest: &str| {
            format!(r#"{{"type": "retrieval", "status": "{status}", "kb_id": "{kb}"{rest}}}"#)
        };
        let complete = step(
            "complete",
            &format!(r#", "results_count": 5, "top_results": [{}]"#, top.join(", ")),
        );
        let reply = place.run(name, &json!({})).await;
        reply.streams(&[
            BEGIN,
            VALID,
            FILL,
            FILLED,
            ("thought", &step("start", "")),
            ("thought", &step("searching", r#", "query": "About returns?""#)),
            ("thought", &complete),
            ("citation", &format!(r#"{{"sources": [{}]}}"#, all.join(", "))),
            GENERATE,
            HELLO,
            YOU,
            DONE,
        ]);
        let passage = |at: usize| found[at]["text"].as_str().unwrap();
        let system = format!(
            "You are a helpful AI assistant.\n\nAnswer the user's request based on the provided \
             context. If the context doesn't contain relevant information, say so clearly.\n\n\
             Context:\n[1] {}\n\n[2] {}\n\n[3] {}",
            passage(0),
            passage(1),
            passage(2)
        );
        assert_eq!(place.model.last(), (system, "About returns?".to_owned()));
    }
}

#[tokio::test]
async fn retrieval_searches_the_beginning_of_the_prompt() {
    let place = Place::new(&[]).await;
    let documents = [("a.txt".to_owned(), "zebra")];
    base_with(&place.server, &place.ada, "zoo", &documents).await;
    let value = async |prompt: String| {
        let content = format!("---\nknowledge_base: zoo\n---\n{prompt}");
        place.server.write_skill("look", &content);
        place.run("look", &json!({})).await
    };
    // The query has 500 characters, not bytes; the event shows 200 of them.
    let inside = format!("{} zebra and more", "é".repeat(494));
    let reply = value(inside).await;
    assert!(reply.text.contains(r#""results_count": 1"#), "{}", reply.text);
    assert!(reply.text.contains(&format!(r#""query": "{}"}}"#, "é".repeat(200))), "{}", reply.text);
    let outside = format!("{} zebra and more", "é".repeat(495));
    let reply = value(outside).await;
    let none = r#"{"type": "retrieval", "status": "complete", "kb_id": "zoo", "results_count": 0, "top_results": []}"#;
    assert!(reply.text.contains(none), "{}", reply.text);
    assert!(!reply.text.contains("event: citation"), "{}", reply.text);
    assert_eq!(place.model.last().0, "You are a helpful AI assistant.");
    read_all(&place.server).await;
}

#[tokio::test]
async fn failed_retrieval_does_not_end_the_run() {
    let place = Place::new(&[]).await;
    place.skill("lost", "---\nknowledge_base: nowhere\n---\nWhere?").await;
    let step = |status: &str, rest: &str| {
        format!(r#"{{"type": "retrieval", "status": "{status}", "kb_id": "nowhere"{rest}}}"#)
    };
    place.run("lost", &json!({})).await.streams(&[
        BEGIN,
        VALID,
        FILL,
        FILLED,
        ("thought", &step("start", "")),
        ("thought", &step("searching", r#", "query": "Where?""#)),
        ("thought", &step("error", r#", "error": "Retrieval failed""#)),
        GENERATE,
        HELLO,
        YOU,
        DONE,
    ]);
    assert_eq!(place.model.last().0, "You are a helpful AI assistant.");
}

#[tokio::test]
async fn models_that_fail() {
    let place = Place::new(&[
        Answer::Fails(&[]),
        Answer::Fails(&["Hello"]),
        Answer::Babbles(&["Hello"]),
        Answer::Panics(&["Hello"]),
        Answer::PanicsAtOnce,
    ])
    .await;
    place.skill("greet", GREET).await;
    let inputs = json!({"who": "x"});
    let begin = [BEGIN, VALID, FILL, FILLED, GENERATE];
    for (words, reason) in [
        (&[][..], ANSWERED_500),
        (&[HELLO], ANSWERED_500),
        (&[HELLO], INVALID_RESPONSE),
        (&[HELLO], INVALID_RESPONSE),
        (&[], INVALID_RESPONSE),
    ] {
        let events = [&begin[..], words, &[reason, FAILED, DONE_FAILED]].concat();
        place.run("greet", &inputs).await.streams(&events);
    }
    // The next run succeeds.
    let events = [&begin[..], &[HELLO, YOU, DONE]].concat();
    place.run("greet", &inputs).await.streams(&events);
}

#[tokio::test]
async fn missing_model_fails_the_run() {
    let model = savoir_model::Models::default();
    let server = TestServer::with_models(model, |_| {}).await;
    let ada = server.register("ada@example.org").await;
    server.write_skill("greet", "---\nname: greet\n---\nHi");
    let reply = ada.post("/api/v1/skills/greet/run", &json!({})).await;
    reply.streams(&[BEGIN, VALID, FILL, FILLED, GENERATE, NO_MODEL, FAILED, DONE_FAILED]);
}

#[tokio::test]
async fn slow_model_times_out() {
    let place = Place::new(&[Answer::Hangs(&["Hello"])]).await;
    place.skill("greet", GREET).await;
    let error = ("error", r#"{"message": "Skill execution timed out (1s)"}"#);
    let done = ("done", r#"{"status": "error", "message": "Timeout"}"#);
    let reply = place.run("greet", &json!({"who": "x"})).await;
    reply.streams(&[BEGIN, VALID, FILL, FILLED, GENERATE, HELLO, error, done]);
    place.model.has_open(0).await;
    assert_eq!(savoir_server::Config::default().time_limits.answer.as_secs(), 180);
}

#[tokio::test]
async fn idle_stream_sends_heartbeats() {
    let model = Scripted::new(&[Answer::Hangs(&["Hello"])]);
    let server = TestServer::with_model(model, |config| {
        config.heartbeat = Duration::from_millis(100);
        config.time_limits.answer = Duration::from_millis(1550);
    })
    .await;
    let ada = server.register("ada@example.org").await;
    server.write_skill("greet", "---\nname: greet\n---\nHi");
    let mut reply = ada.post("/api/v1/skills/greet/run", &json!({})).await;
    let beats = reply.text.matches(": heartbeat\n\n").count();
    assert!((8..=16).contains(&beats), "{}", reply.text);
    reply.text = reply.text.replace(": heartbeat\n\n", "");
    let error = ("error", r#"{"message": "Skill execution timed out (1s)"}"#);
    let done = ("done", r#"{"status": "error", "message": "Timeout"}"#);
    reply.streams(&[BEGIN, VALID, FILL, FILLED, GENERATE, HELLO, error, done]);
    assert_eq!(savoir_server::Config::default().heartbeat.as_secs(), 15);
}

/// Reads a stream up to a text; returns the open stream and the text so far.
pub(crate) async fn read_until(
    client: &Client,
    path: &str,
    body: &Value,
    words: &str,
) -> (reqwest::Response, String) {
    let mut response = client.request(Method::POST, path).json(body).send().await.unwrap();
    let mut text = String::new();
    while !text.contains(words) {
        let chunk = response.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    (response, text)
}

#[tokio::test]
async fn disconnect_cancels_the_model_request() {
    let place = Place::new(&[Answer::Hangs(&["Hello"])]).await;
    place.skill("greet", GREET).await;
    let body = json!({"inputs": {"who": "x"}});
    let began = std::time::Instant::now();
    let (stream, _) = read_until(&place.ada, "/api/v1/skills/greet/run", &body, "Hello").await;
    place.model.has_open(1).await;
    drop(stream);
    place.model.has_open(0).await;
    assert!(began.elapsed() < Duration::from_millis(1100), "it was the time limit");
}

#[tokio::test]
async fn stopping_server_ends_streams_with_an_error() {
    let model = Scripted::new(&[Answer::Hangs(&["Hello"])]);
    let server = TestServer::with_model(model, |config| config.grace = Duration::ZERO).await;
    let ada = server.register("ada@example.org").await;
    server.write_skill("greet", "---\nname: greet\n---\nHi");
    let (stream, _) = read_until(&ada, "/api/v1/skills/greet/run", &json!({}), "Hello").await;
    server.stop();
    let rest: Vec<_> = stream.bytes_stream().collect().await;
    let rest: Vec<u8> = rest.into_iter().flat_map(|bytes| bytes.unwrap().to_vec()).collect();
    assert_eq!(
        String::from_utf8(rest).unwrap(),
        "event: error\ndata: {\"message\": \"The server is stopping\"}\n\n\
         event: done\ndata: {\"status\": \"error\", \"message\": \"The server is stopping\"}\n\n"
    );
}

#[tokio::test]
async fn prompts_follow_the_rules_of_their_dialect() {
    let place = Place::new(&[]).await;
    // skillrt allows spaces in placeholders, and undeclared placeholders stay.
    let skillrt = "---\nname: rt\nversion: 1.0.0\ndescription: d\ninputs:\n  - {name: n, type: \
        number, required: true}\n---\n{{ n }} {{n}} {{other}}\n";
    place.import(skillrt).await;
    assert_eq!(place.run("rt", &json!({"n": "5"})).await.status, 200);
    assert_eq!(place.model.last().1.trim(), "5 5 {{other}}");
    let value = place.ada.get("/api/v1/skills/rt").await.json();
    assert_eq!(
        (&value["description"], &value["inputs"][0]["required"]),
        (&json!("d"), &json!(true))
    );
    place.run("rt", &json!({})).await.blames(400, "inputs", "Missing required input: 'n'");
    let reply = place.run("rt", &json!({"n": "five"})).await;
    assert_eq!(reply.text.matches("event: done\n").count(), 1);
    assert!(reply.text.contains(r#""type": "validation", "status": "error""#), "{}", reply.text);

    // In Agent Flow Lite's own format, undeclared placeholders are removed.
    place
        .skill("own", "---\ninputs: [{name: n, type: text}]\n---\n{{ n }} {{n}} {{other-one}}")
        .await;
    place.run("own", &json!({"n": "5"})).await;
    assert_eq!(place.model.last().1, "{{ n }} 5 ");

    let claude = "---\nname: cc\ndescription: d\nargument-hint: \"[x]\"\ndisable-model-invocation: \
        true\n---\nFix $ARGUMENTS and {{left}} alone\n";
    place.server.write_skill("cc", claude);
    assert_eq!(place.run("cc", &json!({})).await.status, 200);
    let prompt = place.model.last().1;
    assert!(prompt.contains("{{left}} alone"), "{prompt}");
}

#[tokio::test]
async fn skillrt_skill_that_cannot_run_here_is_refused_before_the_model_is_asked() {
    let place = Place::new(&[]).await;
    for (name, fields, reason) in [
        ("rt-dep", "dependencies: {tools: [no-such-tool]}", "not on PATH: no-such-tool"),
        ("rt-foo", "runtime: {type: foo-rt}", "unknown runtime `foo-rt`"),
        ("rt-mcp", "runtime: {type: mcp-tool}", "a tool of an MCP server"),
        ("rt-new", "runtime: {type: markdown-skill, min-version: 9.0.0}", "needs runtime 9.0.0"),
    ] {
        place.import(&skillrt(name, fields)).await;
        let reply = place.run(name, &json!({})).await;
        assert!(reply.text.contains("event: done\ndata: {\"status\": \"error\""), "{}", reply.text);
        assert!(reply.text.contains(reason), "{}", reply.text);
    }
    assert_eq!(place.model.asked().len(), 0);
}

#[tokio::test]
async fn answer_that_does_not_match_its_schema_is_not_streamed() {
    let place =
        Place::new(&[Answer::Says(&["{\"v\":", " \"x\"}"]), Answer::Says(&["{\"v\":", " 1}"])]);
    let place = place.await;
    let schema = "outputs: {type: json, schema: {type: object, properties: {v: {type: integer}}}}";
    place.import(&skillrt("rt-out", &format!("runtime: {{type: markdown-skill}}\n{schema}"))).await;
    let wrong = place.run("rt-out", &json!({})).await;
    assert!(!wrong.text.contains("event: token"), "{}", wrong.text);
    assert!(wrong.text.contains(r#""code": "output-mismatch""#), "{}", wrong.text);
    assert!(wrong.text.contains(r#"{"status": "error""#), "{}", wrong.text);
    let right = place.run("rt-out", &json!({})).await;
    let token = r#"event: token
data: {"content": "{\"v\": 1}"}"#;
    assert!(right.text.contains(token), "{}", right.text);
    assert!(right.text.contains(r#"{"status": "success""#), "{}", right.text);
}

fn skillrt(name: &str, fields: &str) -> String {
    format!("---\nname: {name}\nversion: 1.0.0\ndescription: Does it.\n{fields}\n---\nDo it.\n")
}
