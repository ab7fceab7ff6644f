//! Errors for names and options that do not fit, with hints that work.

use super::Machine;

#[test]
fn choosing_skills_without_a_source_is_an_error() {
    let machine = Machine::with_pdf();
    for args in [&["--skill", "pdf"][..], &["--all"], &["--list"], &["--path", "skills"]] {
        let ran = machine.run(&[&["install"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran}");
        assert!(ran.stderr.contains("no source"), "{args:?}: {ran}");
        assert!(ran.stderr.contains(&format!("savoir install SOURCE {}", args.join(" "))), "{ran}");
    }
    machine.well(&["install"]);
}

#[test]
fn a_misspelled_skill_of_a_source_gets_a_suggestion() {
    let machine = Machine::new();
    for name in ["mail", "notes", "pdf"] {
        machine.skill(&format!("elsewhere/skills/{name}"), "1.0.0", "Do it.");
    }
    let wrong = machine.run(&["install", "../elsewhere/skills", "--skill", "ntoes", "-y"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean `notes`?"), "{wrong}");
}

#[test]
fn a_misspelled_installed_skill_gets_a_suggestion() {
    let machine = Machine::with_pdf();
    for command in ["remove", "update"] {
        let wrong = machine.run(&[command, "pfd"]);
        assert_eq!(wrong.code, 2, "{command}: {wrong}");
        assert!(wrong.stderr.contains("`pfd` is not installed in this project"), "{wrong}");
        assert!(wrong.stderr.contains("did you mean `pdf`?"), "{wrong}");
    }
    let agent = machine.run(&["remove", "pfd", "--agent", "claude-code"]);
    assert!(agent.stderr.contains("did you mean `pdf`?"), "{agent}");
}

#[test]
fn a_skill_of_the_user_is_not_removed_from_the_project() {
    let machine = Machine::with_pdf();
    machine.skill("elsewhere/mail", "1.0.0", "Send it.");
    machine.well(&["install", "../elsewhere/mail", "--global", "-y"]);
    for command in ["remove", "update"] {
        let here = machine.run(&[command, "mail"]);
        assert!(here.code == 2, "{here}");
        assert!(here.stderr.contains(&format!("savoir {command} mail --user")), "{here}");
        let there = machine.run(&[command, "pdf", "--global"]);
        assert!(there.stderr.contains("`pdf` is not installed for the user"), "{there}");
        assert!(there.stderr.contains(&format!("savoir {command} pdf\n")), "{there}");
    }
}

#[test]
fn a_skill_for_two_agents_counts_once() {
    let machine = Machine::new();
    machine.skill("elsewhere/pdf", "1.0.0", "Read it.");
    machine.well(&["install", "../elsewhere/pdf", "-a", "claude-code,codex", "-y"]);
    let status = machine.well(&["status"]);
    assert!(status.stdout.ends_with("1 skill: 1 unmodified\n"), "{status}");
    machine.sandbox.write("project/.agents/skills/pdf/SKILL.md", "---\nname: pdf\n---\nMine.\n");
    let status = machine.well(&["status"]);
    assert!(status.stdout.ends_with("1 skill: 1 modified\n"), "{status}");
    let told = machine.well(&["status", "--json"]).json();
    assert_eq!((&told["summary"]["skills"], &told["summary"]["modified"]), (&1.into(), &1.into()));
    assert_eq!(told["skills"].as_array().map(Vec::len), Some(2), "each folder has its own state");
}
