//! Tests prose with versions that the registry assigns, and locked versions that were removed.

use std::fs;

use savoir_package::{
    Tree,
    archive::pack,
    registry::{Name, wire::IndexLine},
};
use semver::Version;
use serde_json::json;

use super::TestEnv;

impl TestEnv {
    /// Publishes a text without frontmatter with this patch number.
    fn publish_text(&self, name: &str, patch: u64, words: &str) {
        let name = Name::parse(name).expect("a name");
        let folder = format!("elsewhere/{}-{patch}", name.last());
        self.sandbox.write(&format!("{folder}/SKILL.md"), format!("# It\n\n{words}\n"));
        let tree = Tree::read(&self.sandbox.path(&folder)).expect("a skill");
        let bytes = pack(name.last(), &tree).expect("an archive");
        let mut line = IndexLine::describe(&name, &tree, &bytes).expect("a skill");
        line.version = Version::new(0, 0, patch);
        self.sandbox.write(&format!("site/artifacts/{}/{}", line.sha256, line.filename), bytes);
        self.append(&name, &serde_json::to_string(&line).expect("JSON"));
    }

    fn append(&self, name: &Name, line: &str) {
        let index = format!("site/index/v1/{}", name.index_path());
        let known = fs::read_to_string(self.sandbox.path(&index)).unwrap_or_default();
        self.sandbox.write(&index, format!("{known}{line}\n"));
    }

    /// Removes a version: only a line with the reason remains.
    fn take_down(&self, name: &str, version: &str, reason: &str) {
        let name = Name::parse(name).expect("a name");
        let index = format!("site/index/v1/{}", name.index_path());
        let text = self.read(&index);
        let is_other = |line: &&str| !line.contains(&format!("\"version\":\"{version}\""));
        let left: String = text.split_inclusive('\n').filter(is_other).collect();
        assert_ne!(left, text);
        self.sandbox.write(&index, left);
        let gone = json!({
            "name": name.to_string(), "version": version, "withdrawn": true,
            "withdrawn_reason": reason,
        });
        self.append(&name, &gone.to_string());
    }

    fn forget(&self, folders: &[&str]) {
        for folder in folders {
            fs::remove_dir_all(self.sandbox.path(folder)).expect("it was there");
        }
    }
}

#[test]
fn the_same_text_under_two_names_is_two_skills() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for name in ["anon/one", "anon/two"] {
        test_env.publish_text(name, 1, "Boil water.");
    }
    let both = ["install", "anon/one", "anon/two", "--registry", &url, "--allow-experimental"];
    test_env.run_ok(&both);
    let have_their_names = || {
        for name in ["one", "two"] {
            let text = test_env.read(&format!("project/.claude/skills/{name}/SKILL.md"));
            assert_eq!(text, "# It\n\nBoil water.\n", "{name}");
        }
    };
    have_their_names();
    test_env.run_ok(&["sync", "--check"]);
    test_env.run_ok(&["sync", "--force"]);
    have_their_names();
    test_env.run_ok(&["verify"]);
    test_env.forget(&["project/.claude", "home/.local", "home/.cache"]);
    test_env.run_ok(&["sync", "--frozen", "--allow-experimental"]);
    have_their_names();
    test_env.run_ok(&["sync", "--check"]);
}

#[test]
fn removed_version_is_replaced_by_the_same_text() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    test_env.publish_text("anon/tea", 1, "Boil water.");
    test_env.run_ok(&["install", "anon/tea", "--registry", &url, "--allow-experimental"]);
    test_env.publish_text("anon/tea", 2, "Boil water.");
    test_env.take_down("anon/tea", "0.0.1", "it scalds");
    let looked = test_env.run_ok(&["outdated"]).stdout;
    assert!(looked.contains("`tea` can be updated from 0.0.1 to 0.0.2"), "{looked}");
    let done = test_env.run_ok(&["update", "tea"]);
    assert!(done.stdout.contains("`tea` goes from 0.0.1 to 0.0.2"), "{done}");
    assert!(test_env.read("project/savoir.lock").contains("version = \"0.0.2\""));
    assert!(!done.stderr.contains("taken down"), "{done}");
    let status = test_env.run_ok(&["status"]).stdout;
    assert!(!status.contains("taken down"), "{status}");
    assert_eq!(test_env.run_ok(&["outdated"]).stdout, "all skills are up to date\n");
}

