//! Changes are taken back.

use std::{fs, os::unix::fs::PermissionsExt as _};

use savoir_package::install::{FetchReason, PlannedChange, UserEdits};

use super::bench::{Bench, asked, skill, with};

#[test]
fn everything_comes_back_to_the_byte() {
    let bench = Bench::new();
    bench.write("savoir.toml", "# Ours.\n");
    let mut states = vec![bench.everything()];
    bench.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["claude-code"]);
    states.push(bench.everything());
    bench.write(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: Mine.\n---\nA\n");
    bench.write(".claude/skills/a/mine", "x");
    states.pop();
    states.push(bench.everything());
    let new =
        [bench.ready(with(&skill("a", "1.1.0", "A\n"), "more.md", "more"), FetchReason::Update)];
    bench.apply(&bench.plan(&new, &[]).unwrap());
    states.push(bench.everything());
    bench.apply(&bench.shelf().remove(&["b".to_owned()], UserEdits::Keep).unwrap());
    let run = bench.path(".claude/skills/a/scripts/run.sh");
    assert!(fs::metadata(&run).unwrap().permissions().mode() & 0o111 != 0);
    for state in states.iter().rev().take(2) {
        bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
        assert_eq!(bench.everything(), *state);
    }
    assert!(fs::metadata(&run).unwrap().permissions().mode() & 0o111 != 0);
    let edited = bench.shelf().undo(UserEdits::Keep).unwrap_err();
    assert_eq!(edited.code(), "edited", "they were made after it was installed");
    bench.apply(&bench.shelf().undo(UserEdits::Discard).unwrap());
    assert_eq!(bench.everything(), states[0]);
    assert_eq!(bench.shelf().undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
}

#[test]
fn edits_are_not_taken_back() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    bench.write(".claude/skills/a/SKILL.md", "mine");
    let refused = bench.shelf().undo(UserEdits::Keep).unwrap_err();
    assert_eq!(refused.code(), "edited");
    assert!(refused.to_string().contains(".claude/skills/a"), "{refused}");
}

#[test]
fn each_shelf_has_its_own_past_and_not_too_much_of_it() {
    let bench = Bench::new();
    let other = bench.shelf_of(savoir_package::manifest::Scope::User, &bench.home("config"));
    for number in 0..25 {
        bench.install(vec![skill("a", &format!("1.0.{number}"), "A\n")], &["claude-code"]);
    }
    assert_eq!(other.undo(UserEdits::Keep).unwrap_err().code(), "nothing_to_undo");
    assert_eq!(fs::read_dir(bench.data().join("undo")).unwrap().count(), 20);
    for _ in 0..20 {
        bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
        assert_eq!(bench.problems(), [""; 0]);
    }
    assert!(bench.read("savoir.lock").contains("1.0.4"));
    assert_eq!(fs::read_dir(bench.data().join("undo")).unwrap().count(), 0);
    let ready = [bench.ready(skill("a", "2.0.0", "A\n"), asked())];
    bench.apply(&bench.plan(&ready, &[]).unwrap());
}

#[test]
fn what_is_no_part_of_a_skill_outlives_it() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    let (mine, nested) =
        (".claude/skills/a/node_modules/mine/notes.txt", ".claude/skills/a/scripts/.venv/x");
    bench.write(mine, "mine");
    bench.write(nested, "mine");
    bench.write(".claude/skills/a/scripts/__pycache__/x.pyc", "x");
    let before = bench.everything();
    bench.install(vec![skill("a", "1.1.0", "A\n")], &[]);
    assert_eq!((bench.read(mine), bench.read(nested)), ("mine".into(), "mine".into()));
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(bench.everything(), before);
    let told = bench.apply(&bench.shelf().remove(&["a".to_owned()], UserEdits::Keep).unwrap());
    assert!(told.iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))), "{told:?}");
    assert_eq!((bench.read(mine), bench.read(nested)), ("mine".into(), "mine".into()));
    assert!(!bench.path(".claude/skills/a/SKILL.md").exists());
    assert!(!bench.path(".claude/skills/a/scripts/__pycache__").exists(), "a cache goes");
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(bench.problems(), [""; 0]);
    assert_eq!((bench.read(mine), bench.read(nested)), ("mine".into(), "mine".into()));
    let plan = bench.shelf().undo(UserEdits::Keep).unwrap();
    assert!(
        plan.changes().iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))),
        "{plan:?}"
    );
    bench.apply(&plan);
    assert_eq!(bench.read(mine), "mine");
    bench.install(vec![skill("a", "1.1.0", "A\n")], &["claude-code"]);
    assert_eq!(bench.read(mine), "mine");
}
