//! Tests session cookies of browsers.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Client, PASSWORD, Reply, TestServer};

const SESSION: &str = "/api/v1/auth/session";
const SKILLS: &str = "/api/v1/skills";

fn credentials() -> Value {
    json!({"email": "ada@example.org", "password": PASSWORD})
}

fn skill(name: &str) -> Value {
    json!({"name": name, "content": format!("---\nname: {name}\n---\nSay hello.\n")})
}

/// The web app in a browser, not logged in.
fn app(server: &TestServer) -> Client {
    server.stranger().header("x-savoir-app", "1")
}

/// A logged-in user in a browser.
async fn log_in(server: &TestServer) -> Client {
    server.register("ada@example.org").await;
    open_session(server, "ada@example.org").await
}

/// Logs an account in in a browser.
pub(crate) async fn open_session(server: &TestServer, email: &str) -> Client {
    let reply = app(server).post(SESSION, &json!({"email": email, "password": PASSWORD})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    app(server).header("cookie", cookie(&reply))
}

fn cookie(reply: &Reply) -> &str {
    reply.header("set-cookie").split(';').next().unwrap()
}

#[tokio::test]
async fn cookie_is_for_this_server_only() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let reply = app(&server).post(SESSION, &credentials()).await;
    assert_eq!(reply.json()["user"]["email"], "ada@example.org");
    assert_eq!(reply.json().get("token"), None);
    let set = reply.header("set-cookie");
    assert!(set.starts_with(&format!("savoir_session_{}=", server.address.port())), "{set}");
    for part in ["; Path=/", "; Max-Age=604800", "; HttpOnly", "; SameSite=Strict"] {
        assert!(set.contains(part), "{part}");
    }
    assert!(!set.contains("Secure") && !set.contains("Domain"));
}

#[tokio::test]
async fn session_is_used_and_ended() {
    let server = TestServer::start().await;
    let visitor = app(&server).get(SESSION).await.json();
    assert_eq!(visitor["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        json!({"user": visitor["user"], "setup": visitor["setup"], "registration": visitor["registration"],
            "can_register": visitor["can_register"], "providers": visitor["providers"]}),
        json!({"user": null, "setup": true, "registration": "local", "can_register": true, "providers": []})
    );
    let ada = log_in(&server).await;
    assert_eq!(ada.get(SESSION).await.json()["user"]["email"], "ada@example.org");
    assert_eq!(ada.post(SKILLS, &skill("hello")).await.status, 201);
    assert_eq!(ada.get(SKILLS).await.json()["total"], 1);
    let ended = ada.delete(SESSION).await;
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").contains("Max-Age=0"));
    // The token is revoked, not only the cookie removed.
    ada.get(SKILLS).await.refuses(401, "Invalid or expired token");
    assert_eq!(ada.get(SESSION).await.json()["user"], Value::Null);
    assert_eq!(ada.delete(SESSION).await.status, 204);
}

#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    let own = format!("http://{}", server.address);
    for (name, value) in [
        ("x-savoir-app", "0"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let reply = ada.header(name, value).post(SKILLS, &skill("evil")).await;
        assert_eq!(reply.status, 403, "{name}: {value}");
        assert!(reply.json()["hint"].as_str().unwrap().contains("Authorization"));
        assert_eq!(ada.header(name, value).delete(SESSION).await.status, 403, "{name}: {value}");
    }
    assert_eq!(ada.get(SKILLS).await.json()["total"], 0);
    // Reading is protected, too: a page on another port of this host counts as the same site.
    for (name, value) in [
        ("origin", "http://localhost:5173"),
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(ada.header(name, value).get(SKILLS).await.status, 403, "{name}: {value}");
        assert_eq!(ada.header(name, value).get(SESSION).await.status, 403, "{name}: {value}");
    }
    let page = ada.header("origin", &own).header("sec-fetch-site", "same-origin");
    assert_eq!(page.post(SKILLS, &skill("good")).await.status, 201);
    // Without the header of the app, as a form of another site would send it.
    let form = server.stranger().header("cookie", ada.cookie());
    assert_eq!(form.post(SKILLS, &skill("evil")).await.status, 403);
    assert_eq!(form.get(SKILLS).await.status, 200);
    assert_eq!(server.stranger().post(SESSION, &credentials()).await.status, 403);
}

