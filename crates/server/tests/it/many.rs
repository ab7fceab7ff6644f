//! Tests several processes with one database.

use savoir_server::setup_link;
use serde_json::json;

use crate::harness::{ADMIN, PASSWORD, TestServer};

#[tokio::test]
async fn changes_of_one_server_are_visible_to_the_other() {
    let one = TestServer::start().await;
    let two = one.beside().await;
    let (admin, ada) = (one.register(ADMIN).await, one.register("ada@example.org").await);
    let there = two.client(&ada.token);
    assert_eq!(there.get("/api/v1/auth/me").await.status, 200);
    let reply = two.login("ada@example.org", PASSWORD).await.json();
    let back = one.client(reply["token"].as_str().unwrap());
    assert_eq!(back.get("/api/v1/auth/me").await.status, 200);

    ada.call("/api/v1/auth/logout").await.is(200, &json!({"success": true}));
    there.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    two.client(&admin.token).call(&format!("/api/v1/admin/users/{}/disable", ada.id())).await;
    back.get("/api/v1/auth/me").await.refuses(403, "User account is disabled");

    let flag = "/api/v1/settings/feature-flags/ENABLE_CODE_NODE";
    admin.put(flag, &json!({"enabled": true})).await;
    let flags = two.client(&admin.token).get("/api/v1/settings/feature-flags").await.json();
    assert_eq!(flags["items"][0]["enabled"], true);
}

#[tokio::test]
async fn servers_share_rate_limits() {
    let one = TestServer::with(|config| config.limits.routes = 4).await;
    let two = one.beside().await;
    let ada = one.register("ada@example.org").await;
    let there = two.client(&ada.token);
    for _ in 0..2 {
        assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
        assert_eq!(there.get("/api/v1/auth/me").await.status, 200);
    }
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 429);
    assert_eq!(there.get("/api/v1/auth/me").await.status, 429);
}

#[tokio::test]
async fn setup_link_works_once_for_both_servers() {
    let one = TestServer::start().await;
    let two = one.beside().await;
    let link = setup_link(&one.app).await.unwrap().unwrap();
    let token = link.rsplit('=').next().unwrap();
    let posts = (0..8).map(async |number| {
        let server = if number % 2 == 0 { &one } else { &two };
        let email = format!("root{number}@example.org");
        let body = json!({"token": token, "email": email, "password": "123456"});
        let client = server.stranger().header("x-savoir-app", "1");
        client.post("/api/v1/setup", &body).await.status.as_u16()
    });
    let statuses = futures::future::join_all(posts).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(one.database.accounts().list().await.unwrap().len(), 1);
}
