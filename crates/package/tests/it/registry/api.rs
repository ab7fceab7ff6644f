//! Tests of the registry API.

use savoir_package::{
    registry::{
        Client, Listing, Token,
        wire::{Deprecate, Publish, Yank},
    },
    trust::Tier,
};
use serde_json::json;
use tempfile::TempDir;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_json, header, method, path, query_param},
};

use super::{
    client,
    http_responses::{address, registry, serve},
    name, settings,
};

fn with_token(place: &TempDir, server: &MockServer) -> Client {
    let token = Some(Token::new("sv_secret").unwrap());
    Client::new(settings(place.path()), &address(server), token).unwrap()
}

#[tokio::test]
async fn skills_are_found_and_shown() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let summary = json!({
        "name": "acme/pdf", "latest_version": "1.2.0", "description": "Reads PDF.",
        "author": "acme", "license": "MIT", "security_tier": "community", "tags": ["pdf"],
        "homepage": null, "repository": null, "updated_at": "2026-01-01T00:00:00Z",
    });
    let found = json!({"query": "a&b c", "items": [summary], "total": 1});
    Mock::given(path("/registry/api/v1/search"))
        .and(query_param("q", "a&b c"))
        .respond_with(ResponseTemplate::new(200).set_body_json(found))
        .mount(&server)
        .await;
    Mock::given(path("/registry/api/v1/skills"))
        .and(query_param("cursor", "next one"))
        .and(query_param("tier", "verified"))
        .respond_with(
            ResponseTemplate::new(200).set_body_json(json!({"items": [], "next_cursor": null})),
        )
        .mount(&server)
        .await;
    let mut detail = summary.clone();
    detail["readme"] = json!("# PDF");
    detail["versions"] = json!([{"version": "1.2.0", "yanked": false, "size": 12}]);
    serve(
        &server,
        "/registry/api/v1/skills/acme/pdf",
        ResponseTemplate::new(200).set_body_json(&detail),
    )
    .await;
    serve(
        &server,
        "/registry/api/v1/skills/other",
        ResponseTemplate::new(200).set_body_json(&detail),
    )
    .await;
    let version = json!({
        "name": "acme/pdf", "version": "1.2.0", "security_tier": "community",
        "claimed_tier": "verified", "manifest": {"name": "pdf"}, "skill_md": "---",
        "artifact": {"filename": "pdf-1.2.0.zip", "size": 12, "sha256": "00", "integrity": "x"},
        "files": [{"path": "SKILL.md", "sha256": "00", "size": 3}], "signature": null,
        "audit": {"verdict": "ALLOW", "engine": "savoir", "audited_at": "x", "findings": []},
    });
    let at = "/registry/api/v1/skills/acme/pdf/1.2.0";
    serve(&server, at, ResponseTemplate::new(200).set_body_json(version)).await;
    let client = client(place.path(), &address(&server));
    let items = client.search("a&b c").await.unwrap().items;
    assert_eq!((items.len(), items[0].security_tier), (1, Tier::Community));
    let cursor = Some("next one".to_owned());
    let listing = Listing { cursor, tier: Some(Tier::Verified), ..Listing::default() };
    assert_eq!(client.list(&listing).await.unwrap().next_cursor, None);
    let detail = client.detail(&name("acme/pdf")).await.unwrap();
    assert_eq!((detail.versions.len(), detail.readme.as_deref()), (1, Some("# PDF")));
    let version = client.version(&name("acme/pdf"), &semver::Version::new(1, 2, 0)).await.unwrap();
    assert_eq!((version.claimed_tier, version.files.len()), (Some(Tier::Verified), 1));
    let unknown = client.detail(&name("unknown")).await.unwrap_err();
    assert_eq!(unknown.code(), "unknown_skill");
    let error =
        client.version(&name("acme/pdf"), &semver::Version::new(9, 0, 0)).await.unwrap_err();
    assert_eq!(error.code(), "unknown_version");
    let error = client.detail(&name("other")).await.unwrap_err();
    assert_eq!(error.code(), "answer_malformed", "an answer about something else");
}

