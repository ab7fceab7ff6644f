//! Tests of tokens, members, keys, signatures and the audit log.

use savoir_package::{
    registry::{
        Client, PlainHttp, Settings, Token,
        wire::{
            Appeal, CreateTokenRequest, LogQuery, NewKey, NewMember, NewSignature, RevokedKey,
            TeamRole,
        },
    },
    trust::Tier,
};
use semver::Version;
use serde_json::{Value, json};
use tempfile::TempDir;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_json, header, method, path, query_param},
};

use super::{
    http_responses::{address, registry},
    name, settings,
};

async fn known() -> (TempDir, MockServer, Client) {
    let (place, server) = (TempDir::new().unwrap(), registry(false).await);
    let token = Some(Token::new("sv_secret").unwrap());
    let client = Client::new(settings(place.path()), &address(&server), token).unwrap();
    (place, server, client)
}

/// Expects one request with this body, and returns this response.
async fn expect(server: &MockServer, how: &str, at: &str, body: Option<Value>, answer: Value) {
    let mut mock = Mock::given(method(how)).and(path(at));
    mock = mock.and(header("authorization", "Bearer sv_secret"));
    if let Some(body) = body {
        mock = mock.and(body_json(body));
    }
    let answer = match answer {
        Value::Null => ResponseTemplate::new(204),
        answer => ResponseTemplate::new(200).set_body_json(answer),
    };
    mock.respond_with(answer).expect(1).mount(server).await;
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked() {
    let (_place, server, client) = known().await;
    let wanted = CreateTokenRequest {
        name: "savoir on desk".into(),
        scopes: vec!["registry:read".into(), "registry:publish:acme".into()],
        expires_in_days: Some(90),
    };
    let made = json!({
        "id": "a b/c", "name": "savoir on desk", "scopes": ["registry:read"], "token": "sv_new",
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-04-01T00:00:00Z",
    });
    let at = "/api/v1/auth/tokens";
    let body = json!({"name": "savoir on desk", "expires_in_days": 90,
        "scopes": ["registry:read", "registry:publish:acme"]});
    expect(&server, "POST", at, Some(body), made).await;
    let listed = json!({"tokens": [{"id": "x", "name": "n", "scopes": []}], "total": 1});
    expect(&server, "GET", at, None, listed).await;
    expect(&server, "DELETE", "/api/v1/auth/tokens/a%20b%2Fc", None, Value::Null).await;
    expect(&server, "POST", "/api/v1/auth/logout", None, json!({"success": true})).await;
    let (info, token) = client.create_token(&wanted).await.unwrap();
    assert_eq!((info.id.as_str(), token.secret()), ("a b/c", "sv_new"));
    assert_eq!(client.tokens().await.unwrap()[0].id, "x");
    client.delete_token(&info.id).await.unwrap();
    client.logout().await.unwrap();
    let other = client.with_token(Token::new("sv_other").unwrap()).unwrap();
    assert_eq!((other.address(), other.has_token()), (client.address(), true));
    assert_eq!(other.tokens().await.unwrap_err().code(), "files_only", "nobody knows that token");
}

#[tokio::test]
async fn password_is_never_sent_unencrypted() {
    let place = TempDir::new().unwrap();
    let settings = Settings { plain: PlainHttp::Anyone, ..settings(place.path()) };
    let client = Client::new(settings, "http://registry.invalid/registry", None).unwrap();
    assert_eq!(client.login("a@b.example", "secret").await.unwrap_err().code(), "address_refused");
}

#[tokio::test]
async fn members_and_keys_of_a_namespace() {
    let (_place, server, client) = known().await;
    let at = "/registry/api/v1/namespaces/acme/members";
    let member =
        json!({"email": "b@x.example", "role": "owner", "added_at": "2026-01-01T00:00:00Z"});
    expect(&server, "GET", at, None, json!({"items": [member]})).await;
    let body = json!({"email": "b@x.example", "role": "publisher"});
    expect(&server, "POST", at, Some(body), json!({})).await;
    expect(&server, "DELETE", &format!("{at}/b@x.example"), None, Value::Null).await;
    assert_eq!(client.members("acme").await.unwrap()[0].role, "owner");
    let new = NewMember { email: "b@x.example".into(), role: TeamRole::Publisher };
    client.add_member("acme", &new).await.unwrap();
    client.remove_member("acme", "b@x.example").await.unwrap();
    let at = "/registry/api/v1/namespaces/acme/keys";
    let key = json!({"key_id": "21fe", "public_key": "AAAA", "label": "desk", "revoked_at": null});
    expect(&server, "GET", at, None, json!({"keys": [key]})).await;
    expect(&server, "POST", at, Some(json!({"public_key": "AAAA"})), json!({})).await;
    expect(&server, "DELETE", &format!("{at}/21fe"), None, Value::Null).await;
    assert_eq!(client.keys("acme").await.unwrap()[0].label.as_deref(), Some("desk"));
    client
        .add_key(
            "acme",
            &NewKey { public_key: "AAAA".into(), label: None, email: None, proof: None },
        )
        .await
        .unwrap();
    let revoked = RevokedKey { key_id: "21fe".into(), reason: Some("stolen".into()) };
    client.revoke_key("acme", &revoked).await.unwrap();
    assert_eq!(client.keys("other").await.unwrap_err().code(), "unknown_namespace");
    for bad in ["../acme", "a/b", "", "Acme", "a?b"] {
        let error = client.members(bad).await.unwrap_err();
        assert!(["invalid_name", "unknown_namespace"].contains(&error.code()), "{bad}: {error}");
    }
}

#[tokio::test]
async fn signatures_scans_appeals_and_the_log() {
    let (_place, server, client) = known().await;
    let base = "/registry/api/v1/skills/acme/pdf/1.2.0";
    let record = json!({"algorithm": "ed25519", "key_id": "21fe"});
    let judged = json!({"security_tier": "verified"});
    let body = json!({"signer": "auditor", "record": record});
    expect(&server, "POST", &format!("{base}/signatures"), Some(body), judged).await;
    let judged = json!({"audit": {"verdict": "REVIEW", "findings": [{"id": "X1"}]}});
    expect(&server, "POST", &format!("{base}/rescan"), Some(json!({})), judged).await;
    let body = json!({"message": "It is a false alarm."});
    expect(&server, "POST", &format!("{base}/appeal"), Some(body), Value::Null).await;
    let (skill, version) = (name("acme/pdf"), Version::new(1, 2, 0));
    let signature = NewSignature { signer: "auditor".into(), record };
    let signed = client.add_signature(&skill, &version, &signature).await;
    assert_eq!(signed.unwrap().security_tier, Tier::Verified);
    let audit = client.rescan(&skill, &version).await.unwrap().audit.unwrap();
    assert_eq!((audit.verdict.as_str(), audit.findings.len()), ("REVIEW", 1));
    let appeal = Appeal { message: "It is a false alarm.".into(), sha256: None };
    client.appeal(&skill, &version, &appeal).await.unwrap();
    Mock::given(path("/registry/api/v1/audit-log"))
        .and(query_param("namespace", "acme"))
        .and(query_param("cursor", "12"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "items": [{"seq": 11, "act": "yank", "done_at": "2026-01-01T00:00:00Z", "account": 3,
                "package": "acme/pdf", "version": "1.2.0", "details": {"why": "leaks"}}],
            "next_cursor": null,
        })))
        .mount(&server)
        .await;
    let query = LogQuery {
        namespace: Some("acme".into()),
        cursor: Some("12".into()),
        ..LogQuery::default()
    };
    let log = client.log(&query).await.unwrap();
    assert_eq!((log.items[0].act.as_str(), log.items[0].seq, log.next_cursor), ("yank", 11, None));
}
