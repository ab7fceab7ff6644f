//! Tests signatures of published versions: users get them, and their own trusted keys decide.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::{
    MockRegistry,
    live_registry::{LiveRegistryEnv, serve},
};

const VERSION: &str = "acme/greeter@1.0.0";

impl LiveRegistryEnv {
    /// Creates a key of a user; returns its public file and its identifier.
    fn key(&self, who: &str) -> (String, String) {
        let made = self.run_ok(who, &["keys", "new", who, "--json"]).json();
        let text = |key: &str| made[key].as_str().expect("a text").to_owned();
        (text("public_file"), text("key_id"))
    }

    /// Publishes a skill of bob, then adds a signature by his key; returns the key.
    fn countersigned(&self) -> (String, String) {
        self.skill("greeter", "1.0.0", "Greet.");
        let key = self.key("bob");
        self.run_ok("bob", &["publish", "greeter", "--namespace", "acme", "--unsigned", "--yes"]);
        self.run_ok("bob", &["registry", "keys", "add", "acme", &key.0]);
        let signed = self.run_ok("bob", &["registry", "sign", VERSION]).stdout;
        assert!(signed.contains("tier           community"), "{signed}");
        key
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.sandbox.path("root/project/savoir.lock")).expect("a lock")
    }

    fn install(&self) -> crate::support::Transcript {
        self.run_ok("root", &["install", "acme/greeter", "--allow-experimental", "--yes"])
    }

    /// The tier of root's installed skill: in the lock, and from `verify`.
    fn tiers(&self) -> (Value, Value) {
        let lock = self.lock();
        let line = lock.lines().find_map(|line| line.strip_prefix("tier = ")).expect("a tier");
        let path = "root/project/.claude/skills/greeter";
        let folder = self.sandbox.path(path).display().to_string();
        let verified = self.run_ok("root", &["verify", &folder, "--json"]).json();
        (json!(line.trim_matches('"')), verified[0]["tier"].clone())
    }
}

#[test]
fn registry_signature_counts_with_a_trusted_key() {
    let test_env = LiveRegistryEnv::new();
    let (_, key_id) = test_env.countersigned();
    test_env.run_ok("root", &["keys", "trust", "--from-registry", "acme", "--yes"]);
    let installed = test_env.run_ok("root", &["install", "acme/greeter", "--yes"]);
    assert!(!installed.stderr.contains("in the registry, and"), "{installed}");
    let lock = test_env.lock();
    assert!(lock.contains("tier = \"community\""), "{lock}");
    assert!(lock.contains(&format!("signature = \"ed25519:{key_id}\"")), "{lock}");
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
    let folder = test_env.sandbox.path("root/project/.claude/skills/greeter");
    let own = fs::read(test_env.sandbox.path("bob/project/greeter/SKILL.md")).expect("a file");
    assert_eq!(fs::read(folder.join("SKILL.md")).expect("a file"), own, "byte for byte");
    test_env.run_ok("root", &["verify"]);
    // Another machine that has only the lock gets the signature, too.
    for gone in ["root/project/.claude/skills", "root/.cache", "root/.local"] {
        let _ = fs::remove_dir_all(test_env.sandbox.path(gone));
    }
    test_env.run_ok("root", &["sync", "--frozen", "--allow-experimental", "--yes"]);
    assert_eq!(test_env.lock(), lock);
    assert_eq!(test_env.tiers().1, json!("community"));
}

#[test]
fn registry_claims_do_not_count_without_a_key() {
    let test_env = LiveRegistryEnv::new();
    test_env.countersigned();
    let installed = test_env.install();
    let output = "`acme/greeter` is community in the registry, and experimental here, because no key \
                that you trust signed it. To trust the keys of its publisher: savoir keys trust \
                --from-registry acme --registry ";
    assert!(installed.stderr.contains(output), "{installed}");
    assert!(test_env.lock().contains("tier = \"experimental\""), "{}", test_env.lock());
    assert_eq!(test_env.tiers(), (json!("experimental"), json!("experimental")));
    // The command in the hint works, and the next sync updates the tier.
    let hint = ["keys", "trust", "--from-registry", "acme", "--registry", &test_env.url, "--yes"];
    test_env.run_ok("root", &hint);
    let checked = test_env.run("root", &["sync", "--check"]);
    assert_eq!(checked.code, 0, "other machines trust other keys: {checked}");
    let synced = test_env.run_ok("root", &["sync"]).stdout;
    let output = "`greeter` is community now, signed by acme; it was experimental\n";
    assert!(synced.contains(output), "{synced}");
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
    assert_eq!(test_env.run_ok("root", &["sync"]).stdout, "nothing to do\n");
    // Removing the trust in the key lowers the tier again.
    let keys = test_env.run_ok("root", &["keys", "list", "--json"]).json();
    let key_id = keys["trusted"][0]["key_id"].as_str().expect("a key");
    test_env.run_ok("root", &["keys", "distrust", key_id]);
    test_env.run_ok("root", &["sync", "--frozen"]);
    assert!(test_env.lock().contains("tier = \"community\""), "a frozen lock stays");
    let synced = test_env.run_ok("root", &["sync", "--json"]).json();
    let change = &synced["changes"][0];
    assert_eq!((&change["change"], &change["to"]), (&json!("tier"), &json!("experimental")));
    assert_eq!(test_env.tiers(), (json!("experimental"), json!("experimental")));
}

