//! Signatures of published versions: they reach those who install them, and their own keys decide.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::{
    Server,
    real::{Town, serve},
};

const VERSION: &str = "acme/greeter@1.0.0";

impl Town {
    /// A key of a person: its public file, and its identifier.
    fn key(&self, who: &str) -> (String, String) {
        let made = self.well(who, &["keys", "new", who, "--json"]).json();
        let text = |key: &str| made[key].as_str().expect("a text").to_owned();
        (text("public_file"), text("key_id"))
    }

    /// A skill of bob's that a key of his signs in the registry, after it was published.
    fn countersigned(&self) -> (String, String) {
        self.skill("greeter", "1.0.0", "Greet.");
        let key = self.key("bob");
        self.well("bob", &["publish", "greeter", "--namespace", "acme", "--unsigned", "--yes"]);
        self.well("bob", &["registry", "keys", "add", "acme", &key.0]);
        let signed = self.well("bob", &["registry", "sign", VERSION]).stdout;
        assert!(signed.contains("tier           community"), "{signed}");
        key
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.sandbox.path("root/project/savoir.lock")).expect("a lock")
    }

    fn install(&self) -> crate::support::Transcript {
        self.well("root", &["install", "acme/greeter", "--allow-experimental", "--yes"])
    }

    /// The tier of what root has installed: in the lock, and as `verify` finds it in the folder.
    fn tiers(&self) -> (Value, Value) {
        let lock = self.lock();
        let line = lock.lines().find_map(|line| line.strip_prefix("tier = ")).expect("a tier");
        let path = "root/project/.claude/skills/greeter";
        let folder = self.sandbox.path(path).display().to_string();
        let verified = self.well("root", &["verify", &folder, "--json"]).json();
        (json!(line.trim_matches('"')), verified[0]["tier"].clone())
    }
}

#[test]
fn a_signature_of_the_registry_counts_for_who_trusts_its_key() {
    let town = Town::new();
    let (_, key_id) = town.countersigned();
    town.well("root", &["keys", "trust", "--from-registry", "acme", "--yes"]);
    let installed = town.well("root", &["install", "acme/greeter", "--yes"]);
    assert!(!installed.stderr.contains("in the registry, and"), "{installed}");
    let lock = town.lock();
    assert!(lock.contains("tier = \"community\""), "{lock}");
    assert!(lock.contains(&format!("signature = \"ed25519:{key_id}\"")), "{lock}");
    assert_eq!(town.tiers(), (json!("community"), json!("community")));
    let folder = town.sandbox.path("root/project/.claude/skills/greeter");
    let own = fs::read(town.sandbox.path("bob/project/greeter/SKILL.md")).expect("a file");
    assert_eq!(fs::read(folder.join("SKILL.md")).expect("a file"), own, "byte for byte");
    town.well("root", &["verify"]);
    // Another machine that has only the lock gets the signature, too.
    for gone in ["root/project/.claude/skills", "root/.cache", "root/.local"] {
        let _ = fs::remove_dir_all(town.sandbox.path(gone));
    }
    town.well("root", &["sync", "--frozen", "--allow-experimental", "--yes"]);
    assert_eq!(town.lock(), lock);
    assert_eq!(town.tiers().1, json!("community"));
}

#[test]
fn what_the_registry_says_does_not_count_without_a_key() {
    let town = Town::new();
    town.countersigned();
    let installed = town.install();
    let told = "`acme/greeter` is community in the registry, and experimental here, because no key \
                that you trust signed it. To trust the keys of its publisher: savoir keys trust \
                --from-registry acme --registry ";
    assert!(installed.stderr.contains(told), "{installed}");
    assert!(town.lock().contains("tier = \"experimental\""), "{}", town.lock());
    assert_eq!(town.tiers(), (json!("experimental"), json!("experimental")));
    // The hint works, and the next sync knows.
    let hint = ["keys", "trust", "--from-registry", "acme", "--registry", &town.url, "--yes"];
    town.well("root", &hint);
    let checked = town.run("root", &["sync", "--check"]);
    assert_eq!(checked.code, 0, "other machines trust other keys: {checked}");
    let synced = town.well("root", &["sync"]).stdout;
    let told = "`greeter` is community now, signed by acme; it was experimental\n";
    assert!(synced.contains(told), "{synced}");
    assert_eq!(town.tiers(), (json!("community"), json!("community")));
    assert_eq!(town.well("root", &["sync"]).stdout, "nothing to do\n");
    // A key that is trusted no more lowers it again.
    let keys = town.well("root", &["keys", "list", "--json"]).json();
    let key_id = keys["trusted"][0]["key_id"].as_str().expect("a key");
    town.well("root", &["keys", "distrust", key_id]);
    town.well("root", &["sync", "--frozen"]);
    assert!(town.lock().contains("tier = \"community\""), "a frozen lock stays");
    let synced = town.well("root", &["sync", "--json"]).json();
    let change = &synced["changes"][0];
    assert_eq!((&change["change"], &change["to"]), (&json!("tier"), &json!("experimental")));
    assert_eq!(town.tiers(), (json!("experimental"), json!("experimental")));
}

