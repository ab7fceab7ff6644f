//! Tests who owns a skill, and the events of its runs.

use serde_json::{Value, json};

use crate::harness::{ADMIN, TestServer};

fn skill(name: &str, text: &str) -> Value {
    let content = format!("---\nname: {name}\ndescription: Says hello.\n---\n{text}\n");
    json!({"name": name, "content": content})
}

#[tokio::test]
async fn skill_of_another_user_is_not_found() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    let reply = ada.post("/api/v1/skills", &skill("greet", "Say hello.")).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert_eq!(reply.json()["user_id"], json!(ada.id().to_string()));
    let one = "/api/v1/skills/greet";
    let missing = json!({"detail": {"field": "name", "message": "Skill 'greet' not found"}});
    bob.get(one).await.is(404, &missing);
    bob.put(one, &json!({"content": "x"})).await.is(404, &missing);
    bob.delete(one).await.is(404, &missing);
    bob.post("/api/v1/skills/greet/run", &json!({})).await.is(404, &missing);
    bob.get("/api/v1/skills").await.is(200, &json!({"skills": [], "total": 0}));
    assert_eq!(admin.get("/api/v1/skills").await.json()["total"], 1);
    assert_eq!(admin.get(one).await.text, ada.get(one).await.text);
    assert_eq!(ada.delete(one).await.status, 204);
}

#[tokio::test]
async fn run_stream_has_one_done_event() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    ada.post("/api/v1/skills", &skill("greet", "Say hello.")).await;
    let reply = ada.post("/api/v1/skills/greet/run", &json!({})).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "no-cache");
    assert_eq!(reply.text.matches("event: done\n").count(), 1);
    assert!(
        reply.text.contains("event: token\ndata: {\"content\": \"Hello\"}\n\n"),
        "{}",
        reply.text
    );
}
