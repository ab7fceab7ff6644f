//! Copies of one skill, and copies that are installed already.

use super::{Machine, PDF};

impl Machine {
    /// Three folders with the same `pdf`, and two different `notes`.
    fn with_copies() -> Self {
        let machine = Self::new();
        for folder in ["skills", ".cursor/skills", "plugins/office/skills"] {
            machine.skill(&format!("elsewhere/repo/{folder}/pdf"), "1.0.0", "Read it.");
            machine.sandbox.write(&format!("elsewhere/repo/{folder}/pdf/run.sh"), "echo pdf\n");
        }
        machine.skill("elsewhere/repo/skills/notes", "1.0.0", "The first.");
        machine.skill("elsewhere/repo/old/notes", "1.0.0", "The second.");
        machine
    }

    /// The names that `--list` prints, sorted.
    fn listed(&self, args: &[&str]) -> Vec<String> {
        let ran = self.well(&[&["install"], args, &["--list"]].concat());
        let names = ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    }
}

#[test]
fn identical_copies_are_listed_once() {
    let machine = Machine::with_copies();
    let source = "../elsewhere/repo";
    assert_eq!(machine.listed(&[source]), ["notes", "notes", "pdf"]);
    let told = machine.well(&["install", source, "--list", "--json"]).json();
    let skills = told["sources"][0]["skills"].as_array().expect("a list");
    let pdf = skills.iter().find(|skill| skill["name"] == "pdf").expect("pdf");
    let source_of_pdf = pdf["source"].as_str().expect("a source");
    assert!(skills.len() == 3 && source_of_pdf.ends_with("/repo/skills/pdf"), "{told:#}");
    let several = machine.run(&["install", source, "-y"]);
    assert!(several.stderr.contains("3 skills: notes, notes, pdf"), "{several}");
    // One file of a copy differs: it is another skill.
    machine.sandbox.write("elsewhere/repo/.cursor/skills/pdf/run.sh", "echo other\n");
    assert_eq!(machine.listed(&[source]), ["notes", "notes", "pdf", "pdf"]);
}

#[test]
fn identical_copies_in_a_repository_are_listed_once() {
    let machine = Machine::with_copies();
    machine.git(&["init", "-q", "-b", "main", "."]);
    machine.commit("first");
    let url = format!("file://{}", machine.sandbox.path("elsewhere/repo").display());
    assert_eq!(machine.listed(&[&url]), ["notes", "notes", "pdf"]);
    machine.sandbox.write("elsewhere/repo/.cursor/skills/pdf/run.sh", "echo other\n");
    machine.commit("second");
    assert_eq!(machine.listed(&[&url]), ["notes", "notes", "pdf", "pdf"]);
}

#[test]
fn identical_copies_are_picked_once() {
    let machine = Machine::with_copies();
    let picked = machine.typed(&["install", "../elsewhere/repo", "-y"], "pdf \r");
    assert!(picked.stderr.contains("has 3 skills"), "{picked}");
    assert!(picked.code == 0 && machine.has(PDF), "{picked}");
    assert!(machine.read("project/savoir.toml").contains("repo/skills/pdf"));
}

#[test]
fn a_list_shows_only_the_skills_at_the_path() {
    let machine = Machine::with_copies();
    let source = "../elsewhere/repo";
    assert_eq!(machine.listed(&[source, "--path", "old"]), ["notes"]);
    assert_eq!(machine.listed(&[source, "--path", ".cursor/skills"]), ["pdf"]);
    let wrong = machine.run(&["install", source, "--path", "nowhere", "--list"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("no skill at nowhere"), "{wrong}");
}

#[test]
fn copies_that_savoir_installed_are_not_offered_again() {
    let machine = Machine::with_pdf();
    let agents = ["--agent", "claude-code,cursor", "-y"];
    machine.well(&[&["install", "../elsewhere/pdf"], &agents[..]].concat());
    let none = machine.run(&["install", ".", "--list"]);
    assert!(none.code == 2 && none.stderr.contains("are already installed"), "{none}");
    // A skill of the project itself, and one that nobody installed with Savoir, are offered.
    machine.skill("project/tools/mail", "1.0.0", "Send it.");
    machine.skill("project/.claude/skills/own", "1.0.0", "Mine.");
    assert_eq!(machine.listed(&["."]), ["mail", "own"]);
    machine.well(&["install", ".", "--path", "tools", "-y"]);
    assert_eq!(machine.listed(&["."]), ["mail", "own"]);
    // Its own folder can still be named.
    let named = machine.run(&["install", ".claude/skills/pdf", "-y"]);
    assert!(named.stderr.contains("is already in the folder"), "{named}");
}
