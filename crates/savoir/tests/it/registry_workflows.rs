//! Tests typical workflows with a running registry.

use std::fs;

use savoir_package::{Tree, archive};
use serde_json::{Value, json};

use crate::{
    cluster::register,
    eval::{EVALS, SKILL, capable},
    live_server::{Provider, ProviderBehavior, TestServer, create_account},
    registry::piped,
    registry_faults::{NO_RATE_LIMIT, SKILLS, large_skill, publish, send, skill},
    services::RunEnvironment,
    support::{Sandbox, Transcript},
};

const ADMIN_EMAIL: &str = "root@example.com";
const PASSWORD_LINE: &str = "secret-word\n";

/// A user with separate settings on the machine of the server.
struct TestUser<'a> {
    sandbox: &'a Sandbox,
    name: &'static str,
}

impl TestUser<'_> {
    fn run(&self, args: &[&str], typed: &str) -> Transcript {
        let mut command = self.sandbox.command(args);
        command
            .env("XDG_CONFIG_HOME", self.sandbox.path(self.name))
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(self.sandbox.path("."));
        piped(command, typed)
    }

    fn run_ok(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat(), "");
        assert_eq!(ran.code, 0, "{args:?}: {ran}");
        ran.json()
    }

    /// Logs in with the password of all test accounts.
    fn logs_in(&self, server: &TestServer, more: &[&str]) -> Transcript {
        let url = format!("http://{}/registry", server.address);
        let email = format!("{}@example.com", self.name);
        let login = ["login", "--registry", &url, "--email", &email, "--json"];
        self.run(&[&login, more].concat(), PASSWORD_LINE)
    }

    fn is_logged_in(&self) -> bool {
        self.sandbox.path(self.name).join("savoir/credentials.toml").exists()
    }
}

#[test]
fn only_administrators_get_a_token_for_the_log() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    create_account(&sandbox, ADMIN_EMAIL, "secret-word");
    let token = register(&server, "ada@example.com");
    publish(&server.address, &token, &skill("tool", "1.0.0")).expect("an answer");
    let [ada, root] = ["ada", "root"].map(|name| TestUser { sandbox: &sandbox, name });

    let refused = ada.logs_in(&server, &["--scope", "admin"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.json()["error"]["code"].is_string(), "{refused}");
    assert!(!ada.is_logged_in(), "nothing is kept");
    assert_eq!(root.logs_in(&server, &[]).code, 0);
    let usual = root.run(&["registry", "log", "--json"], "");
    assert_eq!(usual.json()["error"]["code"], "forbidden_scope", "{usual}");
    let done = root.logs_in(&server, &["--scope", "admin"]);
    assert_eq!(done.code, 0, "{done}");
    let scopes = done.json()["scopes"].to_string();
    assert!(scopes.contains("\"admin\"") && done.json()["expires_at"].is_string(), "{done}");
    let log = root.run_ok(&["registry", "log"]);
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
fn restore_keeps_the_administrator_role() {
    let sandbox = Sandbox::new();
    create_account(&sandbox, ADMIN_EMAIL, "secret-word");
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    publish(&server.address, &token, &skill("tool", "1.0.0")).expect("an answer");
    register(&server, "nobody@example.com");
    drop(server);
    assert_eq!(sandbox.run(&["registry", "backup", "b.tar"]).code, 0);
    let done = sandbox.run(&["registry", "restore", "b.tar", "--data", "new", "--json"]);
    assert_eq!(done.json()["administrators_made"], json!([ADMIN_EMAIL]), "{done}");
    let accounts = sandbox.run(&["admin", "list", "--data", "new", "--json"]).json();
    let mut roles: Vec<[&str; 2]> = accounts["accounts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| ["email", "role"].map(|key| one[key].as_str().expect("a text")))
        .collect();
    roles.sort_unstable();
    let user = |email| [email, "user"];
    let all = [user("ada@example.com"), user("nobody@example.com"), [ADMIN_EMAIL, "admin"]];
    assert_eq!(roles, all, "also who never changed anything");

    let options = [&["--data", "new"][..], &NO_RATE_LIMIT].concat();
    let server = TestServer::start(&sandbox, &options, None);
    let root = TestUser { sandbox: &sandbox, name: "root" };
    let before = root.logs_in(&server, &[]);
    assert_eq!((before.code, root.is_logged_in()), (3, false), "no password is good: {before}");
    let reset = root.run(&["admin", "reset-password", ADMIN_EMAIL, "--data", "new"], PASSWORD_LINE);
    assert_eq!(reset.code, 0, "{reset}");
    let after = root.logs_in(&server, &["--scope", "admin"]);
    assert_eq!(after.code, 0, "{after}");
    assert!(!root.run_ok(&["registry", "log"])["entries"].as_array().expect("a list").is_empty());
}

#[test]
fn publisher_and_auditor_signatures_verify_a_version() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    create_account(&sandbox, ADMIN_EMAIL, "secret-word");
    let [ada, eve, root] = ["ada", "eve", "root"].map(|name| TestUser { sandbox: &sandbox, name });
    for (person, more) in [(&ada, &["--owner"][..]), (&eve, &[])] {
        register(&server, &format!("{}@example.com", person.name));
        let done = person.logs_in(&server, more);
        assert_eq!(done.code, 0, "{done}");
    }
    let text = "---\nname: tool\ndescription: Does something useful. Use when asked.\nlicense: \
                MIT\nmetadata:\n  version: \"1.0.0\"\n---\n# Tool\n\nDo it.\n";
    sandbox.write("tool/SKILL.md", text);
    let key = ada.run_ok(&["keys", "new", "ada"]);
    let key = key["public_file"].as_str().expect("a file");
    // The first version creates the namespace, so that the key can be registered for it.
    let publish = ["publish", "tool", "--namespace", "acme", "--yes", "--key", "ada"];
    assert_eq!(ada.run_ok(&publish)["published"]["security_tier"], "experimental");
    ada.run_ok(&["registry", "keys", "add", "acme", key]);
    sandbox.write("tool/SKILL.md", text.replace("1.0.0", "1.1.0"));
    assert_eq!(ada.run_ok(&publish)["published"]["security_tier"], "community");

    let key = eve.run_ok(&["keys", "new", "eve"]);
    let sign = ["registry", "sign", "acme/tool@1.1.0"];
    let early = eve.run(&[&sign[..], &["--json"]].concat(), "");
    assert_eq!(early.code, 1, "nobody knows this key: {early}");
    assert_eq!(root.logs_in(&server, &["--scope", "admin"]).code, 0);
    let credentials = fs::read_to_string(sandbox.path("root/savoir/credentials.toml"));
    let credentials = credentials.expect("a file");
    let token = credentials.split("token = \"").nth(1).and_then(|rest| rest.split('"').next());
    let wanted = json!({"public_key": key["public_key"], "email": "eve@example.com"});
    let path = "/registry/api/v1/auditors/keys";
    let made = server.ask("POST", path, token.expect("a token"), Some(&wanted));
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(eve.run_ok(&sign)["tier"], "verified");
    let index = server.ask("GET", "/registry/index/v1/to/acme/tool", "", None).body;
    let newest: Value = serde_json::from_str(index.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&newest["version"], &newest["attested"]), (&json!("1.1.0"), &json!("verified")));
    // Signatures of a revoked key no longer count.
    let one = format!("{path}/{}?reason=lost", key["key_id"].as_str().expect("an id"));
    let gone = server.ask("DELETE", &one, token.expect("a token"), None);
    assert_eq!(gone.status, 200, "{}", gone.body);
    let index = server.ask("GET", "/registry/index/v1/to/acme/tool", "", None).body;
    assert!(!index.contains("\"verified\""), "{index}");
}

