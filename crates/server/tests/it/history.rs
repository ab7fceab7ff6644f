//! Tests the history of runs, and runs that continue after their client disconnected.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{ADMIN, Client, Reply, TestServer, for_each_server},
    model::{Answer, Scripted},
};

const RUNS: &str = "/api/v1/runs";

async fn with(answers: &[Answer]) -> (TestServer, Arc<Scripted>, Client) {
    let model = Scripted::new(answers);
    let server = TestServer::with_model(model.clone(), |config| config.limits.runs = 0).await;
    let ada = server.register("ada@example.org").await;
    let content = "---\nname: greet\ndescription: Greets.\ninputs:\n- name: who\n  required: true\n---\nGreet {{who}}.\n";
    let made = ada.post("/api/v1/skills", &json!({"name": "greet", "content": content})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    (server, model, ada)
}

async fn greet(client: &Client) -> Reply {
    client.post("/api/v1/skills/greet/run", &json!({"inputs": {"who": "Bob"}})).await
}

fn run_id(reply: &Reply) -> String {
    reply.header("x-savoir-run").to_owned()
}

/// Waits until a run has ended, and returns it.
async fn ended(client: &Client, id: &str) -> Value {
    for _ in 0..200 {
        let run = client.get(&format!("{RUNS}/{id}")).await.json();
        if run["state"] != "running" {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the run {id} does not end");
}

#[tokio::test]
async fn runs_have_the_cost_of_their_models() {
    let (server, _, ada) = with(&[]).await;
    let admin = server.register(ADMIN).await;
    let id = run_id(&greet(&ada).await);
    assert_eq!(ended(&ada, &id).await["cost_usd"], Value::Null, "no price is known");
    let price = json!({"model": "stub-1", "input_usd_per_million": 100_000, "output_usd_per_million": 200_000});
    let put = admin.put("/api/v1/admin/prices", &json!({"prices": [price]})).await;
    assert_eq!(put.status, 200, "{}", put.text);
    // 7 input tokens, 2 output tokens.
    let run = ended(&ada, &id).await;
    assert!((run["cost_usd"].as_f64().unwrap() - 1.1).abs() < 1e-9, "{run}");
    assert_eq!(ada.get(RUNS).await.json()["runs"][0]["cost_usd"], run["cost_usd"]);
}

#[tokio::test]
async fn run_of_skill_is_recorded() {
    let (_server, _, ada) = with(&[]).await;
    let reply = greet(&ada).await;
    assert_eq!(reply.status, 200);
    let id = run_id(&reply);
    let run = ada.get(&format!("{RUNS}/{id}")).await.json();
    for (key, value) in [
        ("kind", json!("prompt")),
        ("name", json!("greet")),
        ("state", json!("ok")),
        ("model", json!("stub:stub-1")),
        ("input_tokens", json!(7)),
        ("output_tokens", json!(2)),
        ("finish_reason", json!("stop")),
        ("inputs", json!({"who": "Bob"})),
        ("output", json!("Hello you")),
        ("error", Value::Null),
        ("rerun", json!({"path": "/api/v1/skills/greet/run", "body": {"inputs": {"who": "Bob"}}})),
    ] {
        assert_eq!(run[key], value, "{key}: {run}");
    }
    assert!(run["duration_ms"].as_i64().unwrap() >= 0);
    let kinds: Vec<&str> = run["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"model") && kinds.contains(&"step"), "{kinds:?}");
    let list = ada.get(RUNS).await.json();
    assert_eq!((&list["total"], &list["runs"][0]["id"]), (&json!(1), &json!(id)));
}

#[tokio::test]
async fn failure_is_recorded_with_its_reason() {
    let (_server, _, ada) = with(&[Answer::Fails(&["He"])]).await;
    let reply = greet(&ada).await;
    assert!(!reply.text.contains("the secret of the house"), "{}", reply.text);
    let run = ada.get(&format!("{RUNS}/{}", run_id(&reply))).await.json();
    assert_eq!((&run["state"], &run["output"]), (&json!("failed"), &json!("He")));
    // The record, which only the owner and administrators read, has what the provider answered.
    let error = run["error"].as_str().unwrap();
    assert!(error.contains("stub answered 500: the secret of the house"), "{error}");
    assert!(run["log"].as_array().unwrap().iter().any(|line| line["level"] == "error"));
}

#[tokio::test]
async fn history_is_for_its_owner() {
    let (server, _, ada) = with(&[]).await;
    let id = run_id(&greet(&ada).await);
    let bob = server.register("bob@example.org").await;
    assert_eq!(bob.get(RUNS).await.json()["total"], 0);
    for path in ["", "/events"] {
        assert_eq!(bob.get(&format!("{RUNS}/{id}{path}")).await.status, 404, "{path}");
    }
    assert_eq!(bob.call(&format!("{RUNS}/{id}/stop")).await.status, 404);
    assert_eq!(bob.delete(&format!("{RUNS}/{id}")).await.status, 404);
    let admin = server.register(ADMIN).await;
    let seen = admin.get(RUNS).await.json();
    assert_eq!(seen["runs"][0]["user_email"], "ada@example.org");
    assert_eq!(ada.delete(&format!("{RUNS}/{id}")).await.status, 204);
    assert_eq!(ada.get(&format!("{RUNS}/{id}")).await.status, 404);
    assert_eq!(ada.get(RUNS).await.json()["total"], 0);
}

#[tokio::test]
async fn filters_and_pages() {
    let (_server, model, ada) = with(&[]).await;
    for _ in 0..3 {
        greet(&ada).await;
    }
    model.next(Answer::Fails(&[]));
    greet(&ada).await;
    let chat = json!({"session_id": "s", "message": "Hello   there"});
    ada.post("/api/v1/chat/completions", &chat).await;
    let count =
        async |query: &str| ada.get(&format!("{RUNS}?{query}")).await.json()["total"].clone();
    for (query, expected) in [
        ("kind=prompt", 4),
        ("kind=chat", 1),
        ("state=failed", 1),
        ("status=failed&kind=chat", 0),
        ("skill=greet", 4),
        ("q=HELLO%20th", 1),
        ("q=100%25", 0),
        ("since=4000000000", 0),
    ] {
        assert_eq!(count(query).await, expected, "{query}");
    }
    let first = ada.get(&format!("{RUNS}?limit=2")).await.json();
    assert_eq!((first["runs"].as_array().unwrap().len(), &first["total"]), (2, &json!(5)));
    assert_eq!(first["runs"][0]["name"], "Hello there");
    let next = first["next"].as_str().unwrap();
    let second = ada.get(&format!("{RUNS}?limit=3&before={next}")).await.json();
    assert_eq!((second["runs"].as_array().unwrap().len(), &second["next"]), (3, &Value::Null));
    let offset = ada.get(&format!("{RUNS}?limit=2&offset=4")).await.json();
    assert_eq!(offset["runs"].as_array().unwrap().len(), 1);
    assert_eq!(ada.get(&format!("{RUNS}?kind=nonsense")).await.status, 400);
    assert_eq!(ada.get(&format!("{RUNS}?limit=0")).await.status, 422);
}

#[tokio::test]
async fn client_that_leaves_stops_a_contract_run() {
    let (_server, model, ada) = with(&[Answer::Hangs(&["Hel", "lo"])]).await;
    let request = ada.request(Method::POST, "/api/v1/skills/greet/run");
    let response = request.json(&json!({"inputs": {"who": "Bob"}})).send().await.unwrap();
    let id = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    model.has_open(1).await;
    drop(response);
    model.has_open(0).await;
    let run = ended(&ada, &id).await;
    assert_eq!(run["state"], "stopped");
    assert!(run["error"].as_str().unwrap().contains("client left"), "{run}");
}

#[tokio::test]
async fn detached_run_outlives_its_client() {
    let (_server, model, ada) = with(&[Answer::Hangs(&["Hel", "lo"])]).await;
    let body = json!({"inputs": {"who": "Bob"}, "detached": true});
    let request = ada.request(Method::POST, "/api/v1/skills/greet/run");
    let response = request.json(&body).send().await.unwrap();
    let id = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    model.has_open(1).await;
    drop(response);
    tokio::time::sleep(Duration::from_millis(200)).await;
    model.has_open(1).await;
    assert_eq!(ada.get(&format!("{RUNS}/{id}")).await.json()["state"], "running");
    // A second client gets all previous events, then new ones.
    let attached = ada.request(Method::GET, &format!("{RUNS}/{id}/events")).send().await.unwrap();
    assert_eq!(attached.headers()["content-type"], "text/event-stream; charset=utf-8");
    let mut bytes = attached.bytes_stream();
    let mut text = String::new();
    while !text.contains("\"lo\"") {
        text.push_str(std::str::from_utf8(&bytes.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(text.starts_with("id: 1\nevent: thought\n"), "{text}");
    assert_eq!(ada.call(&format!("{RUNS}/{id}/stop")).await.status, 204);
    while let Some(more) = bytes.next().await {
        text.push_str(std::str::from_utf8(&more.unwrap()).unwrap());
    }
    assert!(text.contains("event: done"), "{text}");
    model.has_open(0).await;
    let run = ended(&ada, &id).await;
    assert_eq!((&run["state"], &run["output"]), (&json!("stopped"), &json!("Hello")));
    // The model reported no usage before the end, so it is estimated.
    assert!(run["input_tokens"].as_u64() > Some(0) && run["output_tokens"].as_u64() > Some(0));
}

#[tokio::test]
async fn stopped_chat_answer_is_marked() {
    let (_server, model, ada) = with(&[Answer::Hangs(&["Hel", "lo"])]).await;
    let body = json!({"session_id": "s", "message": "Hi", "detached": true});
    let request = ada.request(Method::POST, "/api/v1/chat/completions");
    let response = request.json(&body).send().await.unwrap();
    let id = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    model.has_open(1).await;
    assert_eq!(ada.call(&format!("{RUNS}/{id}/stop")).await.status, 204);
    model.has_open(0).await;
    ended(&ada, &id).await;
    for _ in 0..100 {
        let session = ada.get("/api/v1/chat/sessions/s").await.json();
        let messages = session["messages"].as_array().unwrap();
        if let [asked, answered] = messages.as_slice() {
            assert_eq!((&asked["stopped"], &answered["stopped"]), (&Value::Null, &json!(true)));
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the answer was not stored");
}

#[tokio::test]
async fn attached_client_loses_the_run_with_its_password() {
    let model = Scripted::new(&[Answer::Hangs(&["Hel", "lo"])]);
    let server = TestServer::with_model(model.clone(), |config| {
        config.heartbeat = Duration::from_millis(50);
    })
    .await;
    let ada = server.register("ada@example.org").await;
    let content = "---\nname: greet\ndescription: Greets.\n---\nGreet.\n";
    ada.post("/api/v1/skills", &json!({"name": "greet", "content": content})).await;
    let request = ada.request(Method::POST, "/api/v1/skills/greet/run");
    let response = request.json(&json!({"inputs": {}, "detached": true})).send().await.unwrap();
    let id = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    model.has_open(1).await;
    let attached = ada.request(Method::GET, &format!("{RUNS}/{id}/events")).send().await.unwrap();
    assert_eq!(attached.status(), 200);
    let body = json!({"current": crate::harness::PASSWORD, "new": "another one"});
    assert_eq!(ada.post("/api/v1/auth/password", &body).await.status, 200);
    let rest = tokio::time::timeout(Duration::from_secs(5), attached.text()).await;
    let rest = rest.expect("the stream ends with the session").unwrap();
    assert!(!rest.contains("event: done"), "{rest}");
    // The run itself continues.
    model.has_open(1).await;
}

#[tokio::test]
async fn last_event_id_beyond_the_end_is_harmless() {
    let (_server, _, ada) = with(&[]).await;
    let id = run_id(&greet(&ada.header("x-savoir-app", "1")).await);
    let events = format!("{RUNS}/{id}/events");
    let reply = ada.header("last-event-id", &u64::MAX.to_string()).get(&events).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, ""));
}

#[tokio::test]
async fn app_attaches_after_the_end() {
    let (server, _, ada) = with(&[]).await;
    let reply = greet(&ada.header("x-savoir-app", "1")).await;
    let id = run_id(&reply);
    assert!(reply.text.contains("event: usage\n"), "{}", reply.text);
    let events = format!("{RUNS}/{id}/events");
    assert_eq!(ada.get(&events).await.text, reply.text);
    let total = reply.text.matches("id: ").count();
    let last = ada.header("last-event-id", &(total - 1).to_string()).get(&events).await;
    assert!(last.text.starts_with(&format!("id: {total}\nevent: done")), "{}", last.text);
    // Another process only has the stored events.
    let other = server.beside().await;
    let stored = other.client(&ada.token).get(&events).await;
    assert!(stored.text.contains("data: {\"content\": \"Hello you\"}"), "{}", stored.text);
    let again = other.client(&ada.token).header("last-event-id", "5").get(&events).await;
    assert!(again.text.starts_with("event: reset\n"), "{}", again.text);
}

#[tokio::test]
async fn runs_of_workflows_have_nodes() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let graph = json!({
                "nodes": [{"id": "s", "type": "start"}, {"id": "e", "type": "end"}],
                "edges": [{"source": "s", "target": "e"}],
            });
            let body = json!({"name": "Copy", "graph_data": graph});
            let workflow = ada.post("/api/v1/workflows", &body).await.json();
            let path = format!("/api/v1/workflows/{}/execute", workflow["id"].as_str().unwrap());
            let reply = ada.post(&path, &json!({"input": "hi"})).await;
            let run = ada.get(&format!("{RUNS}/{}", run_id(&reply))).await.json();
            assert_eq!((&run["kind"], &run["state"]), (&json!("workflow"), &json!("ok")), "{run}");
            assert_eq!((&run["name"], &run["output"]), (&json!("Copy"), &json!("hi")));
            let nodes =
                run["spans"].as_array().unwrap().iter().filter(|span| span["kind"] == "node");
            assert_eq!(nodes.count(), 2, "{run}");
            assert_eq!(ada.get(&format!("{RUNS}?kind=workflow&q=cop")).await.json()["total"], 1);
        },
    )
    .await;
}

#[tokio::test]
async fn old_runs_are_deleted_and_lost_ones_ended() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let chat = json!({"session_id": "s", "message": "Hello"});
            let id = run_id(&ada.post("/api/v1/chat/completions", &chat).await);
            server
                .behind_its_back("UPDATE runs SET state = 'running', seen_at = 5, ended_at = NULL")
                .await;
            let runs = server.database.runs();
            assert_eq!(runs.stop_lost(savoir_store::Timestamp::now()).await.unwrap(), 1);
            let run = runs.get(&id).await.unwrap().unwrap();
            assert_eq!(run.end.state.as_str(), "stopped");
            assert_eq!(runs.sweep(run.started_at, 9).await.unwrap(), 0);
            assert_eq!(runs.sweep(savoir_store::Timestamp::now(), 9).await.unwrap(), 1);
        },
    )
    .await;
}

async fn token(client: &Client, server: &TestServer, scopes: &[&str]) -> Client {
    let made = client.post("/api/v1/auth/tokens", &json!({"name": "p", "scopes": scopes})).await;
    server.client(made.json()["token"].as_str().unwrap())
}

#[tokio::test]
async fn token_sees_only_runs_that_its_scopes_cover() {
    let (server, _, ada) = with(&[]).await;
    greet(&ada).await;
    let chat = json!({"session_id": "s", "message": "secret"});
    let chat = run_id(&ada.post("/api/v1/chat/completions", &chat).await);
    ended(&ada, &chat).await;
    let program = token(&ada, &server, &["skills:run"]).await;
    let runs = program.get(RUNS).await;
    assert_eq!(runs.json()["total"], 1, "{}", runs.text);
    assert!(!runs.text.contains("secret"));
    assert_eq!(program.get(&format!("{RUNS}/{chat}")).await.status, 404);
    assert_eq!(program.delete(&format!("{RUNS}/{chat}")).await.status, 404);
    let both = token(&ada, &server, &["skills:run", "chat"]).await;
    assert_eq!(both.get(RUNS).await.json()["total"], 2);
}

#[tokio::test]
async fn record_of_large_inputs_has_their_beginning() {
    let (server, _, ada) = with(&[]).await;
    let large = "x".repeat(100_000);
    let body = json!({"inputs": {"who": large}});
    let id = run_id(&ada.post("/api/v1/skills/greet/run", &body).await);
    let run = ended(&ada, &id).await;
    assert!(run["inputs"]["shortened"].as_str().unwrap().len() < 70_000);
    assert_eq!(run["rerun"], Value::Null, "other inputs would give another answer");
    greet(&ada).await;
    let now = savoir_store::Timestamp::now();
    let before = now.minus(Duration::from_hours(1));
    assert_eq!(server.database.runs().sweep(before, 1).await.unwrap(), 1, "the oldest goes");
    assert_eq!(ada.get(RUNS).await.json()["total"], 1);
}
