//! Tests the first start of a server.

use reqwest::Method;
use savoir_server::setup_link;
use serde_json::json;

use crate::harness::{ADMIN, Client, PASSWORD, Reply, TestServer};

async fn token(server: &TestServer) -> String {
    let link = setup_link(&server.app).await.unwrap().unwrap();
    let base = format!("http://{}/setup#token=", server.address);
    link.strip_prefix(&base).unwrap().to_owned()
}

async fn submit(client: &Client, token: &str, email: &str, password: &str) -> Reply {
    let body = json!({"token": token, "email": email, "password": password});
    client.header("x-savoir-app", "1").post("/api/v1/setup", &body).await
}

#[tokio::test]
async fn setup_link_creates_one_administrator() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    let token = token(&server).await;
    assert_eq!(stranger.get("/api/v1/auth/session").await.json()["setup"], true);
    // The link opens the web app.
    let page = stranger.get("/setup").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    // An invalid request does not use up the link.
    for (email, password, text) in [
        ("root", PASSWORD, "Valid email address required"),
        ("root@example.org", "12345", "Password must be at least 6 characters"),
    ] {
        submit(&stranger, &token, email, password).await.refuses(400, text);
    }
    server.register("ada@example.org").await;
    let reply = submit(&stranger, &token, "ada@example.org", PASSWORD).await;
    reply.refuses(409, "Email already registered");

    let reply = submit(&stranger, &token, "Root@example.org", PASSWORD).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.json()["user"]["role"], "admin");
    // The administrator is logged in.
    let cookie = reply.header("set-cookie").split(';').next().unwrap();
    let session = stranger.header("cookie", cookie).get("/api/v1/auth/session").await.json();
    assert_eq!(session["user"]["email"], "root@example.org");
    assert_eq!(session["setup"], false);

    let reply = submit(&stranger, &token, "eve@example.org", PASSWORD).await;
    assert_eq!(reply.status, 403);
    assert!(reply.json()["hint"].as_str().unwrap().contains("savoir admin create EMAIL"));
    assert_eq!(setup_link(&server.app).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_setups_create_one_administrator() {
    let server = TestServer::start().await;
    let (stranger, token) = (server.stranger(), token(&server).await);
    // Opening the connections first makes the requests arrive closer together.
    futures::future::join_all((0..20).map(|_| stranger.get("/ready"))).await;
    let posts = (0..20).map(async |number| {
        let email = format!("root{number}@example.org");
        submit(&stranger, &token, &email, PASSWORD).await.status.as_u16()
    });
    let mut statuses = futures::future::join_all(posts).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|status| *status == 403), "{statuses:?}");
    let users = server.database.accounts().list().await.unwrap();
    assert_eq!(users.len(), 1);
    assert!(users[0].is_admin());
}

#[tokio::test]
async fn invalid_setup_links_are_rejected() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    // Before a link is created, with an old token, and with an invalid one.
    assert_eq!(submit(&stranger, "", "a@b.de", PASSWORD).await.status, 403);
    let old = token(&server).await;
    let new = token(&server).await;
    assert_ne!(old, new);
    for bad in ["", "x", old.as_str(), &new[1..]] {
        assert_eq!(submit(&stranger, bad, "a@b.de", PASSWORD).await.status, 403);
    }
    // Creating an administrator in another way invalidates the link.
    server.register(ADMIN).await;
    assert_eq!(submit(&stranger, &new, "a@b.de", PASSWORD).await.status, 403);
    assert_eq!(setup_link(&server.app).await.unwrap(), None);
}

#[tokio::test]
async fn setup_attempts_are_limited() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    for _ in 0..30 {
        assert_eq!(submit(&stranger, "x", "a@b.de", "p").await.status, 403);
    }
    let reply = submit(&stranger, "x", "a@b.de", "p").await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").parse::<u32>().unwrap() <= 60);
}

#[tokio::test]
async fn setup_needs_header_of_the_app() {
    let server = TestServer::start().await;
    let token = token(&server).await;
    let body = json!({"token": token, "email": "root@example.org", "password": PASSWORD});
    let reply = server.stranger().post("/api/v1/setup", &body).await;
    assert_eq!(reply.status, 403);
    assert!(reply.json()["hint"].as_str().unwrap().contains("X-Savoir-App: 1"));
    let reply = Reply::of(server.stranger().request(Method::PUT, "/setup").json(&json!(1))).await;
    reply.refuses(405, "Method Not Allowed");
}
