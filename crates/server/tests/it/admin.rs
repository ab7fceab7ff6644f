//! Tests section 3 of the contract: users, settings, usage.

use savoir_store::ModelRequest;
use serde_json::{Value, json};

use crate::harness::{ADMIN, PASSWORD, TestServer};

const NOT_ADMIN: &str = "Admin access required";

#[tokio::test]
async fn users_are_listed_newest_first() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    ada.get("/api/v1/admin/users").await.refuses(403, NOT_ADMIN);
    let all = json!({"users": [bob.user, ada.user, admin.user], "total": 3});
    admin.get("/api/v1/admin/users").await.is(200, &all);
    let page = json!({"users": [ada.user], "total": 3});
    admin.get("/api/v1/admin/users?limit=1&offset=1").await.is(200, &page);
    for bad in ["limit=0", "limit=abc", "offset=-1"] {
        assert_eq!(admin.get(&format!("/api/v1/admin/users?{bad}")).await.status, 422, "{bad}");
    }
    admin.delete(&format!("/api/v1/admin/users/{}", ada.id())).await;
    let left = json!({"users": [bob.user, admin.user], "total": 2});
    admin.get("/api/v1/admin/users").await.is(200, &left);
}

#[tokio::test]
async fn account_can_be_disabled_and_enabled() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let program = ada.post("/api/v1/auth/tokens", &json!({"name": "p"})).await.json();
    let program = server.client(program["token"].as_str().unwrap());
    let route = |id: i64, what: &str| format!("/api/v1/admin/users/{id}/{what}");
    let (disable, enable) = (route(ada.id(), "disable"), route(ada.id(), "enable"));

    ada.call(&disable).await.refuses(403, NOT_ADMIN);
    ada.call(&enable).await.refuses(403, NOT_ADMIN);
    admin.call(&enable).await.refuses(400, "User is already enabled");
    let done = |what: &str| json!({"success": true, "message": format!("User ada@example.org has been {what}")});
    admin.call(&disable).await.is(200, &done("disabled"));
    admin.call(&disable).await.refuses(400, "User is already disabled");
    for client in [&ada, &program] {
        client.get("/api/v1/auth/me").await.refuses(403, "User account is disabled");
    }
    admin.call(&enable).await.is(200, &done("enabled"));
    // Sessions from before the lock stay ended, because a stolen session may be the reason for it.
    ada.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    assert_eq!(program.get("/api/v1/auth/me").await.status, 200);
    let again = server.login("ada@example.org", PASSWORD).await.json();
    let again = server.client(again["token"].as_str().unwrap());
    assert_eq!(again.get("/api/v1/auth/me").await.status, 200);

    admin.call(&route(admin.id(), "disable")).await.refuses(400, "Cannot disable yourself");
    for what in ["disable", "enable"] {
        admin.call(&route(999, what)).await.refuses(404, "User not found");
        let odd = format!("/api/v1/admin/users/x/{what}");
        admin.call(&odd).await.refuses(404, "User not found");
        server.stranger().call(&odd).await.refuses(401, "Missing or invalid Authorization header");
    }
}

#[tokio::test]
async fn deleted_account_loses_access_and_its_address_can_be_reused() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let program = ada.post("/api/v1/auth/tokens", &json!({"name": "p"})).await.json();
    let program = server.client(program["token"].as_str().unwrap());
    let route = format!("/api/v1/admin/users/{}", ada.id());
    ada.delete(&route).await.refuses(403, NOT_ADMIN);
    let own = format!("/api/v1/admin/users/{}", admin.id());
    admin.delete(&own).await.refuses(400, "Cannot delete yourself");
    let message = "User ada@example.org has been deleted";
    admin.delete(&route).await.is(200, &json!({"success": true, "message": message}));
    admin.delete(&route).await.refuses(404, "User not found");
    for client in [&ada, &program] {
        client.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    }
    let wrong = "Invalid email or password";
    server.login("ada@example.org", PASSWORD).await.refuses(401, wrong);
    let again = server.register("ada@example.org").await;
    assert_ne!(again.id(), ada.id());
    ada.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
}

