//! Tests the web app and its paths.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Client, Reply, TestServer};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn browser(server: &TestServer) -> Client {
    server.stranger().header("accept", BROWSER)
}

#[tokio::test]
async fn pages_answer_the_app() {
    let server = TestServer::start().await;
    let index = browser(&server).get("/").await;
    assert_eq!(index.status, 200);
    for path in [
        "/login", "/setup?token=x", "/skills", "/skills/", "/skills/pdf/edit", "/runs/1", "/chat",
        "/knowledge/1", "/workflows", "/registry", "/registry/acme/pdf", "/catalog",
        "/admin/users", "/design",
    ] {
        let reply = browser(&server).get(path).await;
        assert_eq!((reply.status.as_u16(), &reply.text), (200, &index.text), "{path}");
    }
    // The app itself shows that the page does not exist.
    let unknown = browser(&server).get("/no/such/page").await;
    assert_eq!((unknown.status.as_u16(), &unknown.text), (404, &index.text));
}

#[tokio::test]
async fn programs_get_json() {
    let server = TestServer::start().await;
    for accept in ["*/*", "application/json", "application/json, text/html;q=0.9"] {
        let client = server.stranger().header("accept", accept);
        assert_eq!(client.get("/").await.json()["status"], "running", "{accept}");
        assert_eq!(client.get("/registry/nothing").await.status, 404);
        let registry = client.get("/registry").await.json();
        let skills = registry["skills"].as_str().unwrap();
        assert!(skills.ends_with("/registry/api/v1/skills"), "{registry}");
        client.get("/no/such/page").await.refuses(404, "Not Found");
    }
    // Paths of the API never return a page.
    let client = browser(&server);
    client.get("/api/v1/nothing").await.refuses(404, "Not Found");
    assert_eq!(
        client.get("/registry/index/v1/config.json").await.header("content-type"),
        "application/json"
    );
    assert!(client.get("/registry/api/v1/skills").await.json().is_object());
    let reply = Reply::of(client.request(Method::POST, "/skills").json(&json!({}))).await;
    reply.refuses(405, "Method Not Allowed");
}

#[tokio::test]
async fn pages_are_protected() {
    let server = TestServer::start().await;
    let reply = browser(&server).get("/skills").await;
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "no-cache");
    assert_eq!(reply.header("x-frame-options"), "DENY");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    assert_eq!(reply.header("referrer-policy"), "no-referrer");
    assert!(reply.header("permissions-policy").contains("camera=()"));
    let policy = reply.header("content-security-policy");
    for part in
        ["default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(part), "{part}");
    }
    for inline in ["<script>", "onclick=", "javascript:"] {
        assert!(!reply.text.contains(inline), "{inline}");
    }
}

#[tokio::test]
async fn unchanged_page_is_not_sent_again() {
    let server = TestServer::start().await;
    let first = browser(&server).get("/").await;
    let tag = first.header("etag");
    assert!(tag.starts_with('"') && tag.len() > 10, "{tag}");
    let again = browser(&server).header("if-none-match", tag).get("/").await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(again.header("etag"), tag);
    let head = Reply::of(browser(&server).request(Method::HEAD, "/skills")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn only_files_of_the_app_are_served() {
    let server = TestServer::start().await;
    for path in ["/assets/none.js", "/assets/../Cargo.toml", "/index.html.br"] {
        let reply = server.stranger().get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.text.contains("<html"), "{path}");
    }
    assert_eq!(server.stranger().get("/index.html").await.status, 200);
}
