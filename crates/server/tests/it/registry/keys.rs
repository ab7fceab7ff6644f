//! Tests signing keys and signatures of versions.

use savoir_package::trust::SigningKey;
use serde_json::{Value, json};

use super::{API, Draft, draft, index, program, publish, tree};
use crate::harness::{ADMIN, Client, TestServer, for_each_server};

fn key() -> SigningKey {
    SigningKey::generate().unwrap()
}

fn wanted(key: &SigningKey) -> Value {
    json!({"public_key": key.public_key().to_base64(), "label": "laptop"})
}

async fn tier(server: &TestServer, package: &str) -> Value {
    index(server, package).await[0]["tier"].clone()
}

fn signatures(draft: &Draft) -> String {
    format!("{API}/skills/{}/{}/signatures", draft.package, draft.version)
}

#[tokio::test]
async fn registered_keys_are_public() {
    for_each_server(|_| {}, async |server| {
        let ada = server.register("ada@example.org").await;
        publish(server, &ada, "acme/tool", "1.0.0").await;
        publish(server, &ada, "flat", "1.0.0").await;
        publish(server, &ada, "anon/note", "1.0.0").await;
        for place in ["namespaces/acme", "skills/flat", "skills/anon/note"] {
            let (one, route) = (key(), format!("{API}/{place}/keys"));
            let made = ada.post(&route, &wanted(&one)).await.ok(201);
            let expected = json!({"key_id": one.key_id(), "public_key": one.public_key().to_base64(),
                "label": "laptop", "added_at": made["added_at"], "proved": false, "revoked_at": null,
                "reason": null});
            assert_eq!(made, expected);
            let list = server.stranger().get(&route).await;
            list.is(200, &json!({"items": [expected]}));
            ada.post(&route, &wanted(&one)).await.refused(409, "exists");
            let revoke = format!("{route}/{}?reason=lost", one.key_id());
            ada.delete(&revoke).await.is(200, &json!({"key_id": one.key_id(), "lowered": 0}));
            let list = server.stranger().get(&route).await.ok(200);
            assert_eq!(list["items"][0]["reason"], "lost");
            assert!(list["items"][0]["revoked_at"].is_string());
            ada.post(&route, &wanted(&one)).await.refused(409, "key_revoked");
            ada.delete(&format!("{route}/none")).await.refused(404, "not_found");
        }
    })
    .await;
}

#[tokio::test]
async fn invalid_keys_and_missing_permission_are_rejected() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let route = format!("{API}/namespaces/acme/keys");
            for text in ["", "AAAA", "no base64!", "-----BEGIN PRIVATE KEY-----\nAAAA\n"] {
                let reply = ada.post(&route, &json!({"public_key": text})).await;
                let message = reply.refused(400, "invalid_request");
                assert!(message.contains("`public_key`"), "{message}");
            }
            let mut body = wanted(&key());
            bob.post(&route, &body).await.refused(403, "forbidden_scope");
            let robot = program(server, &ada, &json!({"scopes": ["publish", "yank"]})).await;
            robot.post(&route, &body).await.refused(403, "forbidden_scope");
            robot.delete(&format!("{route}/x")).await.refused(403, "forbidden_scope");
            body["email"] = "bob@example.org".into();
            ada.post(&route, &body).await.refused(400, "invalid_request");
            ada.post(&format!("{API}/auditors/keys"), &body).await.refused(403, "forbidden_scope");
            ada.delete(&format!("{API}/auditors/keys/x")).await.refused(403, "forbidden_scope");
            let free = format!("{API}/namespaces/free/keys");
            ada.post(&free, &wanted(&key())).await.refused(404, "not_found");
            let shared = format!("{API}/namespaces/anon/keys");
            ada.post(&shared, &wanted(&key())).await.refused(400, "invalid_request");
        },
    )
    .await;
}

/// A version that its publisher signed, with all accounts and keys.
struct Scene {
    ada: Client,
    auditor: Client,
    admin: Client,
    publishers: SigningKey,
    auditors: SigningKey,
    draft: Draft,
}

