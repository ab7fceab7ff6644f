//! Tests installing skills from git repositories.

use std::{fs, process::Command};

use super::{PDF, TestEnv};

impl TestEnv {
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

    /// Creates a repository with three skills; returns its URL.
    pub(super) fn with_repository() -> (Self, String) {
        let test_env = Self::new();
        for name in ["pdf", "notes", "mail"] {
            test_env.skill(&format!("elsewhere/repo/skills/{name}"), "1.0.0", "one\ntwo\nthree");
        }
        test_env.git(&["init", "-q", "-b", "main", "."]);
        test_env.commit("first");
        let url = format!("file://{}", test_env.sandbox.path("elsewhere/repo").display());
        (test_env, url)
    }

    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

#[test]
fn branch_is_followed_and_the_commit_is_locked() {
    let (test_env, url) = TestEnv::with_repository();
    let first = test_env.git(&["rev-parse", "HEAD"]);
    let listed = test_env.run_ok(&["install", &url, "--list", "--json"]).json();
    assert_eq!(listed["sources"][0]["skills"].as_array().map(Vec::len), Some(3));
    test_env.run_ok(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    assert!(test_env.read("project/savoir.lock").contains(&first));
    let manifest = test_env.read("project/savoir.toml");
    assert!(manifest.contains("path = \"skills/pdf\""), "{manifest}");
    test_env.skill("elsewhere/repo/skills/pdf", "1.1.0", "one\ntwo\nthree\nfour");
    let second = test_env.commit("second");
    // Another user who clones the project gets the commit in the lock.
    fs::remove_dir_all(test_env.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(test_env.sandbox.path("home/.local/share/savoir")).expect("it was there");
    test_env.run_ok(&["sync", "--frozen"]);
    assert!(!test_env.read(PDF).contains("four"));
    let updated = test_env.run_ok(&["update", "--all"]);
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(test_env.read("project/savoir.lock").contains(&second));
    assert!(test_env.read(PDF).contains("four"));
}

#[test]
fn moved_tag_is_reported() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.git(&["tag", "v1"]);
    test_env.run_ok(&["install", &format!("{url}@v1"), "--skill", "pdf", "--allow-experimental"]);
    test_env.skill("elsewhere/repo/skills/pdf", "1.0.0", "Something else.");
    test_env.commit("moved");
    test_env.git(&["tag", "-f", "v1"]);
    let update = test_env.run(&["update", "pdf"]);
    assert!(update.code == 3 && update.stderr.contains("--accept tag:v1"), "{update}");
    fs::remove_dir_all(test_env.sandbox.path("project/.claude")).expect("it was there");
    fs::remove_dir_all(test_env.sandbox.path("home/.local/share/savoir")).expect("it was there");
    fs::remove_dir_all(test_env.sandbox.path("home/.cache/savoir")).expect("it was there");
    let moved = test_env.run(&["sync"]);
    assert!(moved.stderr.contains("the tag `v1`") && moved.stderr.contains("was moved"), "{moved}");
    assert_ne!(moved.code, 0, "{moved}");
    assert!(!test_env.has(PDF));
}

#[test]
fn another_tag_in_the_manifest_is_another_source() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.git(&["tag", "v1"]);
    test_env.run_ok(&["install", &format!("{url}@v1"), "--skill", "pdf", "--allow-experimental"]);
    test_env.skill("elsewhere/repo/skills/pdf", "2.0.0", "Something else.");
    test_env.commit("second");
    test_env.git(&["tag", "v2"]);
    let manifest = test_env.read("project/savoir.toml").replace("v1", "v2");
    test_env.sandbox.write("project/savoir.toml", manifest);
    assert_eq!(test_env.run(&["sync", "--frozen"]).code, 1);
    test_env.run_ok(&["sync", "--allow-experimental"]);
    assert!(test_env.read(PDF).contains("Something else."));
    test_env.run_ok(&["sync", "--frozen"]);
}

#[test]
fn removed_skill_of_a_repository_is_reported() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.run_ok(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    test_env.git(&["rm", "-q", "-r", "skills/pdf"]);
    test_env.commit("gone");
    let gone = test_env.run(&["update", "pdf"]);
    assert!(gone.code == 1 && gone.stderr.contains("pdf"), "{gone}");
    assert!(test_env.has(PDF));
}

#[test]
fn a_skill_of_another_folder_of_the_repository_is_shown_as_a_replacement() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.skill("elsewhere/repo/old/pdf", "1.0.0", "Another one.");
    test_env.commit("second");
    test_env.run_ok(&["install", &url, "--path", "skills/pdf", "-y"]);
    let same = test_env.run_ok(&["install", &url, "--path", "skills/pdf", "-y"]);
    assert!(!same.stderr.contains("replaces"), "{same}");
    let other = test_env.run(&["install", &url, "--path", "old/pdf"]);
    let line = other.stderr.lines().find(|line| line.contains("replaces")).unwrap_or_default();
    assert!(line.ends_with(":skills/pdf"), "{other}");
    // Another commit of the same folder does not count as another source.
    test_env.skill("elsewhere/repo/skills/pdf", "1.1.0", "Newer.");
    test_env.commit("third");
    let newer = test_env.run_ok(&["install", &url, "--path", "skills/pdf", "-y"]);
    assert!(!newer.stderr.contains("replaces"), "{newer}");
}

