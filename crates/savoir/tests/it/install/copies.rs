//! Tests copies of one skill, and copies that are already installed.

use super::{PDF, TestEnv};

impl TestEnv {
    /// Three folders with the same `pdf`, and two different `notes`.
    fn with_copies() -> Self {
        let test_env = Self::new();
        for folder in ["skills", ".cursor/skills", "plugins/office/skills"] {
            test_env.skill(&format!("elsewhere/repo/{folder}/pdf"), "1.0.0", "Read it.");
            test_env.sandbox.write(&format!("elsewhere/repo/{folder}/pdf/run.sh"), "echo pdf\n");
        }
        test_env.skill("elsewhere/repo/skills/notes", "1.0.0", "The first.");
        test_env.skill("elsewhere/repo/old/notes", "1.0.0", "The second.");
        test_env
    }

    /// The names that `--list` prints, sorted.
    fn listed(&self, args: &[&str]) -> Vec<String> {
        let ran = self.run_ok(&[&["install"], args, &["--list"]].concat());
        let names = ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    }
}

#[test]
fn identical_copies_are_listed_once() {
    let test_env = TestEnv::with_copies();
    let source = "../elsewhere/repo";
    assert_eq!(test_env.listed(&[source]), ["notes", "notes", "pdf"]);
    let output = test_env.run_ok(&["install", source, "--list", "--json"]).json();
    let skills = output["sources"][0]["skills"].as_array().expect("a list");
    let pdf = skills.iter().find(|skill| skill["name"] == "pdf").expect("pdf");
    let source_of_pdf = pdf["source"].as_str().expect("a source");
    assert!(skills.len() == 3 && source_of_pdf.ends_with("/repo/skills/pdf"), "{output:#}");
    let several = test_env.run(&["install", source, "-y"]);
    assert!(several.stderr.contains("3 skills: notes, notes, pdf"), "{several}");
    // A copy with one different file is another skill.
    test_env.sandbox.write("elsewhere/repo/.cursor/skills/pdf/run.sh", "echo other\n");
    assert_eq!(test_env.listed(&[source]), ["notes", "notes", "pdf", "pdf"]);
}

#[test]
fn identical_copies_in_a_repository_are_listed_once() {
    let test_env = TestEnv::with_copies();
    test_env.git(&["init", "-q", "-b", "main", "."]);
    test_env.commit("first");
    let url = format!("file://{}", test_env.sandbox.path("elsewhere/repo").display());
    assert_eq!(test_env.listed(&[&url]), ["notes", "notes", "pdf"]);
    test_env.sandbox.write("elsewhere/repo/.cursor/skills/pdf/run.sh", "echo other\n");
    test_env.commit("second");
    assert_eq!(test_env.listed(&[&url]), ["notes", "notes", "pdf", "pdf"]);
}

#[test]
fn identical_copies_are_picked_once() {
    let test_env = TestEnv::with_copies();
    let picked = test_env.typed(&["install", "../elsewhere/repo", "-y"], "pdf \r");
    assert!(picked.stderr.contains("has 3 skills"), "{picked}");
    assert!(picked.code == 0 && test_env.has(PDF), "{picked}");
    assert!(test_env.read("project/savoir.toml").contains("repo/skills/pdf"));
}

#[test]
fn a_list_shows_only_the_skills_at_the_path() {
    let test_env = TestEnv::with_copies();
    let source = "../elsewhere/repo";
    assert_eq!(test_env.listed(&[source, "--path", "old"]), ["notes"]);
    assert_eq!(test_env.listed(&[source, "--path", ".cursor/skills"]), ["pdf"]);
    let wrong = test_env.run(&["install", source, "--path", "nowhere", "--list"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("no skill at nowhere"), "{wrong}");
}

#[test]
fn copies_that_savoir_installed_are_not_offered_again() {
    let test_env = TestEnv::with_pdf();
    let agents = ["--agent", "claude-code,cursor", "-y"];
    test_env.run_ok(&[&["install", "../elsewhere/pdf"], &agents[..]].concat());
    let none = test_env.run(&["install", ".", "--list"]);
    assert!(none.code == 2 && none.stderr.contains("are already installed"), "{none}");
    // Skills of the project, and skills that Savoir did not install, are listed.
    test_env.skill("project/tools/mail", "1.0.0", "Send it.");
    test_env.skill("project/.claude/skills/own", "1.0.0", "Mine.");
    assert_eq!(test_env.listed(&["."]), ["mail", "own"]);
    test_env.run_ok(&["install", ".", "--path", "tools", "-y"]);
    assert_eq!(test_env.listed(&["."]), ["mail", "own"]);
    // The installed folder can still be named explicitly.
    let named = test_env.run(&["install", ".claude/skills/pdf", "-y"]);
    assert!(named.stderr.contains("is already in the folder"), "{named}");
}
