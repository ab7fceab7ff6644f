//! Tests section 10 of the contract: published workflows.

use reqwest::Method;
use savoir_store::NewWorkflow;
use serde_json::{Value, json};

use crate::harness::{ADMIN, Client, Reply, TestServer};

const ROUTE: &str = "/api/v1/publish/embed";

/// A workflow that returns its input.
async fn workflow(server: &TestServer, owner: Option<i64>) -> String {
    let graph = json!({
        "nodes": [{"id": "s", "type": "start", "data": {}}, {"id": "e", "type": "end", "data": {}}],
        "edges": [{"id": "1", "source": "s", "target": "e", "sourceHandle": null}],
    });
    let new =
        NewWorkflow { name: Some("Echo <b>".to_owned()), description: None, graph: Some(graph) };
    server.database.workflows().create(new, owner).await.unwrap().id
}

async fn switch(admin: &Client, enabled: bool) {
    let route = "/api/v1/settings/feature-flags/ENABLE_PUBLIC_EMBED";
    assert_eq!(admin.put(route, &json!({"enabled": enabled})).await.status, 200);
}

fn to_publish(id: &str) -> Value {
    json!({"workflow_id": id})
}

#[tokio::test]
async fn published_workflow_runs_without_login() {
    let server = TestServer::start().await;
    let (admin, ada) = (server.register(ADMIN).await, server.register("ada@example.org").await);
    let id = workflow(&server, Some(ada.id())).await;
    ada.post(ROUTE, &to_publish(&id)).await.refuses(403, "Public embed is disabled");
    switch(&admin, true).await;
    let reply = ada.post(ROUTE, &to_publish(&id)).await;
    let made = reply.json();
    let token = made["token"].as_str().unwrap();
    let path = format!("{ROUTE}/{token}");
    reply.is(
        200,
        &json!({"url": format!("http://{}{path}", server.address), "token": token,
        "expires_at": made["expires_at"]}),
    );

    let stranger = server.stranger();
    let page = stranger.get(&path).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains("<h1>Echo &lt;b&gt;</h1>"));
    // The page may be shown in frames, but cannot load or run anything.
    assert_eq!(page.header("x-frame-options"), "");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let page = stranger.form(&path, "input=%3Cscript%3E+hello".to_owned()).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("<pre class=\"text\">&lt;script&gt; hello</pre>"), "{}", page.text);

    let large = format!("input={}", "ä".repeat(10_001));
    stranger.form(&path, large).await.refuses(400, "Input too large");
    // A link token is not accepted as a session token, and vice versa.
    server.client(token).get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    let other = format!("{ROUTE}/{}", ada.token);
    stranger.get(&other).await.refuses(403, "Invalid or expired token");
    stranger.get(&format!("{ROUTE}/x")).await.refuses(403, "Invalid or expired token");

    switch(&admin, false).await;
    stranger.get(&path).await.refuses(403, "Public embed is disabled");
    stranger.form(&path, "input=x".to_owned()).await.refuses(403, "Public embed is disabled");
}

#[tokio::test]
async fn only_the_owner_publishes() {
    let server = TestServer::start().await;
    let (admin, ada) = (server.register(ADMIN).await, server.register("ada@example.org").await);
    let bob = server.register("bob@example.org").await;
    switch(&admin, true).await;
    let id = workflow(&server, Some(ada.id())).await;
    let missing = format!("Workflow {id} not found");
    bob.post(ROUTE, &to_publish(&id)).await.refuses(404, &missing);
    admin.post(ROUTE, &to_publish(&id)).await.refuses(404, &missing);
    ada.post(ROUTE, &to_publish("x")).await.refuses(404, "Workflow x not found");
    let without_owner = workflow(&server, None).await;
    assert_eq!(ada.post(ROUTE, &to_publish(&without_owner)).await.status, 404);
    assert_eq!(admin.post(ROUTE, &to_publish(&without_owner)).await.status, 200);

    let made = ada.post(ROUTE, &to_publish(&id)).await.json();
    let path = format!("{ROUTE}/{}", made["token"].as_str().unwrap());
    // The link becomes invalid with its publisher and with the workflow.
    admin.call(&format!("/api/v1/admin/users/{}/disable", ada.id())).await;
    server.stranger().get(&path).await.refuses(403, "Invalid or expired token");
    admin.call(&format!("/api/v1/admin/users/{}/enable", ada.id())).await;
    assert_eq!(server.stranger().get(&path).await.status, 200);
    server.database.workflows().delete(&id, |_| true).await.unwrap();
    server.stranger().get(&path).await.refuses(403, "Invalid or expired token");
}

#[tokio::test]
async fn visitors_have_limits() {
    let server = TestServer::with(|config| config.limits.runs = 2).await;
    let admin = server.register(ADMIN).await;
    switch(&admin, true).await;
    let id = workflow(&server, Some(admin.id())).await;
    let made = admin.post(ROUTE, &to_publish(&id)).await.json();
    let path = format!("{ROUTE}/{}", made["token"].as_str().unwrap());
    let stranger = server.stranger();
    for _ in 0..2 {
        assert_eq!(stranger.form(&path, "input=x".to_owned()).await.status, 200);
    }
    let reply = stranger.form(&path, "input=x".to_owned()).await;
    reply.is(429, &json!({"error": "Rate limit exceeded: 2 per 1 minute"}));
    let head = Reply::of(stranger.request(Method::HEAD, &path)).await;
    assert_eq!(head.status, 200);
}
