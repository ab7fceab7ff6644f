//! Tests of folders whose skill another user removed from the lock.

use std::{fs, os::unix::fs::symlink};

use savoir_package::install::{
    FetchReason, LockMismatch, OccupiedFolders, PlannedChange, UserEdits,
};

use super::test_project::{TestProject, asked, gaia, install, put, skill};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";

/// A project with two skills, one of which was removed from the lock.
fn pulled() -> TestProject {
    let project = TestProject::new();
    project.install(vec![skill("keep", "1.0.0", BODY)], &["claude-code", "codex"]);
    let (toml, lock) = (project.read("savoir.toml"), project.read("savoir.lock"));
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    project.write("savoir.toml", &toml);
    project.write("savoir.lock", &lock);
    project
}

#[test]
fn orphaned_folder_is_removed() {
    let project = pulled();
    let plan = project.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::Orphan(_), PlannedChange::Orphan(_)]),
        "{plan:?}"
    );
    assert!(plan.changes()[0].to_string().ends_with("since nothing needs it"));
    project.apply(&plan);
    for folder in [".claude/skills", ".agents/skills"] {
        assert!(!project.path(folder).join("pdf").exists());
        assert!(project.path(folder).join("keep").exists());
    }
    assert!(project.sync(UserEdits::Keep).is_empty());
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert!(project.path(".claude/skills/pdf/SKILL.md").exists());
    assert!(
        project.sync(UserEdits::Keep).is_empty(),
        "a skill that is wanted again is not removed"
    );
}

#[test]
fn edited_orphan_stays() {
    let project = pulled();
    project.write(".claude/skills/pdf/notes.md", "mine");
    let plan = project.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::Orphan(_), PlannedChange::EditsLeft(_)]),
        "{plan:?}"
    );
    project.apply(&plan);
    assert_eq!(project.read(".claude/skills/pdf/notes.md"), "mine");
    assert!(!project.path(".agents/skills/pdf").exists());
    project.apply(&project.sync(UserEdits::Discard));
    assert!(!project.path(".claude/skills/pdf").exists());
}

#[test]
fn merged_edits_count_as_edits() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    let file = ".agents/skills/pdf/SKILL.md";
    project.write(file, &project.read(file).replace("Three.", "Drei."));
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    project.apply(&project.plan(&[project.ready(new, FetchReason::Update)], &[]).unwrap());
    project.write("savoir.toml", "");
    fs::remove_file(project.path("savoir.lock")).unwrap();
    let plan = project.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::EditsLeft(_)]), "{plan:?}");
}

#[test]
fn foreign_folder_is_not_an_orphan() {
    let project = TestProject::new();
    // The same files existed before, so nothing was written.
    put(&project.path(".agents/skills/pdf"), &skill("pdf", "1.0.0", BODY));
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    project.write("savoir.toml", "");
    fs::remove_file(project.path("savoir.lock")).unwrap();
    assert!(project.sync(UserEdits::Discard).is_empty());
    assert!(project.path(".agents/skills/pdf").exists());
}

#[test]
fn restored_folder_is_not_an_orphan() {
    let project = TestProject::new();
    project.write(".agents/skills/pdf/SKILL.md", "mine");
    let ready = [project.ready(skill("pdf", "1.0.0", BODY), asked())];
    let mut how = install(&["codex"]);
    how.occupied = OccupiedFolders::Replace;
    project.apply(&project.skill_set().install(&ready, &how).unwrap());
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert!(project.sync(UserEdits::Discard).is_empty());
    assert_eq!(project.read(".agents/skills/pdf/SKILL.md"), "mine");
}

#[test]
fn required_skill_is_not_an_orphan() {
    let project = pulled();
    let toml = project.read("savoir.toml") + "pdf = { path = \"./source\" }\n";
    project.write("savoir.toml", &toml);
    assert!(project.sync(UserEdits::Keep).is_empty(), "the lock is only too old");
    assert!(matches!(
        &project.skill_set().state().unwrap().lock_mismatches()[..],
        [LockMismatch::Missing { .. }]
    ));
}

#[test]
fn orphan_in_converted_dialect_is_recognized() {
    let project = TestProject::new();
    let tree = project.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    project.install(vec![tree], &["claude-code"]);
    project.write("savoir.toml", "");
    fs::remove_file(project.path("savoir.lock")).unwrap();
    project.apply(&project.sync(UserEdits::Keep));
    assert!(!project.path(".claude/skills/search").exists());
}

#[test]
fn unconverted_orphan_is_recognized_without_store() {
    let project = pulled();
    fs::remove_dir_all(project.data().join("store")).unwrap();
    project.apply(&project.sync(UserEdits::Keep));
    assert!(!project.path(".claude/skills/pdf").exists());
}

#[test]
fn orphan_behind_replaced_parent_is_kept() {
    let project = pulled();
    fs::create_dir(project.home("others")).unwrap();
    fs::rename(project.path(".claude/skills"), project.home("others/skills")).unwrap();
    fs::remove_dir(project.path(".claude")).unwrap();
    symlink(project.home("others"), project.path(".claude")).unwrap();
    let toml = "";
    project.write("savoir.toml", toml);
    fs::remove_file(project.path("savoir.lock")).unwrap();
    project.apply(&project.sync(UserEdits::Discard));
    assert!(project.home("others/skills/pdf/SKILL.md").exists());
    assert!(!project.path(".agents/skills/pdf").exists());
}

#[test]
fn damaged_index_removes_no_orphans() {
    let project = pulled();
    let folder = project.data().join("installed");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let good = fs::read(file).unwrap();
    for cut in [0, 1, good.len() / 2, good.len() - 1] {
        fs::write(file, &good[..cut]).unwrap();
        assert!(project.sync(UserEdits::Discard).is_empty(), "cut at {cut}");
    }
    fs::write(file, String::from_utf8_lossy(&good).replace("\"version\":1", "\"version\":2"))
        .unwrap();
    assert!(project.sync(UserEdits::Discard).is_empty());
    fs::write(file, good).unwrap();
    assert!(!project.sync(UserEdits::Keep).is_empty());
}

#[test]
fn skill_with_another_name_is_rejected() {
    let project = TestProject::new();
    project.write("savoir.toml", "[skills]\nwrong = { path = \"./source\" }\n");
    let before = project.everything();
    let ready = [project.ready(skill("right", "1.0.0", ""), asked())];
    let refused = project.plan(&ready, &["codex"]).unwrap_err();
    assert_eq!(refused.code(), "renamed");
    let text = "`wrong` in savoir.toml is a skill that calls itself `right`";
    assert_eq!(refused.to_string(), text);
    assert_eq!(project.everything(), before);

    project.write("savoir.toml", "");
    project.install(vec![skill("right", "1.0.0", "")], &["codex"]);
    project.write("savoir.toml", "[skills]\nwrong = { path = \"./source\" }\n");
    let stale = project.skill_set().state().unwrap().lock_mismatches();
    let [name @ LockMismatch::Name { .. }] = &stale[..] else { panic!("{stale:?}") };
    assert_eq!(
        name.to_string(),
        "`wrong` in `savoir.toml` is a skill that calls itself `right`; write `right`"
    );
}
