//! Tests teams, and what other users can see of them.

use serde_json::{Value, json};

use super::{API, program, publish};
use crate::harness::{ADMIN, Client, for_each_server};

async fn roles(who: &Client, route: &str) -> Vec<(Value, Value)> {
    let list = who.get(route).await.ok(200);
    let items = list["items"].as_array().unwrap().clone();
    items.into_iter().map(|item| (item["email"].clone(), item["role"].clone())).collect()
}

#[tokio::test]
async fn team_members_are_added_and_removed() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            ada.call(&format!("{API}/namespaces/acme"))
                .await
                .is(201, &json!({"namespace": "acme"}));
            bob.call(&format!("{API}/namespaces/acme")).await.refused(409, "exists");
            publish(server, &ada, "flat", "1.0.0").await;
            publish(server, &ada, "anon/note", "1.0.0").await;
            for (place, owner_scope) in [
                ("namespaces/acme", "acme"),
                ("skills/flat", "_/flat"),
                ("skills/anon/note", "anon/note"),
            ] {
                let route = format!("{API}/{place}/members");
                let body = json!({"email": "BOB@example.org", "role": "publisher"});
                bob.post(&route, &body).await.refused(403, "forbidden_scope");
                ada.post(&route, &body).await.is(
                    200,
                    &json!({"namespace": owner_scope, "id": bob.id(), "email": "bob@example.org",
                    "role": "publisher"}),
                );
                let expected = [
                    (json!("ada@example.org"), json!("owner")),
                    (json!("bob@example.org"), json!("publisher")),
                ];
                assert_eq!(roles(&bob, &route).await, expected);
                // A publisher cannot manage the team.
                let message = bob.post(&route, &body).await.refused(403, "forbidden_scope");
                assert!(message.contains("owner"), "{message}");
                let last = json!({"email": "ada@example.org", "role": "publisher"});
                ada.post(&route, &last).await.refused(409, "last_owner");
                ada.delete(&format!("{route}/ada@example.org")).await.refused(409, "last_owner");
                bob.delete(&format!("{route}/{}", ada.id())).await.refused(403, "forbidden_scope");
                // Members can remove themselves.
                bob.delete(&format!("{route}/bob@example.org")).await.ok(204);
                bob.delete(&format!("{route}/{}", bob.id())).await.refused(404, "not_found");
                ada.post(&route, &body).await.ok(200);
                ada.delete(&format!("{route}/{}", bob.id())).await.ok(204);
                assert_eq!(roles(&ada, &route).await, expected[..1]);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn mail_addresses_are_hidden_from_non_members() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            let admin = server.register(ADMIN).await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let route = format!("{API}/namespaces/acme/members");
            let robot = program(server, &ada, &json!({"scopes": ["publish"]})).await;
            for who in [&server.stranger(), &bob, &robot] {
                let reply = who.get(&route).await;
                assert_eq!(reply.ok(200)["items"][0]["role"], "owner");
                assert!(!reply.text.contains("example.org"), "{}", reply.text);
            }
            let owner =
                program(server, &ada, &json!({"scopes": ["owner"], "namespace": "acme"})).await;
            for who in [&ada, &admin, &owner] {
                assert!(who.get(&route).await.text.contains("ada@example.org"));
            }
            server.client("sav_wrong").get(&route).await.refused(401, "unauthorized");
            // For other users, the error does not reveal whether an account exists.
            for route in
                [format!("{API}/namespaces/acme/members"), format!("{API}/namespaces/free/members")]
            {
                let known = json!({"email": "ada@example.org", "role": "owner"});
                let unknown = json!({"email": "nobody@example.org", "role": "owner"});
                let (one, two) = (bob.post(&route, &known).await, bob.post(&route, &unknown).await);
                assert_eq!((one.status, one.text), (two.status, two.text));
                let one = bob.delete(&format!("{route}/ada@example.org")).await;
                let two = bob.delete(&format!("{route}/nobody@example.org")).await;
                assert_eq!((one.status, one.text), (two.status, two.text));
            }
            let transfer = format!("{API}/namespaces/acme/transfer");
            let one = bob.post(&transfer, &json!({"to": "admin@example.org"})).await;
            let two = bob.post(&transfer, &json!({"to": "nobody@example.org"})).await;
            assert_eq!((one.status, one.text), (two.status, two.text));
            let unknown = json!({"email": "nobody@example.org", "role": "owner"});
            let message = ada.post(&route, &unknown).await.refused(404, "not_found");
            assert!(message.contains("ask the user"), "{message}");
            for path in ["skills", "skills/acme/tool", "skills/acme/tool/1.0.0"] {
                let reply = server.stranger().get(&format!("{API}/{path}")).await;
                assert!(!reply.text.contains("example.org"), "{path}: {}", reply.text);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn namespace_is_transferred() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            let admin = server.register(ADMIN).await;
            ada.call(&format!("{API}/namespaces/acme")).await.ok(201);
            let route = format!("{API}/namespaces/acme/transfer");
            bob.post(&route, &json!({"to": "bob@example.org"}))
                .await
                .refused(403, "forbidden_scope");
            ada.post(&route, &json!({"to": "none@example.org"})).await.refused(404, "not_found");
            let given = ada.post(&route, &json!({"to": "bob@example.org"})).await;
            given.is(200, &json!({"namespace": "acme", "owner": "bob@example.org"}));
            ada.post(&route, &json!({"to": "ada@example.org"}))
                .await
                .refused(403, "forbidden_scope");
            // An administrator can transfer a namespace whose only owner is gone.
            admin.post(&route, &json!({"to": "ada@example.org"})).await.ok(200);
            let members = format!("{API}/namespaces/acme/members");
            assert_eq!(roles(&ada, &members).await, [(json!("ada@example.org"), json!("owner"))]);
            let both = json!({"email": "bob@example.org", "role": "owner"});
            ada.post(&members, &both).await.ok(200);
            admin.post(&route, &json!({"to": ADMIN})).await.refused(400, "invalid_request");
            let named = json!({"to": ADMIN, "from": "bob@example.org"});
            admin.post(&route, &named).await.ok(200);
        },
    )
    .await;
}

