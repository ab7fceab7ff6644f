//! Tests changes of published versions.

use reqwest::Method;
use serde_json::json;

use super::{API, draft, index, is_yanked, program, publish};
use crate::harness::{ADMIN, Reply, for_each_server};

#[tokio::test]
async fn version_is_yanked_and_unyanked() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "tool", "1.0.0").await;
            publish(server, &ada, "acme/tool", "2.0.0").await;
            for (package, path) in [("tool", "tool/1.0.0"), ("acme/tool", "acme/tool/2.0.0")] {
                // The second request fills the cache; a stale response must not follow.
                assert!(!is_yanked(server, package).await);
                assert!(!is_yanked(server, package).await);
                let route = format!("{API}/skills/{path}/yank");
                let body = json!({"yanked": true, "reason": "it breaks"});
                let version = path.rsplit('/').next().unwrap();
                let yanked = ada.post(&route, &body).await;
                yanked.is(200, &json!({"name": package, "version": version, "yanked": true}));
                assert_eq!(yanked.header("cache-control"), "no-store");
                assert!(is_yanked(server, package).await);
                let detail =
                    server.stranger().get(&format!("{API}/skills/{package}")).await.ok(200);
                assert_eq!(detail["versions"][0]["yanked"], true);
                assert_eq!(ada.post(&route, &body).await.status, 200, "it is so already");
                ada.post(&route, &json!({"yanked": false})).await.ok(200);
                assert!(!is_yanked(server, package).await);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn deprecation_message_is_shown() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            for package in ["tool", "acme/tool"] {
                publish(server, &ada, package, "1.0.0").await;
                publish(server, &ada, package, "1.1.0").await;
                let path = format!("{API}/skills/{package}/1.0.0/deprecate");
                let response = ada.post(&path, &json!({"message": "use 1.1"})).await;
                response
                    .is(200, &json!({"name": package, "version": "1.0.0", "message": "use 1.1"}));
                let said = async || {
                    let mut lines = index(server, package).await;
                    lines.sort_by_key(|line| line["version"].to_string());
                    lines.into_iter().map(|line| line["deprecated"].clone()).collect::<Vec<_>>()
                };
                assert_eq!(said().await, [json!("use 1.1"), json!(null)]);
                let shown = async |path: &str| {
                    let path = format!("{API}/skills/{package}{path}");
                    server.stranger().get(&path).await.ok(200)["deprecated"].clone()
                };
                assert_eq!(shown("/1.0.0").await, "use 1.1");
                assert_eq!((shown("/1.1.0").await, shown("").await), (json!(null), json!(null)));
                ada.post(&path, &json!({"message": null})).await.ok(200);
                assert_eq!(said().await, [json!(null), json!(null)]);

                let all = format!("{API}/skills/{package}/deprecate");
                let response = ada.post(&all, &json!({"message": "use other"})).await;
                response
                    .is(200, &json!({"name": package, "version": null, "message": "use other"}));
                assert_eq!(said().await, [json!("use other"), json!("use other")]);
                assert_eq!(
                    (shown("/1.1.0").await, shown("").await),
                    (json!("use other"), json!("use other"))
                );
                let message = ada.post(&all, &json!({})).await.refused(400, "invalid_request");
                assert!(message.contains("`message`"), "{message}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn administrators_remove_versions() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let admin = server.register(ADMIN).await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let second = draft("acme/tool", "1.1.0").publish(server, &ada).await;
            let stranger = server.stranger();
            let places = [
                format!("/registry/artifacts/{}/tool-1.1.0.zip", second.sha256),
                "/registry/acme/tool/1.1.0/SKILL.md".to_owned(),
                format!("{API}/skills/acme/tool/download?version=1.1.0"),
                format!("{API}/skills/acme/tool/1.1.0"),
            ];
            // The second request fills the cache, which must be invalidated, too.
            for place in places.iter().chain(&places) {
                assert_eq!(stranger.get(place).await.status, 200, "{place}");
            }
            let route = format!("{API}/skills/acme/tool/1.1.0/withdraw");
            let body = json!({"why": "it steals"});
            ada.post(&route, &body).await.refused(403, "forbidden_scope");
            // A token of an administrator without the scope `admin` has no administrator rights.
            let robot = program(server, &admin, &json!({"scopes": ["yank"]})).await;
            robot.post(&route, &body).await.refused(403, "forbidden_scope");
            let response = admin.post(&route, &body).await;
            response.is(
                200,
                &json!({"name": "acme/tool", "version": "1.1.0", "withdrawn": true,
                    "same_content": []}),
            );
            let gone = server.stranger().get(&format!("{API}/skills/acme/tool/1.1.0")).await;
            assert!(gone.refused(404, "not_found").contains("it steals"));
            for place in &places {
                assert_eq!(stranger.get(place).await.status, 404, "{place}");
            }
            let lines = index(server, "acme/tool").await;
            assert_eq!(lines.len(), 2, "who has it hears of it: {lines:?}");
            assert_eq!(
                lines[0],
                json!({"name": "acme/tool", "version": "1.1.0", "withdrawn": true,
                    "withdrawn_reason": "it steals"})
            );
            admin.post(&route, &body).await.refused(404, "not_found");
            admin.post(&route, &json!({"why": ""})).await.refused(400, "invalid_request");
        },
    )
    .await;
}

