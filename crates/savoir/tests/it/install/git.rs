//! Skills out of a repository.

use std::{fs, process::Command};

use super::{Machine, PDF};

impl Machine {
    pub(super) fn git(&self, args: &[&str]) -> String {
        let ran = Command::new("git")
            .args(["-c", "user.name=ada", "-c", "user.email=ada@host.example"])
            .args(args)
            .current_dir(self.sandbox.path("elsewhere/repo"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// A machine with a repository that has three skills, and the address of it.
    pub(super) fn with_repository() -> (Self, String) {
        let machine = Self::new();
        for name in ["pdf", "notes", "mail"] {
            machine.skill(&format!("elsewhere/repo/skills/{name}"), "1.0.0", "one\ntwo\nthree");
        }
        machine.git(&["init", "-q", "-b", "main", "."]);
        machine.commit("first");
        let url = format!("file://{}", machine.sandbox.path("elsewhere/repo").display());
        (machine, url)
    }

    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

#[test]
fn a_branch_is_followed_and_the_lock_holds_the_commit() {
    let (machine, url) = Machine::with_repository();
    let first = machine.git(&["rev-parse", "HEAD"]);
    let listed = machine.well(&["install", &url, "--list", "--json"]).json();
    assert_eq!(listed["sources"][0]["skills"].as_array().map(Vec::len), Some(3));
    machine.well(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    assert!(machine.read("project/savoir.lock").contains(&first));
    let manifest = machine.read("project/savoir.toml");
    assert!(manifest.contains("path = \"skills/pdf\""), "{manifest}");
    machine.skill("elsewhere/repo/skills/pdf", "1.1.0", "one\ntwo\nthree\nfour");
    let second = machine.commit("second");
    // Whoever clones the project gets the commit of the lock.
    fs::remove_dir_all(machine.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(machine.sandbox.path("home/.local/share/savoir")).expect("it was there");
    machine.well(&["sync", "--frozen"]);
    assert!(!machine.read(PDF).contains("four"));
    let updated = machine.well(&["update", "--all"]);
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(machine.read("project/savoir.lock").contains(&second));
    assert!(machine.read(PDF).contains("four"));
}

#[test]
fn a_tag_that_moved_is_noticed() {
    let (machine, url) = Machine::with_repository();
    machine.git(&["tag", "v1"]);
    machine.well(&["install", &format!("{url}@v1"), "--skill", "pdf", "--allow-experimental"]);
    machine.skill("elsewhere/repo/skills/pdf", "1.0.0", "Something else.");
    machine.commit("moved");
    machine.git(&["tag", "-f", "v1"]);
    let update = machine.run(&["update", "pdf"]);
    assert!(update.code == 3 && update.stderr.contains("--accept tag:v1"), "{update}");
    fs::remove_dir_all(machine.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(machine.sandbox.path("home/.local/share/savoir")).expect("it was there");
    fs::remove_dir_all(machine.sandbox.path("home/.cache/savoir")).expect("it was there");
    let moved = machine.run(&["sync"]);
    assert!(moved.stderr.contains("the tag `v1`") && moved.stderr.contains("was moved"), "{moved}");
    assert_ne!(moved.code, 0, "{moved}");
    assert!(!machine.has(PDF));
}

#[test]
fn another_tag_in_the_manifest_is_another_source() {
    let (machine, url) = Machine::with_repository();
    machine.git(&["tag", "v1"]);
    machine.well(&["install", &format!("{url}@v1"), "--skill", "pdf", "--allow-experimental"]);
    machine.skill("elsewhere/repo/skills/pdf", "2.0.0", "Something else.");
    machine.commit("second");
    machine.git(&["tag", "v2"]);
    let manifest = machine.read("project/savoir.toml").replace("v1", "v2");
    machine.sandbox.write("project/savoir.toml", manifest);
    assert_eq!(machine.run(&["sync", "--frozen"]).code, 1);
    machine.well(&["sync", "--allow-experimental"]);
    assert!(machine.read(PDF).contains("Something else."));
    machine.well(&["sync", "--frozen"]);
}

#[test]
fn a_skill_that_left_its_repository() {
    let (machine, url) = Machine::with_repository();
    machine.well(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    machine.git(&["rm", "-q", "-r", "skills/pdf"]);
    machine.commit("gone");
    let gone = machine.run(&["update", "pdf"]);
    assert!(gone.code == 1 && gone.stderr.contains("pdf"), "{gone}");
    assert!(machine.has(PDF));
}

#[test]
fn a_skill_of_another_folder_of_the_repository_is_shown_as_a_replacement() {
    let (machine, url) = Machine::with_repository();
    machine.skill("elsewhere/repo/old/pdf", "1.0.0", "Another one.");
    machine.commit("second");
    machine.well(&["install", &url, "--path", "skills/pdf", "-y"]);
    let same = machine.well(&["install", &url, "--path", "skills/pdf", "-y"]);
    assert!(!same.stderr.contains("replaces"), "{same}");
    let other = machine.run(&["install", &url, "--path", "old/pdf"]);
    let line = other.stderr.lines().find(|line| line.contains("replaces")).unwrap_or_default();
    assert!(line.ends_with(":skills/pdf"), "{other}");
    // Another commit of the same folder is not another source.
    machine.skill("elsewhere/repo/skills/pdf", "1.1.0", "Newer.");
    machine.commit("third");
    let newer = machine.well(&["install", &url, "--path", "skills/pdf", "-y"]);
    assert!(!newer.stderr.contains("replaces"), "{newer}");
}

#[test]
fn a_bare_repository_is_installed_at_a_reference() {
    let (machine, _) = Machine::with_repository();
    machine.git(&["tag", "v1"]);
    machine.skill("elsewhere/repo/skills/pdf", "2.0.0", "Newer.");
    machine.commit("second");
    machine.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    machine.well(&["install", "../elsewhere/bare.git@v1", "--skill", "pdf", "-y"]);
    assert!(machine.read(PDF).contains("three"));
    let lock = machine.read("project/savoir.lock");
    assert!(lock.contains("bare.git?tag=v1#"), "{lock}");
    machine.well(&["install", "../elsewhere/bare.git/skills/pdf", "-y"]);
    assert!(machine.read(PDF).contains("Newer."));
    let unknown = machine.run(&["install", "../elsewhere/bare.git@v9", "--all", "-y"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("`v9`"), "{unknown}");
    let nothing = machine.run(&["install", "../elsewhere/none.git@v1", "--all", "-y"]);
    assert!(nothing.code == 2, "{nothing}");
}

#[test]
fn install_shows_that_a_tag_moved() {
    let (machine, url) = Machine::with_repository();
    let first = machine.git(&["rev-parse", "HEAD"]);
    machine.git(&["tag", "v1"]);
    let source = format!("{url}@v1");
    let install = ["install", &source, "--skill", "pdf", "--yes"];
    let new = machine.well(&install);
    assert!(!new.stderr.contains("moved"), "{new}");
    machine.skill("elsewhere/repo/skills/pdf", "1.0.1", "Something else.");
    let second = machine.commit("moved");
    machine.git(&["tag", "-f", "v1"]);
    let moved = machine.well(&install);
    let line = format!("tag v1 moved from {} to {}", &first[..7], &second[..7]);
    assert!(moved.stderr.contains(&line), "{line}: {moved}");
    let again = machine.well(&install);
    assert!(!again.stderr.contains("moved"), "{again}");
}

#[test]
fn update_all_skips_a_skill_whose_source_is_gone() {
    let (machine, url) = Machine::with_repository();
    machine.well(&["install", &url, "--skill", "pdf", "--yes"]);
    machine.skill("elsewhere/mail", "1.0.0", "Send it.");
    machine.skill("elsewhere/notes", "1.0.0", "Write it.");
    machine.well(&["install", "../elsewhere/mail", "--yes"]);
    machine.well(&["install", "../elsewhere/notes", "--yes"]);
    fs::remove_dir_all(machine.sandbox.path("elsewhere/mail")).expect("it was there");
    machine.skill("elsewhere/notes", "1.1.0", "Write it well.");
    machine.skill("elsewhere/repo/skills/pdf", "1.1.0", "one\ntwo\nthree\nfour");
    machine.commit("second");
    let updated = machine.run(&["update", "--all", "--yes"]);
    assert_eq!(updated.code, 1, "{updated}");
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(updated.stdout.contains("`notes` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(updated.stderr.contains("skipped mail: "), "{updated}");
    assert!(updated.stdout.ends_with("updated 2, skipped 1\n"), "{updated}");
    assert!(machine.read(PDF).contains("four"));
    assert!(machine.has("project/.claude/skills/mail/SKILL.md"), "it stays installed");
    let again = machine.run(&["update", "--all", "--json"]);
    assert_eq!(again.code, 1, "{again}");
    assert_eq!(again.json()["skipped"][0]["name"], "mail", "{again}");
    let named = machine.run(&["update", "mail"]);
    assert!(named.code != 0 && named.stderr.contains("error: "), "{named}");
}

#[test]
fn update_fails_if_no_source_can_be_read() {
    let machine = Machine::with_pdf();
    machine.well(&["outdated"]);
    fs::remove_dir_all(machine.sandbox.path("elsewhere/pdf")).expect("it was there");
    for args in [&["outdated"][..], &["outdated", "--json"], &["update", "--all"]] {
        let failed = machine.run(args);
        assert_eq!(failed.code, 1, "{args:?}: {failed}");
    }
}