#[test]
fn install_follows_redirects_to_the_bucket() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&[&NO_RATE_LIMIT[..], &["--registry-redirect"]].concat(), None);
    let token = register(&server, "ada@example.com");
    let bytes = large_skill("large", 3000);
    let (status, body) = publish(&server.address, &token, &bytes).expect("an answer");
    assert_eq!(status, 201, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let sha256 = body["published"]["artifact"]["sha256"].as_str().expect("a digest");
    let path = format!("/registry/artifacts/{sha256}/large-1.0.0.zip");
    let sent = server.ask("GET", &path, "", None);
    assert_eq!(sent.status, 307, "{}", sent.head);
    assert!(sent.head.contains("cache-control: private, no-store"), "{}", sent.head);
    assert!(sent.head.contains("x-amz-signature="), "{}", sent.head);
    let asked = server.ask("HEAD", &path, "", None);
    assert_eq!(asked.status, 200, "{}", asked.head);
    assert!(asked.head.contains(&format!("content-length: {}", bytes.len())), "{}", asked.head);
    // Small archives are sent directly, without a redirect.
    let (status, body) =
        send(&server.address, "POST", SKILLS, &token, &skill("small", "1.0.0")).expect("an answer");
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));

    let sandbox = &run_env.sandbox;
    for folder in ["home/.claude", "project/.git"] {
        fs::create_dir_all(sandbox.path(folder)).expect("a folder");
    }
    let url = format!("http://{}/registry", server.address);
    for name in ["large", "small"] {
        let asked = format!("{name}@^1.0");
        let install = ["install", &asked, "--registry", &url, "--allow-experimental", "--yes"];
        let done = sandbox.run_as("home", "project", &install);
        assert_eq!(done.code, 0, "{done}");
    }
    let (_, tree) = archive::unpack(&bytes).and_then(archive::one_skill).expect("a skill");
    let file = fs::read(sandbox.path("project/.claude/skills/large/data.bin")).expect("a file");
    assert!(file == tree.get("data.bin").expect("a file").bytes);
    // If the bucket cannot be reached, nothing is installed.
    run_env.line.cut(true);
    fs::remove_dir_all(sandbox.path("home/.cache")).expect("what was kept");
    fs::remove_dir_all(sandbox.path("home/.local")).expect("what was kept");
    fs::remove_dir_all(sandbox.path("project/.claude")).expect("what was there");
    let cut = sandbox.run_as("home", "project", &["sync", "--frozen", "--allow-experimental"]);
    assert_ne!(cut.code, 0, "{cut}");
    assert!(!sandbox.path("project/.claude/skills/large").exists());
}

