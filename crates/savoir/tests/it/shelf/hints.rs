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
