//! The first start.

use reqwest::Method;
use savoir_server::setup_link;
use serde_json::json;

use crate::harness::{ADMIN, Client, PASSWORD, Reply, TestServer};

async fn token(server: &TestServer) -> String {
    let link = setup_link(&server.app).await.unwrap().unwrap();
    let base = format!("http://{}/setup?token=", server.address);
    link.strip_prefix(&base).unwrap().to_owned()
}

async fn submit(client: &Client, token: &str, email: &str, password: &str, again: &str) -> Reply {
    let enc = |text: &str| text.replace('@', "%40").replace(' ', "+");
    let (email, password, again) = (enc(email), enc(password), enc(again));
    let body = format!("token={token}&email={email}&password={password}&again={again}");
    client.form("/setup", body).await
}

#[tokio::test]
async fn the_first_administrator_is_made_once() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    let token = token(&server).await;
    let reply = stranger.get(&format!("/setup?token={token}")).await;
    assert_eq!(reply.status, 200);
    assert!(reply.text.contains(&format!("name=\"token\" value=\"{token}\"")));
    // What cannot be used leaves the link as it was.
    for (email, password, again, text) in [
        ("root", PASSWORD, PASSWORD, "Valid email address required."),
        ("root@example.org", "12345", "12345", "Password must be at least 6 characters."),
        ("root@example.org", PASSWORD, "other", "The two passwords differ."),
    ] {
        let reply = submit(&stranger, &token, email, password, again).await;
        assert_eq!(reply.status, 400);
        assert!(reply.text.contains(text), "{}", reply.text);
        assert!(reply.text.contains(email));
        assert!(!reply.text.contains(PASSWORD));
    }
    server.register("ada@example.org").await;
    let reply = submit(&stranger, &token, "ada@example.org", PASSWORD, PASSWORD).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text.contains("Email already registered."));

    let reply = submit(&stranger, &token, "Root@example.org", PASSWORD, PASSWORD).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(reply.text.contains("/api/v1/auth/login"));
    assert!(reply.text.contains("href=\"/docs\""));
    let user = server.login("root@example.org", PASSWORD).await.json()["user"].clone();
    assert_eq!(user["role"], "admin");

    for reply in [
        submit(&stranger, &token, "eve@example.org", PASSWORD, PASSWORD).await,
        stranger.get(&format!("/setup?token={token}")).await,
    ] {
        assert_eq!(reply.status, 403);
        assert!(reply.text.contains("savoir admin create EMAIL"));
    }
    assert_eq!(setup_link(&server.app).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_at_once_make_one_administrator() {
    let server = TestServer::start().await;
    let (stranger, token) = (server.stranger(), token(&server).await);
    // Connections that are open already bring the posts closer together.
    futures::future::join_all((0..20).map(|_| stranger.get("/ready"))).await;
    let posts = (0..20).map(async |number| {
        let email = format!("root{number}@example.org");
        submit(&stranger, &token, &email, PASSWORD, PASSWORD).await.status.as_u16()
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
async fn links_that_do_not_work() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    // Before there is a link, with an old one, and with none.
    assert_eq!(submit(&stranger, "", "a@b.de", PASSWORD, PASSWORD).await.status, 403);
    let old = token(&server).await;
    let new = token(&server).await;
    assert_ne!(old, new);
    for bad in ["", "x", old.as_str(), &new[1..]] {
        assert_eq!(submit(&stranger, bad, "a@b.de", PASSWORD, PASSWORD).await.status, 403);
        assert_eq!(stranger.get(&format!("/setup?token={bad}")).await.status, 403);
    }
    assert_eq!(stranger.get("/setup").await.status, 403);
    // An administrator who came in another way ends the link.
    server.register(ADMIN).await;
    assert_eq!(submit(&stranger, &new, "a@b.de", PASSWORD, PASSWORD).await.status, 403);
    assert_eq!(setup_link(&server.app).await.unwrap(), None);
}

#[tokio::test]
async fn tries_are_counted() {
    let server = TestServer::start().await;
    let stranger = server.stranger();
    for _ in 0..30 {
        assert_eq!(submit(&stranger, "x", "a@b.de", "p", "p").await.status, 403);
    }
    let reply = submit(&stranger, "x", "a@b.de", "p", "p").await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").parse::<u32>().unwrap() <= 60);
}

#[tokio::test]
async fn what_was_typed_is_no_markup() {
    let server = TestServer::start().await;
    let token = token(&server).await;
    let script = "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let reply = submit(&server.stranger(), &token, script, PASSWORD, PASSWORD).await;
    assert_eq!(reply.status, 400);
    assert!(!reply.text.contains("<script"));
    assert!(reply.text.contains("&quot;&gt;&lt;script&gt;"));
    let large = server.stranger().form("/setup", "x".repeat(20_000)).await;
    large.refuses(413, "Request body too large");
    let reply = Reply::of(server.stranger().request(Method::PUT, "/setup").json(&json!(1))).await;
    reply.refuses(405, "Method Not Allowed");
}
