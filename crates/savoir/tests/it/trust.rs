//! Tests `keys`, `sign` and `verify`.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Command, Output, Stdio},
};

use crate::support::{Sandbox, Transcript};

const SKILL: &str = "---\nname: demo\nversion: 1.0.0\ndescription: Says hello. Use when greeting.\nauthor: Ada\nlicense: MIT\npermissions:\n  - network:read:api.example.com\ntools:\n  - name: greet\n    description: Return a greeting\n    parameters:\n      who: {type: string, required: true}\n    returns: {type: object}\nsecurity_tier: verified\n---\n\n# Demo\n\nCall `greet`; see [more](references/more.md).\n";
const TOOLS: &str = "from gaia.agents.base.tools import tool\n\n\n@tool\ndef greet(who: str) -> dict:\n    \"\"\"Return a greeting.\"\"\"\n    return {\"greeting\": f\"Hello, {who}\"}\n";

/// A fixed key (RFC 8032, section 7.1, test 1), so that signatures are the same in every run.
const SECRET: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=\n";
const PUBLIC: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const KEY_ID: &str = "21fe31dfa154a261626bf854046fd227";
const KEY: &str = ".config/savoir/keys/ada.key";

/// A folder with a skill and a fixed key.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    sandbox.write("demo/tools.py", TOOLS);
    sandbox.write("demo/references/more.md", "More of it.\n");
    sandbox.write(".config/savoir/keys/ada.pub", PUBLIC);
    let secret = sandbox.write(KEY, SECRET);
    fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).expect("a mode");
    sandbox
}

fn assert_ok(run: Transcript) -> Transcript {
    assert_eq!(run.code, 0, "{run}");
    run
}

fn signed() -> Sandbox {
    let sandbox = sandbox();
    assert_ok(sandbox.run(&["sign", "demo"]));
    sandbox
}

#[test]
fn a_new_key_is_for_its_owner_alone() {
    let sandbox = Sandbox::new();
    let empty = assert_ok(sandbox.run(&["keys", "list"]));
    assert_eq!(empty.stdout, "no keys; create one with: savoir keys new NAME\n");
    let made = assert_ok(sandbox.run(&["keys", "new", "ada", "--json"])).json();
    assert_eq!(made["mode"], "600");
    let file = sandbox.path(KEY);
    assert_eq!(made["private_file"], file.to_string_lossy().as_ref());
    assert_eq!(fs::metadata(&file).expect("a key").permissions().mode() & 0o777, 0o600);
    let list = assert_ok(sandbox.run(&["keys", "list", "--json"])).json();
    assert_eq!(list["own"][0]["key_id"], made["key_id"]);
    let run = assert_ok(sandbox.run(&["keygen", "grace"]));
    assert!(run.stdout.contains("grace.key, mode 600\n"), "{run}");
    let secret = sandbox.read(".config/savoir/keys/grace.key");
    assert!(!run.stdout.contains(secret.trim()), "the secret stays in its file");
    let again = sandbox.run(&["keys", "new", "ada"]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("there is a key `ada` already"), "{again}");
    assert_eq!(sandbox.run(&["keys", "new", "../ada"]).code, 2);
}

#[test]
fn sign_lists_signed_files() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.run(&["sign", "demo", "--publisher", "Ada Lovelace"]));
    let mode = fs::metadata(sandbox.path("demo/signature.json")).expect("a file").permissions();
    assert_eq!(mode.mode() & 0o444, 0o444, "everybody may read a signature");
}

