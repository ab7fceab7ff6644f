//! Tests the audit log.

use savoir_package::trust::SigningKey;
use serde_json::{Value, json};

use super::{API, draft, program, publish};
use crate::harness::{ADMIN, Client, for_each_server};

async fn read(who: &Client, query: &str) -> Vec<Value> {
    let page = who.get(&format!("{API}/audit-log?{query}")).await.ok(200);
    page["items"].as_array().unwrap().clone()
}

fn acts(entries: &[Value]) -> Vec<&str> {
    entries.iter().rev().map(|entry| entry["act"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_change_is_in_the_audit_log() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            server.register("bob@example.org").await;
            let robot =
                program(server, &ada, &json!({"scopes": ["yank", "owner", "publish"]})).await;
            let key = SigningKey::generate().unwrap();
            robot.call(&format!("{API}/namespaces/acme")).await.ok(201);
            let team = format!("{API}/namespaces/acme");
            let bob = |role: &str| json!({"email": "bob@example.org", "role": role});
            robot.post(&format!("{team}/members"), &bob("publisher")).await.ok(200);
            robot.delete(&format!("{team}/members/bob@example.org")).await.ok(204);
            let public = json!({"public_key": key.public_key().to_base64()});
            robot.post(&format!("{team}/keys"), &public).await.ok(201);
            let draft = draft("acme/tool", "1.0.0");
            let record = draft.record(&key);
            draft.publish(server, &ada).await;
            let version = format!("{API}/skills/acme/tool/1.0.0");
            let signature = json!({"signer": "publisher", "record": record});
            robot.post(&format!("{version}/signatures"), &signature).await.ok(201);
            robot
                .post(&format!("{version}/yank"), &json!({"yanked": true, "reason": "r"}))
                .await
                .ok(200);
            robot.post(&format!("{version}/yank"), &json!({"yanked": false})).await.ok(200);
            robot.post(&format!("{version}/deprecate"), &json!({"message": "m"})).await.ok(200);
            robot.delete(&format!("{team}/keys/{}?reason=old", key.key_id())).await.ok(200);
            admin.post(&format!("{version}/withdraw"), &json!({"why": "w"})).await.ok(200);
            robot
                .post(&format!("{team}/transfer"), &json!({"to": "bob@example.org"}))
                .await
                .ok(200);
            let prefix = format!("{API}/prefixes/mcp-/bob@example.org");
            admin.put(&prefix, &json!({})).await.ok(200);
            admin.delete(&prefix).await.ok(204);

            let all = read(&admin, "").await;
            let expected = [
                "token_made", "namespace_created", "member_set", "member_removed", "key_added",
                "published", "signed", "yanked", "unyanked", "deprecated", "key_revoked",
                "unsigned", "withdrawn", "transferred", "prefix_granted", "prefix_revoked",
            ];
            assert_eq!(acts(&all), expected);
            let some = read(&admin, "act=yanked&act=unyanked&limit=100").await;
            assert_eq!(acts(&some), ["yanked", "unyanked"]);
            assert_eq!(read(&admin, "act=appealed").await.len(), 0);
            let wrong = admin.get(&format!("{API}/audit-log?act=nonsense")).await;
            assert_eq!(wrong.ok(400)["error"]["code"], "invalid_request");
            for (entry, seq) in all.iter().zip((1..=expected.len()).rev()) {
                assert_eq!(entry["seq"], seq);
                assert!(entry["at"].is_string() && entry["account"].is_string(), "{entry}");
            }
            let yanked = all.iter().find(|entry| entry["act"] == "yanked").unwrap();
            assert_eq!(yanked["account"], "ada@example.org");
            assert_eq!(yanked["package"], "acme/tool");
            assert_eq!(yanked["version"], "1.0.0");
            assert_eq!(yanked["namespace"], "acme");
            assert_eq!(yanked["details"]["why"], "r");
            assert!(yanked["token"].is_string(), "with which token it was");
            let withdrawn = all.iter().find(|entry| entry["act"] == "withdrawn").unwrap();
            assert_eq!((&withdrawn["account"], &withdrawn["token"]), (&json!(ADMIN), &json!(null)));
        },
    )
    .await;
}