#[tokio::test]
async fn bearer_token_wins_over_cookie() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    let bob = server.register("bob@example.org").await;
    let both = bob.header("cookie", ada.cookie());
    assert_eq!(both.get("/api/v1/auth/me").await.json()["email"], "bob@example.org");
    // Bearer tokens do not need the header of the app.
    assert_eq!(both.post(SKILLS, &skill("hello")).await.status, 201);
    let wrong = ada.header("authorization", "Bearer nonsense");
    wrong.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    let lower = ada.header("authorization", &format!("bearer {}", bob.token));
    assert_eq!(lower.get("/api/v1/auth/me").await.json()["email"], "bob@example.org");
}

#[tokio::test]
async fn cookie_and_token_do_not_replace_each_other() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    let (name, value) = ada.cookie().split_once('=').unwrap();
    // The browser sends the cookie to every port of the host: its value alone must be useless.
    let stolen = server.client(value);
    stolen.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    let body = json!({"name": "p"});
    stolen.post("/api/v1/auth/tokens", &body).await.refuses(401, "Invalid or expired token");
    assert_eq!(stolen.get("/registry/api/v1/whoami").await.status, 401);
    // An API session token is not accepted as a cookie.
    let login = server.login("ada@example.org", PASSWORD).await.json();
    let mixed = format!("{name}={}", login["token"].as_str().unwrap());
    let mixed = app(&server).header("cookie", &mixed);
    mixed.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
}

#[tokio::test]
async fn session_cookie_is_bound_to_one_port() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    // Another server of the same operator, on another port, with the same keys.
    let other = server.beside().await;
    let value = ada.cookie().split_once('=').unwrap().1;
    let cookie = format!("savoir_session_{}={value}", other.address.port());
    let moved = other.stranger().header("x-savoir-app", "1").header("cookie", &cookie);
    moved.get("/api/v1/auth/me").await.refuses(401, "Invalid or expired token");
}

#[tokio::test]
async fn new_password_replaces_the_session() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    let body = json!({"current": PASSWORD, "new": "another one"});
    let reply = ada.post("/api/v1/auth/password", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.json().get("token"), None);
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 401);
    let ada = app(&server).header("cookie", cookie(&reply));
    assert_eq!(ada.get("/api/v1/auth/me").await.status, 200);
}

#[tokio::test]
async fn guesses_are_throttled() {
    let server = TestServer::start().await;
    server.register("ada@example.org").await;
    let wrong = json!({"email": "ada@example.org", "password": "wrong"});
    for _ in 0..5 {
        app(&server).post(SESSION, &wrong).await.refuses(401, "Invalid email or password");
    }
    assert_eq!(app(&server).post(SESSION, &wrong).await.status, 429);
    // Both ways to log in share one counter of failures.
    assert_eq!(server.login("ada@example.org", PASSWORD).await.status, 429);
}

#[tokio::test]
async fn registry_accepts_the_session() {
    let server = TestServer::start().await;
    let ada = log_in(&server).await;
    let me = ada.get("/registry/api/v1/whoami").await;
    assert_eq!(me.status, 200, "{}", me.text);
    let tokens = |client: Client| async move {
        let body = json!({"label": "ci", "scopes": ["read"]});
        Reply::of(client.request(Method::POST, "/registry/api/v1/tokens").json(&body)).await.status
    };
    assert_eq!(tokens(server.stranger().header("cookie", ada.cookie())).await, 403);
    assert_ne!(tokens(ada).await, 403);
}

#[tokio::test]
async fn invented_cookie_raises_no_limit() {
    let server = TestServer::with(|config| config.limits.routes = 2).await;
    let cookie = format!("savoir_session_{}=x", server.address.port());
    let stranger = server.stranger().header("cookie", &cookie);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let login = json!({"email": "nobody@example.org", "password": "wrong one"});
        statuses.push(stranger.post("/api/v1/auth/login", &login).await.status.as_u16());
    }
    assert_eq!(statuses[2], 429, "{statuses:?}");
}