#[tokio::test]
async fn reserved_prefixes_are_granted_by_administrators() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, admin) =
                (server.register("ada@example.org").await, server.register(ADMIN).await);
            let grant = format!("{API}/prefixes/mcp-/ada@example.org");
            for reply in
                [ada.get(&grant).await, ada.put(&grant, &json!({})).await, ada.delete(&grant).await]
            {
                reply.refused(403, "forbidden_scope");
            }
            let take = format!("{API}/namespaces/mcp-tools");
            ada.call(&take).await.refused(403, "forbidden_scope");
            admin.get(&grant).await.refused(404, "not_found");
            let given = admin.put(&grant, &json!({})).await;
            given.is(200, &json!({"prefix": "mcp-", "email": "ada@example.org"}));
            assert_eq!(admin.get(&grant).await.status, 200);
            ada.call(&take).await.ok(201);
            admin.delete(&grant).await.ok(204);
            admin.delete(&grant).await.refused(404, "not_found");
            ada.call(&format!("{API}/namespaces/mcp-more")).await.refused(403, "forbidden_scope");
            let unknown = format!("{API}/prefixes/mine-/ada@example.org");
            admin.put(&unknown, &json!({})).await.refused(400, "invalid_request");
            let nobody = format!("{API}/prefixes/mcp-/none@example.org");
            admin.put(&nobody, &json!({})).await.refused(404, "not_found");
            // Without the scope `admin`, a token of an administrator has the rights of a user.
            let robot = program(server, &admin, &json!({"scopes": ["owner"]})).await;
            robot.put(&grant, &json!({})).await.refused(403, "forbidden_scope");
        },
    )
    .await;
}

#[tokio::test]
async fn invalid_team_names_are_rejected() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            for name in ["_", "anon", "index", "UPPER", "a--b"] {
                ada.call(&format!("{API}/namespaces/{name}")).await.refused(400, "invalid_request");
                let members = format!("{API}/namespaces/{name}/members");
                ada.get(&members).await.refused(400, "invalid_request");
            }
            ada.get(&format!("{API}/namespaces/free/members")).await.refused(404, "not_found");
            ada.call(&format!("{API}/namespaces/acme")).await.ok(201);
            let route = format!("{API}/namespaces/acme/members");
            for body in [
                json!({}),
                json!({"email": "ada@example.org"}),
                json!({"email": "ada@example.org", "role": "admin"}),
                json!({"email": 5, "role": "owner"}),
            ] {
                ada.post(&route, &body).await.refused(400, "invalid_request");
            }
            let robot =
                program(server, &ada, &json!({"scopes": ["owner"], "namespace": "acme"})).await;
            let other = format!("{API}/namespaces/other");
            robot.call(&other).await.refused(403, "forbidden_scope");
            ada.call(&other).await.ok(201);
            let body = json!({"email": "ada@example.org", "role": "owner"});
            robot.post(&format!("{other}/members"), &body).await.refused(403, "forbidden_scope");
            robot.post(&route, &body).await.ok(200);
        },
    )
    .await;
}
