//! What publishers do: withdraw, deprecate, appeal, members, keys, signatures, the log, and copies.

use savoir_package::{
    registry::Name,
    trust::{
        PublicKey, SigningKey,
        possession::{self, Purpose},
    },
};
use serde_json::{Value, json};

use super::House;

const VERSION: &str = "/registry/api/v1/skills/acme/pdf/1.2.0";

/// Runs something that asks one thing; gives the way and the body of the question.
fn asks(house: &House, args: &[&str]) -> (String, Value, String) {
    let ran = house.well(args);
    let asked = house.server.seen().pop().expect("a question");
    assert_eq!(asked.token.as_deref(), Some("sv_kept"), "{args:?}");
    (format!("{} {}", asked.method, asked.path), asked.json(), ran.stdout)
}

#[test]
fn versions_are_withdrawn_deprecated_scanned_and_appealed() {
    let house = House::new().known();
    for what in ["yank", "deprecate", "appeal"] {
        house.server.on("POST", &format!("{VERSION}/{what}"), 204, &Value::Null);
    }
    let judged = json!({"audit": {"verdict": "ALLOW", "findings": []}});
    house.server.on("POST", &format!("{VERSION}/rescan"), 200, &judged);
    let skill = "acme/pdf@1.2.0";
    let (way, body, said) = asks(&house, &["registry", "yank", skill, "--reason", "it leaks"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/yank"), json!({"yanked": true, "reason": "it leaks"}))
    );
    assert_eq!(said, "`acme/pdf` 1.2.0 is yanked\n");
    let (_, body, said) = asks(&house, &["registry", "unyank", skill, "--json"]);
    assert_eq!(body, json!({"yanked": false}));
    assert!(said.contains("\"yanked\": false"), "{said}");
    let (way, body, _) = asks(&house, &["registry", "deprecate", skill, "use acme/paper"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/deprecate"), json!({"message": "use acme/paper"}))
    );
    let (_, body, said) = asks(&house, &["registry", "deprecate", skill, "--undo"]);
    assert_eq!((body, said.contains("is no longer deprecated")), (json!({"message": null}), true));
    let (_, _, said) = asks(&house, &["registry", "rescan", skill]);
    assert_eq!(said, "`acme/pdf` 1.2.0: ALLOW, 0 findings\n");
    let judged = json!({"audit": {"verdict": "BLOCK", "findings": [{}]}});
    house.server.on("POST", &format!("{VERSION}/rescan"), 200, &judged);
    let blocked = house.run(&["registry", "rescan", skill]);
    assert_eq!(blocked.stdout, "`acme/pdf` 1.2.0: BLOCK, 1 finding\n", "{blocked}");
    assert_eq!(blocked.code, 1, "{blocked}");
    let (way, body, _) = asks(&house, &["registry", "appeal", skill, "a false alarm"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/appeal"), json!({"message": "a false alarm"}))
    );
    for wrong in ["acme/pdf", "acme/pdf@^1", "../pdf@1.0.0"] {
        assert_eq!(house.run(&["registry", "yank", wrong]).code, 2, "{wrong}");
    }
    assert_eq!(house.run(&["registry", "deprecate", skill]).code, 2);
}

#[test]
fn refusals_have_the_words_of_the_registry() {
    let house = House::new().known();
    let refused = json!({"error": {"code": "forbidden_scope", "message": "It is not yours."}});
    house.server.on("POST", &format!("{VERSION}/yank"), 403, &refused);
    let ran = house.run(&["registry", "yank", "acme/pdf@1.2.0", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("forbidden_scope")), "{ran}");
    let open = House::new().set();
    open.server.on("POST", &format!("{VERSION}/yank"), 401, &Value::Null);
    let ran = open.run(&["registry", "yank", "acme/pdf@1.2.0"]);
    assert!(ran.code == 1 && ran.stderr.contains("savoir login"), "{ran}");
}

#[test]
fn members_keys_and_the_log_of_a_namespace() {
    let house = House::new().known();
    let at = "/registry/api/v1/namespaces/acme/members";
    let members =
        json!([{"email": "ada@example.com", "role": "owner"}, {"user_id": 7, "role": "publisher"}]);
    house.server.get(at, &json!({"items": members}));
    house.server.on("POST", at, 201, &json!({}));
    let one = format!("{at}/grace@example.com");
    house.server.on("DELETE", &one, 204, &Value::Null);
    let (_, _, listed) = asks(&house, &["registry", "members", "list", "acme"]);
    insta::assert_snapshot!(listed);
    let add = ["registry", "members", "add", "acme", "grace@example.com", "--role", "owner"];
    let (way, body, _) = asks(&house, &add);
    assert_eq!(
        (way, body),
        (format!("POST {at}"), json!({"email": "grace@example.com", "role": "owner"}))
    );
    house.well(&["registry", "members", "remove", "acme", "grace@example.com"]);
    let asked = house.server.seen().pop().expect("a question");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", one.as_str()));
    assert_eq!(house.run(&["registry", "members", "list", "../acme"]).code, 2);
    let log = json!({"items": [
        {"seq": 3, "act": "yank", "done_at": "2026-01-02T00:00:00Z", "account": 7,
         "package": "acme/pdf", "version": "1.2.0", "details": {"why": "leaks\u{1b}[2J"}},
        {"seq": 2, "act": "add_key", "at": "2026-01-01T00:00:00Z", "actor": "ada@example.com",
         "namespace": "acme", "details": {}}], "next_cursor": null});
    house.server.get("/registry/api/v1/audit-log", &log);
    let (_, _, listed) = asks(&house, &["registry", "log", "acme"]);
    insta::assert_snapshot!(listed);
}

#[test]
fn a_key_goes_without_its_proof_only_where_the_proof_is_what_is_refused() {
    let house = House::new().known();
    let made = house.well(&["keys", "new", "ada", "--json"]).json();
    let file = made["public_file"].as_str().expect("a file");
    let add = ["registry", "keys", "add", "acme", file];
    let proofs = |reason: Option<&str>| -> Vec<bool> {
        let mut error = json!({"code": "invalid_request", "message": "No, not this one."});
        if let Some(reason) = reason {
            error["reason"] = json!(reason);
        }
        let at = "/registry/api/v1/namespaces/acme/keys";
        house.server.on("POST", at, 400, &json!({ "error": error }));
        house.server.seen();
        let refused = house.run(&add);
        assert!(refused.code == 1 && refused.stderr.contains("No, not this one"), "{refused}");
        let sent = house.server.seen().into_iter().filter(|asked| asked.method == "POST");
        sent.map(|asked| asked.json().get("proof").is_some()).collect()
    };
    // It may know itself by another address.
    assert_eq!(proofs(Some("wrong_proof")), [true, false]);
    for other in [None, Some("name"), Some("wrong_proof_of_another_kind")] {
        assert_eq!(proofs(other), [true], "{other:?}");
    }
}

#[test]
fn keys_sign_for_a_namespace_and_are_trusted_only_if_a_person_says_so() {
    let house = House::new().known();
    let made = house.well(&["keys", "new", "ada", "--json"]).json();
    let (id, public) = (made["key_id"].as_str().expect("an id"), made["public_key"].clone());
    let at = "/registry/api/v1/namespaces/acme/keys";
    house.server.on("POST", at, 201, &json!({}));
    let one = format!("{at}/{id}");
    house.server.on("DELETE", &one, 204, &Value::Null);
    let file = made["public_file"].as_str().expect("a file");
    let (way, mut body, _) =
        asks(&house, &["registry", "keys", "add", "acme", file, "--label", "desk"]);
    let proof = body.as_object_mut().expect("an object").remove("proof").expect("a proof");
    let key = PublicKey::parse(public.as_str().expect("a text")).expect("a key");
    let registry = house.url();
    let purpose = Purpose { owner_scope: "acme", registry: &registry };
    assert!(possession::is_proved(&key, purpose, proof.as_str().expect("a text")), "{proof}");
    assert_eq!((way, body), (format!("POST {at}"), json!({"public_key": public, "label": "desk"})));
    let seen = SigningKey::generate().expect("a key").public_key().to_text();
    let (_, body, told) = asks(&house, &["registry", "keys", "add", "acme", &seen]);
    assert_eq!(body.get("proof"), None, "whose secret half is not here");
    assert!(told.contains("did not prove that you own the private key"), "{told}");
    house.well(&["registry", "keys", "revoke", "acme", id, "--reason", "old"]);
    let asked = house.server.seen().pop().expect("a question");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", one.as_str()));
    let keys = |id: &str| {
        json!({"items": [
        {"key_id": id, "public_key": public, "label": "desk", "added_at": "2026-01-01T00:00:00Z"},
        {"key_id": "00", "public_key": "x", "revoked_at": "2026-01-01T00:00:00Z"}]})
    };
    house.server.get(at, &keys(id));
    let listed = house.well(&["registry", "keys", "list", "acme"]).stdout;
    assert!(listed.contains("revoked on 2026"), "{listed}");
    let trust = ["keys", "trust", "--from-registry", "acme"];
    let asked = house.run(&trust);
    assert!(asked.code == 3 && asked.stderr.contains(id), "nobody was asked: {asked}");
    assert!(!house.sandbox.path("home/.config/savoir/trusted-keys.json").exists());
    let no = house.sandbox.type_as("home", "project", &trust, "n\n");
    assert!(no.code == 3 && no.stderr.contains("Trust them?"), "{no}");
    house.server.get(at, &keys("21fe31dfa154a261626bf854046fd227"));
    let forged = house.run(&[&trust[..], &["--yes"]].concat());
    assert!(forged.code == 3 && forged.stderr.contains("id of another key"), "{forged}");
    house.server.get(at, &keys(id));
    let yes = house.sandbox.type_as("home", "project", &trust, "y\n");
    assert!(yes.code == 0 && yes.stdout.starts_with(&format!("trusted {id}")), "{yes}");
    house.well(&["keys", "distrust", id]);
    let limited = [&trust[..], &["--yes", "--namespace", "pdf", "--json"]].concat();
    let trusted = house.well(&limited).json();
    let key = &trusted["trusted"][0];
    assert_eq!((&key["role"], &key["namespaces"]), (&json!("publisher"), &json!(["pdf"])));
    // What a person decided stays.
    let again = house.well(&[&trust[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(
        (&again["trusted"], &again["known"][0]["namespaces"]),
        (&json!([]), &json!(["pdf"]))
    );
    house.server.get(at, &json!({"items": []}));
    assert_eq!(house.run(&trust).code, 1);
}

#[test]
fn a_key_that_is_trusted_later_does_not_make_a_lock_wrong() {
    let house = House::new().known();
    let made = house.well(&["keys", "new", "ada", "--json"]).json();
    let key = json!({"key_id": made["key_id"], "public_key": made["public_key"]});
    house.server.get("/registry/api/v1/namespaces/acme/keys", &json!({"items": [key]}));
    let folder = house.write(&Name::parse("acme/pdf").expect("a name"), "1.0.0");
    let folder = house.sandbox.path(&folder).display().to_string();
    house.well(&["sign", &folder, "--key", "ada"]);
    house.publish("acme/pdf", "1.0.0", |_| ());
    house.well(&["install", "acme/pdf", "--registry", &house.url(), "--allow-experimental"]);
    let lock = house.sandbox.read("project/savoir.lock");
    assert!(lock.contains("signer = \"ada\""), "{lock}");
    house.well(&["keys", "trust", "--from-registry", "acme", "--yes"]);
    let verified = house.run(&["verify"]);
    assert!(verified.code == 0 && !verified.stderr.contains("edited"), "{verified}");
}

#[test]
fn a_name_of_its_own_limits_the_keys_to_itself() {
    let house = House::new().known();
    let made = house.well(&["keys", "new", "ada", "--json"]).json();
    let key = json!({"key_id": made["key_id"], "public_key": made["public_key"]});
    house.server.get("/registry/api/v1/skills/pdf/keys", &json!({"items": [key]}));
    house.publish("pdf", "1.0.0", |_| ());
    let trusted = house.well(&["keys", "trust", "--from-registry", "pdf", "-y", "--json"]).json();
    assert_eq!(trusted["trusted"][0]["namespaces"], json!(["pdf"]));
}

#[test]
fn a_published_version_is_signed_by_another_one() {
    let house = House::new().known();
    let line = house.publish("acme/pdf", "1.2.0", |_| ());
    let at = format!("{VERSION}/signatures");
    house.server.on("POST", &at, 201, &json!({"security_tier": "community"}));
    let none = house.run(&["registry", "sign", "acme/pdf@1.2.0"]);
    assert!(none.code == 2 && none.stderr.contains("savoir keys new"), "{none}");
    let key = house.well(&["keys", "new", "ada", "--json"]).json();
    let sign = ["registry", "sign", "acme/pdf@1.2.0", "--publisher", "Ada"];
    house.server.get("/registry/api/v1/namespaces/acme/keys", &json!({"items": []}));
    let (way, sent, said) = asks(&house, &sign);
    assert_eq!((way, &sent["signer"]), (format!("POST {at}"), &json!("auditor")));
    let record = &sent["record"];
    assert_eq!((&record["key_id"], &record["publisher"]), (&key["key_id"], &json!("Ada")));
    assert_eq!((&record["name"], &record["version"]), (&json!("pdf"), &json!("1.2.0")));
    assert!(said.contains(&line.integrity) && said.contains("community"), "{said}");
    // What is not what the index says is not vouched for.
    let artifact = format!("/registry/artifacts/{}/{}", line.sha256, line.filename);
    house.server.bytes("GET", &artifact, 200, vec![0; usize::try_from(line.size).expect("a size")]);
    std::fs::remove_dir_all(house.sandbox.path("home/.cache")).expect("what was kept");
    house.server.seen();
    let forged = house.run(&sign);
    assert_eq!(forged.code, 3, "{forged}");
    assert!(house.server.seen().iter().all(|asked| asked.method == "GET"));
}

#[test]
fn a_registry_is_copied_and_installed_from() {
    let house = House::new();
    house.publish("acme/pdf", "1.0.0", |_| ());
    house.publish("other", "1.0.0", |_| ());
    let url = house.url();
    let copied = house.well(&["registry", "mirror", &url, "copy", "--skill", "acme/pdf", "--json"]);
    let copied = copied.json();
    assert_eq!((&copied["skills"], &copied["versions"]), (&json!(1), &json!(1)), "{copied}");
    for file in ["index/v1/config.json", "index/v1/pd/acme/pdf"] {
        assert!(house.sandbox.path(&format!("project/copy/{file}")).is_file(), "{file}");
    }
    let refused = house.run(&["registry", "mirror", "http://registry.invalid/registry", "x"]);
    assert!(refused.code == 1 && refused.stderr.contains("--allow-http"), "{refused}");
    let items = json!([{"name": "acme/pdf"}, {"name": "gone"}]);
    house.server.get("/registry/api/v1/skills", &json!({"items": items}));
    house.server.bytes("GET", "/registry/index/v1/pd/acme/pdf", 200, b"not JSON".to_vec());
    let broken = house.run(&["registry", "mirror", &url, "copy"]);
    assert!(broken.code == 1 && broken.stderr.contains("was not copied"), "{broken}");
}

/// A registry in which `acme` is a skill that stands alone.
fn house_with_a_skill() -> House {
    let house = House::new().known();
    let alone = "/registry/api/v1/skills/acme/members";
    house.server.on("POST", alone, 201, &json!({}));
    house.server.on("DELETE", &format!("{alone}/grace@example.com"), 204, &Value::Null);
    house
}

#[test]
fn a_change_never_goes_to_another_team_than_the_one_that_is_named() {
    let at = "/registry/api/v1/namespaces/acme/members";
    let one = format!("{at}/grace@example.com");
    let refused = json!({"error": {"code": "not_owner", "message": "Only an owner may."}});
    let missing = json!({"error": {"code": "not_found", "message": "There is none."}});
    let add = ["registry", "members", "add", "acme", "grace@example.com", "--json"];
    let remove = ["registry", "members", "remove", "acme", "grace@example.com", "--json"];
    let there = house_with_a_skill();
    there.server.on("POST", at, 403, &refused);
    there.server.on("DELETE", &one, 404, &missing);
    there.server.get(at, &json!({"items": [{"user_id": 7, "role": "owner"}]}));
    // They may not, or nobody of that name is a member there: the namespace is meant all the same.
    for (args, code) in [(add, "not_owner"), (remove, "not_found")] {
        let ran = there.run(&args);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!(code)), "{ran}");
    }
    let asked = there.server.seen();
    assert!(asked.iter().all(|asked| !asked.path.contains("/skills/acme/members")));
    // There is no such namespace.
    let none = house_with_a_skill();
    for (method, path) in [("POST", at), ("DELETE", &one), ("GET", at)] {
        none.server.on(method, path, 404, &missing);
    }
    for args in [add, remove] {
        let ran = none.run(&args);
        assert_eq!((ran.code, &ran.json()["namespace"]), (0, &json!("_/acme")), "{ran}");
    }
}
