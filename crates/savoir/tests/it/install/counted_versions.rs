//! Texts that a registry counts, and what is locked and cannot be had any more.

use std::fs;

use savoir_package::{
    Tree,
    archive::pack,
    registry::{Name, wire::IndexLine},
};
use semver::Version;
use serde_json::json;

use super::Machine;

impl Machine {
    /// Publishes a text without frontmatter under a number.
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

    /// Takes a version down: only a line with the reason is left of it.
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
    let machine = Machine::new();
    let url = machine.registry();
    for name in ["anon/one", "anon/two"] {
        machine.publish_text(name, 1, "Boil water.");
    }
    let both = ["install", "anon/one", "anon/two", "--registry", &url, "--allow-experimental"];
    machine.well(&both);
    let have_their_names = || {
        for name in ["one", "two"] {
            let text = machine.read(&format!("project/.claude/skills/{name}/SKILL.md"));
            assert!(text.contains(&format!("name: {name}\n")), "{text}");
        }
    };
    have_their_names();
    machine.well(&["sync", "--check"]);
    machine.well(&["sync", "--force"]);
    have_their_names();
    machine.well(&["verify"]);
    machine.forget(&["project/.claude", "home/.local", "home/.cache"]);
    machine.well(&["sync", "--frozen", "--allow-experimental"]);
    have_their_names();
    machine.well(&["sync", "--check"]);
}

#[test]
fn what_was_taken_down_is_left_for_the_same_text() {
    let machine = Machine::new();
    let url = machine.registry();
    machine.publish_text("anon/tea", 1, "Boil water.");
    machine.well(&["install", "anon/tea", "--registry", &url, "--allow-experimental"]);
    machine.publish_text("anon/tea", 2, "Boil water.");
    machine.take_down("anon/tea", "0.0.1", "it scalds");
    let looked = machine.well(&["outdated"]).stdout;
    assert!(looked.contains("`tea` can be updated from 0.0.1 to 0.0.2"), "{looked}");
    let done = machine.well(&["update", "tea"]);
    assert!(done.stdout.contains("`tea` goes from 0.0.1 to 0.0.2"), "{done}");
    assert!(machine.read("project/savoir.lock").contains("version = \"0.0.2\""));
    assert!(!done.stderr.contains("taken down"), "{done}");
    let status = machine.well(&["status"]).stdout;
    assert!(!status.contains("taken down"), "{status}");
    assert_eq!(machine.well(&["outdated"]).stdout, "all skills are up to date\n");
}

#[test]
fn an_update_of_one_skill_tells_and_remembers_that_it_was_taken_down() {
    let machine = Machine::new();
    let url = machine.registry();
    for name in ["pdf", "tea"] {
        machine.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
        machine.publish(name, &format!("elsewhere/{name}"));
        machine.well(&["install", name, "--registry", &url, "--allow-experimental"]);
    }
    for name in ["pdf", "tea"] {
        machine.take_down(name, "1.0.0", &format!("{name} scalds"));
        let told = machine.well(&["update", name]);
        let words = format!("`{name}` 1.0.0 was taken down by its registry: {name} scalds");
        assert!(told.stderr.contains(&words), "{told}");
        let status = machine.well(&["status"]).stdout;
        assert!(status.contains(&format!("taken down by its registry: {name} scalds")), "{status}");
    }
    // What was told of the other one is not forgotten.
    let status = machine.well(&["status"]).stdout;
    assert!(status.contains("pdf scalds"), "{status}");
}

#[test]
fn a_version_that_was_never_published_is_none_that_there_is() {
    let machine = Machine::new();
    let url = machine.registry();
    for version in ["1.0.0", "1.1.0"] {
        machine.skill("elsewhere/pdf", version, "Read it.");
        machine.publish("pdf", "elsewhere/pdf");
    }
    machine.skill("elsewhere/tea", "1.0.0", "Boil it.");
    machine.publish("tea", "elsewhere/tea");
    let allow = ["--registry", &url, "--allow-experimental"];
    machine.well(&[&["install", "pdf"], &allow[..]].concat());
    let lock = machine.read("project/savoir.lock").replace("\"1.1.0\"", "\"9.9.9\"");
    machine.sandbox.write("project/savoir.lock", lock);
    let refused = machine.run(&[&["install", "pdf@^2"], &allow[..]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("1.1.0"), "{refused}");
    assert!(!refused.stderr.contains("9.9.9"), "{refused}");
    // It stays where something else is installed, and an update leaves it.
    machine.well(&[&["install", "tea"], &allow[..]].concat());
    assert!(machine.read("project/savoir.lock").contains("\"9.9.9\""));
    let manifest = machine.read("project/savoir.toml");
    let wanted = manifest.replacen("version = \"*\"", "version = \"^2\"", 1);
    assert_ne!(wanted, manifest);
    machine.sandbox.write("project/savoir.toml", &wanted);
    let refused = machine.run(&["sync", "--allow-experimental"]);
    assert!(refused.code == 1 && refused.stderr.contains("1.1.0"), "{refused}");
    assert!(!refused.stderr.contains("9.9.9"), "{refused}");
    machine.sandbox.write("project/savoir.toml", manifest);
    let updated = machine.well(&["update", "pdf"]);
    assert!(updated.stdout.contains("`pdf` is downgraded from 9.9.9 to 1.1.0"), "{updated}");
    // The registry that the lock names is asked, though nobody set one.
    machine.skill("elsewhere/pdf", "2.0.0", "Read it backwards.");
    machine.publish("pdf", "elsewhere/pdf");
    machine.sandbox.write("project/savoir.toml", wanted);
    let synced = machine.well(&["sync", "--allow-experimental"]);
    assert!(synced.stdout.contains("`pdf` goes from 1.1.0 to 2.0.0"), "{synced}");
}

#[test]
fn a_lock_without_a_manifest_is_all_there_is() {
    let machine = Machine::new();
    let url = machine.registry();
    for name in ["pdf", "tea"] {
        machine.skill(&format!("elsewhere/{name}"), "1.0.0", "Do it.");
        machine.publish(&format!("acme/{name}"), &format!("elsewhere/{name}"));
    }
    machine.skill("elsewhere/ink", "1.0.0", "Write.");
    let allow = ["--registry", &url, "--allow-experimental"];
    machine.well(&[&["install", "acme/pdf"], &allow[..]].concat());
    machine.well(&["install", "../elsewhere/ink", "--allow-experimental"]);
    fs::remove_file(machine.sandbox.path("project/savoir.toml")).expect("it was there");
    machine.well(&["sync", "--frozen"]);
    let done = machine.well(&[&["install", "acme/tea"], &allow[..]].concat());
    assert!(!done.stdout.contains("is removed"), "{done}");
    for name in ["ink", "pdf", "tea"] {
        assert!(machine.has(&format!("project/.claude/skills/{name}/SKILL.md")), "{name}: {done}");
        assert!(machine.read("project/savoir.toml").contains(name), "{name}");
    }
    machine.well(&["sync", "--check"]);
}