#[test]
fn key_trusted_for_one_skill_is_trusted_for_the_next() {
    let test_env = LiveRegistryEnv::new();
    let (public, key_id) = test_env.countersigned();
    // The same key signs a skill without a namespace.
    test_env.skill("alone", "1.0.0", "Greet.");
    test_env.run_ok("bob", &["publish", "alone", "--unsigned", "--yes"]);
    let added = test_env.run_ok("bob", &["registry", "keys", "add", "alone", &public]);
    assert!(added.stdout.contains(" for alone\n"), "{added}");
    test_env.run_ok("bob", &["registry", "sign", "alone@1.0.0"]);
    let request = ["registry", "request-audit", "alone@1.0.0", "--message", "please"];
    let asked = test_env.run_ok("bob", &request);
    assert_eq!(asked.stdout, "asked for an audit of `alone` 1.0.0\n");

    let trust =
        |name: &str| test_env.run_ok("root", &["keys", "trust", "--from-registry", name, "-y"]);
    let first = trust("alone").stdout;
    assert!(first.contains("only for alone\n"), "{first}");
    let installed = test_env.install();
    let output = "by the publisher of alone, whose key you trust only for alone";
    assert!(installed.stderr.contains(output), "{installed}");
    // The command in the hint of the install works.
    let second = trust("acme").stdout;
    assert!(second.contains(&key_id) && second.contains("until now only for alone\n"), "{second}");
    test_env.run_ok("root", &["sync"]);
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
    let third = trust("alone").stdout;
    assert!(third.starts_with("already trusted, unchanged: "), "{third}");
}

