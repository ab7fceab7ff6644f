//! Tests of registry responses, and of the number of requests.

use std::time::Duration;

use savoir_package::{
    Tree,
    archive::pack,
    registry::{Client, Network, Registries, Token, wire::IndexLine},
};
use serde_json::json;
use tempfile::TempDir;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, header, header_exists, method, path, query_param},
};

use super::{client, name, settings};
use crate::install::test_project::skill;

/// Starts a server with a registry configuration.
pub(super) async fn registry(closure: bool) -> MockServer {
    let server = MockServer::start().await;
    let config = json!({
        "version": 1, "base": format!("{}/registry", server.uri()),
        "artifacts": format!("{}/registry/artifacts/{{sha256}}/{{filename}}", server.uri()),
        "closure": closure,
    });
    let answer = ResponseTemplate::new(200).set_body_json(config);
    Mock::given(path("/registry/index/v1/config.json")).respond_with(answer).mount(&server).await;
    server
}

pub(super) fn address(server: &MockServer) -> String {
    format!("{}/registry", server.uri())
}

/// Returns the index line and the archive of a skill.
pub(super) fn packed(full: &str, tree: &Tree) -> (IndexLine, Vec<u8>) {
    let name = name(full);
    let bytes = pack(name.last(), tree).unwrap();
    (IndexLine::describe(&name, tree, &bytes).unwrap(), bytes)
}

pub(super) fn text(lines: &[IndexLine]) -> String {
    lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
}

pub(super) async fn serve(server: &MockServer, at: &str, answer: ResponseTemplate) {
    Mock::given(method("GET")).and(path(at)).respond_with(answer).mount(server).await;
}

fn artifact_path(line: &IndexLine) -> String {
    format!("/registry/artifacts/{}/{}", line.sha256, line.filename)
}

#[tokio::test]
async fn unchanged_index_is_answered_with_304() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (line, _) = packed("acme/notes", &skill("notes", "1.0.0", "Text."));
    let at = "/registry/index/v1/no/acme/notes";
    Mock::given(path(at))
        .and(header("if-none-match", "\"one\""))
        .respond_with(ResponseTemplate::new(304))
        .with_priority(1)
        .expect(2)
        .mount(&server)
        .await;
    let answer = ResponseTemplate::new(200)
        .set_body_string(text(std::slice::from_ref(&line)))
        .insert_header("etag", "\"one\"");
    Mock::given(path(at)).respond_with(answer).expect(1).mount(&server).await;
    for _ in 0..3 {
        // A second client, like a later run of the program.
        let client = client(place.path(), &address(&server));
        let package = client.index(&name("acme/notes")).await.unwrap().unwrap();
        assert_eq!(*package, *std::slice::from_ref(&line));
    }
}

#[tokio::test]
async fn an_archive_is_fetched_once() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let tree = skill("notes", "1.0.0", "Text.");
    let (line, bytes) = packed("notes", &tree);
    Mock::given(path(artifact_path(&line)))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(bytes))
        .expect(1)
        .mount(&server)
        .await;
    for _ in 0..2 {
        let client = client(place.path(), &address(&server));
        assert_eq!(client.download(&line).await.unwrap(), tree);
    }
    let offline = super::Settings { network: Network::Offline, ..settings(place.path()) };
    let offline = Client::new(offline, &address(&server), None).unwrap();
    assert_eq!(offline.download(&line).await.unwrap(), tree);
    let (other, _) = packed("other", &skill("other", "1.0.0", "Text."));
    assert_eq!(offline.download(&other).await.unwrap_err().code(), "offline");
}

#[tokio::test]
async fn closure_endpoint_returns_all_dependencies() {
    let (place, server) = (TempDir::new().unwrap(), registry(true).await);
    let (mut top, _) = packed("acme/top", &skill("top", "1.0.0", "Text."));
    top.dependencies = vec!["base@^1".into(), "gone".into()];
    let (base, _) = packed("base", &skill("base", "1.0.0", "Text."));
    Mock::given(path("/registry/index/v1/closure"))
        .and(query_param("name", "acme/top"))
        .respond_with(ResponseTemplate::new(200).set_body_string(text(&[top, base])))
        .expect(1)
        .mount(&server)
        .await;
    let client = client(place.path(), &address(&server));
    let closure = client.closure(&[name("acme/top")]).await.unwrap();
    let names: Vec<String> = closure.packages.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["base", "acme/top"]);
    // Only packages that the response left out are requested separately.
    let asked = server.received_requests().await.unwrap();
    let paths: Vec<&str> = asked.iter().map(|request| request.url.path()).collect();
    assert_eq!(
        paths,
        [
            "/registry/index/v1/config.json",
            "/registry/index/v1/closure",
            "/registry/index/v1/go/gone"
        ]
    );
    // The result is cached for use without a network.
    let offline = super::Settings { network: Network::Offline, ..settings(place.path()) };
    let offline = Client::new(offline, &address(&server), None).unwrap();
    let again = offline.closure(&[name("acme/top"), name("never")]).await.unwrap();
    assert_eq!(again.packages, closure.packages);
    assert_eq!(again.unasked, [name("never")].into());
}