#[test]
fn a_bare_repository_is_installed_at_a_reference() {
    let (test_env, _) = TestEnv::with_repository();
    test_env.git(&["tag", "v1"]);
    test_env.skill("elsewhere/repo/skills/pdf", "2.0.0", "Newer.");
    test_env.commit("second");
    test_env.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    test_env.run_ok(&["install", "../elsewhere/bare.git@v1", "--skill", "pdf", "-y"]);
    assert!(test_env.read(PDF).contains("three"));
    let lock = test_env.read("project/savoir.lock");
    assert!(lock.contains("bare.git?tag=v1#"), "{lock}");
    test_env.run_ok(&["install", "../elsewhere/bare.git/skills/pdf", "-y"]);
    assert!(test_env.read(PDF).contains("Newer."));
    let unknown = test_env.run(&["install", "../elsewhere/bare.git@v9", "--all", "-y"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("`v9`"), "{unknown}");
    let nothing = test_env.run(&["install", "../elsewhere/none.git@v1", "--all", "-y"]);
    assert!(nothing.code == 2, "{nothing}");
}

#[test]
fn install_shows_that_a_tag_moved() {
    let (test_env, url) = TestEnv::with_repository();
    let first = test_env.git(&["rev-parse", "HEAD"]);
    test_env.git(&["tag", "v1"]);
    let source = format!("{url}@v1");
    let install = ["install", &source, "--skill", "pdf", "--yes"];
    let new = test_env.run_ok(&install);
    assert!(!new.stderr.contains("moved"), "{new}");
    test_env.skill("elsewhere/repo/skills/pdf", "1.0.1", "Something else.");
    let second = test_env.commit("moved");
    test_env.git(&["tag", "-f", "v1"]);
    let moved = test_env.run_ok(&install);
    let line = format!("tag v1 moved from {} to {}", &first[..7], &second[..7]);
    assert!(moved.stderr.contains(&line), "{line}: {moved}");
    let again = test_env.run_ok(&install);
    assert!(!again.stderr.contains("moved"), "{again}");
}

#[test]
fn update_all_skips_a_skill_whose_source_is_gone() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.run_ok(&["install", &url, "--skill", "pdf", "--yes"]);
    test_env.skill("elsewhere/mail", "1.0.0", "Send it.");
    test_env.skill("elsewhere/notes", "1.0.0", "Write it.");
    test_env.run_ok(&["install", "../elsewhere/mail", "--yes"]);
    test_env.run_ok(&["install", "../elsewhere/notes", "--yes"]);
    fs::remove_dir_all(test_env.sandbox.path("elsewhere/mail")).expect("it was there");
    test_env.skill("elsewhere/notes", "1.1.0", "Write it well.");
    test_env.skill("elsewhere/repo/skills/pdf", "1.1.0", "one\ntwo\nthree\nfour");
    test_env.commit("second");
    let updated = test_env.run(&["update", "--all", "--yes"]);
    assert_eq!(updated.code, 1, "{updated}");
    assert!(updated.stdout.contains("`pdf` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(updated.stdout.contains("`notes` goes from 1.0.0 to 1.1.0"), "{updated}");
    assert!(updated.stderr.contains("skipped mail: "), "{updated}");
    assert!(updated.stdout.ends_with("updated 2, skipped 1\n"), "{updated}");
    assert!(test_env.read(PDF).contains("four"));
    assert!(test_env.has("project/.claude/skills/mail/SKILL.md"), "it stays installed");
    let again = test_env.run(&["update", "--all", "--json"]);
    assert_eq!(again.code, 1, "{again}");
    assert_eq!(again.json()["skipped"][0]["name"], "mail", "{again}");
    let named = test_env.run(&["update", "mail"]);
    assert!(named.code != 0 && named.stderr.contains("error: "), "{named}");
}

#[test]
fn update_fails_if_no_source_can_be_read() {
    let test_env = TestEnv::with_pdf();
    test_env.run_ok(&["outdated"]);
    fs::remove_dir_all(test_env.sandbox.path("elsewhere/pdf")).expect("it was there");
    for args in [&["outdated"][..], &["outdated", "--json"], &["update", "--all"]] {
        let failed = test_env.run(args);
        assert_eq!(failed.code, 1, "{args:?}: {failed}");
    }
}