async fn scene(server: &TestServer) -> Scene {
    let (ada, auditor) =
        (server.register("ada@example.org").await, server.register("eve@example.org").await);
    let admin = server.register(ADMIN).await;
    let (publishers, auditors) = (key(), key());
    ada.call(&format!("{API}/namespaces/acme")).await.ok(201);
    ada.post(&format!("{API}/namespaces/acme/keys"), &wanted(&publishers)).await.ok(201);
    let mut body = wanted(&auditors);
    body["email"] = "eve@example.org".into();
    let made = admin.post(&format!("{API}/auditors/keys"), &body).await.ok(201);
    assert_eq!(made["email"], "eve@example.org");
    draft("acme/tool", "1.0.0").signed(&publishers).publish(server, &ada).await;
    assert_eq!(tier(server, "acme/tool").await, "community");
    let draft = draft("acme/tool", "1.0.0");
    Scene { ada, auditor, admin, publishers, auditors, draft }
}

#[tokio::test]
async fn auditor_signature_verifies_until_its_key_is_revoked() {
    for_each_server(
        |_| {},
        async |server| {
            let scene = scene(server).await;
            let route = signatures(&scene.draft);
            let body = json!({"signer": "auditor", "record": scene.draft.record(&scene.auditors)});
            scene.ada.post(&route, &body).await.refused(403, "forbidden_scope");
            let signed = scene.auditor.post(&route, &body).await;
            signed.is(
                201,
                &json!({"name": "acme/tool", "version": "1.0.0", "signer": "auditor",
                "key_id": scene.auditors.key_id(), "security_tier": "verified"}),
            );
            assert_eq!(tier(server, "acme/tool").await, "verified");
            let list = server.stranger().get(&route).await.ok(200);
            let states: Vec<_> = list["items"].as_array().unwrap().iter().collect();
            assert_eq!(states.len(), 2);
            assert!(states.iter().all(|one| one["state"] == "active"), "{list}");
            assert!(states.iter().any(|one| one["record"] == body["record"]), "{list}");
            // The email addresses of auditors are not public.
            let keys = server.stranger().get(&format!("{API}/auditors/keys")).await;
            assert!(!keys.text.contains("eve@") && keys.text.contains(&scene.auditors.key_id()));
            let keys = scene.admin.get(&format!("{API}/auditors/keys")).await;
            assert!(keys.text.contains("eve@example.org"));

            let path =
                format!("{API}/namespaces/acme/keys/{}?reason=stolen", scene.publishers.key_id());
            let revoked = scene.ada.delete(&path).await;
            revoked.is(200, &json!({"key_id": scene.publishers.key_id(), "lowered": 1}));
            assert_eq!(tier(server, "acme/tool").await, "experimental", "at once");
            let detail =
                server.stranger().get(&format!("{API}/skills/acme/tool/1.0.0")).await.ok(200);
            assert_eq!(detail["security_tier"], "experimental");
            let mut body = body.clone();
            body["signer"] = "publisher".into();
            body["record"] = scene.draft.record(&scene.publishers);
            scene.ada.post(&route, &body).await.refused(409, "key_revoked");
        },
    )
    .await;
}