#[test]
fn update_reports_a_removed_version() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for name in ["pdf", "tea"] {
        test_env.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
        test_env.publish(name, &format!("elsewhere/{name}"));
        test_env.run_ok(&["install", name, "--registry", &url, "--allow-experimental"]);
    }
    for name in ["pdf", "tea"] {
        test_env.take_down(name, "1.0.0", &format!("{name} scalds"));
        let output = test_env.run_ok(&["update", name]);
        let words = format!("`{name}` 1.0.0 was taken down by its registry: {name} scalds");
        assert!(output.stderr.contains(&words), "{output}");
        let status = test_env.run_ok(&["status"]).stdout;
        assert!(status.contains(&format!("taken down by its registry: {name} scalds")), "{status}");
    }
    // The stored notice about the other skill is kept.
    let status = test_env.run_ok(&["status"]).stdout;
    assert!(status.contains("pdf scalds"), "{status}");
}

#[test]
fn unpublished_version_is_an_error() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for version in ["1.0.0", "1.1.0"] {
        test_env.skill("elsewhere/pdf", version, "Read it.");
        test_env.publish("pdf", "elsewhere/pdf");
    }
    test_env.skill("elsewhere/tea", "1.0.0", "Boil it.");
    test_env.publish("tea", "elsewhere/tea");
    let allow = ["--registry", &url, "--allow-experimental"];
    test_env.run_ok(&[&["install", "pdf"], &allow[..]].concat());
    let lock = test_env.read("project/savoir.lock").replace("\"1.1.0\"", "\"9.9.9\"");
    test_env.sandbox.write("project/savoir.lock", lock);
    let refused = test_env.run(&[&["install", "pdf@^2"], &allow[..]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("1.1.0"), "{refused}");
    assert!(!refused.stderr.contains("9.9.9"), "{refused}");
    // It stays installed when another skill is installed, and an update skips it.
    test_env.run_ok(&[&["install", "tea"], &allow[..]].concat());
    assert!(test_env.read("project/savoir.lock").contains("\"9.9.9\""));
    let manifest = test_env.read("project/savoir.toml");
    let wanted = manifest.replacen("version = \"*\"", "version = \"^2\"", 1);
    assert_ne!(wanted, manifest);
    test_env.sandbox.write("project/savoir.toml", &wanted);
    let refused = test_env.run(&["sync", "--allow-experimental"]);
    assert!(refused.code == 1 && refused.stderr.contains("1.1.0"), "{refused}");
    assert!(!refused.stderr.contains("9.9.9"), "{refused}");
    test_env.sandbox.write("project/savoir.toml", manifest);
    let updated = test_env.run_ok(&["update", "pdf"]);
    assert!(updated.stdout.contains("`pdf` is downgraded from 9.9.9 to 1.1.0"), "{updated}");
    // The registry in the lock is used, although none is configured.
    test_env.skill("elsewhere/pdf", "2.0.0", "Read it backwards.");
    test_env.publish("pdf", "elsewhere/pdf");
    test_env.sandbox.write("project/savoir.toml", wanted);
    let synced = test_env.run_ok(&["sync", "--allow-experimental"]);
    assert!(synced.stdout.contains("`pdf` goes from 1.1.0 to 2.0.0"), "{synced}");
}

#[test]
fn lock_without_a_manifest_is_installed() {
    let test_env = TestEnv::new();
    let url = test_env.registry();
    for name in ["pdf", "tea"] {
        test_env.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
        test_env.publish(&format!("acme/{name}"), &format!("elsewhere/{name}"));
    }
    test_env.skill("elsewhere/ink", "1.0.0", "Write.");
    let allow = ["--registry", &url, "--allow-experimental"];
    test_env.run_ok(&[&["install", "acme/pdf"], &allow[..]].concat());
    test_env.run_ok(&["install", "../elsewhere/ink", "--allow-experimental"]);
    fs::remove_file(test_env.sandbox.path("project/savoir.toml")).expect("it was there");
    test_env.run_ok(&["sync", "--frozen"]);
    let done = test_env.run_ok(&[&["install", "acme/tea"], &allow[..]].concat());
    assert!(!done.stdout.contains("is removed"), "{done}");
    for name in ["ink", "pdf", "tea"] {
        assert!(test_env.has(&format!("project/.claude/skills/{name}/SKILL.md")), "{name}: {done}");
        assert!(test_env.read("project/savoir.toml").contains(name), "{name}");
    }
    test_env.run_ok(&["sync", "--check"]);
}
