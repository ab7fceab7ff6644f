//! Tests commands of publishers: yank, deprecate, appeal, members, keys, signatures, log and
//! mirrors.

use savoir_package::{
    registry::Name,
    trust::{
        PublicKey, SigningKey,
        possession::{self, Purpose},
    },
};
use serde_json::{Value, json};

use super::RegistryTestEnv;

const VERSION: &str = "/registry/api/v1/skills/acme/pdf/1.2.0";

/// Runs a command that sends one request; returns the method with the path, the body, and the
/// output.
fn team_command(test_env: &RegistryTestEnv, args: &[&str]) -> (String, Value, String) {
    let ran = test_env.run_ok(args);
    let asked = test_env.server.seen().pop().expect("a question");
    assert_eq!(asked.token.as_deref(), Some("sv_kept"), "{args:?}");
    (format!("{} {}", asked.method, asked.path), asked.json(), ran.stdout)
}

#[test]
fn versions_are_withdrawn_deprecated_scanned_and_appealed() {
    let test_env = RegistryTestEnv::new().with_token();
    for what in ["yank", "deprecate", "appeal"] {
        test_env.server.on("POST", &format!("{VERSION}/{what}"), 204, &Value::Null);
    }
    let judged = json!({"audit": {"verdict": "ALLOW", "findings": []}});
    test_env.server.on("POST", &format!("{VERSION}/rescan"), 200, &judged);
    let skill = "acme/pdf@1.2.0";
    let (way, body, said) =
        team_command(&test_env, &["registry", "yank", skill, "--reason", "it leaks"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/yank"), json!({"yanked": true, "reason": "it leaks"}))
    );
    assert_eq!(said, "`acme/pdf` 1.2.0 is yanked\n");
    let (_, body, said) = team_command(&test_env, &["registry", "unyank", skill, "--json"]);
    assert_eq!(body, json!({"yanked": false}));
    assert!(said.contains("\"yanked\": false"), "{said}");
    let (way, body, _) =
        team_command(&test_env, &["registry", "deprecate", skill, "use acme/paper"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/deprecate"), json!({"message": "use acme/paper"}))
    );
    let (_, body, said) = team_command(&test_env, &["registry", "deprecate", skill, "--undo"]);
    assert_eq!((body, said.contains("is no longer deprecated")), (json!({"message": null}), true));
    let (_, _, said) = team_command(&test_env, &["registry", "rescan", skill]);
    assert_eq!(said, "`acme/pdf` 1.2.0: ALLOW, 0 findings\n");
    let judged = json!({"audit": {"verdict": "BLOCK", "findings": [{}]}});
    test_env.server.on("POST", &format!("{VERSION}/rescan"), 200, &judged);
    let blocked = test_env.run(&["registry", "rescan", skill]);
    assert_eq!(blocked.stdout, "`acme/pdf` 1.2.0: BLOCK, 1 finding\n", "{blocked}");
    assert_eq!(blocked.code, 1, "{blocked}");
    let (way, body, _) = team_command(&test_env, &["registry", "appeal", skill, "a false alarm"]);
    assert_eq!(
        (way, body),
        (format!("POST {VERSION}/appeal"), json!({"message": "a false alarm"}))
    );
    for wrong in ["acme/pdf", "acme/pdf@^1", "../pdf@1.0.0"] {
        assert_eq!(test_env.run(&["registry", "yank", wrong]).code, 2, "{wrong}");
    }
    assert_eq!(test_env.run(&["registry", "deprecate", skill]).code, 2);
}

#[test]
fn errors_show_the_message_of_the_registry() {
    let test_env = RegistryTestEnv::new().with_token();
    let refused = json!({"error": {"code": "forbidden_scope", "message": "It is not yours."}});
    test_env.server.on("POST", &format!("{VERSION}/yank"), 403, &refused);
    let ran = test_env.run(&["registry", "yank", "acme/pdf@1.2.0", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("forbidden_scope")), "{ran}");
    let open = RegistryTestEnv::new().with_default_registry();
    open.server.on("POST", &format!("{VERSION}/yank"), 401, &Value::Null);
    let ran = open.run(&["registry", "yank", "acme/pdf@1.2.0"]);
    assert!(ran.code == 1 && ran.stderr.contains("savoir login"), "{ran}");
}

#[test]
fn members_keys_and_the_log_of_a_namespace() {
    let test_env = RegistryTestEnv::new().with_token();
    let at = "/registry/api/v1/namespaces/acme/members";
    let members =
        json!([{"email": "ada@example.com", "role": "owner"}, {"user_id": 7, "role": "publisher"}]);
    test_env.server.get(at, &json!({"items": members}));
    test_env.server.on("POST", at, 201, &json!({}));
    let one = format!("{at}/grace@example.com");
    test_env.server.on("DELETE", &one, 204, &Value::Null);
    let (_, _, listed) = team_command(&test_env, &["registry", "members", "list", "acme"]);
    insta::assert_snapshot!(listed);
    let add = ["registry", "members", "add", "acme", "grace@example.com", "--role", "owner"];
    let (way, body, _) = team_command(&test_env, &add);
    assert_eq!(
        (way, body),
        (format!("POST {at}"), json!({"email": "grace@example.com", "role": "owner"}))
    );
    test_env.run_ok(&["registry", "members", "remove", "acme", "grace@example.com"]);
    let asked = test_env.server.seen().pop().expect("a question");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", one.as_str()));
    assert_eq!(test_env.run(&["registry", "members", "list", "../acme"]).code, 2);
    let log = json!({"items": [
        {"seq": 3, "act": "yank", "done_at": "2026-01-02T00:00:00Z", "account": 7,
         "package": "acme/pdf", "version": "1.2.0", "details": {"why": "leaks\u{1b}[2J"}},
        {"seq": 2, "act": "add_key", "at": "2026-01-01T00:00:00Z", "actor": "ada@example.com",
         "namespace": "acme", "details": {}}], "next_cursor": null});
    test_env.server.get("/registry/api/v1/audit-log", &log);
    let (_, _, listed) = team_command(&test_env, &["registry", "log", "acme"]);
    insta::assert_snapshot!(listed);
}

#[test]
fn key_is_sent_without_proof_only_if_the_proof_is_rejected() {
    let test_env = RegistryTestEnv::new().with_token();
    let made = test_env.run_ok(&["keys", "new", "ada", "--json"]).json();
    let file = made["public_file"].as_str().expect("a file");
    let add = ["registry", "keys", "add", "acme", file];
    let proofs = |reason: Option<&str>| -> Vec<bool> {
        let mut error = json!({"code": "invalid_request", "message": "No, not this one."});
        if let Some(reason) = reason {
            error["reason"] = json!(reason);
        }
        let at = "/registry/api/v1/namespaces/acme/keys";
        test_env.server.on("POST", at, 400, &json!({ "error": error }));
        test_env.server.seen();
        let refused = test_env.run(&add);
        assert!(refused.code == 1 && refused.stderr.contains("No, not this one"), "{refused}");
        let sent = test_env.server.seen().into_iter().filter(|asked| asked.method == "POST");
        sent.map(|asked| asked.json().get("proof").is_some()).collect()
    };
    // The registry may know itself by another URL.
    assert_eq!(proofs(Some("wrong_proof")), [true, false]);
    for other in [None, Some("name"), Some("wrong_proof_of_another_kind")] {
        assert_eq!(proofs(other), [true], "{other:?}");
    }
}

#[test]
fn namespace_keys_are_trusted_only_with_consent() {
    let test_env = RegistryTestEnv::new().with_token();
    let made = test_env.run_ok(&["keys", "new", "ada", "--json"]).json();
    let (id, public) = (made["key_id"].as_str().expect("an id"), made["public_key"].clone());
    let at = "/registry/api/v1/namespaces/acme/keys";
    test_env.server.on("POST", at, 201, &json!({}));
    let one = format!("{at}/{id}");
    test_env.server.on("DELETE", &one, 204, &Value::Null);
    let file = made["public_file"].as_str().expect("a file");
    let (way, mut body, _) =
        team_command(&test_env, &["registry", "keys", "add", "acme", file, "--label", "desk"]);
    let proof = body.as_object_mut().expect("an object").remove("proof").expect("a proof");
    let key = PublicKey::parse(public.as_str().expect("a text")).expect("a key");
    let registry = test_env.url();
    let purpose = Purpose { owner_scope: "acme", registry: &registry };
    assert!(possession::is_proved(&key, purpose, proof.as_str().expect("a text")), "{proof}");
    assert_eq!((way, body), (format!("POST {at}"), json!({"public_key": public, "label": "desk"})));
    let seen = SigningKey::generate().expect("a key").public_key().to_base64();
    let (_, body, output) = team_command(&test_env, &["registry", "keys", "add", "acme", &seen]);
    assert_eq!(body.get("proof"), None, "whose secret half is not here");
    assert!(output.contains("did not prove that you own the private key"), "{output}");
    test_env.run_ok(&["registry", "keys", "revoke", "acme", id, "--reason", "old"]);
    let asked = test_env.server.seen().pop().expect("a question");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", one.as_str()));
    let keys = |id: &str| {
        json!({"items": [
        {"key_id": id, "public_key": public, "label": "desk", "added_at": "2026-01-01T00:00:00Z"},
        {"key_id": "00", "public_key": "x", "revoked_at": "2026-01-01T00:00:00Z"}]})
    };
    test_env.server.get(at, &keys(id));
    let listed = test_env.run_ok(&["registry", "keys", "list", "acme"]).stdout;
    assert!(listed.contains("revoked on 2026"), "{listed}");
    let trust = ["keys", "trust", "--from-registry", "acme"];
    let asked = test_env.run(&trust);
    assert!(asked.code == 3 && asked.stderr.contains(id), "nobody was asked: {asked}");
    assert!(!test_env.sandbox.path("home/.config/savoir/trusted-keys.json").exists());
    let no = test_env.sandbox.type_as("home", "project", &trust, "n\n");
    assert!(no.code == 3 && no.stderr.contains("Trust them?"), "{no}");
    test_env.server.get(at, &keys("21fe31dfa154a261626bf854046fd227"));
    let forged = test_env.run(&[&trust[..], &["--yes"]].concat());
    assert!(forged.code == 3 && forged.stderr.contains("id of another key"), "{forged}");
    test_env.server.get(at, &keys(id));
    let yes = test_env.sandbox.type_as("home", "project", &trust, "y\n");
    assert!(yes.code == 0 && yes.stdout.starts_with(&format!("trusted {id}")), "{yes}");
    test_env.run_ok(&["keys", "distrust", id]);
    let limited = [&trust[..], &["--yes", "--namespace", "pdf", "--json"]].concat();
    let trusted = test_env.run_ok(&limited).json();
    let key = &trusted["trusted"][0];
    assert_eq!((&key["role"], &key["namespaces"]), (&json!("publisher"), &json!(["pdf"])));
    // Adding the same skills again changes nothing; other skills are added.
    let again = test_env.run_ok(&limited).json();
    assert_eq!(
        (&again["trusted"], &again["known"][0]["namespaces"]),
        (&json!([]), &json!(["pdf"]))
    );
    let notes = [&trust[..], &["--yes", "--namespace", "notes", "--json"]].concat();
    let wider = test_env.run_ok(&notes).json();
    assert_eq!(wider["trusted"][0]["namespaces"], json!(["pdf", "notes"]), "{wider}");
    let all = test_env.run(&trust);
    assert!(all.code == 3 && all.stderr.contains("; until now only for pdf, notes\n"), "{all}");
    let all = test_env.run_ok(&[&trust[..], &["--yes", "--json"]].concat()).json();
    assert_eq!((&all["trusted"][0]["namespaces"], &all["known"]), (&json!(null), &json!([])));
    test_env.server.get(at, &json!({"items": []}));
    assert_eq!(test_env.run(&trust).code, 1);
}

#[test]
fn lock_stays_valid_when_a_key_is_trusted_later() {
    let test_env = RegistryTestEnv::new().with_token();
    let made = test_env.run_ok(&["keys", "new", "ada", "--json"]).json();
    let key = json!({"key_id": made["key_id"], "public_key": made["public_key"]});
    test_env.server.get("/registry/api/v1/namespaces/acme/keys", &json!({"items": [key]}));
    let folder = test_env.write(&Name::parse("acme/pdf").expect("a name"), "1.0.0");
    let folder = test_env.sandbox.path(&folder).display().to_string();
    test_env.run_ok(&["sign", &folder, "--key", "ada"]);
    test_env.publish("acme/pdf", "1.0.0", |_| ());
    test_env.run_ok(&[
        "install",
        "acme/pdf",
        "--registry",
        &test_env.url(),
        "--allow-experimental",
    ]);
    let lock = test_env.sandbox.read("project/savoir.lock");
    assert!(lock.contains("signer = \"ada\""), "{lock}");
    test_env.run_ok(&["keys", "trust", "--from-registry", "acme", "--yes"]);
    let verified = test_env.run(&["verify"]);
    assert!(verified.code == 0 && !verified.stderr.contains("edited"), "{verified}");
}

#[test]
fn key_of_a_skill_without_namespace_is_trusted_for_that_skill_only() {
    let test_env = RegistryTestEnv::new().with_token();
    let made = test_env.run_ok(&["keys", "new", "ada", "--json"]).json();
    let key = json!({"key_id": made["key_id"], "public_key": made["public_key"]});
    test_env.server.get("/registry/api/v1/skills/pdf/keys", &json!({"items": [key]}));
    test_env.publish("pdf", "1.0.0", |_| ());
    let trusted =
        test_env.run_ok(&["keys", "trust", "--from-registry", "pdf", "-y", "--json"]).json();
    assert_eq!(trusted["trusted"][0]["namespaces"], json!(["pdf"]));
}

#[test]
fn owner_signs_a_published_version() {
    let test_env = RegistryTestEnv::new().with_token();
    let line = test_env.publish("acme/pdf", "1.2.0", |_| ());
    let at = format!("{VERSION}/signatures");
    test_env.server.on("POST", &at, 201, &json!({"security_tier": "community"}));
    let none = test_env.run(&["registry", "sign", "acme/pdf@1.2.0"]);
    assert!(none.code == 2 && none.stderr.contains("savoir keys new"), "{none}");
    let key = test_env.run_ok(&["keys", "new", "ada", "--json"]).json();
    let sign = ["registry", "sign", "acme/pdf@1.2.0", "--publisher", "Ada"];
    test_env.server.get("/registry/api/v1/namespaces/acme/keys", &json!({"items": []}));
    let (way, sent, said) = team_command(&test_env, &sign);
    assert_eq!((way, &sent["signer"]), (format!("POST {at}"), &json!("auditor")));
    let record = &sent["record"];
    assert_eq!((&record["key_id"], &record["publisher"]), (&key["key_id"], &json!("Ada")));
    assert_eq!((&record["name"], &record["version"]), (&json!("pdf"), &json!("1.2.0")));
    assert!(said.contains(&line.integrity) && said.contains("community"), "{said}");
    // Files that do not match the index are not signed.
    let artifact = format!("/registry/artifacts/{}/{}", line.sha256, line.filename);
    test_env.server.bytes(
        "GET",
        &artifact,
        200,
        vec![0; usize::try_from(line.size).expect("a size")],
    );
    std::fs::remove_dir_all(test_env.sandbox.path("home/.cache")).expect("what was kept");
    test_env.server.seen();
    let forged = test_env.run(&sign);
    assert_eq!(forged.code, 3, "{forged}");
    assert!(test_env.server.seen().iter().all(|asked| asked.method == "GET"));
}

#[test]
fn a_registry_is_copied_and_installed_from() {
    let test_env = RegistryTestEnv::new();
    test_env.publish("acme/pdf", "1.0.0", |_| ());
    test_env.publish("other", "1.0.0", |_| ());
    let url = test_env.url();
    let copied =
        test_env.run_ok(&["registry", "mirror", &url, "copy", "--skill", "acme/pdf", "--json"]);
    let copied = copied.json();
    assert_eq!((&copied["skills"], &copied["versions"]), (&json!(1), &json!(1)), "{copied}");
    for file in ["index/v1/config.json", "index/v1/pd/acme/pdf"] {
        assert!(test_env.sandbox.path(&format!("project/copy/{file}")).is_file(), "{file}");
    }
    let refused = test_env.run(&["registry", "mirror", "http://registry.invalid/registry", "x"]);
    assert!(refused.code == 1 && refused.stderr.contains("--allow-http"), "{refused}");
    let items = json!([{"name": "acme/pdf"}, {"name": "gone"}]);
    test_env.server.get("/registry/api/v1/skills", &json!({"items": items}));
    test_env.server.bytes("GET", "/registry/index/v1/pd/acme/pdf", 200, b"not JSON".to_vec());
    let broken = test_env.run(&["registry", "mirror", &url, "copy"]);
    assert!(broken.code == 1 && broken.stderr.contains("was not copied"), "{broken}");
}

/// A registry in which `acme` is a skill without a namespace.
fn env_with_a_skill() -> RegistryTestEnv {
    let test_env = RegistryTestEnv::new().with_token();
    let alone = "/registry/api/v1/skills/acme/members";
    test_env.server.on("POST", alone, 201, &json!({}));
    test_env.server.on("DELETE", &format!("{alone}/grace@example.com"), 204, &Value::Null);
    test_env
}

#[test]
fn changes_apply_only_to_the_named_team() {
    let at = "/registry/api/v1/namespaces/acme/members";
    let one = format!("{at}/grace@example.com");
    let refused = json!({"error": {"code": "not_owner", "message": "Only an owner may."}});
    let missing = json!({"error": {"code": "not_found", "message": "There is none."}});
    let add = ["registry", "members", "add", "acme", "grace@example.com", "--json"];
    let remove = ["registry", "members", "remove", "acme", "grace@example.com", "--json"];
    let there = env_with_a_skill();
    there.server.on("POST", at, 403, &refused);
    there.server.on("DELETE", &one, 404, &missing);
    there.server.get(at, &json!({"items": [{"user_id": 7, "role": "owner"}]}));
    // Without permission, or without such a member, the request is not retried for the skill of the
    // same name.
    for (args, code) in [(add, "not_owner"), (remove, "not_found")] {
        let ran = there.run(&args);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!(code)), "{ran}");
    }
    let asked = there.server.seen();
    assert!(asked.iter().all(|asked| !asked.path.contains("/skills/acme/members")));
    // The namespace does not exist.
    let none = env_with_a_skill();
    for (method, path) in [("POST", at), ("DELETE", &one), ("GET", at)] {
        none.server.on(method, path, 404, &missing);
    }
    for args in [add, remove] {
        let ran = none.run(&args);
        assert_eq!((ran.code, &ran.json()["namespace"]), (0, &json!("_/acme")), "{ran}");
    }
}
