//! Tests `whoami` and registry tokens.

use serde_json::{Value, json};

use super::{API, program, publish};
use crate::harness::{ADMIN, Client, PASSWORD, for_each_server};

#[tokio::test]
async fn whoami_describes_the_account() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            let route = format!("{API}/whoami");
            server.stranger().get(&route).await.refused(401, "unauthorized");
            publish(server, &ada, "acme/tool", "1.0.0").await;
            publish(server, &ada, "flat", "1.0.0").await;
            let all = json!(["read", "publish", "yank", "owner"]);
            ada.get(&route).await.is(
                200,
                &json!({"email": "ada@example.org", "role": "user", "scopes": all,
                "namespaces": ["_/flat", "acme"]}),
            );
            let robot = json!({"scopes": ["publish", "registry:yank"], "namespace": "acme"});
            let robot = program(server, &ada, &robot).await;
            let who = robot.get(&route).await.ok(200);
            assert_eq!(who["scopes"], json!(["publish:acme", "yank:acme"]));
            let robot = program(server, &admin, &json!({"scopes": ["read"]})).await;
            let who = robot.get(&route).await.ok(200);
            assert_eq!((&who["role"], &who["scopes"]), (&json!("admin"), &json!(["read"])));
            assert_eq!(admin.get(&route).await.ok(200)["role"], "admin");
        },
    )
    .await;
}

#[tokio::test]
async fn token_is_created_used_and_revoked() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            let route = format!("{API}/tokens");
            let body = json!({"name": "ci", "scopes": ["publish", "publish", "read"],
            "namespace": "acme", "expires_in_days": 30});
            let reply = ada.post(&route, &body).await;
            let made = reply.ok(201);
            assert_eq!(reply.header("cache-control"), "no-store");
            assert_eq!(
                (&made["name"], &made["scopes"], &made["namespace"]),
                (&json!("ci"), &json!(["publish", "read"]), &json!("acme"))
            );
            let secret = made["token"].as_str().unwrap();
            assert!(secret.starts_with("sav_") && made["expires_at"].is_string());
            let list = ada.get(&route).await;
            assert!(!list.text.contains(secret));
            assert_eq!(list.ok(200)["items"][0]["id"], made["id"]);
            let robot = server.client(secret);
            let who = robot.get(&format!("{API}/whoami")).await.ok(200);
            assert_eq!(who["token_id"], made["id"], "so that it can end itself");
            // API tokens cannot manage tokens.
            robot.get(&route).await.refused(403, "forbidden_scope");
            robot.post(&route, &body).await.refused(403, "forbidden_scope");
            let one = format!("{route}/{}", made["id"].as_str().unwrap());
            bob.delete(&one).await.refused(404, "not_found");
            let other = program(server, &ada, &json!({"scopes": ["read"]})).await;
            other.delete(&one).await.refused(403, "forbidden_scope");
            // A token can revoke itself, and no other token.
            robot.delete(&one).await.ok(204);
            ada.delete(&one).await.refused(404, "not_found");
            robot.get(&format!("{API}/whoami")).await.refused(401, "unauthorized");
            assert_eq!(ada.get(&route).await.ok(200)["items"].as_array().unwrap().len(), 1);
            let admin = server.register(ADMIN).await;
            let log = admin.get(&format!("{API}/audit-log?act=token_made&act=token_ended")).await;
            assert!(!log.text.contains(secret));
            let log = log.ok(200)["items"].clone();
            let acts: Vec<&Value> = log.as_array().unwrap().iter().map(|one| &one["act"]).collect();
            assert_eq!(acts, ["token_ended", "token_made", "token_made"]);
            assert_eq!(
                (&log[0]["account"], &log[0]["details"]["id"]),
                (&json!("ada@example.org"), &made["id"])
            );
            assert_eq!(
                log[2]["details"]["scopes"],
                json!(["registry:publish:acme", "registry:read"])
            );
        },
    )
    .await;
}