#[test]
fn mirror_keeps_signatures_of_its_origin() {
    let test_env = LiveRegistryEnv::new();
    let (public, _) = test_env.countersigned();
    let (copy, files) = (test_env.sandbox.path("copy"), MockRegistry::start());
    test_env.run_ok("root", &["registry", "mirror", &test_env.url, &copy.display().to_string()]);
    serve(&files, &copy, &copy);
    test_env.run_ok("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    let install = ["install", "acme/greeter", "--registry", files.address(), "--yes"];
    test_env.run_ok("root", &install);
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
    // Without a network, the cached files are used.
    test_env.run_ok("root", &["remove", "greeter"]);
    let _ = fs::remove_dir_all(test_env.sandbox.path("root/.local"));
    test_env.run_ok("root", &[&install[..], &["--offline"]].concat());
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
}

#[test]
fn later_registered_key_counts_for_earlier_signatures() {
    let test_env = LiveRegistryEnv::new();
    test_env.skill("greeter", "1.0.0", "Greet.");
    test_env.key("bob");
    let publish = ["publish", "greeter", "--namespace", "acme", "--key", "bob", "--yes"];
    let published = test_env.run_ok("bob", &publish);
    assert!(published.stdout.contains("experimental"), "{published}");
    let output = "no key that signed it is registered for `acme`";
    assert!(published.stderr.contains(output), "{published}");
    // The command in the message works unchanged.
    let (_, hint) = published.stderr.split_once("to register the key: savoir ").expect("a hint");
    let words: Vec<&str> = hint.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    test_env.run_ok("bob", &words);
    let info = test_env.run_ok("bob", &["info", VERSION, "--json"]).json();
    assert_eq!(info["tier"], "community", "{info}");
    let log = test_env.run_ok("bob", &["registry", "log", "acme"]).stdout;
    assert!(log.contains("signed"), "{log}");
    test_env.skill("greeter", "1.1.0", "Greet.");
    let published = test_env.run_ok("bob", &publish);
    assert!(!published.stderr.contains("registered"), "{published}");
    assert!(published.stdout.contains("community"), "{published}");
}

#[test]
fn openssh_keys_sign_published_skills() {
    let test_env = LiveRegistryEnv::new();
    let key = test_env.sandbox.path("bob/id_ed25519");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f"])
        .arg(&key)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let (secret, public) = (key.display().to_string(), format!("{}.pub", key.display()));
    test_env.skill("greeter", "1.0.0", "Greet.");
    test_env.run_ok("bob", &["publish", "greeter", "--namespace", "acme", "--unsigned", "--yes"]);
    test_env.run_ok("bob", &["registry", "keys", "add", "acme", &public]);
    let signed = test_env.run_ok("bob", &["registry", "sign", VERSION, "--key", &secret]).stdout;
    assert!(signed.contains("tier           community"), "{signed}");
    assert!(signed.contains("key SHA256:"), "{signed}");
    test_env.skill("greeter", "1.1.0", "Greet.");
    let publish = ["publish", "greeter", "--namespace", "acme", "--key", &secret, "--yes"];
    let published = test_env.run_ok("bob", &publish);
    assert!(published.stdout.contains("community"), "{published}");
    assert!(!published.stderr.contains("registered"), "{published}");
    test_env.run_ok("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    for version in ["1.1.0", "1.0.0"] {
        let asked = format!("acme/greeter@{version}");
        let installed = test_env.run_ok("root", &["install", &asked, "--yes"]);
        assert!(test_env.lock().contains("tier = \"community\""), "{version}: {}", test_env.lock());
        if version == "1.0.0" {
            let output = "`greeter` is downgraded from 1.1.0 to 1.0.0\n";
            assert!(installed.stdout.contains(output), "{installed}");
        }
    }
}

#[test]
fn version_option_is_used_if_the_file_has_no_version() {
    let test_env = LiveRegistryEnv::new();
    let text =
        "---\nname: greeter\ndescription: Greets people. Use when somebody comes.\n---\n# It\n";
    test_env.sandbox.write("bob/project/greeter/SKILL.md", text);
    test_env.key("bob");
    let publish = |more: &[&str]| {
        let args = ["publish", "greeter", "--namespace", "acme", "--key", "bob", "--yes"];
        test_env.run("bob", &[&args[..], more].concat())
    };
    let refused = publish(&[]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("publish it with `--version 1.0.0`"), "{refused}");
    let published = publish(&["--version", "1.0.0"]);
    assert_eq!(published.code, 0, "{published}");
    assert!(published.stdout.contains("acme/greeter 1.0.0"), "{published}");
    let own = fs::read_to_string(test_env.sandbox.path("bob/project/greeter/SKILL.md"));
    assert_eq!(own.expect("a file"), text, "the file stays as it is");
    assert_eq!(publish(&["--version", "1.0.0"]).code, 1, "a version is published once");
    assert_eq!(publish(&["--version", "1.0"]).code, 1);
    assert_eq!(publish(&["--version", "1.1.0"]).code, 0);
    let public = test_env.sandbox.path("bob/.config/savoir/keys/bob.pub").display().to_string();
    test_env.run_ok("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    test_env.run_ok("root", &["install", "acme/greeter@1.0.0", "--yes"]);
    let lock = test_env.lock();
    assert!(
        lock.contains("version = \"1.0.0\"") && lock.contains("tier = \"community\""),
        "{lock}"
    );
    let folder = test_env.sandbox.path("root/project/.claude/skills/greeter");
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).expect("a file"), text);
    assert_eq!(test_env.tiers(), (json!("community"), json!("community")));
    // `--version` cannot change the version in a file.
    test_env.skill("greeter", "2.0.0", "Greet.");
    let refused = publish(&["--version", "3.0.0"]);
    let output = "`version` is 3.0.0, and SKILL.md says 2.0.0";
    assert!(refused.code == 1 && refused.stderr.contains(output), "{refused}");
    assert_eq!(publish(&["--version", "2.0.0"]).code, 0);
}

#[test]
fn a_skill_without_a_description_is_not_published() {
    let test_env = LiveRegistryEnv::new();
    for description in ["", "\"\"", "\"  \""] {
        let text = format!(
            "---\nname: greeter\ndescription: {description}\nmetadata:\n  version: \"1.0.0\"\n---\n# It\n"
        );
        test_env.sandbox.write("bob/project/greeter/SKILL.md", text);
        let refused = test_env.run("bob", &["publish", "greeter", "--yes"]);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("SKILL.md:3"), "{refused}");
    }
}