#[test]
fn a_mirror_has_the_signatures_of_its_origin() {
    let town = Town::new();
    let (public, _) = town.countersigned();
    let (copy, files) = (town.sandbox.path("copy"), Server::start());
    town.well("root", &["registry", "mirror", &town.url, &copy.display().to_string()]);
    serve(&files, &copy, &copy);
    town.well("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    let install = ["install", "acme/greeter", "--registry", files.address(), "--yes"];
    town.well("root", &install);
    assert_eq!(town.tiers(), (json!("community"), json!("community")));
    // What was fetched once is enough without a network.
    town.well("root", &["remove", "greeter"]);
    let _ = fs::remove_dir_all(town.sandbox.path("root/.local"));
    town.well("root", &[&install[..], &["--offline"]].concat());
    assert_eq!(town.tiers(), (json!("community"), json!("community")));
}

#[test]
fn a_key_that_is_registered_later_counts_for_what_it_signed_before() {
    let town = Town::new();
    town.skill("greeter", "1.0.0", "Greet.");
    town.key("bob");
    let publish = ["publish", "greeter", "--namespace", "acme", "--key", "bob", "--yes"];
    let published = town.well("bob", &publish);
    assert!(published.stdout.contains("experimental"), "{published}");
    let told = "no key that signed it is registered for `acme`";
    assert!(published.stderr.contains(told), "{published}");
    // The command that it names works as it is written.
    let (_, hint) = published.stderr.split_once("to register the key: savoir ").expect("a hint");
    let words: Vec<&str> = hint.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    town.well("bob", &words);
    let info = town.well("bob", &["info", VERSION, "--json"]).json();
    assert_eq!(info["tier"], "community", "{info}");
    let log = town.well("bob", &["registry", "log", "acme"]).stdout;
    assert!(log.contains("signed"), "{log}");
    town.skill("greeter", "1.1.0", "Greet.");
    let published = town.well("bob", &publish);
    assert!(!published.stderr.contains("registered"), "{published}");
    assert!(published.stdout.contains("community"), "{published}");
}

#[test]
fn keys_of_openssh_sign_what_is_published() {
    let town = Town::new();
    let key = town.sandbox.path("bob/id_ed25519");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f"])
        .arg(&key)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let (secret, public) = (key.display().to_string(), format!("{}.pub", key.display()));
    town.skill("greeter", "1.0.0", "Greet.");
    town.well("bob", &["publish", "greeter", "--namespace", "acme", "--unsigned", "--yes"]);
    town.well("bob", &["registry", "keys", "add", "acme", &public]);
    let signed = town.well("bob", &["registry", "sign", VERSION, "--key", &secret]).stdout;
    assert!(signed.contains("tier           community"), "{signed}");
    assert!(signed.contains("key SHA256:"), "{signed}");
    town.skill("greeter", "1.1.0", "Greet.");
    let publish = ["publish", "greeter", "--namespace", "acme", "--key", &secret, "--yes"];
    let published = town.well("bob", &publish);
    assert!(published.stdout.contains("community"), "{published}");
    assert!(!published.stderr.contains("registered"), "{published}");
    town.well("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    for version in ["1.1.0", "1.0.0"] {
        let asked = format!("acme/greeter@{version}");
        let installed = town.well("root", &["install", &asked, "--yes"]);
        assert!(town.lock().contains("tier = \"community\""), "{version}: {}", town.lock());
        if version == "1.0.0" {
            let told = "`greeter` is downgraded from 1.1.0 to 1.0.0\n";
            assert!(installed.stdout.contains(told), "{installed}");
        }
    }
}

#[test]
fn a_version_can_be_given_where_the_file_has_none() {
    let town = Town::new();
    let text =
        "---\nname: greeter\ndescription: Greets people. Use when somebody comes.\n---\n# It\n";
    town.sandbox.write("bob/project/greeter/SKILL.md", text);
    town.key("bob");
    let publish = |more: &[&str]| {
        let args = ["publish", "greeter", "--namespace", "acme", "--key", "bob", "--yes"];
        town.run("bob", &[&args[..], more].concat())
    };
    let refused = publish(&[]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("publish it with `--version 1.0.0`"), "{refused}");
    let published = publish(&["--version", "1.0.0"]);
    assert_eq!(published.code, 0, "{published}");
    assert!(published.stdout.contains("acme/greeter 1.0.0"), "{published}");
    let own = fs::read_to_string(town.sandbox.path("bob/project/greeter/SKILL.md"));
    assert_eq!(own.expect("a file"), text, "the file stays as it is");
    assert_eq!(publish(&["--version", "1.0.0"]).code, 1, "a version is published once");
    assert_eq!(publish(&["--version", "1.0"]).code, 1);
    assert_eq!(publish(&["--version", "1.1.0"]).code, 0);
    let public = town.sandbox.path("bob/.config/savoir/keys/bob.pub").display().to_string();
    town.well("root", &["keys", "trust", &public, "--publisher", "Bob"]);
    town.well("root", &["install", "acme/greeter@1.0.0", "--yes"]);
    let lock = town.lock();
    assert!(
        lock.contains("version = \"1.0.0\"") && lock.contains("tier = \"community\""),
        "{lock}"
    );
    let folder = town.sandbox.path("root/project/.claude/skills/greeter");
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).expect("a file"), text);
    assert_eq!(town.tiers(), (json!("community"), json!("community")));
    // A file that has a version has no other.
    town.skill("greeter", "2.0.0", "Greet.");
    let refused = publish(&["--version", "3.0.0"]);
    let told = "`version` is 3.0.0, and SKILL.md says 2.0.0";
    assert!(refused.code == 1 && refused.stderr.contains(told), "{refused}");
    assert_eq!(publish(&["--version", "2.0.0"]).code, 0);
}

#[test]
fn a_skill_without_a_description_is_not_published() {
    let town = Town::new();
    for description in ["", "\"\"", "\"  \""] {
        let text = format!(
            "---\nname: greeter\ndescription: {description}\nmetadata:\n  version: \"1.0.0\"\n---\n# It\n"
        );
        town.sandbox.write("bob/project/greeter/SKILL.md", text);
        let refused = town.run("bob", &["publish", "greeter", "--yes"]);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("SKILL.md:3"), "{refused}");
    }
}
