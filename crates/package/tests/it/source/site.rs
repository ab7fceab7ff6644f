//! Tests of sites that list their skills.

use std::sync::{Arc, Mutex};

use savoir_package::source::{Digest, PinnedSource, Progress};
use serde_json::{Value, json};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use super::{TestFetcher, names, paths, skill, zip};

const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

async fn serve(server: &MockServer, at: &str, bytes: impl Into<Vec<u8>>) {
    let answer = ResponseTemplate::new(200).set_body_bytes(bytes);
    Mock::given(path(at)).respond_with(answer).mount(server).await;
}

async fn serve_index(server: &MockServer, at: &str, skills: Value) {
    let index = json!({"$schema": SCHEMA, "skills": skills});
    serve(server, at, index.to_string()).await;
}

#[tokio::test]
async fn a_site_lists_its_skills() {
    let skipped = Arc::new(Mutex::new(Vec::new()));
    let watched = skipped.clone();
    let test = TestFetcher::with(|settings| {
        settings.watcher = Some(Arc::new(move |progress| {
            if let Progress::Skipped { name, .. } = progress {
                watched.lock().unwrap().push(name);
            }
        }));
    });
    let server = MockServer::start().await;
    let (text, packed) = (skill("a"), zip(&[("SKILL.md", "prose"), ("x/y.md", "y")]));
    let skills = json!([
        {"name": "a", "type": "skill-md", "description": "Does a.", "url": "a/SKILL.md",
         "digest": Digest::of(text.as_bytes()).to_string()},
        {"name": "b", "type": "archive", "description": "Does b.", "url": "/files/b.zip",
         "digest": Digest::of(&packed).to_string(), "new": true},
        {"name": "c", "type": "later", "url": "c", "digest": Digest::of(b"").to_string()},
        {"name": "d", "type": "skill-md", "url": "d"},
        {"name": "../e", "type": "skill-md", "url": "e", "digest": Digest::of(b"").to_string()},
        {"name": "f", "type": "skill-md", "url": "http://x.example/f",
         "digest": Digest::of(b"").to_string()},
    ]);
    serve_index(&server, "/.well-known/agent-skills/index.json", skills).await;
    serve(&server, "/.well-known/agent-skills/a/SKILL.md", text.clone()).await;
    serve(&server, "/files/b.zip", packed).await;
    let offers = test.offers(&format!("{}/docs", server.uri())).await.unwrap();
    assert_eq!(names(&offers), ["a", "b"]);
    assert_eq!(*skipped.lock().unwrap(), ["c", "d", "../e", "f"]);
    assert_eq!(offers[0].description.as_deref(), Some("Does a."));
    let tree = test.fetcher.fetch(&offers[0]).await.unwrap();
    assert_eq!(tree.get("SKILL.md").unwrap().bytes, text.as_bytes());
    let tree = test.fetcher.fetch(&offers[1]).await.unwrap();
    assert_eq!(paths(&tree), ["SKILL.md", "x/y.md"]);
    let place = PinnedSource::parse(&offers[1].source.text(test.path()), test.path()).unwrap();
    assert_eq!(test.fetcher.fetch_locked(&place).await.unwrap(), tree);
}

#[tokio::test]
async fn digest_mismatch_of_site_is_rejected() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    let at = "/.well-known/agent-skills/index.json";
    let entry = |digest: &Digest| json!([{"name": "a", "type": "skill-md", "url": "a.md", "digest": digest.to_string()}]);
    serve_index(&server, at, entry(&Digest::of(b"promised"))).await;
    serve(&server, "/.well-known/agent-skills/a.md", "given").await;
    let refused = test.one(&server.uri()).await.unwrap_err();
    assert_eq!(refused.code(), "digest_mismatch");
    let index = format!("{}{at}", server.uri());
    let locked = format!("well-known+{index}#a:{}", Digest::of(b"older"));
    let place = PinnedSource::parse(&locked, test.path()).unwrap();
    let newer = test.fetcher.fetch_locked(&place).await.unwrap_err();
    assert_eq!(newer.code(), "digest_mismatch");
    let gone = PinnedSource::parse(&format!("well-known+{index}#z"), test.path()).unwrap();
    assert_eq!(test.fetcher.fetch_locked(&gone).await.unwrap_err().code(), "not_listed");
}

#[tokio::test]
async fn lists_of_version_0_1_name_each_file() {
    let (test, server) = (TestFetcher::new(), MockServer::start().await);
    let index = json!({"skills": [
        {"name": "a", "description": "Does a.", "files": ["SKILL.md", "x/a b.md"]},
        {"name": "b", "files": ["SKILL.md", "../../../secret"]},
        {"name": "c", "files": ["README.md"]},
        {"name": "d"},
    ]});
    serve(&server, "/docs/.well-known/skills/index.json", index.to_string()).await;
    serve(&server, "/docs/.well-known/skills/a/SKILL.md", skill("a")).await;
    serve(&server, "/docs/.well-known/skills/a/x/a%20b.md", "b").await;
    let (offer, tree) = test.one(&format!("{}/docs", server.uri())).await.unwrap();
    assert_eq!(offer.name, "a");
    assert_eq!(paths(&tree), ["SKILL.md", "x/a b.md"]);
    let index = format!("{}/docs/.well-known/skills/index.json", server.uri());
    assert_eq!(offer.source.text(test.path()), format!("well-known+{index}#a"));
    assert!(test.one(&index).await.is_ok());
}

#[tokio::test]
async fn invalid_lists_are_rejected() {
    let test = TestFetcher::new();
    for (index, code) in [
        (json!({"$schema": "https://x.example/9.9", "skills": 1}).to_string(), "index_schema"),
        (json!({"$schema": 2, "skills": []}).to_string(), "index_schema"),
        (json!({"skills": []}).to_string(), "index_malformed"),
        (json!({"skills": "none"}).to_string(), "index_malformed"),
        ("{".to_owned(), "index_malformed"),
        ("<!doctype html>".to_owned(), "no_index"),
    ] {
        let server = MockServer::start().await;
        serve(&server, "/.well-known/agent-skills/index.json", index.clone()).await;
        assert_eq!(test.code(&server.uri()).await, code, "{index}");
    }
    assert_eq!(test.code("http://127.0.0.1:1/").await, "unreachable");
}
