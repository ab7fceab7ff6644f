//! Tests adding model providers while the server runs.

use std::time::Duration;

use axum::{
    Json, Router,
    http::HeaderMap,
    routing::{get, post},
};
use savoir_model::Models;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{ADMIN, Client, Reply, TestServer};

const PROVIDERS: &str = "/api/v1/admin/providers";
const KEY: &str = "sk-one-two-three";

/// Starts a server with an `OpenAI`-compatible list of models, for requests with the right key.
async fn model_server() -> String {
    let models = get(async |headers: HeaderMap| {
        let key = headers.get("authorization").and_then(|value| value.to_str().ok());
        if key == Some(&format!("Bearer {KEY}")) {
            Ok(Json(json!({"data": [{"id": "small-1"}, {"id": "large-1"}]})))
        } else {
            Err(axum::http::StatusCode::UNAUTHORIZED)
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = post(|Json(body): Json<Value>| async move {
        let broken = body["model"] == "large-1";
        let status =
            if broken { axum::http::StatusCode::BAD_REQUEST } else { axum::http::StatusCode::OK };
        let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"}}]}\n\n\
                      data: [DONE]\n\n";
        let text =
            if broken { "{\"error\": {\"message\": \"it is not for chats\"}}" } else { events };
        (status, [(axum::http::header::CONTENT_TYPE, "text/event-stream")], text)
    });
    let router = Router::new().route("/v1/models", models).route("/v1/chat/completions", answer);
    tokio::spawn(axum::serve(listener, router).into_future());
    format!("http://{address}/v1")
}

async fn provider(admin: &Client, id: &str) -> Value {
    let list = admin.get(PROVIDERS).await.json();
    let all = list["providers"].as_array().unwrap();
    all.iter().find(|provider| provider["id"] == id).unwrap().clone()
}

/// Checks that the response is an error with a hint.
fn refuses(reply: &Reply, status: u16, detail: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert_eq!(reply.json()["detail"], detail);
    assert!(reply.json()["hint"].is_string(), "{}", reply.text);
}

async fn models(client: &Client) -> Vec<String> {
    let list = client.get("/api/v1/chat/models").await.json();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_provider_is_tested_added_and_removed() {
    let server = TestServer::with_models(Models::default(), |_| {}).await;
    let admin = server.register(ADMIN).await;
    let url = model_server().await;
    assert_eq!(models(&admin).await, [""; 0]);
    let path = format!("{PROVIDERS}/openai");
    let test = |key: &str, model: &str| {
        let body = json!({"api_key": key, "base_url": url, "model": model});
        let (admin, path) = (&admin, format!("{path}/test"));
        async move { admin.post(&path, &body).await.json() }
    };
    let listed = json!({"ok": true, "model": "small-1", "models": 2, "answered": false});
    assert_eq!(test(KEY, "").await, listed, "without a chosen model, none is asked");
    let answered = json!({"ok": true, "model": "small-1", "models": 2, "answered": true});
    assert_eq!(test(KEY, "small-1").await, answered);
    let failed = test(KEY, "large-1").await;
    assert_eq!(failed["ok"], false);
    assert!(failed["error"].as_str().unwrap().contains("it is not for chats"), "{failed}");
    assert_eq!(test(KEY, "larg-1").await["hint"], "did you mean `large-1`?");
    assert_eq!(test("wrong", "").await["ok"], false);
    assert_eq!(models(&admin).await, [""; 0], "a test stores nothing");

    let put = admin.put(&path, &json!({"api_key": KEY, "base_url": url})).await;
    assert_eq!(put.status, 200, "{}", put.text);
    assert_eq!(models(&admin).await, ["openai:small-1", "openai:large-1"]);
    let shown = provider(&admin, "openai").await;
    assert_eq!((&shown["has_key"], &shown["from"]), (&json!(true), &json!("settings")));
    assert!(!shown.to_string().contains(KEY), "a key is never shown again");
    // The stored key is used if the URL stays the same, and is not sent to another one.
    let named = json!({"base_url": url, "model": "large-1"});
    assert_eq!(admin.put(&path, &named).await.status, 200);
    assert_eq!(admin.put(&path, &json!({"model": "small-1"})).await.json()["base_url"], url);
    let tested = admin.post(&format!("{path}/test"), &json!({})).await.json();
    assert_eq!(tested, answered, "what is stored is tested");
    let moved = json!({"base_url": "http://127.0.0.1:9/v1"});
    refuses(&admin.put(&path, &moved).await, 400, "OpenAI needs a key");

    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(models(&admin).await, [""; 0]);
    refuses(&admin.delete(&path).await, 404, "OpenAI was not added here");
}

#[tokio::test]
async fn other_processes_and_later_starts_use_an_added_provider() {
    let server = TestServer::with_models(Models::default(), |_| {}).await;
    let admin = server.register(ADMIN).await;
    let url = model_server().await;
    let body = json!({"api_key": KEY, "base_url": url});
    assert_eq!(admin.put(&format!("{PROVIDERS}/compatible"), &body).await.status, 200);
    let other = server.beside_with(Models::default()).await;
    let other = other.client(&admin.token);
    let mut listed = Vec::new();
    for _ in 0..100 {
        listed = models(&other).await;
        if !listed.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(listed, ["compatible:small-1", "compatible:large-1"]);
}

#[tokio::test]
async fn only_complete_providers_of_administrators_are_accepted() {
    let server = TestServer::with_models(Models::default(), |_| {}).await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    assert_eq!(ada.get(PROVIDERS).await.status, 403);
    let put = |id: &str, body: Value| {
        let (admin, path) = (&admin, format!("{PROVIDERS}/{id}"));
        async move { admin.put(&path, &body).await }
    };
    refuses(&put("compatible", json!({})).await, 400, "OpenAI-compatible server needs an address");
    refuses(&put("anthropic", json!({})).await, 400, "Anthropic needs a key");
    refuses(&put("unknown", json!({})).await, 404, "There is no provider `unknown`");
    let odd = put("ollama", json!({"base_url": "ftp://example.org"})).await;
    assert_eq!(odd.status, 400, "{}", odd.text);
    let wrong = put("openai", json!({"api_key": KEY, "base_url": 7})).await;
    assert_eq!(wrong.status, 422);
    assert!(!wrong.text.contains(KEY));
}
