//! Tests API tokens.

use serde_json::json;

use crate::harness::{ADMIN, TestServer};

const ROUTE: &str = "/api/v1/auth/tokens";

#[tokio::test]
async fn token_is_created_used_and_revoked() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let body = json!({"name": "nightly", "scopes": ["skills:run", "skills:read", "skills:run"],
        "expires_in_days": 30});
    let reply = ada.post(ROUTE, &body).await;
    let made = reply.json();
    // Scopes are listed once each, in the order of the documentation.
    let scopes = json!(["skills:read", "skills:run"]);
    reply.is(
        201,
        &json!({"id": made["id"], "name": "nightly", "scopes": scopes,
        "token": made["token"], "created_at": made["created_at"],
        "expires_at": made["expires_at"]}),
    );
    let secret = made["token"].as_str().unwrap();
    assert!(secret.starts_with("sav_"));
    assert_eq!(secret.len(), 4 + 43);

    let program = server.client(secret);
    program.get("/api/v1/auth/me").await.is(200, &ada.user);
    assert_eq!(program.get("/api/v1/skills").await.status, 200);
    let reply = program.post("/api/v1/skills", &json!({})).await;
    reply.refuses(403, "This token lacks the scope skills:write");

    let reply = ada.get(ROUTE).await;
    let used = reply.json()["tokens"][0]["last_used_at"].clone();
    assert!(used.is_string());
    reply.is(
        200,
        &json!({"tokens": [{"id": made["id"], "name": "nightly", "scopes": scopes,
        "created_at": made["created_at"], "expires_at": made["expires_at"],
        "last_used_at": used}], "total": 1}),
    );

    let one = format!("{ROUTE}/{}", made["id"].as_str().unwrap());
    let bob = server.register("bob@example.org").await;
    bob.delete(&one).await.refuses(404, "Token not found");
    let reply = ada.delete(&one).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    program.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    ada.delete(&one).await.refuses(404, "Token not found");
    ada.get(ROUTE).await.is(200, &json!({"tokens": [], "total": 0}));
}

#[tokio::test]
async fn token_without_scopes_gets_defaults() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    for body in [json!({"name": "p"}), json!({"name": "p", "scopes": null})] {
        let made = admin.post(ROUTE, &body).await.json();
        assert_eq!(
            made["scopes"],
            json!([
                "skills:read", "skills:write", "skills:run", "chat", "knowledge:read",
                "knowledge:write", "workflows:read", "workflows:write", "workflows:run"
            ])
        );
        assert!(made["expires_at"].is_null());
    }
}

#[tokio::test]
async fn invalid_token_requests_are_rejected() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    ada.post(ROUTE, &json!({"name": "p", "scopes": ["admin"]}))
        .await
        .refuses(403, "Admin access required");
    for (body, kind, place) in [
        (json!({}), "missing", json!(["body", "name"])),
        (json!({"name": ""}), "string_too_short", json!(["body", "name"])),
        (json!({"name": "x".repeat(101)}), "string_too_long", json!(["body", "name"])),
        (json!({"name": "p", "scopes": []}), "too_short", json!(["body", "scopes"])),
        (json!({"name": "p", "scopes": "chat"}), "list_type", json!(["body", "scopes"])),
        (json!({"name": "p", "scopes": ["chat", "all"]}), "enum", json!(["body", "scopes", 1])),
        (json!({"name": "p", "scopes": ["person"]}), "enum", json!(["body", "scopes", 0])),
        (json!({"name": "p", "scopes": [5]}), "string_type", json!(["body", "scopes", 0])),
        (
            json!({"name": "p", "expires_in_days": 0}),
            "greater_than_equal",
            json!(["body", "expires_in_days"]),
        ),
        (
            json!({"name": "p", "expires_in_days": 367}),
            "less_than_equal",
            json!(["body", "expires_in_days"]),
        ),
    ] {
        let reply = ada.post(ROUTE, &body).await;
        let detail = &reply.json()["detail"];
        assert_eq!(
            (reply.status.as_u16(), &detail[0]["type"], &detail[0]["loc"]),
            (422, &json!(kind), &place),
            "{body}"
        );
        assert_eq!(detail.as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn tokens_cannot_manage_the_account() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let all = json!({"name": "p", "scopes": ["admin", "skills:read"]});
    let made = admin.post(ROUTE, &all).await.json();
    let program = server.client(made["token"].as_str().unwrap());
    let text = "Only a person who logged in can do this";
    program.get(ROUTE).await.refuses(403, text);
    program.post(ROUTE, &all).await.refuses(403, text);
    program.delete(&format!("{ROUTE}/x")).await.refuses(403, text);
    program.call("/api/v1/auth/logout").await.refuses(403, text);
    program.post("/api/v1/auth/password", &json!({})).await.refuses(403, text);
    assert_eq!(program.get("/api/v1/admin/users").await.status, 200);
}

#[tokio::test]
async fn number_of_tokens_is_limited() {
    let server = TestServer::with(|config| config.limits.routes = 0).await;
    let ada = server.register("ada@example.org").await;
    for _ in 0..100 {
        assert_eq!(ada.post(ROUTE, &json!({"name": "p"})).await.status, 201);
    }
    ada.post(ROUTE, &json!({"name": "p"}))
        .await
        .refuses(400, "You have the maximum of 100 API tokens. Delete one that you no longer use.");
}
