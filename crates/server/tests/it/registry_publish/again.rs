//! The same bytes once more: after they were taken down, and by somebody else.

use savoir_package::{
    File, archive,
    trust::{self, SigningKey},
};
use savoir_skill::digest::sha256_hex;
use serde_json::json;

use super::{SKILLS, is, manifest, publish, send, skill, tree};
use crate::harness::{ADMIN, TestServer};

#[tokio::test]
async fn what_was_taken_down_does_not_come_back_under_another_number() {
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
    // An administrator who thinks better of it lets them come back.
    let clearance = format!("/registry/api/v1/clearances/{}", sha256_hex(&first));
    let body = json!({"reason": "It cools.", "package": "anon/tea"});
    assert_eq!(admin.put(&clearance, &body).await.status, 200);
    let reply = publish(&ada, "?namespace=anon", first.clone()).await;
    assert_eq!(reply.json()["published"]["version"], "0.0.3", "{}", reply.text);
    let allow = json!({"verdict": "allow", "reason": "it washes out"});
    assert_eq!(admin.put(&route("0.0.2", "verdict"), &allow).await.status, 200);
    let reply = publish(&ada, "?namespace=anon", second).await;
    assert_eq!(reply.json()["published"]["version"], "0.0.4", "{}", reply.text);
    // A clearance from before does not outlive the next decision.
    assert_eq!(admin.post(&route("0.0.3", "withdraw"), &withdraw).await.status, 200);
    is(&publish(&ada, "?namespace=anon", first).await, 403, "taken_down");
}

#[tokio::test]
async fn what_somebody_signed_does_not_count_for_who_took_it() {
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
    // Its owner has not registered the key yet.
    let reply = publish(&ada, "?namespace=acme", signed.clone()).await;
    assert_eq!(reply.json()["published"]["security_tier"], "experimental", "{}", reply.text);
    let public = json!({"public_key": key.public_key().to_text(), "label": "found"});
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
async fn a_version_that_is_meant_is_the_one_that_is_published() {
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