#[test]
fn evaluations_are_published_searched_and_required() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    register(&server, "bob@example.com");
    sandbox.write("totals/SKILL.md", SKILL);
    sandbox.write("totals/evals/evals.json", EVALS);
    sandbox.write("totals/evals/files/numbers.csv", "40\n2\n");
    let tree = Tree::read(&sandbox.path("totals")).expect("a skill");
    let archived = archive::pack("totals", &tree).expect("an archive");
    let (status, text) = publish(&server.address, &token, &archived).expect("an answer");
    assert_eq!(status, 201, "{text}");
    publish(&server.address, &token, &skill("tool", "1.0.0")).expect("an answer");
    let [bob, eve] = ["bob", "eve"].map(|name| TestUser { sandbox: &sandbox, name });
    assert_eq!(bob.logs_in(&server, &[]).code, 0);
    let url = format!("http://{}/registry", server.address);

    // Bob measures the skill of Ada and publishes the result.
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let mut command = sandbox.command_as("bob", "", &["eval", "totals", "--output", "out"]);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    provider.of(&mut command);
    let run = Transcript::of(command);
    assert_eq!(run.code, 0, "{run}");
    bob.run_ok(&["keys", "new", "bob"]);
    let sign = ["eval", "sign", "out", "totals", "--registry", &url, "--publish"];
    let missing = bob.run(&[&sign[..], &["tool"]].concat(), "");
    assert!(missing.code == 1 && missing.stderr.contains("no version of tool"), "{missing}");
    let done = bob.run_ok(&[&sign[..], &["totals"]].concat());
    assert_eq!(done["published"]["version"], "1.0.0", "{done}");

    // Everyone sees who measured it.
    let info = eve.run_ok(&["info", "totals", "--registry", &url]);
    let attestation = &info["attestations"][0];
    assert_eq!(attestation["evaluation"]["verdict"], "pass", "{info}");
    let page = eve.run(&["info", "totals", "--registry", &url], "");
    assert!(page.stdout.contains("pass, uplift +100.0"), "{page}");
    let found = wait_for(|| {
        let found = eve.run_ok(&["search", "--evaluated", "--registry", &url]);
        (found["items"].as_array().map(Vec::len) == Some(1)).then_some(found)
    });
    assert_eq!(found["items"][0]["name"], "totals", "{found}");
    assert_eq!(found["items"][0]["attestations"], 1, "{found}");

    // Eve requires evaluations, and trusts nobody yet.
    sandbox.write("eve/savoir/config.toml", "[policy]\nrequire-eval = true\n");
    sandbox.write("project/savoir.toml", "");
    let at = sandbox.path("project").display().to_string();
    let install = |name: &str| {
        let args = ["install", &format!("registry:{name}"), "-y", "--project", &at];
        eve.run(&[&args[..], &["--agent", "claude-code", "--registry", &url]].concat(), "")
    };
    let nobody = install("tool");
    assert!(nobody.code == 3 && nobody.stderr.contains("nobody attests"), "{nobody}");
    let refused = install("totals");
    let key_id = attestation["key_id"].as_str().expect("a key");
    assert!(refused.code == 3 && refused.stderr.contains("trust none of the keys"), "{refused}");
    assert!(refused.stderr.contains(key_id) && refused.stderr.contains("savoir info"), "{refused}");
    let public = attestation["public_key"].as_str().expect("a key");
    eve.run_ok(&["keys", "trust", public, "--publisher", "Bob", "--role", "evaluator"]);
    let installed = install("totals");
    assert_eq!(installed.code, 0, "{installed}");

    // An evaluator does not sign skills: the tier stays. An edited skill loses its evaluations.
    let verified = eve.run_ok(&["verify", "--project", &at]);
    assert_eq!(verified["evaluations"][0]["trusted"], true, "{verified}");
    assert_eq!(verified["signatures"][0]["tier"], "experimental", "{verified}");
    let copy = sandbox.path("project/.claude/skills/totals");
    let copy = copy.display().to_string();
    let verify = |copy: &str| {
        let ran = eve.run(&["verify", copy, "--json"], "");
        ran.json()[0]["evaluations"].as_array().map(Vec::len)
    };
    assert_eq!(verify(&copy), Some(1));
    fs::write(format!("{copy}/SKILL.md"), SKILL.replace("Sums", "Adds")).expect("a file");
    assert_eq!(verify(&copy), Some(0));
}

/// Waits until something is there: search indexes follow the database.
fn wait_for<T>(mut find: impl FnMut() -> Option<T>) -> T {
    for _ in 0..100 {
        if let Some(found) = find() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    panic!("it did not appear in time");
}
