//! Tests of a lock that was changed by another user, for example by `git pull`.

use std::fs;

use savoir_package::install::{FetchReason, PlannedChange, UserEdits};

use super::test_project::{TestProject, skill};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";
const FILE: &str = ".agents/skills/pdf/SKILL.md";

/// A project with version 1.0.0 in its folders and 1.1.0 in its lock.
fn pulled() -> TestProject {
    let project = TestProject::new();
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    project.install(vec![new], &["codex", "claude-code"]);
    let lock = project.read("savoir.lock");
    project.apply(&project.skill_set().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["codex", "claude-code"]);
    project.write("savoir.lock", &lock);
    project
}

#[test]
fn installed_files_are_not_edits() {
    let project = pulled();
    let plan = project.sync(UserEdits::Keep);
    let [change] = plan.changes() else { panic!("{plan:?}") };
    assert_eq!(change.to_string(), "`pdf` goes from 1.0.0 to 1.1.0");
    project.apply(&plan);
    assert!(project.read(FILE).contains("Uno."));
    assert_eq!(project.problems(), [""; 0]);
    assert!(project.sync(UserEdits::Keep).is_empty());
}

#[test]
fn edits_are_compared_with_last_installed() {
    let project = pulled();
    project.write(FILE, &project.read(FILE).replace("Three.", "Drei."));
    let changes = project.apply(&project.sync(UserEdits::Keep));
    assert!(
        changes.iter().any(|change| matches!(change, PlannedChange::Merged { .. })),
        "{changes:?}"
    );
    let text = project.read(FILE);
    assert!(text.contains("Uno.") && text.contains("Drei.") && !text.contains("One."), "{text}");
    let plan = project.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::EditsLeft(_)]), "{plan:?}");
}

#[test]
fn update_drops_lines_of_old_version() {
    let project = pulled();
    let newest = skill("pdf", "1.2.0", &BODY.replace("One.", "Eins."));
    project
        .apply(&project.plan(&[project.ready(newest.clone(), FetchReason::Update)], &[]).unwrap());
    assert_eq!(project.read(FILE).as_bytes(), newest.get("SKILL.md").unwrap().bytes);
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn sync_removes_last_installed() {
    let project = pulled();
    project.apply(&project.skill_set().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    assert!(!project.path(".agents/skills/pdf").exists());
}

#[test]
fn missing_installed_index_keeps_folders() {
    let project = pulled();
    fs::remove_dir_all(project.data().join("installed")).unwrap();
    let plan = project.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::EditsLeft(_), PlannedChange::EditsLeft(_)]),
        "{plan:?}"
    );
}

#[test]
fn pulled_files_are_added_to_index() {
    let project = pulled();
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    for folder in [".agents/skills/pdf", ".claude/skills/pdf"] {
        fs::remove_dir_all(project.path(folder)).unwrap();
        new.write(&project.path(folder)).unwrap();
    }
    assert!(project.sync(UserEdits::Keep).is_empty());
    project.install(vec![skill("other", "1.0.0", "")], &["codex"]);
    fs::remove_dir_all(project.path(".agents/skills/other")).unwrap();
    project.apply(&project.sync(UserEdits::Keep));
    project.write(FILE, &project.read(FILE).replace("Three.", "Drei."));
    let newest = skill("pdf", "1.2.0", &BODY.replace("One.", "Eins."));
    project.apply(&project.plan(&[project.ready(newest, FetchReason::Update)], &[]).unwrap());
    let text = project.read(FILE);
    assert!(text.contains("Eins.") && text.contains("Drei.") && !text.contains("<<<"), "{text}");
}