#[tokio::test]
async fn audit_log_names_who_revoked_a_token() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob, admin) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
                server.register(ADMIN).await,
            );
            let make = async |who: &Client| {
                let wanted = json!({"name": "ci", "scopes": ["read"]});
                who.post(&format!("{API}/tokens"), &wanted).await.ok(201)
            };
            let without = json!({"name": "chat", "scopes": ["chat"]});
            ada.post("/api/v1/auth/tokens", &without).await.ok(201);
            let (itself, forgotten, of_bob) =
                (make(&ada).await, make(&ada).await, make(&bob).await);
            let id = |made: &Value| made["id"].as_str().unwrap().to_owned();

            let robot = server.client(itself["token"].as_str().unwrap());
            robot.delete(&format!("{API}/tokens/{}", id(&itself))).await.ok(204);
            let passwords = json!({"current": PASSWORD, "new": "another word"});
            ada.post("/api/v1/auth/password", &passwords).await.ok(200);
            admin.delete(&format!("/api/v1/admin/users/{}", bob.id())).await.ok(200);

            let log = admin.get(&format!("{API}/audit-log?act=token_ended")).await.ok(200);
            let response = log["items"].as_array().unwrap().iter().map(|entry| {
                let details = &entry["details"];
                json!([entry["account"], entry["token"], details["id"], details["user_id"]])
            });
            assert_eq!(
                response.collect::<Vec<_>>(),
                [
                    json!([ADMIN, null, id(&of_bob), bob.id()]),
                    json!(["ada@example.org", null, id(&forgotten), ada.id()]),
                    json!(["ada@example.org", id(&itself), id(&itself), ada.id()]),
                ]
            );
        },
    )
    .await;
}

#[tokio::test]
async fn tokens_of_the_server_work_for_the_registry() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let body = json!({"name": "ci", "scopes":
            ["registry:yank:acme", "registry:yank:acme", "chat", "registry:read"]});
            let made = ada.post("/api/v1/auth/tokens", &body).await.ok(201);
            assert_eq!(made["scopes"], json!(["chat", "registry:yank:acme", "registry:read"]));
            let robot = server.client(made["token"].as_str().unwrap());
            let yank = format!("{API}/skills/acme/tool/1.0.0/yank");
            robot.post(&yank, &json!({"yanked": true})).await.ok(200);
            // Rights of different kinds are listed unchanged.
            let list = ada.get(&format!("{API}/tokens")).await.ok(200);
            assert_eq!(list["items"][0]["scopes"], made["scopes"]);
            assert!(list["items"][0]["namespace"].is_null());
            for scope in
                ["registry:", "registry:publisher", "registry:publish:A B", "registry:read:_"]
            {
                let body = json!({"name": "x", "scopes": [scope]});
                let reply = ada.post("/api/v1/auth/tokens", &body).await;
                assert_eq!(reply.status, 422, "{scope}");
            }
            let body = json!({"name": "x", "scopes": ["registry:read:acme"]});
            let reply = ada.post("/api/v1/auth/tokens", &body).await;
            assert_eq!(reply.status, 422, "{}", reply.text);
            assert!(reply.text.contains("use 'registry:read'"), "{}", reply.text);
            // The right to read is never limited to a namespace.
            let body = json!({"scopes": ["read", "publish"], "namespace": "acme"});
            program(server, &ada, &body).await;
            let list = ada.get("/api/v1/auth/tokens").await.ok(200).to_string();
            assert!(list.contains("registry:publish:acme") && !list.contains("registry:read:"));
            let many: Vec<String> = (0..51).map(|n| format!("registry:read:n{n}")).collect();
            let reply =
                ada.post("/api/v1/auth/tokens", &json!({"name": "x", "scopes": many})).await;
            assert_eq!(reply.status, 422, "{}", reply.text);
        },
    )
    .await;
}

#[tokio::test]
async fn invalid_token_requests_are_rejected() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let route = format!("{API}/tokens");
            for (body, field) in [
                (json!({"scopes": ["read"]}), "`name`"),
                (json!({"name": "", "scopes": ["read"]}), "`name`"),
                (json!({"name": "x"}), "`scopes`"),
                (json!({"name": "x", "scopes": []}), "`scopes`"),
                (json!({"name": "x", "scopes": null}), "`scopes`"),
                (json!({"name": "x", "scopes": ["read", "admin"]}), "`scopes.1`"),
                (json!({"name": "x", "scopes": ["skills:read"]}), "`scopes.0`"),
                (
                    json!({"name": "x", "scopes": ["registry:yank:other"], "namespace": "acme"}),
                    "`scopes.0`",
                ),
                (json!({"name": "x", "scopes": ["read"], "namespace": "_"}), "`namespace`"),
                (
                    json!({"name": "x", "scopes": ["read"], "expires_in_days": 0}),
                    "`expires_in_days`",
                ),
                (
                    json!({"name": "x", "scopes": ["read"], "expires_in_days": 367}),
                    "`expires_in_days`",
                ),
            ] {
                let message = ada.post(&route, &body).await.refused(400, "invalid_request");
                assert!(message.contains(field), "{body}: {message}");
            }
            assert_eq!(ada.get(&route).await.ok(200), json!({"items": []}));
            for _ in 0..100 {
                ada.post(&route, &json!({"name": "x", "scopes": ["read"]})).await.ok(201);
            }
            let reply = ada.post(&route, &json!({"name": "x", "scopes": ["read"]})).await;
            assert!(
                reply.refused(400, "invalid_request").contains("the maximum of 100 API tokens")
            );
        },
    )
    .await;
}