#[tokio::test]
async fn missing_closure_endpoint_is_an_error() {
    let (place, server) = (TempDir::new().unwrap(), registry(true).await);
    let (line, _) = packed("base", &skill("base", "1.0.0", "Text."));
    serve(
        &server,
        "/registry/index/v1/ba/base",
        ResponseTemplate::new(200).set_body_string(text(&[line])),
    )
    .await;
    let client = client(place.path(), &address(&server));
    let closure = client.closure(&[name("base")]).await.unwrap();
    assert_eq!(closure.packages.len(), 1, "there is no such answer, and the files are there");
}

#[tokio::test]
async fn token_is_sent_only_to_its_registry() {
    let (place, server, storage) =
        (TempDir::new().unwrap(), registry(false).await, MockServer::start().await);
    let tree = skill("notes", "1.0.0", "Text.");
    let (line, bytes) = packed("notes", &tree);
    let target = format!("{}/bucket/notes.zip", storage.uri());
    let first = ResponseTemplate::new(307).insert_header("location", "/registry/second");
    let second = ResponseTemplate::new(307).insert_header("location", &*target);
    for (at, answer) in [(artifact_path(&line), first), ("/registry/second".into(), second)] {
        Mock::given(path(at))
            .and(header("authorization", "Bearer sv_secret"))
            .respond_with(answer)
            .expect(1)
            .mount(&server)
            .await;
    }
    Mock::given(header_exists("authorization"))
        .respond_with(ResponseTemplate::new(500))
        .with_priority(1)
        .expect(0)
        .mount(&storage)
        .await;
    Mock::given(path("/bucket/notes.zip"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(bytes))
        .expect(1)
        .mount(&storage)
        .await;
    let token = Some(Token::new("sv_secret").unwrap());
    let client = Client::new(settings(place.path()), &address(&server), token).unwrap();
    assert_eq!(client.download(&line).await.unwrap(), tree);
}

#[tokio::test]
async fn token_is_used_for_every_spelling_of_its_registry() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let (line, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
    Mock::given(path("/registry/index/v1/no/notes"))
        .and(header("authorization", "Bearer sv_secret"))
        .respond_with(ResponseTemplate::new(200).set_body_string(text(&[line])))
        .expect(1)
        .mount(&server)
        .await;
    let mut all = Registries::new(settings(place.path()), Vec::new()).unwrap();
    let address = format!("{}/", address(&server));
    all.log_in(&address, Token::new("sv_secret").unwrap()).unwrap();
    let client = all.named(&address).unwrap();
    assert!(client.index(&name("notes")).await.unwrap().is_some());
}

#[tokio::test]
async fn redirects_of_a_registry_are_limited() {
    for target in ["http://x.example/a.zip", "http://10.0.0.1/a", "ftp://x.example/", "file:///etc"]
    {
        let (place, server) = (TempDir::new().unwrap(), registry(false).await);
        let (line, _) = packed("notes", &skill("notes", "1.0.0", "Text."));
        let answer = ResponseTemplate::new(302).insert_header("location", target);
        serve(&server, &artifact_path(&line), answer).await;
        let client = client(place.path(), &address(&server));
        assert_eq!(client.download(&line).await.unwrap_err().code(), "address_refused", "{target}");
    }
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let answer =
        ResponseTemplate::new(302).insert_header("location", "/registry/index/v1/no/notes");
    serve(&server, "/registry/index/v1/no/notes", answer).await;
    let client = client(place.path(), &address(&server));
    let error = client.index(&name("notes")).await.unwrap_err();
    assert!(error.to_string().contains("too often"), "{error}");
}

#[tokio::test]
async fn server_errors_are_reported() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let body = json!({"error": {"code": "maintenance", "message": "Back at noon."}});
    serve(&server, "/registry/index/v1/no/notes", ResponseTemplate::new(503).set_body_json(body))
        .await;
    serve(&server, "/registry/index/v1/ot/other", ResponseTemplate::new(500)).await;
    let slow = ResponseTemplate::new(200).set_delay(Duration::from_secs(30));
    serve(&server, "/registry/index/v1/sl/slow", slow).await;
    let mut settings = settings(place.path());
    settings.response_timeout = Duration::from_millis(500);
    let client = Client::new(settings, &address(&server), None).unwrap();
    let error = client.index(&name("notes")).await.unwrap_err();
    assert_eq!(error.code(), "maintenance");
    assert!(error.to_string().contains("Back at noon; the registry has a problem"), "{error}");
    assert_eq!(client.index(&name("other")).await.unwrap_err().code(), "http_status");
    assert_eq!(client.index(&name("slow")).await.unwrap_err().code(), "timed_out");
    let nobody = super::client(place.path(), "http://127.0.0.1:1/registry");
    assert_eq!(nobody.index(&name("notes")).await.unwrap_err().code(), "unreachable");
}

#[tokio::test]
async fn redirect_to_plain_http_is_rejected() {
    let place = TempDir::new().unwrap();
    let plain = client(place.path(), "http://registry.example/registry");
    let error = plain.index(&name("notes")).await.unwrap_err();
    assert_eq!(error.code(), "address_refused");
    assert!(error.to_string().contains("use https"), "{error}");
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_body_json(json!({"version": 2}));
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let later = client(place.path(), &server.uri());
    assert_eq!(later.config().await.unwrap_err().code(), "index_version");
}
