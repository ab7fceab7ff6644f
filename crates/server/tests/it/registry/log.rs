//! The log of all changes.

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
async fn every_change_is_there() {
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
            let public = json!({"public_key": key.public_key().to_text()});
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
                "namespace_created",
                "member_set",
                "member_removed",
                "key_added",
                "published",
                "signed",
                "yanked",
                "unyanked",
                "deprecated",
                "key_revoked",
                "unsigned",
                "withdrawn",
                "transferred",
                "prefix_granted",
                "prefix_revoked",
            ];
            assert_eq!(acts(&all), expected);
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
async fn page_by_page_and_by_what() {
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
async fn members_see_what_is_theirs() {
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
        },
    )
    .await;
}
