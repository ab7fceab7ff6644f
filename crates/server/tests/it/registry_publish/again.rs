//! Tests publishing the same bytes again: after they were withdrawn, and by another user.

use savoir_package::{
    File, archive,
    trust::{
        self, SigningKey,
        possession::{self, Purpose},
    },
};
use savoir_skill::digest::sha256_hex;
use serde_json::json;

use super::{SKILLS, is, manifest, publish, send, skill, tree};
use crate::harness::{ADMIN, TestServer};

#[tokio::test]
async fn removed_content_cannot_be_published_as_another_version() {
    let server = TestServer::start().await;
    let (ada, admin) = (server.register("ada@example.org").await, server.register(ADMIN).await);
    let prose = |folder: &str, text: &str| {
        archive::pack(folder, &tree(&[("SKILL.md", &format!("# Tea\n\n{text}\n"))])).unwrap()
    };
    let (first, second) = (prose("tea", "Wait four minutes."), prose("tea", "Wait five minutes."));
    for bytes in [&first, &second] {
        assert_eq!(publish(&ada, "?namespace=anon", bytes.clone()).await.status, 201);
    }
    let withdraw = json!({"why": "it scalds"});
    let route = |version: &str, end: &str| format!("{SKILLS}/anon/tea/{version}/{end}");
    assert_eq!(admin.post(&route("0.0.1", "withdraw"), &withdraw).await.status, 200);
    let block = json!({"verdict": "block", "reason": "it stains"});
    assert_eq!(admin.put(&route("0.0.2", "verdict"), &block).await.status, 200);
    for (bytes, why) in [
        (first.clone(), "it scalds"),
        (prose("other", "Wait four minutes."), "it scalds"),
        (second.clone(), "it stains"),
    ] {
        let reply = publish(&ada, "?namespace=anon", bytes).await;
        is(&reply, 403, "taken_down");
        let message = reply.json()["error"]["message"].clone();
        for words in [why, "anon/tea 0.0.", "appeal"] {
            assert!(message.as_str().unwrap().contains(words), "{words}: {message}");
        }
    }
    // An administrator can allow withdrawn bytes again.
    let clearance = format!("/registry/api/v1/clearances/{}", sha256_hex(&first));
    let body = json!({"reason": "It cools.", "package": "anon/tea"});
    assert_eq!(admin.put(&clearance, &body).await.status, 200);
    let reply = publish(&ada, "?namespace=anon", first.clone()).await;
    assert_eq!(reply.json()["published"]["version"], "0.0.3", "{}", reply.text);
    let allow = json!({"verdict": "allow", "reason": "it washes out"});
    assert_eq!(admin.put(&route("0.0.2", "verdict"), &allow).await.status, 200);
    let reply = publish(&ada, "?namespace=anon", second.clone()).await;
    assert_eq!(reply.json()["published"]["version"], "0.0.4", "{}", reply.text);
    // The response to blocking a version lists other versions with the same content. A blocked
    // version is shown as yanked.
    let reply = admin.put(&route("0.0.2", "verdict"), &block).await;
    assert_eq!(reply.json()["same_content"], json!(["anon/tea@0.0.4"]), "{}", reply.text);
    let shown = ada.get(&format!("{SKILLS}/anon/tea/0.0.2")).await.json();
    assert_eq!(shown["yanked"], true, "{shown}");
    assert_eq!((&shown["yanked_reason"], &shown["skill_md"]), (&json!("it stains"), &json!(null)));
    is(&publish(&ada, "?namespace=anon&name=coffee", second).await, 403, "taken_down");
    let log = admin.get("/registry/api/v1/audit-log?act=judged&limit=1").await.json();
    assert_eq!(log["items"][0]["details"]["reason"], "it stains", "{log}");
    // A clearance from before does not apply to the next decision.
    assert_eq!(admin.post(&route("0.0.3", "withdraw"), &withdraw).await.status, 200);
    is(&publish(&ada, "?namespace=anon", first).await, 403, "taken_down");
}

#[tokio::test]
async fn copied_signature_does_not_count_for_another_namespace() {
    let server = TestServer::start().await;
    let (ada, bob) =
        (server.register("ada@example.org").await, server.register("bob@example.org").await);
    let key = SigningKey::generate().unwrap();
    let mut files = tree(&[("SKILL.md", &manifest("tool", "1.0.0", ""))]);
    let plain = archive::pack("tool", &files).unwrap();
    let record = trust::sign(&files, "tool", "1.0.0", "ada", &key);
    files
        .add("signature.json".to_owned(), File { bytes: record.clone(), executable: false })
        .unwrap();
    let signed = archive::pack("tool", &files).unwrap();
    // The owner has not registered the key yet.
    let reply = publish(&ada, "?namespace=acme", signed.clone()).await;
    assert_eq!(reply.json()["published"]["security_tier"], "experimental", "{}", reply.text);
    let public = json!({"public_key": key.public_key().to_base64(), "label": "found"});
    for namespace in ["bobs", "bobby"] {
        assert_eq!(bob.call(&format!("/registry/api/v1/namespaces/{namespace}")).await.status, 201);
        let keys = format!("/registry/api/v1/namespaces/{namespace}/keys");
        assert_eq!(bob.post(&keys, &public).await.status, 201);
    }
    let reply = publish(&bob, "?namespace=bobs", signed).await;
    assert_eq!(reply.json()["published"]["security_tier"], "experimental", "{}", reply.text);
    assert_eq!(publish(&bob, "?namespace=bobby", plain).await.status, 201);
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let body = json!({"signer": "publisher", "record": record});
    let reply = bob.post(&format!("{SKILLS}/bobby/tool/1.0.0/signatures"), &body).await;
    is(&reply, 409, "key_taken");
}