#[tokio::test]
async fn changes_need_permission() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            let admin = server.register(ADMIN).await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            publish(server, &ada, "tool", "1.0.0").await;
            let yank = format!("{API}/skills/acme/tool/1.0.0/yank");
            let flat = format!("{API}/skills/tool/1.0.0/yank");
            let body = json!({"yanked": true});
            server.stranger().post(&yank, &body).await.refused(401, "unauthorized");
            server.client("sav_wrong").post(&yank, &body).await.refused(401, "unauthorized");
            bob.post(&yank, &body).await.refused(403, "forbidden_scope");
            for (scopes, namespace, may) in [
                ("publish", None, false),
                ("owner", None, false),
                ("read", None, false),
                ("yank", Some("other"), false),
                ("yank", Some("_/tool"), false),
                ("yank", Some("acme"), true),
                ("yank", None, true),
            ] {
                let token = json!({"scopes": [scopes], "namespace": namespace});
                let reply = program(server, &ada, &token).await.post(&yank, &body).await;
                if may {
                    reply.ok(200);
                } else {
                    let message = reply.refused(403, "forbidden_scope");
                    assert!(message.contains("registry:yank:acme"), "{message}");
                }
            }
            let token = json!({"scopes": ["yank"], "namespace": "_/tool"});
            program(server, &ada, &token).await.post(&flat, &body).await.ok(200);
            // The token has the scope, but its user is not a member.
            let robot = program(server, &bob, &json!({"scopes": ["yank"]})).await;
            robot.post(&yank, &body).await.refused(403, "forbidden_scope");

            let token = program(server, &ada, &json!({"scopes": ["yank"]})).await;
            let disable = format!("/api/v1/admin/users/{}/disable", ada.id());
            admin.call(&disable).await.ok(200);
            for client in [&ada, &token] {
                let reply = client.post(&yank, &json!({"yanked": false})).await;
                assert!(reply.refused(403, "forbidden_scope").contains("disabled"));
            }
            assert!(is_yanked(server, "acme/tool").await);
        },
    )
    .await;
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "tool", "1.0.0").await;
            let route = format!("{API}/skills/tool/1.0.0/yank");
            for (body, field) in [
                ("{}", "`yanked`"),
                (r#"{"yanked":"yes"}"#, "`yanked`"),
                (r#"{"yanked":true,"reason":5}"#, "`reason`"),
                ("[]", "the body"),
                ("", "JSON"),
                ("{", "JSON"),
            ] {
                let request = ada.request(Method::POST, &route).body(body);
                let reply = Reply::of(request.header("content-type", "application/json")).await;
                let message = reply.refused(400, "invalid_request");
                assert!(message.contains(field), "{body}: {message}");
            }
            for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
                let request = ada.request(Method::POST, &route).body(r#"{"yanked":true}"#);
                let request =
                    if kind.is_empty() { request } else { request.header("content-type", kind) };
                Reply::of(request).await.refused(415, "unsupported_media_type");
            }
            let large = json!({"yanked": true, "reason": "x".repeat(70_000)});
            ada.post(&route, &large).await.refused(413, "body_too_large");
            let long = json!({"yanked": true, "reason": "x".repeat(5000)});
            ada.post(&route, &long).await.refused(400, "invalid_request");
            for (path, status, code) in [
                ("tool/9.9.9/yank", 404, "not_found"),
                ("none/1.0.0/yank", 404, "not_found"),
                ("tool/one/yank", 400, "invalid_request"),
                ("tool/%FF/yank", 400, "invalid_request"),
                ("UPPER/1.0.0/yank", 400, "invalid_request"),
            ] {
                let reply =
                    ada.post(&format!("{API}/skills/{path}"), &json!({"yanked": true})).await;
                reply.refused(status, code);
            }
            ada.get(&route).await.refused(405, "method_not_allowed");
            ada.post("/registry/none", &json!({})).await.refused(404, "not_found");
            assert!(!is_yanked(server, "tool").await, "nothing was changed");
        },
    )
    .await;
}

#[tokio::test]
async fn names_used_by_routes_are_reserved() {
    for name in [
        "publish/tool", "acme/members", "acme/keys", "acme/deprecate", "acme/transfer",
        "acme/download",
    ] {
        assert!(name.parse::<savoir_store::registry::PackageName>().is_err(), "{name}");
    }
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            // In the default namespace these names are allowed.
            draft("keys", "1.0.0").publish(server, &ada).await;
            let detail = server.stranger().get(&format!("{API}/skills/keys")).await.ok(200);
            assert_eq!(detail["name"], "keys");
            let keys = server.stranger().get(&format!("{API}/skills/keys/keys")).await.ok(200);
            assert_eq!(keys, json!({"items": []}));
        },
    )
    .await;
}
