//! Tests the questions that `install` and `update` ask.

use super::{PDF, TestEnv};
use crate::support::Transcript;

impl TestEnv {
    /// Runs a command on a terminal with typed input.
    pub(super) fn typed(&self, args: &[&str], typed: &str) -> Transcript {
        self.sandbox.type_as("home", "project", args, typed)
    }
}

#[test]
fn user_is_asked_once_and_can_decline() {
    let test_env = TestEnv::new();
    test_env.skill("elsewhere/pdf", "1.0.0", "Read it.");
    let install = ["install", "../elsewhere/pdf"];
    for (typed, code) in [("\n", 3), ("n\n", 3), ("what?\nno\n", 3), ("\u{4}", 3), ("y\n", 0)] {
        let ran = test_env.typed(&install, typed);
        assert_eq!(ran.code, code, "{typed:?}: {ran}");
        assert!(ran.stderr.contains("no: unsigned"), "{ran}");
        assert_eq!(ran.stderr.matches("Install 1 skill for claude-code?").count(), 1, "{ran}");
        assert_eq!(test_env.has(PDF), code == 0, "{typed:?}");
    }
    let again = test_env.typed(&["install", "../elsewhere/pdf", "--allow-experimental"], "");
    assert!(again.code == 0 && !again.stderr.contains("Install"), "{again}");
}

#[test]
fn permissions_that_no_run_gets_are_marked() {
    let test_env = TestEnv::new();
    let text = "---\nname: pad\ndescription: Moves the pointer. Use when asked to.\nversion: \"1.0.0\"\n\
                metadata:\n  gaia:\n    permissions: [desktop:control, network:read:example.com]\n\
                ---\n# Pad\n\nMove it.\n";
    test_env.sandbox.write("elsewhere/pad/SKILL.md", text);
    let asked = test_env.typed(&["install", "../elsewhere/pad"], "n\n");
    assert!(asked.stderr.contains("desktop:control (refused in every run)"), "{asked}");
    assert!(asked.stderr.contains("network:read:example.com (in the sandbox)"), "{asked}");
    let help = test_env.run_ok(&["install", "--help"]).stdout;
    assert!(help.contains("--allow-experimental"), "{help}");
}

#[test]
fn user_picks_from_several_skills() {
    let test_env = TestEnv::new();
    for name in ["mail", "notes", "pdf"] {
        test_env.skill(&format!("elsewhere/skills/{name}"), "1.0.0", "Do it.");
    }
    let install = ["install", "../elsewhere/skills", "--allow-experimental"];
    let none = test_env.typed(&install, "\r");
    assert!(none.code == 3 && none.stderr.contains("no skill was chosen"), "{none}");
    // Space selects, arrow keys move, typing filters, enter confirms.
    let some = test_env.typed(&install, " \u{1b}[B\u{1b}[B \r");
    assert_eq!(some.code, 0, "{some}");
    let there = |name: &str| test_env.has(&format!("project/.claude/skills/{name}"));
    assert_eq!((there("mail"), there("notes"), there("pdf")), (true, false, true));
}

#[test]
fn an_update_is_shown_and_asked_about() {
    let test_env = TestEnv::with_pdf();
    test_env.skill("elsewhere/pdf", "1.1.0", "one\ntwo\nthree\nfour\nsix");
    let before = test_env.read(PDF);
    let no = test_env.typed(&["update", "pdf"], "n\n");
    assert!(no.stderr.contains("~ pdf/SKILL.md  +2 -2"), "{no}");
    assert_eq!(test_env.read(PDF), before);
    let yes = test_env.typed(&["update", "pdf"], "y\n");
    assert_eq!(yes.code, 0, "{yes}");
    assert!(test_env.read(PDF).contains("six"));
}

#[test]
fn names_are_escaped_on_a_terminal() {
    let test_env = TestEnv::new();
    let text = "---\nname: pdf\ndescription: \"Reads\\e[2J\\e]0;owned\\a PDF\"\n---\nRead it.\n";
    test_env.sandbox.write("elsewhere/pdf/SKILL.md", text);
    let acts = |text: &str| text.contains("\u{1b}[2J") || text.contains("\u{1b}]");
    let listed = test_env.typed(&["install", "../elsewhere/pdf", "--list"], "");
    assert!(!acts(&listed.stdout) && !acts(&listed.stderr), "{listed}");
    assert!(listed.stdout.contains("Reads") || listed.stderr.contains("Reads"), "{listed}");
    // There is no question about a skill that imitates the name of another one: it is rejected.
    let refused = test_env.typed(&["install", "../elsewhere/pdf"], "y\n");
    assert!(!acts(&refused.stderr) && refused.code == 1, "{refused}");
    assert!(refused.stderr.contains("a terminal escape sequence"), "{refused}");
}