#[tokio::test]
async fn forged_signatures() {
    for_each_server(
        |_| {},
        async |server| {
            let scene = scene(server).await;
            let route = signatures(&scene.draft);
            let good = scene.draft.record(&scene.auditors);
            let other = |change: fn(&mut Draft)| {
                let mut other = draft("acme/tool", "1.0.0");
                change(&mut other);
                other.record(&scene.auditors)
            };
            let mut unsigned = good.clone();
            unsigned["signature"] = scene.draft.record(&key())["signature"].clone();
            // The record names a registered key, but was signed with another one.
            let mut borrowed = scene.draft.record(&key());
            borrowed["key_id"] = good["key_id"].clone();
            let mut other_key = scene.draft.record(&key());
            other_key["key_id"] = good["key_id"].clone();
            other_key["public_key"] = good["public_key"].clone();
            for (what, record) in [
                ("another signature", unsigned),
                ("another key", borrowed),
                ("the key of others", other_key),
                ("other files", other(|it| it.tree = tree(&[("SKILL.md", b"changed")]))),
                ("another version", other(|it| it.version = "1.0.1".parse().unwrap())),
                ("another skill", other(|it| it.package = "acme/other".parse().unwrap())),
                ("nothing", json!({})),
            ] {
                let body = json!({"signer": "auditor", "record": record});
                let reply = scene.auditor.post(&route, &body).await;
                assert_eq!(reply.status, 400, "{what}: {}", reply.text);
                reply.refused(400, "invalid_signature");
            }
            // The signature is valid, but the key is not registered, or registered for another
            // owner.
            for (signer, key, who) in [
                ("auditor", &key(), &scene.auditor),
                ("auditor", &scene.publishers, &scene.auditor),
                ("publisher", &scene.auditors, &scene.ada),
            ] {
                let body = json!({"signer": signer, "record": scene.draft.record(key)});
                who.post(&route, &body).await.refused(403, "unknown_key");
            }
            for body in [
                json!({"signer": "owner", "record": good}),
                json!({"signer": "auditor"}),
                json!({"signer": "auditor", "record": "text"}),
            ] {
                scene.auditor.post(&route, &body).await.refused(400, "invalid_request");
            }
            let body = json!({"signer": "auditor", "record": good});
            let robot = program(server, &scene.auditor, &json!({"scopes": ["read", "yank"]})).await;
            robot.post(&route, &body).await.refused(403, "forbidden_scope");
            let missing = format!("{API}/skills/acme/tool/9.0.0/signatures");
            scene.auditor.post(&missing, &body).await.refused(404, "not_found");
            server.stranger().get(&missing).await.refused(404, "not_found");
            assert_eq!(tier(server, "acme/tool").await, "community", "nothing changed");
            assert_eq!(
                server.stranger().get(&route).await.ok(200)["items"].as_array().unwrap().len(),
                1
            );
        },
    )
    .await;
}

#[tokio::test]
async fn signature_can_be_added_after_publishing() {
    for_each_server(
        |_| {},
        async |server| {
            let ada = server.register("ada@example.org").await;
            let bob = server.register("bob@example.org").await;
            let (draft, key) = (draft("flat", "1.0.0"), key());
            let (record, route) = (draft.record(&key), signatures(&draft));
            draft.publish(server, &ada).await;
            assert_eq!(tier(server, "flat").await, "experimental");
            let body = json!({"signer": "publisher", "record": record});
            ada.post(&route, &body).await.refused(403, "unknown_key");
            ada.post(&format!("{API}/skills/flat/keys"), &wanted(&key)).await.ok(201);
            bob.post(&route, &body).await.refused(403, "forbidden_scope");
            let token = json!({"scopes": ["publish"], "namespace": "_/flat"});
            let robot = program(server, &ada, &token).await;
            let signed = robot.post(&route, &body).await.ok(201);
            assert_eq!(signed["security_tier"], "community");
            assert_eq!(tier(server, "flat").await, "community");
        },
    )
    .await;
}

#[tokio::test]
async fn key_belongs_to_the_first_namespace_that_registers_it() {
    for_each_server(
        |_| {},
        async |server| {
            let scene = scene(server).await;
            let bob = server.register("bob@example.org").await;
            bob.call(&format!("{API}/namespaces/bobs")).await.ok(201);
            let (bobs, auditors) =
                (format!("{API}/namespaces/bobs/keys"), format!("{API}/auditors/keys"));
            // Otherwise, signatures of others would count as bob's, and the auditors could not use
            // their own key.
            for key in [&scene.publishers, &scene.auditors] {
                let message = bob.post(&bobs, &wanted(key)).await.refused(409, "key_taken");
                assert!(message.contains("a key of your own"), "{message}");
            }
            let own = key();
            bob.post(&bobs, &wanted(&own)).await.ok(201);
            for key in [&scene.publishers, &own] {
                let mut body = wanted(key);
                body["email"] = "eve@example.org".into();
                scene.admin.post(&auditors, &body).await.refused(409, "key_taken");
            }
            // An owner of both namespaces may use one key for both. A revoked key stays theirs.
            let route = format!("{API}/namespaces/second/keys");
            scene.ada.call(&format!("{API}/namespaces/second")).await.ok(201);
            scene.ada.post(&route, &wanted(&scene.publishers)).await.ok(201);
            let revoke = format!("{route}/{}?reason=lost", scene.publishers.key_id());
            scene.ada.delete(&revoke).await.ok(200);
            bob.post(&bobs, &wanted(&scene.publishers)).await.refused(409, "key_taken");
        },
    )
    .await;
}