#[test]
fn signing_and_verifying_round_trip() {
    let sandbox = sandbox();
    let unsigned = assert_ok(sandbox.run(&["verify", "demo"]));
    insta::assert_snapshot!("unsigned", unsigned);
    assert_ok(sandbox.run(&["sign", "demo"]));
    let stranger = assert_ok(sandbox.run(&["verify", "demo"]));
    insta::assert_snapshot!("by_a_stranger", stranger);
    assert_ok(sandbox.run(&["keys", "trust", PUBLIC, "--publisher", "Ada"]));
    insta::assert_snapshot!("by_a_publisher", assert_ok(sandbox.run(&["verify", "demo"])));
    let file = ".config/savoir/keys/ada.pub";
    assert_ok(sandbox.run(&["trust", "add", file, "--publisher", "Ada", "--role", "amd"]));
    let verified = assert_ok(sandbox.run(&["verify", "demo", "--json"])).json();
    assert_eq!(verified[0]["tier"], "verified");
    assert_ok(sandbox.run(&["keys", "trust", file, "--publisher", "Ada", "--namespace", "web-*"]));
    let elsewhere = assert_ok(sandbox.run(&["verify", "demo"]));
    assert!(elsewhere.stdout.contains("trusted for other skills only\n"), "{elsewhere}");
    insta::assert_snapshot!("list", assert_ok(sandbox.run(&["trust", "list"])));
    assert_ok(sandbox.run(&["trust", "remove", KEY_ID]));
    let run = sandbox.run(&["keys", "distrust", KEY_ID]);
    assert_eq!(run.code, 2, "{run}");
    assert_eq!(assert_ok(sandbox.run(&["verify", "demo"])).stdout, stranger.stdout);
    // `check` has no findings about the signature file.
    assert_ok(sandbox.run(&["check", "demo"]));
}

#[test]
fn two_signature_files_get_a_hint_that_names_both() {
    let sandbox = signed();
    let record = sandbox.read("demo/signature.json");
    sandbox.write("demo/SIGNATURE.json", record);
    let run = sandbox.run(&["verify", "demo"]);
    assert_ne!(run.code, 0, "{run}");
    let hint = "remove or rename one of the two files: ";
    assert!(run.stderr.contains(hint), "{run}");
    for name in ["signature.json", "SIGNATURE.json"] {
        assert!(run.stderr.split_once(hint).is_some_and(|(_, rest)| rest.contains(name)), "{run}");
    }
}

