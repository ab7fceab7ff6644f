//! Typical workflows with a running registry.

use std::fs;

use savoir_package::archive;
use serde_json::{Value, json};

use crate::{
    cluster::register,
    live_server::{House, create_account},
    outside::RunEnvironment,
    registry::piped,
    registry_faults::{OFF, SKILLS, large_skill, publish, send, skill},
    support::{Sandbox, Transcript},
};

const ROOT: &str = "root@example.com";
const WORD: &str = "secret-word\n";

/// Somebody with settings of their own, on the machine of the house.
struct Person<'a> {
    sandbox: &'a Sandbox,
    name: &'static str,
}

impl Person<'_> {
    fn run(&self, args: &[&str], typed: &str) -> Transcript {
        let mut command = self.sandbox.command(args);
        command
            .env("XDG_CONFIG_HOME", self.sandbox.path(self.name))
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(self.sandbox.path("."));
        piped(command, typed)
    }

    fn well(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat(), "");
        assert_eq!(ran.code, 0, "{args:?}: {ran}");
        ran.json()
    }

    /// Logs in with the password of everyone.
    fn logs_in(&self, house: &House, more: &[&str]) -> Transcript {
        let url = format!("http://{}/registry", house.address);
        let email = format!("{}@example.com", self.name);
        let login = ["login", "--registry", &url, "--email", &email, "--json"];
        self.run(&[&login, more].concat(), WORD)
    }

    fn is_logged_in(&self) -> bool {
        self.sandbox.path(self.name).join("savoir/credentials.toml").exists()
    }
}

