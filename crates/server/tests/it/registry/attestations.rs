//! Signed evaluations of versions.

use savoir_package::trust::{
    SigningKey, StatementKey,
    evaluation::{OWN_FIELDS, PREDICATE_TYPE, STATEMENT_TYPE, hex_digest},
    oms::BundleKey,
    sign_statement,
};
use serde_json::{Value, json};

use super::{API, draft, index, program};
use crate::harness::{ADMIN, Client, TestServer, for_each_server};

fn statement(integrity: &str, verdict: &str, lower: f64, upper: f64) -> Value {
    json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "pdf", "digest": {"sha256": hex_digest(integrity).unwrap()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "configuration": [{"name": "evaluations", "digest": {"sha256": "ab"}}],
            OWN_FIELDS: {
                "verdict": verdict, "trials": 10, "all_trials": 80, "invalid_trials": 0,
                "uplift": {"mean": f64::midpoint(lower, upper), "lower": lower, "upper": upper},
                "host": {"name": "savoir", "version": "0.1.0", "model": "ollama:m"},
                "eval_set": "ab", "harness": "savoir 0.1.0",
                "finished": "2026-01-01T00:00:00Z",
            },
        },
    })
}

fn signed(key: &SigningKey, statement: &Value) -> Value {
    let signed = sign_statement(statement, StatementKey::Own(key)).unwrap();
    json!({"statement": signed, "public_key": key.public_key().to_base64()})
}

/// Publishes `acme/pdf` 1.0.0, and returns the digest of its files.
async fn publish_pdf(server: &TestServer, who: &Client) -> String {
    let draft = draft("acme/pdf", "1.0.0");
    let integrity = draft.tree.integrity();
    draft.publish(server, who).await;
    integrity
}

#[tokio::test]
async fn evaluations_of_anybody_are_verified_and_listed_by_attester() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob, eve) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
                server.register("eve@example.org").await,
            );
            let integrity = publish_pdf(server, &ada).await;
            let route = format!("{API}/skills/acme/pdf/1.0.0/attestations");
            let empty = server.stranger().get(&route).await.ok(200);
            assert_eq!(empty, json!({"items": [], "disagree": false}));
            let key = SigningKey::generate().unwrap();
            let pass = signed(&key, &statement(&integrity, "pass", 5.0, 20.0));
            let added = bob.post(&route, &pass).await.ok(201);
            assert_eq!(added["key_id"], json!(key.key_id()));
            assert_eq!(added["evaluation"]["verdict"], json!("pass"));
            assert_eq!(added["public_key"], json!(key.public_key().to_base64()));
            // The same statement is stored once, whoever sends it.
            let again = eve.post(&route, &pass).await.ok(201);
            assert_eq!(again["id"], added["id"]);
            let one = server.stranger().get(&route).await.ok(200);
            assert_eq!(
                (one["items"].as_array().map(Vec::len), &one["disagree"]),
                (Some(1), &json!(false))
            );
            // Another attester measured something else: both are listed, and nothing is averaged.
            let bundle = BundleKey::from_pem(&BundleKey::generate().unwrap()).unwrap();
            let fail = statement(&integrity, "fail", -30.0, -2.0);
            let fail = json!({
                "statement": sign_statement(&fail, StatementKey::Bundle(&bundle)).unwrap(),
                "public_key": bundle.public_key().unwrap().to_text(),
            });
            let other = eve.post(&route, &fail).await.ok(201);
            let both = server.stranger().get(&route).await.ok(200);
            assert_eq!(both["disagree"], json!(true));
            let uplifts: Vec<f64> = both["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["evaluation"]["uplift"]["mean"].as_f64().unwrap())
                .collect();
            assert_eq!(uplifts, [-16.0, 12.5], "newest first: {both}");
            assert!(!both.to_string().contains("example.org"), "{both}");
            assert_eq!(index(server, "acme/pdf").await[0]["attestations"], json!(2));
            let detail = server.stranger().get(&format!("{API}/skills/acme/pdf")).await.ok(200);
            assert_eq!(detail["attestations"], json!(2));
            // Accounts remove their own, administrators any.
            let of_eve = format!("{route}?id={}", other["id"].as_str().unwrap());
            bob.delete(&of_eve).await.refused(403, "forbidden_scope");
            let admin = server.register(ADMIN).await;
            admin.delete(&of_eve).await.ok(204);
            bob.delete(&of_eve).await.refused(404, "not_found");
            eve.post(&route, &fail).await.refused(400, "invalid_request");
            let log = format!("{API}/audit-log?act=attested&act=attestation_removed");
            let log = admin.get(&log).await.ok(200);
            let acts: Vec<&Value> =
                log["items"].as_array().unwrap().iter().map(|entry| &entry["act"]).collect();
            assert_eq!(acts, ["attestation_removed", "attested", "attested"]);
            let left = server.stranger().get(&route).await.ok(200);
            assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "{left}");
            let own = format!("{route}?id={}", added["id"].as_str().unwrap());
            bob.delete(&own).await.ok(204);
            assert!(index(server, "acme/pdf").await[0].get("attestations").is_none());
        },
    )
    .await;
}