#[tokio::test]
async fn registering_a_key_needs_proof_of_possession() {
    let server = TestServer::start().await;
    let (ada, bob) =
        (server.register("ada@example.org").await, server.register("bob@example.org").await);
    let key = SigningKey::generate().unwrap();
    let keys = |namespace: &str| format!("/registry/api/v1/namespaces/{namespace}/keys");
    for (who, namespace) in [(&ada, "acme"), (&bob, "bobs")] {
        assert_eq!(who.call(&format!("/registry/api/v1/namespaces/{namespace}")).await.status, 201);
    }
    let registry = format!("http://{}/registry", server.address);
    let prove = |key: &SigningKey, owner_scope: &str| {
        possession::prove(key, Purpose { owner_scope, registry: &registry })
    };
    // Bob, who knows only the public key, registers it first, and publishes a copied skill that it
    // signs.
    let public = key.public_key().to_base64();
    assert_eq!(bob.post(&keys("bobs"), &json!({"public_key": public})).await.status, 201);
    let mut files = tree(&[("SKILL.md", &manifest("tool", "1.0.0", ""))]);
    let record = trust::sign(&files, "tool", "1.0.0", "ada", &key);
    files.add("signature.json".to_owned(), File { bytes: record, executable: false }).unwrap();
    let signed = archive::pack("tool", &files).unwrap();
    let reply = publish(&bob, "?namespace=bobs", signed).await;
    assert_eq!(reply.json()["published"]["security_tier"], "community", "{}", reply.text);
    is(&ada.post(&keys("acme"), &json!({"public_key": public})).await, 409, "key_taken");
    // A proof for another namespace or registry, or by another key, is invalid.
    let other = SigningKey::generate().unwrap();
    for proof in [
        prove(&key, "bobs"),
        prove(&other, "acme"),
        possession::prove(&key, Purpose { owner_scope: "acme", registry: "https://y.example" }),
        "none".to_owned(),
    ] {
        let wrong = json!({"public_key": public, "proof": proof});
        is(&ada.post(&keys("acme"), &wrong).await, 400, "invalid_request");
    }
    let right = json!({"public_key": public, "proof": prove(&key, "acme")});
    let reply = ada.post(&keys("acme"), &right).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert_eq!(reply.json()["proved"], true, "{}", reply.text);
    let listed = bob.get(&keys("bobs")).await.json();
    assert_eq!(listed["items"][0]["reason"], "somebody else showed that it is theirs", "{listed}");
    let lowered = bob.get(&format!("{SKILLS}/bobs/tool/1.0.0")).await.json();
    assert_eq!(lowered["security_tier"], "experimental", "{lowered}");
    // A proved key cannot be registered by another namespace.
    let again = json!({"public_key": public, "proof": prove(&key, "more")});
    assert_eq!(bob.call("/registry/api/v1/namespaces/more").await.status, 201);
    is(&bob.post(&keys("more"), &again).await, 409, "key_taken");
    // Namespaces of the same owner can share a key, with or without a proof for each.
    let old = SigningKey::generate().unwrap();
    let public = old.public_key().to_base64();
    assert_eq!(ada.call("/registry/api/v1/namespaces/second").await.status, 201);
    assert_eq!(ada.post(&keys("acme"), &json!({"public_key": public})).await.status, 201);
    let shown =
        |owner_scope: &str| json!({"public_key": public, "proof": prove(&old, owner_scope)});
    assert_eq!(ada.post(&keys("second"), &shown("second")).await.status, 201);
    let listed = ada.get(&keys("acme")).await.json();
    assert_eq!(listed["items"][1]["revoked_at"], json!(null), "{listed}");
    assert_eq!(ada.post(&keys("acme"), &shown("acme")).await.status, 201, "it is shown later");
    assert_eq!(ada.get(&keys("acme")).await.json()["items"][1]["proved"], true);
    is(&ada.post(&keys("acme"), &shown("acme")).await, 409, "exists");
}

#[tokio::test]
async fn requested_version_must_match_the_skill() {
    let server = TestServer::start().await;
    let ada = server.register("ada@example.org").await;
    let bytes = skill("tool", "1.0.0", "");
    let reply = send(&ada, &[("artifact", &bytes), ("version", b"5.0.0")]).await;
    is(&reply, 400, "invalid_request");
    assert_eq!(reply.json()["error"]["reason"], "version_mismatch", "{}", reply.text);
    assert!(reply.text.contains("SKILL.md says 1.0.0"), "{}", reply.text);
    is(&publish(&ada, "?version=5.0.0", bytes.clone()).await, 400, "invalid_request");
    let prose = archive::pack("tea", &tree(&[("SKILL.md", "# Tea\n\nWait.\n")])).unwrap();
    is(&publish(&ada, "?namespace=anon&version=1.0.0", prose).await, 400, "invalid_request");
    let reply = send(&ada, &[("artifact", &bytes), ("version", b"1.0.0")]).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
}
