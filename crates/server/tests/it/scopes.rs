//! Tests each token scope with a route of each group.

use reqwest::Method;
use savoir_server::openapi;
use serde_json::json;

use crate::harness::{ADMIN, Reply, TestServer};

/// Documented route, request path, and required scope; an empty scope means any token.
const ROUTES: &[(&str, &str, &str, &str)] = &[
    ("GET", "/auth/me", "/auth/me", ""),
    ("GET", "/settings/feature-flags", "/settings/feature-flags", ""),
    ("GET", "/settings/embedding", "/settings/embedding", ""),
    ("GET", "/chat/models", "/chat/models", ""),
    ("GET", "/skills", "/skills", "skills:read"),
    ("GET", "/skills/{name}", "/skills/none", "skills:read"),
    ("POST", "/skills", "/skills", "skills:write"),
    ("PUT", "/skills/{name}", "/skills/none", "skills:write"),
    ("DELETE", "/skills/{name}", "/skills/none", "skills:write"),
    ("POST", "/skills/{name}/run", "/skills/none/run", "skills:run"),
    ("POST", "/skills/{name}/tools/{tool}/run", "/skills/none/tools/none/run", "skills:run"),
    ("GET", "/skills/{name}/versions", "/skills/none/versions", "skills:read"),
    ("POST", "/chat/completions", "/chat/completions", "chat"),
    ("GET", "/chat/sessions", "/chat/sessions", "chat"),
    ("DELETE", "/chat/sessions/{id}", "/chat/sessions/none", "chat"),
    ("GET", "/knowledge", "/knowledge", "knowledge:read"),
    ("GET", "/knowledge/{kb}/search", "/knowledge/none/search?query=x", "knowledge:read"),
    ("POST", "/knowledge", "/knowledge", "knowledge:write"),
    ("DELETE", "/knowledge/{kb}", "/knowledge/none", "knowledge:write"),
    ("GET", "/workflows", "/workflows", "workflows:read"),
    ("POST", "/workflows", "/workflows", "workflows:write"),
    ("DELETE", "/workflows/{id}", "/workflows/none", "workflows:write"),
    ("POST", "/workflows/{id}/execute", "/workflows/none/execute", "workflows:run"),
    (
        "POST",
        "/workflows/executions/{id}/resume",
        "/workflows/executions/none/resume",
        "workflows:run",
    ),
    ("GET", "/admin/users", "/admin/users", "admin"),
    ("DELETE", "/admin/users/{id}", "/admin/users/999", "admin"),
    ("PUT", "/settings/feature-flags/{key}", "/settings/feature-flags/none", "admin"),
    ("GET", "/observability/token-usage", "/observability/token-usage", "admin"),
];

const SCOPES: &[&str] = &[
    "skills:read", "skills:write", "skills:run", "chat", "knowledge:read", "knowledge:write",
    "workflows:read", "workflows:write", "workflows:run", "admin",
];

#[tokio::test]
async fn each_scope_allows_only_its_routes() {
    let server = TestServer::with(|config| {
        config.limits.routes = 0;
        config.limits.runs = 0;
        config.limits.all = 0;
    })
    .await;
    let admin = server.register(ADMIN).await;
    let documented = serde_json::to_value(openapi()).unwrap();
    for scope in SCOPES {
        let body = json!({"name": scope, "scopes": [scope]});
        let made = admin.post("/api/v1/auth/tokens", &body).await.json();
        let program = server.client(made["token"].as_str().unwrap());
        for (method, route, path, needed) in ROUTES {
            let here = &documented["paths"][format!("/api/v1{route}")];
            if here[method.to_lowercase()].is_null() {
                continue;
            }
            let method: Method = method.parse().unwrap();
            let request = program.request(method.clone(), &format!("/api/v1{path}"));
            let reply = Reply::of(request).await;
            if needed.is_empty() || needed == scope {
                assert!(!reply.text.contains("lacks the scope"), "{scope}: {method} {path}");
                assert_ne!(reply.status, 401, "{scope}: {method} {path}");
            } else {
                reply.refuses(403, &format!("This token lacks the scope {needed}"));
            }
        }
    }
}

#[tokio::test]
async fn admin_scope_needs_an_administrator() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let body = json!({"name": "p", "scopes": ["admin"]});
    let made = admin.post("/api/v1/auth/tokens", &body).await.json();
    let program = server.client(made["token"].as_str().unwrap());
    assert_eq!(program.get("/api/v1/admin/users").await.status, 200);
    let (user, other) = (savoir_store::Role::User, savoir_store::Role::Admin);
    let accounts = server.database.accounts();
    accounts.create("eve@example.org", "hash", other).await.unwrap();
    assert!(accounts.set_role(admin.id(), user).await.unwrap());
    program.get("/api/v1/admin/users").await.refuses(403, "Admin access required");
}

#[tokio::test]
async fn chat_scope_does_not_include_other_scopes() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let body = json!({"name": "p", "scopes": ["chat"]});
    let made = admin.post("/api/v1/auth/tokens", &body).await.json();
    let program = server.client(made["token"].as_str().unwrap());
    let say = |more: serde_json::Value| {
        let mut body = json!({"session_id": "s", "message": "hello"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        body
    };
    let workflow = say(json!({"workflow_id": "any"}));
    let skill = say(json!({"message": "@any text"}));
    let lacks = |scope: &str| format!("This token lacks the scope {scope}");
    let path = "/api/v1/chat/completions";
    program.post(path, &workflow).await.refuses(403, &lacks("workflows:run"));
    program.post(path, &skill).await.refuses(403, &lacks("skills:run"));
    assert_eq!(program.post(path, &say(json!({}))).await.status, 200);
}

#[tokio::test]
async fn token_of_an_administrator_sees_only_own_skills() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.com").await;
    let skill = json!({"name": "of-ada", "content": "---\ndescription: d\n---\nHi\n"});
    assert_eq!(ada.post("/api/v1/skills", &skill).await.status, 201);
    let body = json!({"name": "p", "scopes": ["skills:read", "skills:write"]});
    let made = admin.post("/api/v1/auth/tokens", &body).await.json();
    let program = server.client(made["token"].as_str().unwrap());
    assert_eq!(admin.get("/api/v1/skills/of-ada").await.status, 200);
    assert_eq!(program.get("/api/v1/skills/of-ada").await.status, 404);
    assert_eq!(program.delete("/api/v1/skills/of-ada").await.status, 404);
    assert_eq!(program.get("/api/v1/skills").await.json()["total"], 0);
}

#[tokio::test]
async fn error_responses_are_small_and_contain_no_secret() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.com").await;
    let many = vec!["x"; 100_000];
    let reply = ada.post("/api/v1/auth/tokens", &json!({"name": "p", "scopes": many})).await;
    assert_eq!(reply.status, 422);
    assert!(reply.text.len() < 40_000, "{} bytes", reply.text.len());
    let stranger = server.stranger();
    let reply = stranger.post("/api/v1/auth/login", &json!({"password": "hunter22"})).await;
    assert_eq!(reply.status, 422);
    assert!(!reply.text.contains("hunter22"), "{}", reply.text);
}