#[tokio::test]
async fn a_skill_is_published_as_a_form() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let answer = json!({"published": {
        "name": "acme/pdf", "version": "1.2.0", "security_tier": "experimental",
        "audit": {"verdict": "ALLOW"}, "latest_version": "1.2.0",
        "artifact": {"filename": "pdf-1.2.0.zip", "size": 4, "sha256": "00"},
    }});
    Mock::given(method("POST"))
        .and(path("/registry/api/v1/skills"))
        .and(header("authorization", "Bearer sv_secret"))
        .respond_with(ResponseTemplate::new(201).set_body_json(answer))
        .expect(1)
        .mount(&server)
        .await;
    let publish = Publish {
        artifact: b"PK\x00\xff".to_vec(),
        filename: "pdf-1.2.0.zip".into(),
        namespace: Some("acme".into()),
        changelog: Some("Faster.".into()),
        ..Publish::default()
    };
    let published = with_token(&place, &server).publish(&publish).await.unwrap().published;
    assert_eq!(published.name, name("acme/pdf"));
    let sent = server.received_requests().await.unwrap().pop().unwrap();
    let kind = sent.headers["content-type"].to_str().unwrap().to_owned();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let part = |bytes: &[u8]| sent.body.windows(bytes.len()).any(|part| part == bytes);
    assert!(part(format!("--{boundary}--\r\n").as_bytes()));
    assert!(part(
        b"filename=\"pdf-1.2.0.zip\"\r\nContent-Type: application/zip\r\n\r\nPK\x00\xff\r\n"
    ));
    assert!(part(b"name=\"namespace\"\r\n\r\nacme\r\n"));
    assert!(!part(b"name=\"audit\""));
}

#[tokio::test]
async fn refusal_shows_message_of_registry() {
    for (status, code) in
        [(409, "version_exists"), (403, "forbidden_scope"), (428, "audit_required")]
    {
        let (place, server) = (TempDir::new().unwrap(), registry(false).await);
        let body = json!({"error": {"code": code, "message": "No."}});
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(status).set_body_json(body))
            .mount(&server)
            .await;
        let error = with_token(&place, &server).publish(&Publish::default()).await.unwrap_err();
        assert_eq!(error.code(), code);
    }
}

#[tokio::test]
async fn publish_does_not_follow_redirects() {
    let (place, server, other) =
        (TempDir::new().unwrap(), registry(false).await, MockServer::start().await);
    let answer = ResponseTemplate::new(307).insert_header("location", other.uri());
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let client = with_token(&place, &server);
    assert_eq!(client.publish(&Publish::default()).await.unwrap_err().code(), "address_refused");
    assert_eq!(client.login("a@b.example", "secret").await.unwrap_err().code(), "address_refused");
    assert!(other.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn yank_and_unyank() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let base = "/registry/api/v1/skills/acme/pdf/1.2.0";
    Mock::given(method("POST"))
        .and(path(format!("{base}/yank")))
        .and(body_json(json!({"yanked": true, "reason": "It leaks."})))
        .respond_with(ResponseTemplate::new(204))
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path(format!("{base}/deprecate")))
        .and(body_json(json!({"message": null})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"ok": true})))
        .expect(1)
        .mount(&server)
        .await;
    let (client, version) = (with_token(&place, &server), semver::Version::new(1, 2, 0));
    let yank = Yank { yanked: true, reason: Some("It leaks.".into()) };
    client.yank(&name("acme/pdf"), &version, &yank).await.unwrap();
    client
        .deprecate(&name("acme/pdf"), Some(&version), &Deprecate { message: None })
        .await
        .unwrap();
    let other = client.yank(&name("acme/other"), &version, &yank).await.unwrap_err();
    assert_eq!(other.code(), "http_status");
}

#[tokio::test]
async fn login_returns_token() {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let credentials = json!({"email": "a@b.example", "password": "secret"});
    Mock::given(method("POST"))
        .and(path("/api/v1/auth/login"))
        .and(body_json(&credentials))
        .respond_with(
            ResponseTemplate::new(200).set_body_json(json!({"token": "t.o.k", "user": {}})),
        )
        .mount(&server)
        .await;
    let wrong = json!({"detail": "Invalid email or password"});
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(401).set_body_json(wrong))
        .with_priority(9)
        .mount(&server)
        .await;
    let me = json!({"email": "a@b.example", "scopes": ["read", "publish"], "namespaces": ["acme"]});
    Mock::given(path("/registry/api/v1/whoami"))
        .and(header("authorization", "Bearer t.o.k"))
        .respond_with(ResponseTemplate::new(200).set_body_json(me))
        .mount(&server)
        .await;
    let stranger = client(place.path(), &address(&server));
    let token = stranger.login("a@b.example", "secret").await.unwrap();
    let known = Client::new(settings(place.path()), &address(&server), Some(token)).unwrap();
    assert_eq!(known.whoami().await.unwrap().namespaces, ["acme"]);
    let error = stranger.login("a@b.example", "wrong").await.unwrap_err().to_string();
    assert!(error.contains("Invalid email or password") && !error.contains("secret"), "{error}");
}
