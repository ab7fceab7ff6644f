//! Tests workflows: response bodies, and event streams byte for byte.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    chat::Place,
    harness::{ADMIN, Client, Reply, TestServer},
    knowledge::base_with,
    model::Answer,
    run::read_until,
};

pub(crate) const WORKFLOWS: &str = "/api/v1/workflows";

/// A graph of nodes as `(id, type, data)` and edges as `from to` or `from to handle`.
pub(crate) fn graph(nodes: &[(&str, &str, Value)], edges: &[&str]) -> Value {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(id, kind, data)| json!({"id": id, "type": kind, "data": data}))
        .collect();
    let edges = edges.iter().enumerate().map(|(at, edge)| {
        let mut parts = edge.split(' ');
        json!({"id": at.to_string(), "source": parts.next(), "target": parts.next(),
            "sourceHandle": parts.next()})
    });
    json!({"nodes": nodes, "edges": edges.collect::<Vec<_>>()})
}

/// Creates a workflow `W`; returns its id.
pub(crate) async fn keep(client: &Client, graph: &Value) -> String {
    let reply = client.post(WORKFLOWS, &json!({"name": "W", "graph_data": graph})).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn execute(client: &Client, id: &str, input: &str) -> Reply {
    client.post(&format!("{WORKFLOWS}/{id}/execute"), &json!({"input": input})).await
}

/// The id of the execution in a stream.
pub(crate) fn execution_of(stream: &str) -> String {
    let rest = stream.split("\"execution_id\": \"").nth(1).unwrap();
    rest[..36].to_owned()
}

/// Compares a stream with the expected events, which leave out the common first and last ones.
#[track_caller]
pub(crate) fn assert_events(reply: &Reply, id: &str, events: &[(&str, &str)]) {
    let execution = execution_of(&reply.text);
    let start = format!(
        r#"{{"workflow_id": "{id}", "workflow_name": "W", "execution_id": "{execution}"}}"#
    );
    let failed = events.iter().any(|(name, _)| *name == "workflow_error");
    let done = if failed { r#"{"status": "error"}"# } else { r#"{"status": "complete"}"# };
    let all = [&[("workflow_start", start.as_str())], events, &[("done", done)]].concat();
    reply.streams(&all);
}

#[tokio::test]
async fn workflow_is_stored_and_returned() {
    let place = Place::new(&[]).await;
    let ada = &place.ada;
    ada.get(WORKFLOWS).await.is(200, &json!({"items": [], "total": 0}));
    let reply = ada.post(WORKFLOWS, &json!({"name": "é"})).await;
    let first = reply.json();
    let (id, at) = (first["id"].as_str().unwrap(), &first["created_at"]);
    assert!(id.len() == 36 && at.as_str().unwrap().ends_with('Z'));
    reply.is(
        201,
        &json!({
            "name": "é", "description": null, "graph_data": {"nodes": [], "edges": []}, "id": id,
            "created_at": at, "updated_at": at,
        }),
    );
    // Unknown members are preserved, in their order.
    let drawn = json!({
        "viewport": {"x": 1.5, "zoom": 1},
        "nodes": [{"type": "start", "id": "s", "position": {"y": 2, "x": 1}}],
        "edges": [{"source": "gone", "target": "s", "animated": true}],
    });
    let body = json!({"name": "B", "description": "d", "graph_data": drawn});
    let second = ada.post(WORKFLOWS, &body).await.json();
    assert_eq!(second["graph_data"].to_string(), drawn.to_string());
    ada.get(WORKFLOWS).await.is(200, &json!({"items": [second, first], "total": 2}));
    let one = format!("{WORKFLOWS}/{id}");
    ada.get(&one).await.is(200, &first);

    let changed = ada.put(&one, &json!({"name": "N", "description": "D"})).await;
    let updated = changed.json()["updated_at"].clone();
    assert!(updated.as_str() > at.as_str());
    changed.is(
        200,
        &json!({
            "name": "N", "description": "D", "graph_data": {"nodes": [], "edges": []}, "id": id,
            "created_at": at, "updated_at": updated,
        }),
    );
    let body = json!({"name": null, "description": null, "graph_data": {}});
    let same = ada.put(&one, &body).await.json();
    assert_eq!((&same["name"], &same["description"]), (&json!("N"), &json!("D")));
    assert_eq!(same["graph_data"].to_string(), r#"{"nodes":[],"edges":[]}"#);
    assert_eq!(ada.put(&one, &json!({})).await.status, 200);

    let reply = ada.delete(&one).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    let text = format!("Workflow {id} not found");
    ada.get(&one).await.refuses(404, &text);
    ada.put(&one, &json!({})).await.refuses(404, &text);
    ada.delete(&one).await.refuses(404, &text);
    ada.get(&format!("{one}/export")).await.refuses(404, &text);
    execute(ada, id, "x").await.refuses(404, &text);
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let place = Place::new(&[]).await;
    let ada = &place.ada;
    let body = json!({"name": "", "description": "x".repeat(1001), "graph_data": {
        "nodes": [
            {"type": "start"}, {"id": "", "type": "end"}, {"id": "a", "type": "magic"}, 5,
            {"id": "b", "type": "end", "data": []}, {"id": 7, "type": "end"},
        ],
        "edges": [{"source": "a"}, {"source": "a", "target": "b", "sourceHandle": 1}],
    }});
    let at = |place: &[Value]| {
        let mut all = vec![json!("body"), json!("graph_data")];
        all.extend(place.iter().cloned());
        Value::from(all)
    };
    let text = "Input should be a valid string";
    let map = "Input should be a valid dictionary";
    let expected = json!({"detail": [
        {"type": "string_too_short", "loc": ["body", "name"],
         "msg": "String should have at least 1 character", "input": ""},
        {"type": "string_too_long", "loc": ["body", "description"],
         "msg": "String should have at most 1000 characters", "input": "x".repeat(1001)},
        {"type": "missing", "loc": at(&[json!("nodes"), json!(0), json!("id")]),
         "msg": "Field required", "input": {"type": "start"}},
        {"type": "string_too_short", "loc": at(&[json!("nodes"), json!(1), json!("id")]),
         "msg": "String should have at least 1 character", "input": ""},
        {"type": "value_error", "loc": at(&[json!("nodes"), json!(2), json!("type")]),
         "msg": "Value error, Unknown node type: 'magic'", "input": "magic"},
        {"type": "dict_type", "loc": at(&[json!("nodes"), json!(3)]), "msg": map, "input": 5},
        {"type": "dict_type", "loc": at(&[json!("nodes"), json!(4), json!("data")]), "msg": map,
         "input": []},
        {"type": "string_type", "loc": at(&[json!("nodes"), json!(5), json!("id")]), "msg": text,
         "input": 7},
        {"type": "missing", "loc": at(&[json!("edges"), json!(0), json!("target")]),
         "msg": "Field required", "input": {"source": "a"}},
        {"type": "string_type", "loc": at(&[json!("edges"), json!(1), json!("sourceHandle")]),
         "msg": text, "input": 1},
    ]});
    ada.post(WORKFLOWS, &body).await.is(422, &expected);
    let id = keep(ada, &json!({})).await;
    let one = format!("{WORKFLOWS}/{id}");
    ada.put(&one, &body).await.is(422, &expected);
    let reply = ada.post(WORKFLOWS, &json!({"graph_data": []})).await;
    reply.is(
        422,
        &json!({"detail": [
            {"type": "missing", "loc": ["body", "name"], "msg": "Field required",
             "input": {"graph_data": []}},
            {"type": "dict_type", "loc": ["body", "graph_data"], "msg": map, "input": []},
        ]}),
    );
    let reply = ada.post(&format!("{one}/execute"), &json!({})).await;
    reply.differs("missing", &json!(["body", "input"]), "Field required", &json!({}));
    let reply = ada.post(&format!("{one}/execute"), &json!({"input": 5})).await;
    reply.differs("string_type", &json!(["body", "input"]), text, &json!(5));
    let name = "é".repeat(255);
    let reply = ada.post(WORKFLOWS, &json!({"name": name, "description": "é".repeat(1000)})).await;
    assert_eq!(reply.status, 201);
    let long = "é".repeat(256);
    let reply = ada.put(&one, &json!({"name": long})).await;
    let text = "String should have at most 255 characters";
    reply.differs("string_too_long", &json!(["body", "name"]), text, &json!(long));
}

#[tokio::test]
async fn export_and_import_round_trip() {
    let place = Place::new(&[]).await;
    let ada = &place.ada;
    let drawn = graph(&[("s", "start", json!({})), ("e", "end", json!({}))], &["s e"]);
    let id = keep(ada, &drawn).await;
    let export = ada.get(&format!("{WORKFLOWS}/{id}/export")).await;
    let written =
        json!({"version": 1, "workflow": {"name": "W", "description": null, "graph_data": drawn}});
    export.is(200, &written);
    let import = format!("{WORKFLOWS}/import");
    let reply = ada.post(&import, &export.json()).await;
    let back = reply.json();
    assert_ne!(back["id"], json!(id));
    reply.is(
        201,
        &json!({
            "name": "W", "description": null, "graph_data": drawn, "id": back["id"],
            "created_at": back["created_at"], "updated_at": back["updated_at"],
        }),
    );
    let named = ada.header("x-template-name", " Another ").post(&import, &written).await.json();
    assert_eq!(named["name"], "Another");
    let named = ada.header("x-template-name", "  ").post(&import, &written).await.json();
    assert_eq!(named["name"], "W");
    assert_eq!(
        ada.header("x-template-name", &"x".repeat(200)).post(&import, &written).await.status,
        201
    );
    let long = "x".repeat(201);
    let reply = ada.header("x-template-name", &long).post(&import, &written).await;
    let text = "String should have at most 200 characters";
    reply.differs("string_too_long", &json!(["header", "x-template-name"]), text, &json!(long));

    for (version, shown) in [(json!(2), "2"), (json!(0), "0"), (json!("1"), "\"1\"")] {
        let mut other = written.clone();
        other["version"] = version;
        let text = format!("Unsupported workflow export version: {shown}");
        ada.post(&import, &other).await.refuses(422, &text);
    }
    let reply = ada.post(&import, &json!({"version": 1})).await;
    let whole = json!({"version": 1});
    reply.differs("missing", &json!(["body", "workflow"]), "Field required", &whole);
    let bad = json!({"version": 1, "workflow": {"graph_data": {"nodes": [{"id": "a"}]}}});
    let reply = ada.post(&import, &bad).await;
    reply.is(
        422,
        &json!({"detail": [
            {"type": "missing", "loc": ["body", "workflow", "name"], "msg": "Field required",
             "input": bad["workflow"]},
            {"type": "missing", "loc": ["body", "workflow", "graph_data", "nodes", 0, "type"],
             "msg": "Field required", "input": {"id": "a"}},
        ]}),
    );
}

#[tokio::test]
async fn workflows_are_private_to_their_user() {
    let place = Place::new(&[]).await;
    let admin = place.server.register(ADMIN).await;
    let bob = place.server.register("bob@example.org").await;
    let id = keep(&place.ada, &json!({})).await;
    let one = format!("{WORKFLOWS}/{id}");
    let text = format!("Workflow {id} not found");
    bob.get(&one).await.refuses(404, &text);
    bob.put(&one, &json!({"name": "x"})).await.refuses(404, &text);
    bob.delete(&one).await.refuses(404, &text);
    bob.get(&format!("{one}/export")).await.refuses(404, &text);
    execute(&bob, &id, "x").await.refuses(404, &text);
    assert_eq!(bob.get(WORKFLOWS).await.json()["total"], 0);
    assert_eq!(admin.get(&one).await.status, 200);
    // A workflow without an owner is visible to all users, who can run it; only administrators can
    // change it.
    let new = savoir_store::NewWorkflow {
        name: Some("free".to_owned()),
        description: None,
        graph: Some(json!({"nodes": [], "edges": []})),
    };
    let free = place.server.database.workflows().create(new, None).await.unwrap().id;
    let one = format!("{WORKFLOWS}/{free}");
    assert_eq!(bob.get(WORKFLOWS).await.json()["total"], 1);
    assert_eq!(bob.get(&one).await.status, 200);
    assert_eq!(execute(&bob, &free, "x").await.status, 200);
    let text = "Only an administrator can modify a workflow without an owner";
    bob.put(&one, &json!({"name": "x"})).await.refuses(403, text);
    bob.delete(&one).await.refuses(403, text);
    assert_eq!(admin.put(&one, &json!({"name": "x"})).await.status, 200);
}

#[tokio::test]
async fn execution_events_are_streamed() {
    let place = Place::new(&[]).await;
    let drawn = graph(
        &[
            ("s", "start", json!({"inputVariable": "topic"})),
            ("c", "condition", json!({"expression": "{{input}} contains \"é\""})),
            (
                "m",
                "llm",
                json!({"systemPrompt": "About {{topic}}: {{c.output}} {{none}}", "temperature": 0.1}),
            ),
            ("n", "end", json!({})),
            ("e", "end", json!({})),
        ],
        &["s c", "c n false", "c m true", "m e"],
    );
    let id = keep(&place.ada, &drawn).await;
    let start = [
        ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
        ("node_complete", r#"{"node_id": "s", "output": "café"}"#),
        ("node_start", r#"{"node_id": "c", "node_type": "condition"}"#),
    ];
    let reply = execute(&place.ada, &id, "café").await;
    let taken = r#"{"type_detail": "condition", "node_id": "c", "expression": "{{input}} contains \"é\"", "branch": "true"}"#;
    assert_events(
        &reply,
        &id,
        &[
            &start[..],
            &[
                ("thought", taken),
                ("node_complete", r#"{"node_id": "c", "output": "café"}"#),
                ("node_start", r#"{"node_id": "m", "node_type": "llm"}"#),
                ("token", r#"{"node_id": "m", "content": "Hello"}"#),
                ("token", r#"{"node_id": "m", "content": " you"}"#),
                ("node_complete", r#"{"node_id": "m", "output": "Hello you"}"#),
                ("node_start", r#"{"node_id": "e", "node_type": "end"}"#),
                ("node_complete", r#"{"node_id": "e", "output": "Hello you"}"#),
                ("workflow_complete", r#"{"final_output": "Hello you"}"#),
            ],
        ]
        .concat(),
    );
    assert_eq!(place.model.last(), ("About café: café {{none}}".to_owned(), "café".to_owned()));
    let request = place.model.asked().pop().unwrap();
    assert_eq!((request.temperature, request.max_tokens), (Some(0.1), None));
    let reply = execute(&place.ada, &id, "tea").await;
    assert_events(
        &reply,
        &id,
        &[
            ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
            ("node_complete", r#"{"node_id": "s", "output": "tea"}"#),
            ("node_start", r#"{"node_id": "c", "node_type": "condition"}"#),
            (
                "thought",
                r#"{"type_detail": "condition", "node_id": "c", "expression": "{{input}} contains \"é\"", "branch": "false"}"#,
            ),
            ("node_complete", r#"{"node_id": "c", "output": "tea"}"#),
            ("node_start", r#"{"node_id": "n", "node_type": "end"}"#),
            ("node_complete", r#"{"node_id": "n", "output": "tea"}"#),
            ("workflow_complete", r#"{"final_output": "tea"}"#),
        ],
    );
}

#[tokio::test]
async fn skills_and_knowledge_in_a_run() {
    let place = Place::new(&[]).await;
    let kb = base_with(&place.server, &place.ada, "zoo", &[("a.txt".to_owned(), "zebra")]).await;
    // A skill searches with the beginning of its prompt.
    let search = format!("/api/v1/knowledge/{kb}/search?query=About%20zebra[1]%20zebra!");
    let search = place.ada.get(&search).await.json();
    let (doc, score) =
        (&search["results"][0]["metadata"]["doc_id"], &search["results"][0]["score"]);
    let content = "---\nname: ask\nknowledge_base: zoo\ninputs: [{name: a}, {name: b, required: true}]\n\
        model: {temperature: 1.5, max_tokens: 9}\n---\nAbout {{b}}{{a}}";
    place.ada.post("/api/v1/skills", &json!({"name": "ask", "content": content})).await;
    let drawn = graph(
        &[
            ("s", "start", json!({})),
            ("k", "knowledge", json!({"knowledgeBaseId": "zoo"})),
            (
                "g",
                "skill",
                json!({"skillName": "ask", "inputMappings": {"b": "s", "a": "{{k.output}}!"}}),
            ),
            ("m", "llm", json!({"skillName": "ask"})),
        ],
        &["s k", "k g", "g m"],
    );
    let id = keep(&place.ada, &drawn).await;
    let retrieval =
        |rest: &str| format!(r#"{{"type_detail": "retrieval", "node_id": "g", {rest}}}"#);
    let query = r#""query": "About zebra[1] zebra!""#;
    let found = format!(
        r#""results_count": 1, "top_results": [{{"text": "zebra", "doc_id": {doc}, "score": {score}}}]"#
    );
    let cited = format!(
        r#"{{"node_id": "g", "sources": [{{"doc_id": {doc}, "chunk_index": 0, "score": {score}, "text": "zebra"}}]}}"#
    );
    let step = |topic: &str, rest: &str| {
        format!(r#"{{"type_detail": "{topic}", "node_id": "g", {rest}}}"#)
    };
    let reply = execute(&place.ada, &id, "zebra").await;
    assert_events(
        &reply,
        &id,
        &[
            ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
            ("node_complete", r#"{"node_id": "s", "output": "zebra"}"#),
            ("node_start", r#"{"node_id": "k", "node_type": "knowledge"}"#),
            (
                "thought",
                r#"{"type_detail": "retrieval", "status": "start", "node_id": "k", "kb_id": "zoo", "query": "zebra"}"#,
            ),
            (
                "thought",
                r#"{"type_detail": "retrieval", "status": "complete", "node_id": "k", "results_count": 1}"#,
            ),
            ("node_complete", r#"{"node_id": "k", "output": "[1] zebra"}"#),
            ("node_start", r#"{"node_id": "g", "node_type": "skill"}"#),
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
                &step(
                    "substitution",
                    r#""status": "complete", "message": "Variables substituted""#,
                ),
            ),
            ("thought", &retrieval(r#""status": "start", "kb_id": "zoo""#)),
            ("thought", &retrieval(&format!(r#""status": "searching", "kb_id": "zoo", {query}"#))),
            ("thought", &retrieval(&format!(r#""status": "complete", "kb_id": "zoo", {found}"#))),
            ("citation", &cited),
            ("thought", &step("generation", r#""status": "start""#)),
            ("token", r#"{"node_id": "g", "content": "Hello"}"#),
            ("token", r#"{"node_id": "g", "content": " you"}"#),
            ("node_complete", r#"{"node_id": "g", "output": "Hello you"}"#),
            ("node_start", r#"{"node_id": "m", "node_type": "llm"}"#),
            (
                "thought",
                r#"{"type_detail": "skill_loaded", "node_id": "m", "skill_name": "ask", "has_prompt": true, "has_model_config": true}"#,
            ),
            ("token", r#"{"node_id": "m", "content": "Hello"}"#),
            ("token", r#"{"node_id": "m", "content": " you"}"#),
            ("node_complete", r#"{"node_id": "m", "output": "Hello you"}"#),
            ("workflow_complete", r#"{"final_output": "Hello you"}"#),
        ],
    );
    let request = place.model.asked().pop().unwrap();
    assert_eq!((request.temperature, request.max_tokens), (Some(1.5), Some(9)));
    assert_eq!(place.model.last().0, "About Hello you");
}

#[tokio::test]
async fn execution_times_out_or_stops_on_disconnect() {
    let place = Place::new(&[Answer::Hangs(&["Hel"]), Answer::Hangs(&["Hel"])]).await;
    let drawn = graph(&[("s", "start", json!({})), ("m", "llm", json!({}))], &["s m"]);
    let id = keep(&place.ada, &drawn).await;
    let reply = execute(&place.ada, &id, "x").await;
    assert_events(
        &reply,
        &id,
        &[
            ("node_start", r#"{"node_id": "s", "node_type": "start"}"#),
            ("node_complete", r#"{"node_id": "s", "output": "x"}"#),
            ("node_start", r#"{"node_id": "m", "node_type": "llm"}"#),
            ("token", r#"{"node_id": "m", "content": "Hel"}"#),
            ("workflow_error", r#"{"error": "Workflow execution timed out (1s)"}"#),
        ],
    );
    let path = format!("{WORKFLOWS}/{id}/execute");
    let (stream, _) = read_until(&place.ada, &path, &json!({"input": "x"}), "Hel").await;
    place.model.has_open(1).await;
    let began = std::time::Instant::now();
    drop(stream);
    place.model.has_open(0).await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn executions_are_rate_limited() {
    let server = TestServer::with(|config| config.limits.runs = 2).await;
    let ada = server.register("ada@example.org").await;
    let path = format!("{WORKFLOWS}/none/execute");
    for left in ["1", "0"] {
        let reply = ada.post(&path, &json!({"input": "x"})).await;
        reply.refuses(404, "Workflow none not found");
        assert_eq!(reply.header("x-ratelimit-limit"), "2");
        assert_eq!(reply.header("x-ratelimit-remaining"), left);
        assert!(reply.header("x-ratelimit-reset").parse::<u64>().is_ok());
    }
    assert_eq!(ada.post(&path, &json!({})).await.status, 422);
    let reply = ada.post(&path, &json!({"input": "x"})).await;
    reply.is(429, &json!({"error": "Rate limit exceeded: 2 per 1 minute"}));
    assert!(reply.header("retry-after").parse::<u64>().is_ok());
    // Other routes have their own counters.
    let reply =
        Reply::of(ada.request(Method::POST, &format!("{WORKFLOWS}/executions/x/resume"))).await;
    reply.refuses(404, "Execution x not found");
    assert_eq!(reply.header("x-ratelimit-remaining"), "1");
}