#[tokio::test]
async fn audit_log_has_pages_and_filters() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            for version in ["1.0.0", "1.1.0", "1.2.0"] {
                publish(server, &ada, "acme/one", version).await;
                publish(server, &ada, "flat", version).await;
            }
            admin.call(&format!("{API}/namespaces/other")).await.ok(201);
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let route = format!("{API}/audit-log?limit=3{cursor}");
                let page = admin.get(&route).await.ok(200);
                let items = page["items"].as_array().unwrap();
                assert!(items.len() <= 3);
                seen.extend(items.iter().map(|item| item["seq"].as_u64().unwrap()));
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(seen, (1..=8).rev().collect::<Vec<_>>());
            assert_eq!(read(&admin, "package=flat").await.len(), 3);
            assert_eq!(read(&admin, "namespace=acme").await.len(), 4);
            assert_eq!(read(&admin, "namespace=_/flat").await.len(), 3);
            assert_eq!(read(&admin, &format!("account={ADMIN}")).await.len(), 1);
            assert_eq!(read(&admin, "account=none@example.org").await.len(), 0);
            for query in
                ["cursor=x", "cursor=0", "limit=0", "limit=101", "package=A", "namespace=_"]
            {
                let reply = admin.get(&format!("{API}/audit-log?{query}")).await;
                reply.refused(400, "invalid_request");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn members_see_entries_of_their_namespaces() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/tool", "1.0.0").await;
            publish(server, &bob, "flat", "1.0.0").await;
            let log = |query: &str| format!("{API}/audit-log?{query}");
            server.stranger().get(&log("namespace=acme")).await.refused(401, "unauthorized");
            for query in ["", "account=ada@example.org", "package=flat", "namespace=_/flat"] {
                ada.get(&log(query)).await.refused(403, "forbidden_scope");
            }
            ada.get(&log("package=acme/tool&namespace=_/flat"))
                .await
                .refused(403, "forbidden_scope");
            ada.get(&log("namespace=free")).await.refused(404, "not_found");
            assert_eq!(
                acts(&read(&ada, "namespace=acme").await),
                ["namespace_created", "published"]
            );
            assert_eq!(acts(&read(&ada, "package=acme/tool").await), ["published"]);
            assert_eq!(read(&ada, "namespace=acme&account=bob@example.org").await.len(), 0);
            let robot = program(server, &ada, &json!({"scopes": ["publish"]})).await;
            robot.get(&log("namespace=acme")).await.refused(403, "forbidden_scope");
            let robot =
                program(server, &ada, &json!({"scopes": ["owner"], "namespace": "acme"})).await;
            assert_eq!(read(&robot, "namespace=acme").await.len(), 2);
            // A token with the right to read can read the entries of its user's teams only.
            let robot = program(server, &ada, &json!({"scopes": ["read"]})).await;
            assert_eq!(read(&robot, "namespace=acme").await.len(), 2);
            robot.get(&log("package=flat")).await.refused(403, "forbidden_scope");
            robot.get(&log("")).await.refused(403, "forbidden_scope");
        },
    )
    .await;
}

#[tokio::test]
async fn mail_addresses_are_visible_to_team_and_administrators_only() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            let (bob, eve) = (
                server.register("bob@example.org").await,
                server.register("eve@example.org").await,
            );
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let team = format!("{API}/namespaces/acme/members");
            let member = |who: &str| json!({"email": who, "role": "publisher"});
            for email in ["bob@example.org", "eve@example.org"] {
                ada.post(&team, &member(email)).await.ok(200);
            }
            publish(server, &eve, "acme/tool", "1.1.0").await;
            ada.delete(&format!("{team}/eve@example.org")).await.ok(204);
            let version = format!("{API}/skills/acme/tool/1.0.0");
            let robot = json!({"name": "r", "scopes": ["admin", "registry:yank"]});
            let robot = admin.post("/api/v1/auth/tokens", &robot).await.ok(201);
            let robot = server.client(robot["token"].as_str().unwrap());
            robot.post(&format!("{version}/withdraw"), &json!({"why": "w"})).await.ok(200);

            let seen = read(&bob, "namespace=acme").await;
            let of = |act: &str, version: &str| {
                let one = |entry: &&Value| entry["act"] == act && entry["version"] == version;
                seen.iter().find(one).unwrap().clone()
            };
            assert_eq!(of("published", "1.0.0")["account"], "ada@example.org");
            assert_eq!(of("published", "1.1.0")["account"], eve.id());
            let withdrawn = of("withdrawn", "1.0.0");
            assert_eq!(
                (&withdrawn["account"], &withdrawn["token"]),
                (&admin.id().into(), &json!(null))
            );
            let text = json!(seen).to_string();
            assert!(!text.contains("eve@") && !text.contains(ADMIN), "{text}");
            // The filter does not reveal whose an account id is.
            assert!(read(&bob, "namespace=acme&account=eve@example.org").await.is_empty());
            assert_eq!(read(&bob, &format!("namespace=acme&account={}", eve.id())).await.len(), 1);
            assert_eq!(read(&bob, "namespace=acme&account=ada@example.org").await.len(), 5);
            let all = read(&admin, "namespace=acme").await;
            assert_eq!(all.iter().find(|one| one["act"] == "withdrawn").unwrap()["account"], ADMIN);
            assert!(json!(all).to_string().contains("eve@example.org"));
        },
    )
    .await;
}

#[tokio::test]
async fn token_of_an_administrator_reads_the_whole_log() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let wanted = json!({"name": "log", "scopes": ["registry:read", "admin"],
                "expires_in_days": 7});
            let log = format!("{API}/audit-log");
            ada.post("/api/v1/auth/tokens", &wanted).await.refuses(403, "Admin access required");
            let made = admin.post("/api/v1/auth/tokens", &wanted).await.ok(201);
            assert!(made["expires_at"].is_string(), "{made}");
            let robot = server.client(made["token"].as_str().unwrap());
            assert_eq!(
                acts(&read(&robot, "").await),
                ["namespace_created", "published", "token_made"]
            );
            let who = robot.get(&format!("{API}/whoami")).await.ok(200);
            assert_eq!(
                (&who["role"], &who["scopes"]),
                (&json!("admin"), &json!(["read", "admin"]))
            );
            // Without the scope `admin`, a token of an administrator has the rights of a user.
            let robot = program(server, &admin, &json!({"scopes": ["read", "owner"]})).await;
            robot.get(&log).await.refused(403, "forbidden_scope");
        },
    )
    .await;
}