#[test]
fn an_administrator_reads_the_log_with_a_token_and_nobody_else_gets_one() {
    let sandbox = Sandbox::new();
    let house = House::start(&sandbox, &OFF, None);
    create_account(&sandbox, ROOT, "secret-word");
    let token = register(&house, "ada@example.com");
    publish(&house.address, &token, &skill("tool", "1.0.0")).expect("an answer");
    let [ada, root] = ["ada", "root"].map(|name| Person { sandbox: &sandbox, name });

    let refused = ada.logs_in(&house, &["--scope", "admin"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.json()["error"]["code"].is_string(), "{refused}");
    assert!(!ada.is_logged_in(), "nothing is kept");
    assert_eq!(root.logs_in(&house, &[]).code, 0);
    let usual = root.run(&["registry", "log", "--json"], "");
    assert_eq!(usual.json()["error"]["code"], "forbidden_scope", "{usual}");
    let done = root.logs_in(&house, &["--scope", "admin"]);
    assert_eq!(done.code, 0, "{done}");
    let scopes = done.json()["scopes"].to_string();
    assert!(scopes.contains("\"admin\"") && done.json()["expires_at"].is_string(), "{done}");
    let log = root.well(&["registry", "log"]);
    let entries = log["entries"].as_array().expect("a list");
    let acts: Vec<&Value> = entries.iter().map(|entry| &entry["act"]).collect();
    assert_eq!(acts, ["token_ended", "token_made", "token_made", "published"], "{log}");
    assert_eq!(
        (&entries[3]["name"], &entries[3]["actor"]),
        (&json!("tool"), &json!("ada@example.com"))
    );
    assert_eq!(entries[1]["details"]["scopes"][0], "admin", "{log}");
}

#[test]
fn administrators_are_administrators_again_after_a_restore() {
    let sandbox = Sandbox::new();
    create_account(&sandbox, ROOT, "secret-word");
    let house = House::start(&sandbox, &OFF, None);
    let token = register(&house, "ada@example.com");
    publish(&house.address, &token, &skill("tool", "1.0.0")).expect("an answer");
    register(&house, "nobody@example.com");
    drop(house);
    assert_eq!(sandbox.run(&["registry", "backup", "b.tar"]).code, 0);
    let done = sandbox.run(&["registry", "restore", "b.tar", "--data", "new", "--json"]);
    assert_eq!(done.json()["administrators_made"], json!([ROOT]), "{done}");
    let accounts = sandbox.run(&["admin", "list", "--data", "new", "--json"]).json();
    let mut roles: Vec<[&str; 2]> = accounts["accounts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| ["email", "role"].map(|key| one[key].as_str().expect("a text")))
        .collect();
    roles.sort_unstable();
    let user = |email| [email, "user"];
    let all = [user("ada@example.com"), user("nobody@example.com"), [ROOT, "admin"]];
    assert_eq!(roles, all, "also who never changed anything");

    let options = [&["--data", "new"][..], &OFF].concat();
    let house = House::start(&sandbox, &options, None);
    let root = Person { sandbox: &sandbox, name: "root" };
    let before = root.logs_in(&house, &[]);
    assert_eq!((before.code, root.is_logged_in()), (3, false), "no password is good: {before}");
    let reset = root.run(&["admin", "reset-password", ROOT, "--data", "new"], WORD);
    assert_eq!(reset.code, 0, "{reset}");
    let after = root.logs_in(&house, &["--scope", "admin"]);
    assert_eq!(after.code, 0, "{after}");
    assert!(!root.well(&["registry", "log"])["entries"].as_array().expect("a list").is_empty());
}

#[test]
fn a_publisher_and_an_auditor_make_a_version_verified() {
    let sandbox = Sandbox::new();
    let house = House::start(&sandbox, &OFF, None);
    create_account(&sandbox, ROOT, "secret-word");
    let [ada, eve, root] = ["ada", "eve", "root"].map(|name| Person { sandbox: &sandbox, name });
    for (person, more) in [(&ada, &["--owner"][..]), (&eve, &[])] {
        register(&house, &format!("{}@example.com", person.name));
        let done = person.logs_in(&house, more);
        assert_eq!(done.code, 0, "{done}");
    }
    let text = "---\nname: tool\ndescription: Does something useful. Use when asked.\nlicense: \
                MIT\nmetadata:\n  version: \"1.0.0\"\n---\n# Tool\n\nDo it.\n";
    sandbox.write("tool/SKILL.md", text);
    let key = ada.well(&["keys", "new", "ada"]);
    let key = key["public_file"].as_str().expect("a file");
    // The first version takes the namespace, so that the key can be registered for it.
    let publish = ["publish", "tool", "--namespace", "acme", "--yes", "--key", "ada"];
    assert_eq!(ada.well(&publish)["published"]["security_tier"], "experimental");
    ada.well(&["registry", "keys", "add", "acme", key]);
    sandbox.write("tool/SKILL.md", text.replace("1.0.0", "1.1.0"));
    assert_eq!(ada.well(&publish)["published"]["security_tier"], "community");

    let key = eve.well(&["keys", "new", "eve"]);
    let sign = ["registry", "sign", "acme/tool@1.1.0"];
    let early = eve.run(&[&sign[..], &["--json"]].concat(), "");
    assert_eq!(early.code, 1, "nobody knows this key: {early}");
    assert_eq!(root.logs_in(&house, &["--scope", "admin"]).code, 0);
    let credentials = fs::read_to_string(sandbox.path("root/savoir/credentials.toml"));
    let credentials = credentials.expect("a file");
    let token = credentials.split("token = \"").nth(1).and_then(|rest| rest.split('"').next());
    let wanted = json!({"public_key": key["public_key"], "email": "eve@example.com"});
    let path = "/registry/api/v1/auditors/keys";
    let made = house.ask("POST", path, token.expect("a token"), Some(&wanted));
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(eve.well(&sign)["tier"], "verified");
    let index = house.ask("GET", "/registry/index/v1/to/acme/tool", "", None).body;
    let newest: Value = serde_json::from_str(index.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&newest["version"], &newest["attested"]), (&json!("1.1.0"), &json!("verified")));
    // A key that is revoked takes back what it vouched for.
    let one = format!("{path}/{}?reason=lost", key["key_id"].as_str().expect("an id"));
    let gone = house.ask("DELETE", &one, token.expect("a token"), None);
    assert_eq!(gone.status, 200, "{}", gone.body);
    let index = house.ask("GET", "/registry/index/v1/to/acme/tool", "", None).body;
    assert!(!index.contains("\"verified\""), "{index}");
}

#[test]
fn who_installs_follows_to_the_bucket() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let house = run_env.house(&[&OFF[..], &["--registry-redirect"]].concat(), None);
    let token = register(&house, "ada@example.com");
    let bytes = large_skill("large", 3000);
    let (status, body) = publish(&house.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let sha256 = body["published"]["artifact"]["sha256"].as_str().expect("a digest");
    let path = format!("/registry/artifacts/{sha256}/large-1.0.0.zip");
    let sent = house.ask("GET", &path, "", None);
    assert_eq!(sent.status, 307, "{}", sent.head);
    assert!(sent.head.contains("cache-control: private, no-store"), "{}", sent.head);
    assert!(sent.head.contains("x-amz-signature="), "{}", sent.head);
    let asked = house.ask("HEAD", &path, "", None);
    assert_eq!(asked.status, 200, "{}", asked.head);
    assert!(asked.head.contains(&format!("content-length: {}", bytes.len())), "{}", asked.head);
    // Nobody is sent anywhere for what is small.
    let (status, body) =
        send(&house.address, "POST", SKILLS, &token, &skill("small", "1.0.0")).expect("an answer");
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));

    let sandbox = &run_env.sandbox;
    for folder in ["home/.claude", "project/.git"] {
        fs::create_dir_all(sandbox.path(folder)).expect("a folder");
    }
    let url = format!("http://{}/registry", house.address);
    for name in ["large", "small"] {
        let asked = format!("{name}@^1.0");
        let install = ["install", &asked, "--registry", &url, "--allow-experimental", "--yes"];
        let done = sandbox.run_as("home", "project", &install);
        assert_eq!(done.code, 0, "{done}");
    }
    let (_, tree) = archive::unpack(&bytes).and_then(archive::one_skill).expect("a skill");
    let file = fs::read(sandbox.path("project/.claude/skills/large/data.bin")).expect("a file");
    assert!(file == tree.get("data.bin").expect("a file").bytes);
    // What the bucket has lost is not installed by half.
    run_env.line.cut(true);
    fs::remove_dir_all(sandbox.path("home/.cache")).expect("what was kept");
    fs::remove_dir_all(sandbox.path("home/.local")).expect("what was kept");
    fs::remove_dir_all(sandbox.path("project/.claude")).expect("what was there");
    let cut = sandbox.run_as("home", "project", &["sync", "--frozen", "--allow-experimental"]);
    assert_ne!(cut.code, 0, "{cut}");
    assert!(!sandbox.path("project/.claude/skills/large").exists());
}
