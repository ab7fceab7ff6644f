//! Tests of undo.

use std::{fs, os::unix::fs::PermissionsExt as _};

use savoir_package::install::{FetchReason, PlannedChange, UserEdits};

use super::test_project::{TestProject, asked, skill, with};

#[test]
fn undo_restores_every_byte() {
    let project = TestProject::new();
    project.write("savoir.toml", "# Ours.\n");
    let mut states = vec![project.everything()];
    project.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["claude-code"]);
    states.push(project.everything());
    project.write(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: Mine.\n---\nA\n");
    project.write(".claude/skills/a/mine", "x");
    states.pop();
    states.push(project.everything());
    let new =
        [project.ready(with(&skill("a", "1.1.0", "A\n"), "more.md", "more"), FetchReason::Update)];
    project.apply(&project.plan(&new, &[]).unwrap());
    states.push(project.everything());
    project.apply(&project.skill_set().remove(&["b".to_owned()], UserEdits::Keep).unwrap());
    let run = project.path(".claude/skills/a/scripts/run.sh");
    assert!(fs::metadata(&run).unwrap().permissions().mode() & 0o111 != 0);
    for state in states.iter().rev().take(2) {
        project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
        assert_eq!(project.everything(), *state);
    }
    assert!(fs::metadata(&run).unwrap().permissions().mode() & 0o111 != 0);
    let edited = project.skill_set().undo(UserEdits::Keep).unwrap_err();
    assert_eq!(edited.code(), "edited", "they were made after it was installed");
    project.apply(&project.skill_set().undo(UserEdits::Discard).unwrap());
    assert_eq!(project.everything(), states[0]);
    assert_eq!(project.skill_set().undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
}

#[test]
fn undo_keeps_edits() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    project.write(".claude/skills/a/SKILL.md", "mine");
    let refused = project.skill_set().undo(UserEdits::Keep).unwrap_err();
    assert_eq!(refused.code(), "edited");
    assert!(refused.to_string().contains(".claude/skills/a"), "{refused}");
}

#[test]
fn journals_are_separate_and_limited() {
    let project = TestProject::new();
    let other =
        project.skill_set_of(savoir_package::manifest::Scope::User, &project.home("config"));
    for number in 0..25 {
        project.install(vec![skill("a", &format!("1.0.{number}"), "A\n")], &["claude-code"]);
    }
    assert_eq!(other.undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
    assert_eq!(fs::read_dir(project.data().join("undo")).unwrap().count(), 20);
    for _ in 0..20 {
        project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
        assert_eq!(project.problems(), [""; 0]);
    }
    assert!(project.read("savoir.lock").contains("1.0.4"));
    assert_eq!(fs::read_dir(project.data().join("undo")).unwrap().count(), 0);
    let ready = [project.ready(skill("a", "2.0.0", "A\n"), asked())];
    project.apply(&project.plan(&ready, &[]).unwrap());
}

#[test]
fn untracked_files_survive_removal() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    let (mine, nested) =
        (".claude/skills/a/node_modules/mine/notes.txt", ".claude/skills/a/scripts/.venv/x");
    project.write(mine, "mine");
    project.write(nested, "mine");
    project.write(".claude/skills/a/scripts/__pycache__/x.pyc", "x");
    let before = project.everything();
    project.install(vec![skill("a", "1.1.0", "A\n")], &[]);
    assert_eq!((project.read(mine), project.read(nested)), ("mine".into(), "mine".into()));
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(project.everything(), before);
    let changes =
        project.apply(&project.skill_set().remove(&["a".to_owned()], UserEdits::Keep).unwrap());
    assert!(
        changes.iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))),
        "{changes:?}"
    );
    assert_eq!((project.read(mine), project.read(nested)), ("mine".into(), "mine".into()));
    assert!(!project.path(".claude/skills/a/SKILL.md").exists());
    assert!(!project.path(".claude/skills/a/scripts/__pycache__").exists(), "a cache goes");
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(project.problems(), [""; 0]);
    assert_eq!((project.read(mine), project.read(nested)), ("mine".into(), "mine".into()));
    let plan = project.skill_set().undo(UserEdits::Keep).unwrap();
    assert!(
        plan.changes().iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))),
        "{plan:?}"
    );
    project.apply(&plan);
    assert_eq!(project.read(mine), "mine");
    project.install(vec![skill("a", "1.1.0", "A\n")], &["claude-code"]);
    assert_eq!(project.read(mine), "mine");
}