#[tokio::test]
async fn feature_flags_are_off_by_default() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let list = "/api/v1/settings/feature-flags";
    let flags = |http: bool| {
        json!({"items": [
            {"key": "ENABLE_CODE_NODE", "enabled": false},
            {"key": "ENABLE_HTTP_NODE", "enabled": http},
            {"key": "ENABLE_OPENAI_API", "enabled": false},
            {"key": "ENABLE_PUBLIC_EMBED", "enabled": false},
        ], "total": 4})
    };
    ada.get(list).await.is(200, &flags(false));
    let (on, off) = (json!({"enabled": true}), json!({"enabled": false}));
    let http = "/api/v1/settings/feature-flags/enable_http_node";
    ada.put(http, &on).await.refuses(403, NOT_ADMIN);
    let reply = admin.put(http, &on).await;
    reply.is(200, &json!({"key": "ENABLE_HTTP_NODE", "enabled": true}));
    ada.get(list).await.is(200, &flags(true));
    let reply = admin.put(http, &off).await;
    reply.is(200, &json!({"key": "ENABLE_HTTP_NODE", "enabled": false}));
    ada.get(list).await.is(200, &flags(false));
    let unknown = "/api/v1/settings/feature-flags/Other";
    admin.put(unknown, &on).await.refuses(400, "Unsupported feature flag: Other");
    let reply = admin.put(http, &json!({"enabled": "yes"})).await;
    let place = json!(["body", "enabled"]);
    reply.differs("bool_type", &place, "Input should be a valid boolean", &json!("yes"));
}

#[tokio::test]
async fn without_embeddings_search_uses_bm25() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let reply = ada.get("/api/v1/settings/embedding").await;
    reply.is(200, &json!({"provider": "none", "model": "bm25"}));
}

#[tokio::test]
async fn usage_is_summed() {
    let server = TestServer::start().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let route = "/api/v1/observability/token-usage";
    ada.get(route).await.refuses(403, NOT_ADMIN);
    let none = json!({"total_input_tokens": 0, "total_output_tokens": 0, "total_requests": 0,
        "by_provider": {}, "by_model": {}});
    admin.get(route).await.is(200, &none);
    for (model, tokens) in [("a", 1), ("b", 2), ("b", 4)] {
        let spent = ModelRequest {
            user_id: Some(ada.id()),
            provider: "stub",
            model,
            input_tokens: tokens,
            output_tokens: tokens * 10,
        };
        server.database.usage().record(spent).await.unwrap();
    }
    let sums = |input: u64, requests: u64| -> Value {
        json!({"input_tokens": input, "output_tokens": input * 10, "requests": requests})
    };
    let all = json!({"total_input_tokens": 7, "total_output_tokens": 70, "total_requests": 3,
        "by_provider": {"stub": sums(7, 3)}, "by_model": {"a": sums(1, 1), "b": sums(6, 2)}});
    for query in ["", "?hours=1", "?hours=720", "?other=1"] {
        admin.get(&format!("{route}{query}")).await.is(200, &all);
    }
    let place = json!(["query", "hours"]);
    for (hours, kind, message) in [
        ("0", "greater_than_equal", "Input should be greater than or equal to 1"),
        ("721", "less_than_equal", "Input should be less than or equal to 720"),
        (
            "x",
            "int_parsing",
            "Input should be a valid integer, unable to parse string as an integer",
        ),
    ] {
        let reply = admin.get(&format!("{route}?hours={hours}")).await;
        reply.differs(kind, &place, message, &json!(hours));
    }
    let reply = server.stranger().get(&format!("{route}?hours=x")).await;
    reply.refuses(401, "Missing or invalid Authorization header");
}

#[tokio::test]
async fn last_active_administrator_cannot_be_removed() {
    let server = TestServer::with(|config| config.limits.routes = 0).await;
    let admin = server.register(ADMIN).await;
    let eve = server.register("eve@example.org").await;
    let accounts = server.database.accounts();
    let is_admin = async |client: &crate::harness::Client| {
        let user = accounts.by_id(client.id()).await.unwrap().unwrap();
        user.is_admin() && user.active
    };
    for _ in 0..8 {
        for client in [&admin, &eve] {
            accounts.set_role(client.id(), savoir_store::Role::Admin).await.unwrap();
        }
        let demote = async |by: &crate::harness::Client, who: &crate::harness::Client| {
            let route = format!("/api/v1/admin/users/{}", who.id());
            let request = by.request(reqwest::Method::PATCH, &route);
            crate::harness::Reply::of(request.json(&json!({"role": "user"}))).await.status
        };
        tokio::join!(demote(&admin, &eve), demote(&eve, &admin));
        let left = [is_admin(&admin).await, is_admin(&eve).await];
        assert!(left.contains(&true), "no administrator is left");
    }
}