#[test]
fn differences_are_listed() {
    let sandbox = signed();
    sandbox.write("demo/SKILL.md", SKILL.replace("Says hello", "Says anything"));
    sandbox.write("demo/evil.sh", "true\n");
    fs::remove_file(sandbox.path("demo/references/more.md")).expect("a file");
    insta::assert_snapshot!(sandbox.run(&["verify", "demo"]));
    // Signing again lists what is replaced.
    sandbox.write("demo/references/more.md", "More.\n");
    let run = assert_ok(sandbox.run(&["sign", "demo"]));
    let replaced = "replaced       an invalid signature: `SKILL.md` is not what was signed";
    assert!(run.stdout.contains(replaced), "{run}");
    assert_ok(sandbox.run(&["verify", "demo"]));
    // A signature of another version is invalid.
    sandbox.write("demo/SKILL.md", SKILL.replace("1.0.0", "1.0.1"));
    let run = sandbox.run(&["verify", "demo"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stdout.contains("changed        SKILL.md\n"), "{run}");
    // A missing frontmatter does not hide the signature error.
    sandbox.write("demo/SKILL.md", "# Demo\n");
    let run = sandbox.run(&["verify", "demo"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("does not match its signature"), "{run}");
    assert!(run.stdout.contains("changed        SKILL.md\n"), "{run}");
    sandbox.write("demo/SKILL.md", SKILL);
    let record = sandbox.read("demo/signature.json").replace(KEY_ID, &"0".repeat(32));
    sandbox.write("demo/signature.json", record);
    assert_eq!(sandbox.run(&["verify", "demo"]).code, 3);
}

#[test]
fn a_revoked_key_is_refused() {
    let sandbox = signed();
    assert_ok(sandbox.run(&["keys", "trust", PUBLIC, "--publisher", "Ada"]));
    let upper = KEY_ID.to_uppercase();
    let why = "the laptop was stolen";
    let run = assert_ok(sandbox.run(&["keys", "revoke", &upper, "--reason", why, "--json"]));
    assert_eq!(run.json()["key_id"], KEY_ID);
    let list = assert_ok(sandbox.run(&["keys", "list", "--json"])).json();
    assert_eq!(list["trusted"], serde_json::json!([]));
    assert_eq!(list["revoked"][0]["reason"], why);
    let verified = sandbox.run(&["verify", "demo"]);
    assert_eq!(verified.code, 3, "{verified}");
    assert!(verified.stderr.contains("was revoked on ") && verified.stderr.contains(why));
    let trusted = sandbox.run(&["keys", "trust", PUBLIC, "--publisher", "Ada"]);
    assert_eq!(trusted.code, 3, "{trusted}");
    let record = sandbox.read("demo/signature.json");
    let signed = sandbox.run(&["sign", "demo"]);
    assert_eq!(signed.code, 3, "{signed}");
    assert_eq!(sandbox.read("demo/signature.json"), record);
    let typed = sandbox.run(&["keys", "revoke", "21fe31df", "--reason", "x"]);
    assert_eq!(typed.code, 2, "{typed}");
    assert_eq!(sandbox.run(&["keys", "revoke", KEY_ID]).code, 2, "without a reason");
}

#[test]
fn readable_private_key_is_rejected() {
    let sandbox = sandbox();
    fs::set_permissions(sandbox.path(KEY), fs::Permissions::from_mode(0o640)).expect("a mode");
    let run = sandbox.run(&["sign", "demo"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("chmod 600 "), "{run}");
    assert!(!sandbox.path("demo/signature.json").exists());
}

#[test]
fn only_public_keys_are_trusted() {
    let sandbox = sandbox();
    let trust = |key: &str| sandbox.run(&["keys", "trust", key, "--publisher", "Ada"]);
    let run = trust(KEY);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("it is a private key"), "{run}");
    assert!(run.stderr.contains("hint: use .config/savoir/keys/ada.pub\n"), "{run}");
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n";
    let run = sandbox.run(&["keys", "trust", "--publisher", "Ada", "--", pem]);
    assert_eq!(run.code, 2, "{run}");
    assert!(!run.stderr.contains("MC4C"), "what is secret is not repeated: {run}");
    let run = trust("nobody.pub");
    assert!(run.stderr.contains("file `nobody.pub` does not exist, and as a key"), "{run}");
    assert_eq!(sandbox.run(&["keys", "trust", PUBLIC, "--publisher", " "]).code, 2);
    let odd = ["keys", "trust", PUBLIC, "--publisher", "Ada", "--namespace", "*"];
    assert_eq!(sandbox.run(&odd).code, 2);
    assert!(!sandbox.path(".config/savoir/trusted-keys.json").exists(), "a no leaves no trace");
    sandbox.write(".config/savoir/trusted-keys.json", "{");
    let run = sandbox.run(&["verify", "demo"]);
    assert_eq!(run.code, 2, "nobody is not who is trusted: {run}");
}

#[test]
fn trusting_a_key_again_says_what_it_replaces() {
    let sandbox = sandbox();
    let trust = |more: &[&str]| {
        assert_ok(sandbox.run(&[&["keys", "trust", PUBLIC, "--publisher", "Ada"], more].concat()))
    };
    assert_eq!(trust(&["--namespace", "demo"]).stdout.lines().count(), 1);
    let again = trust(&["--namespace", "other"]);
    assert!(again.stdout.contains("\nit replaces "), "{again}");
    assert!(again.stdout.contains("only for demo\n"), "{again}");
    assert_eq!(trust(&["--namespace", "other"]).stdout.lines().count(), 1, "nothing changed");
}

#[test]
fn not_every_skill_can_be_signed() {
    let sandbox = sandbox();
    let refused = |path: &str, code: i32, what: &str| {
        let run = sandbox.run(&["sign", path]);
        assert_eq!(run.code, code, "{run}");
        assert!(run.stderr.contains(what), "{run}");
    };
    let plain = "---\nname: plain\ndescription: Shows how. Use when learning.\n---\nx\n";
    sandbox.write("plain/SKILL.md", plain);
    refused("plain", 1, "plain/SKILL.md has no version, which a signature needs");
    refused("plain", 1, "hint: add it to the frontmatter: metadata: {version: \"1.0.0\"}\n");
    assert_ok(sandbox.run(&["verify", "plain"]));
    sandbox.write("nameless/SKILL.md", plain.replace("name: plain\n", ""));
    // The skill is named after its folder.
    assert_ok(sandbox.run(&["verify", "nameless"]));
    sandbox.write("broken/SKILL.md", SKILL.replace("name: demo", "name: Not a name"));
    sandbox.write("broken/tools.py", TOOLS);
    refused("broken", 1, "broken/SKILL.md:2:");
    sandbox.write("text.md", SKILL);
    refused("text.md", 2, "text.md is a file, and only folders can be signed");
    refused("nothing", 2, "nothing: the file or folder does not exist");
    symlink("/etc/hostname", sandbox.path("demo/host")).expect("a link");
    refused(
        "demo",
        1,
        "`host` is a link that does not lead to a file or folder of the same repository",
    );
    fs::remove_file(sandbox.path("demo/host")).expect("a link");
    symlink("SKILL.md", sandbox.path("demo/signature.json")).expect("a link");
    refused("demo", 2, "it is a symlink");
    assert_eq!(sandbox.read("demo/SKILL.md"), SKILL);
    fs::remove_file(sandbox.path("demo/signature.json")).expect("a link");
    assert_ok(sandbox.run(&["keys", "new", "second"]));
    refused("demo", 2, "you have several keys: ada, second");
    let run = sandbox.run(&["sign", "demo", "--key", "third"]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn foreign_signatures_are_not_dropped_silently() {
    let sandbox = signed();
    assert_ok(sandbox.run(&["keys", "new", "grace"]));
    let run = sandbox.run(&["sign", "demo", "--key", "grace"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains(&format!("signatures that would be lost: {KEY_ID}\n")), "{run}");
    assert_ok(sandbox.run(&["sign", "demo", "--key", "ada"]));
    assert_ok(sandbox.run(&["sign", "demo", "--key", "grace", "--replace"]));
    assert!(!sandbox.read("demo/signature.json").contains(KEY_ID));
    assert_ok(sandbox.run(&["verify", "demo"]));
}

#[test]
fn programs_get_json() {
    let sandbox = sandbox();
    let run = assert_ok(sandbox.run(&["sign", "demo", "--json"]));
    insta::assert_snapshot!("json_of_sign", run.stdout);
    assert_ok(sandbox.run(&["keys", "trust", PUBLIC, "--publisher", "Ada"]));
    sandbox.write("changed/SKILL.md", SKILL);
    let record = sandbox.read("demo/signature.json");
    sandbox.write("changed/signature.json", record);
    let run = sandbox.run(&["verify", "demo", "changed", "nothing", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (3, ""), "{run}");
    insta::assert_snapshot!("json_of_verify", run.stdout);
}

/// Whether a program is installed; tests that need a missing program print a note.
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("-h").stdin(Stdio::null()).output().is_ok();
    if !there {
        eprintln!("=== SKIPPED: {program} is not installed ===");
    }
    there
}

fn program(sandbox: &Sandbox, name: &str, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(name)
        .args(args)
        .current_dir(sandbox.path(""))
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect(name);
    // The process may end before it reads its input.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("an end")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn with_ssh_key(sandbox: &Sandbox, kind: &str) {
    let args = ["-q", "-t", kind, "-N", "", "-C", "me", "-f", "id"];
    text(&program(sandbox, "ssh-keygen", &args, ""));
    let allowed = format!("me {}", sandbox.read("id.pub"));
    sandbox.write("allowed", allowed);
}

#[test]
fn openssh_verifies_our_signatures() {
    if !has("ssh-keygen") {
        return;
    }
    // The first kind is implemented here, the second one uses ssh-keygen.
    for kind in ["ed25519", "ecdsa"] {
        let sandbox = sandbox();
        with_ssh_key(&sandbox, kind);
        assert_ok(sandbox.run(&["sign", "demo", "--ssh-key", "id"]));
        let record: serde_json::Value =
            serde_json::from_str(&sandbox.read("demo/signature.json")).expect("JSON");
        assert_eq!(record["algorithm"], "detached");
        sandbox.write("sig", record["signatures"][0]["sig"].as_str().expect("a signature"));
        let bytes = assert_ok(sandbox.run(&["sign", "demo", "--print"])).stdout;
        let args =
            ["-Y", "verify", "-n", "savoir-skill@v1", "-I", "me", "-f", "allowed", "-s", "sig"];
        text(&program(&sandbox, "ssh-keygen", &args, &bytes));
        assert_ok(sandbox.run(&["keys", "trust", "id.pub", "--publisher", "Ada"]));
        let verified = assert_ok(sandbox.run(&["verify", "demo", "--json"])).json();
        assert_eq!(verified[0]["tier"], "community", "{kind}");
        assert_eq!(verified[0]["signed"]["kind"], "sshsig");
        fs::set_permissions(sandbox.path("id"), fs::Permissions::from_mode(0o644)).expect("a mode");
        let run = sandbox.run(&["sign", "demo", "--ssh-key", "id"]);
        assert_ne!(run.code, 0, "{run}");
    }
}

#[test]
fn openssh_signatures_are_verified() {
    if !has("ssh-keygen") {
        return;
    }
    let sandbox = signed();
    with_ssh_key(&sandbox, "ed25519");
    let bytes = assert_ok(sandbox.run(&["sign", "demo", "--print"])).stdout;
    let sign = |namespace: &str, bytes: &str| {
        let args = ["-Y", "sign", "-q", "-n", namespace, "-f", "id"];
        let signature = text(&program(&sandbox, "ssh-keygen", &args, bytes));
        sandbox.write("sig", signature);
        sandbox.run(&["sign", "demo", "--ssh-signature", "sig"])
    };
    let record = sandbox.read("demo/signature.json");
    for wrong in [sign("git", &bytes), sign("savoir-skill@v1", "something else")] {
        assert_eq!(wrong.code, 1, "{wrong}");
        assert_eq!(sandbox.read("demo/signature.json"), record, "nothing was written");
    }
    assert_ok(sign("savoir-skill@v1", &bytes));
    assert_ok(sandbox.run(&["keys", "trust", "id.pub", "--publisher", "Ada", "--role", "amd"]));
    let verified = assert_ok(sandbox.run(&["verify", "demo", "--json"])).json();
    assert_eq!(verified[0]["signatures"].as_array().map(Vec::len), Some(2), "both count");
    assert_eq!(verified[0]["tier"], "verified");
    // Signing with the same key again adds no signature.
    let record = sandbox.read("demo/signature.json");
    assert_ok(sandbox.run(&["sign", "demo", "--ssh-key", "id"]));
    assert_eq!(sandbox.read("demo/signature.json"), record);
    let listed = text(&program(&sandbox, "ssh-keygen", &["-l", "-f", "id.pub"], ""));
    assert!(listed.contains(verified[0]["signed"]["key_id"].as_str().expect("a key")), "{listed}");
}

#[test]
fn bundles_of_model_signing() {
    if !has("openssl") {
        return;
    }
    let sandbox = sandbox();
    let curve = "ec_paramgen_curve:P-256";
    let args = ["genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", "key.pem"];
    text(&program(&sandbox, "openssl", &args, ""));
    let args = ["pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"];
    text(&program(&sandbox, "openssl", &args, ""));
    let key = sandbox.path("key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a mode");
    let run = sandbox.run(&["sign", "demo", "--oms-key", "key.pem"]);
    assert_eq!(run.code, 3, "{run}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    assert_ok(sandbox.run(&["sign", "demo", "--oms-key", "key.pem", "--publisher", "Ada"]));
    assert!(!sandbox.path("demo/signature.json").exists());
    let unknown = assert_ok(sandbox.run(&["verify", "demo"]));
    assert!(unknown.stdout.contains("signature      not checked"), "{unknown}");
    assert_ok(sandbox.run(&["keys", "trust", "public.pem", "--publisher", "Ada"]));
    let verified = assert_ok(sandbox.run(&["verify", "demo", "--json"])).json();
    assert_eq!(
        (&verified[0]["tier"], &verified[0]["signed"]["kind"]),
        (&"community".into(), &"oms".into())
    );
    // If a record exists, the signature is added to it.
    assert_ok(sandbox.run(&["sign", "demo", "--key", "ada"]));
    assert_ok(sandbox.run(&["sign", "demo", "--oms-key", "key.pem"]));
    let verified = assert_ok(sandbox.run(&["verify", "demo", "--json"])).json();
    assert_eq!(verified[0]["signatures"].as_array().map(Vec::len), Some(3), "{verified}");
    // An invalid bundle is not replaced.
    sandbox.write("demo/references/more.md", "Less.\n");
    let run = sandbox.run(&["sign", "demo", "--key", "ada"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("hint: nothing was written"), "{run}");
    let run = sandbox.run(&["sign", "demo", "--oms-key", KEY]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn sources_are_trusted_and_listed() {
    let sandbox = Sandbox::new();
    let empty = assert_ok(sandbox.run(&["trust", "list"])).stdout;
    assert!(empty.starts_with("nothing is trusted"), "{empty}");
    let added = assert_ok(sandbox.run(&["trust", "add", "github:Anthropics"])).stdout;
    let document = "trusted github:anthropics: its skills are installed without confirmation\n";
    assert_eq!(added, document);
    let again = assert_ok(sandbox.run(&["trust", "add", "github:anthropics"])).stdout;
    assert_eq!(again, "github:anthropics is already trusted\n");
    assert_ok(sandbox.run(&["trust", "add", "registry:https://skills.example.com/registry#acme"]));
    assert_ok(sandbox.run(&["keys", "trust", PUBLIC, "--publisher", "Ada"]));
    insta::assert_snapshot!("sources", assert_ok(sandbox.run(&["trust", "list"])));
    let list = assert_ok(sandbox.run(&["trust", "list", "--json"])).json();
    assert_eq!(list["sources"][0], "github:anthropics");
    assert_eq!(list["trusted"][0]["key_id"], KEY_ID);
    let file = sandbox.read(".config/savoir/trusted-sources.toml");
    assert!(file.contains("    \"github:anthropics\",\n"), "{file}");
    assert_ok(sandbox.run(&["trust", "remove", "github:anthropics"]));
    let gone = sandbox.run(&["trust", "remove", "github:anthropics"]);
    assert_eq!(gone.code, 2, "{gone}");
    assert_ok(sandbox.run(&["trust", "remove", &format!("key:{KEY_ID}")]));
    let list = assert_ok(sandbox.run(&["trust", "list", "--json"])).json();
    assert_eq!(
        (list["sources"].as_array().map(Vec::len), &list["trusted"]),
        (Some(1), &serde_json::json!([]))
    );
}

#[test]
fn sources_that_mean_nothing_are_refused() {
    let sandbox = sandbox();
    for (source, document) in [
        ("https://github.com/anthropics", "did you mean `github:anthropics`?"),
        ("anthropics", "write `github:owner`"),
        ("local", "folders of this machine are not trusted as a whole"),
        ("git:github.com", "everyone can have a repository on github.com"),
        ("key:0123456789abcdef0123456789abcdef", "is the identifier of a key, not the key"),
        ("key:demo/SKILL.md", "add --publisher NAME"),
    ] {
        let run = sandbox.run(&["trust", "add", source]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(document), "{source}: {run}");
    }
    let run = sandbox.run(&["trust", "add", "acme/*"]);
    assert!(run.code == 2 && run.stderr.contains("no registry is set for `acme`"), "{run}");
    assert!(!sandbox.path(".config/savoir/trusted-sources.toml").exists());
    // A key of your own can be trusted by its identifier.
    assert_ok(sandbox.run(&["trust", "add", &format!("key:{KEY_ID}")]));
    let list = assert_ok(sandbox.run(&["keys", "list", "--json"])).json();
    assert_eq!(list["trusted"][0]["publisher"], "ada");
    sandbox.write(".config/savoir/trusted-sources.toml", "sources = [\"nonsense\"]\n");
    let run = sandbox.run(&["trust", "list"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("trusted-sources.toml:1:12: "), "{run}");
}

#[test]
fn every_policy_that_applies_is_shown() {
    let sandbox = Sandbox::new();
    sandbox.write("org.toml", "[policy]\nrequire = \"signed\"\n");
    sandbox.write(".config/savoir/config.toml", "[policy]\ndeny = [\"pdf\"]\n");
    sandbox.write(
        "savoir.toml",
        "[policy]\nsources = [\"github:anthropics\"]\nrequire = \"verified\"\n",
    );
    let shown = |policy: &str| {
        let mut command = sandbox.command(&["config", "--json"]);
        command.env("SAVOIR_POLICY", policy);
        Transcript::of(command)
    };
    let policy = sandbox.path("org.toml").display().to_string();
    let settings = assert_ok(shown(&policy)).json();
    assert_eq!(settings["policy.require"][0]["value"], "signed");
    assert_eq!(settings["policy.require"][1]["value"], "verified");
    assert_eq!(settings["policy.deny"][0]["value"], "pdf");
    let from = settings["policy.sources"][0]["from"].as_str().expect("a place");
    assert!(from.ends_with("savoir.toml:2:11"), "{from}");
    let missing = shown("/nowhere/policy.toml");
    assert_eq!(missing.code, 2, "{missing}");
    assert!(missing.stderr.contains("SAVOIR_POLICY is set to /nowhere/policy.toml"), "{missing}");
    sandbox.write("org.toml", "[policy]\nrequires = \"signed\"\n");
    let mistake = shown(&policy);
    assert!(mistake.stderr.contains("org.toml:2:1: there is no setting `requires`"), "{mistake}");
    assert!(mistake.stderr.contains("did you mean `require`?"), "{mistake}");
}