#[tokio::test]
async fn newest_evaluation_of_requested_keys_is_listed_first() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob, eve) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
                server.register("eve@example.org").await,
            );
            let integrity = publish_pdf(server, &ada).await;
            let route = format!("{API}/skills/acme/pdf/1.0.0/attestations");
            let key = SigningKey::generate().unwrap();
            let of = |verdict: &str, finished: &str| {
                let mut new = statement(&integrity, verdict, 5.0, 20.0);
                new["predicate"][OWN_FIELDS]["finished"] = finished.into();
                signed(&key, &new)
            };
            ada.post(&route, &of("fail", "2026-02-01T00:00:00Z")).await.ok(201);
            // An older evaluation that is added later does not replace the newer one.
            bob.post(&route, &of("pass", "2026-01-01T00:00:00Z")).await.ok(201);
            // Large evaluations of other keys do not fill the response.
            let mut large = statement(&integrity, "pass", 5.0, 20.0);
            large["predicate"][OWN_FIELDS]["regressions"] = json!(vec!["x".repeat(500); 45]);
            for account in [&ada, &bob, &eve] {
                for _ in 0..19 {
                    let other = SigningKey::generate().unwrap();
                    account.post(&route, &signed(&other, &large)).await.ok(201);
                }
            }
            let all = server.stranger().get(&route).await.ok(200);
            assert!(all.to_string().len() < 3 << 20 && all["items"][30].is_object());
            assert!(!all.to_string().contains(&key.key_id()), "it is cut");
            let wanted = format!("{route}?key={}&key=other", key.key_id());
            let first = server.stranger().get(&wanted).await.ok(200)["items"].clone();
            let of_key = |one: &&Value| one["key_id"] == json!(key.key_id());
            assert_eq!(first[0]["evaluation"]["verdict"], json!("fail"));
            assert_eq!(first.as_array().unwrap().iter().filter(of_key).count(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn evaluations_that_prove_nothing_are_refused() {
    for_each_server(
        |_| {},
        async |server| {
            let (ada, bob) = (
                server.register("ada@example.org").await,
                server.register("bob@example.org").await,
            );
            let integrity = publish_pdf(server, &ada).await;
            let route = format!("{API}/skills/acme/pdf/1.0.0/attestations");
            let key = SigningKey::generate().unwrap();
            let good = signed(&key, &statement(&integrity, "pass", 5.0, 20.0));
            server.stranger().post(&route, &good).await.refused(401, "unauthorized");
            let reads = program(server, &bob, &json!({"scopes": ["read"]})).await;
            reads.post(&route, &good).await.refused(403, "forbidden_scope");
            let mut keyless = good.clone();
            keyless["public_key"].take();
            bob.post(&route, &keyless).await.refused(400, "invalid_attestation");
            let mut of_other_key = good.clone();
            let other = SigningKey::generate().unwrap().public_key().to_base64();
            of_other_key["public_key"] = other.into();
            bob.post(&route, &of_other_key).await.refused(400, "invalid_attestation");
            let mut changed = good.clone();
            let payload = signed(&key, &statement(&integrity, "pass", 50.0, 90.0));
            changed["statement"]["payload"] = payload["statement"]["payload"].clone();
            bob.post(&route, &changed).await.refused(400, "invalid_attestation");
            let elsewhere = draft("acme/other", "1.0.0").tree.integrity();
            let elsewhere = signed(&key, &statement(&elsewhere, "pass", 5.0, 20.0));
            bob.post(&route, &elsewhere).await.refused(400, "other_files");
            for wrong in [json!({}), json!({"statement": "x"}), json!({"statement": {}})] {
                let reply = bob.post(&route, &wrong).await;
                assert_eq!(reply.status, 400, "{}", reply.text);
            }
            let mut long = statement(&integrity, "pass", 5.0, 20.0);
            long["predicate"][OWN_FIELDS]["regressions"] = json!(vec!["x".repeat(100); 400]);
            let reply = bob.post(&route, &signed(&key, &long)).await;
            assert!([400, 413].contains(&reply.status.as_u16()), "{}", reply.text);
            let missing = format!("{API}/skills/acme/pdf/2.0.0/attestations");
            bob.post(&missing, &good).await.refused(404, "not_found");
            let list = server.stranger().get(&route).await.ok(200);
            assert_eq!(list["items"], json!([]));
        },
    )
    .await;
}
