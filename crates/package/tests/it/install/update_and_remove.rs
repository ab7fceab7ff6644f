//! Tests of updating, removing and repairing skills.

use std::{fs, thread};

use savoir_package::{
    InstallFailure,
    install::{FetchReason, LockMismatch, PlannedChange, UserEdits},
    lock::Lock,
};

use super::test_project::{TestProject, asked, gaia, install, skill, with};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";
const FILE: &str = ".claude/skills/pdf/SKILL.md";

#[test]
fn edits_are_merged_with_update() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    let edited = project.read(FILE).replace("Three.", "Drei.");
    project.write(FILE, &edited);
    project.write(".claude/skills/pdf/notes.md", "mine\n");
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    let ready = [project.ready(new.clone(), FetchReason::Update)];
    let changes = project.apply(&project.plan(&ready, &[]).unwrap());
    assert!(matches!(&changes[0], PlannedChange::Updated { from, to, .. }
        if from.to_string() == "1.0.0" && to.to_string() == "1.1.0"));
    assert!(
        matches!(&changes[1..], [PlannedChange::Merged { file, .. }] if file == "SKILL.md"),
        "{changes:?}"
    );
    assert!(project.read(FILE).ends_with("Uno.\n\nTwo.\n\nDrei.\n"));
    assert_eq!(project.read(".claude/skills/pdf/notes.md"), "mine\n");
    assert!(project.read(".agents/skills/pdf/SKILL.md").ends_with("Uno.\n\nTwo.\n\nThree.\n"));
    let wrong = [
        ".claude/skills/pdf/SKILL.md was changed",
        ".claude/skills/pdf/notes.md does not belong to the skill",
    ];
    assert_eq!(project.problems(), wrong);
    let plan = project.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::EditsLeft(_)]) && plan.is_empty());
    project.apply(&project.sync(UserEdits::Discard));
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn conflicting_edits_are_marked() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    project.write(FILE, &project.read(FILE).replace("Two.", "Zwei."));
    let before = project.everything();
    let new = skill("pdf", "2.0.0", &BODY.replace("Two.", "Dos."));
    let changes =
        project.apply(&project.plan(&[project.ready(new, FetchReason::Update)], &[]).unwrap());
    assert!(
        changes.iter().any(|change| matches!(change, PlannedChange::Conflict { places: 1, .. })),
        "{changes:?}"
    );
    let text = project.read(FILE);
    assert!(text.contains("<<<<<<< yours\nZwei.\n=======\nDos.\n>>>>>>> 2.0.0\n"), "{text}");
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(project.everything(), before);
}

#[test]
fn reinstalling_same_version_keeps_edits() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    project.write(FILE, &project.read(FILE).replace("Two.", "Zwei."));
    let changes = project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    assert!(matches!(&changes[..], [PlannedChange::EditsLeft(_)]), "{changes:?}");
    assert!(project.read(FILE).contains("Zwei."));
}

#[test]
fn added_capabilities_must_be_accepted() {
    let project = TestProject::new();
    let version = |version, permissions: &[&str]| {
        project.signed("search", version, &gaia("search", version, permissions, &[]))
    };
    project.install(vec![version("1.0.0", &[])], &["codex"]);
    let before = project.everything();
    let ready = [project.ready(version("1.1.0", &["shell:execute:git"]), FetchReason::Update)];
    let mut plan = project.plan(&ready, &[]).unwrap();
    let growth: Vec<String> = plan.added_capabilities().iter().map(ToString::to_string).collect();
    assert_eq!(growth, ["`search` 1.1.0 wants shell:execute:git, which 1.0.0 did not have"]);
    let refused = project.skill_set().apply(&plan, &|| ()).unwrap_err();
    assert_eq!(refused.code(), "wants_more");
    assert_eq!(project.everything(), before);
    assert!(!plan.accept("shell:execute:npm"));
    assert!(plan.accept("shell:execute:git"));
    project.apply(&plan);
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn remove_keeps_needed_dependencies() {
    let project = TestProject::new();
    let base = project.signed("base", "1.0.0", &gaia("base", "1.0.0", &[], &[]));
    let top = project.signed("top", "1.0.0", &gaia("top", "1.0.0", &[], &["base"]));
    project.install(vec![base, top], &["codex"]);
    let remove = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        project.apply(&project.skill_set().remove(&names, UserEdits::Keep).unwrap())
    };
    let changes = remove(&["base"]);
    assert!(
        matches!(&changes[..], [PlannedChange::StillNeeded { by, .. }] if by == &["top"]),
        "{changes:?}"
    );
    assert!(project.path(".agents/skills/base").exists());
    let changes = remove(&["top"]);
    assert_eq!(changes.len(), 2, "and what only it needed: {changes:?}");
    assert!(!project.path(".agents/skills/base").exists());
    assert!(!project.path(".agents/skills/top").exists());
    assert!(Lock::read(&project.path("savoir.lock")).unwrap().skills.is_empty());
    let gone = project.skill_set().remove(&["top".to_owned()], UserEdits::Keep).unwrap_err();
    assert_eq!(gone.code(), "not_installed");
}

#[test]
fn remove_keeps_edited_folder() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    project.write(FILE, "mine");
    let plan = project.skill_set().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap();
    let changes = project.apply(&plan);
    assert!(
        changes.iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))),
        "{changes:?}"
    );
    assert_eq!(project.read(FILE), "mine");
    assert!(!project.path(".agents/skills/pdf").exists());
}

#[test]
fn sync_restores_missing_folder() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    fs::remove_dir_all(project.path(".claude")).unwrap();
    let plan = project.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::Written(_)]));
    project.apply(&plan);
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn sync_fetches_skill_missing_in_store() {
    let project = TestProject::new();
    let tree = skill("pdf", "1.0.0", BODY);
    project.install(vec![tree.clone()], &["claude-code"]);
    fs::remove_dir_all(project.data().join("store")).unwrap();
    assert_eq!(project.problems(), [""; 0], "the folder has the same files");
    project.apply(&project.sync(UserEdits::Keep));
    assert_eq!(project.problems(), [""; 0], "the folder has it still");

    fs::remove_dir_all(project.data().join("store")).unwrap();
    fs::remove_dir_all(project.path(".claude")).unwrap();
    let skill_set = project.skill_set();
    let failed = skill_set.sync(UserEdits::Keep, &mut |_, _| Err("there is no network".into()));
    assert_eq!(failed.unwrap_err().code(), "fetch");
    let other = skill("pdf", "1.0.0", "Other.\n");
    let wrong = skill_set.sync(UserEdits::Keep, &mut |_, _| Ok(other.clone()));
    assert_eq!(wrong.unwrap_err().code(), "integrity");
    project.apply(&skill_set.sync(UserEdits::Keep, &mut |_, _| Ok(tree.clone())).unwrap());
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn symlink_made_by_user_stays() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    fs::rename(project.path(".claude/skills/pdf"), project.path("work")).unwrap();
    std::os::unix::fs::symlink("../../work", project.path(".claude/skills/pdf")).unwrap();
    let new = [project.ready(skill("pdf", "1.1.0", BODY), FetchReason::Update)];
    project.apply(&project.plan(&new, &[]).unwrap());
    assert!(project.path(".claude/skills/pdf").is_symlink());
}

#[test]
fn stale_lock_is_reported() {
    let project = TestProject::new();
    project.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    let text = "[skills]\nother = \"^1\"\npdf = \"^2\"\n";
    project.write("savoir.toml", text);
    let stale = project.skill_set().state().unwrap().lock_mismatches();
    assert!(
        matches!(&stale[..], [LockMismatch::Missing { .. }, LockMismatch::Source { .. }]),
        "{stale:?}"
    );
    project.write("savoir.toml", "");
    let stale = project.skill_set().state().unwrap().lock_mismatches();
    assert!(matches!(&stale[..], [LockMismatch::Unneeded { .. }]), "{stale:?}");
}

#[test]
fn outdated_plan_is_rejected() {
    let project = TestProject::new();
    let old = project.plan(&[project.ready(skill("a", "1.0.0", ""), asked())], &["codex"]).unwrap();
    project.install(vec![skill("b", "1.0.0", "")], &["codex"]);
    assert_eq!(project.skill_set().apply(&old, &|| ()).unwrap_err().code(), "changed_meanwhile");
    let old = project.plan(&[project.ready(skill("a", "1.0.0", ""), asked())], &["codex"]).unwrap();
    project.write(".agents/skills/a/SKILL.md", "mine");
    assert_eq!(project.skill_set().apply(&old, &|| ()).unwrap_err().code(), "changed_meanwhile");
    assert_eq!(project.read(".agents/skills/a/SKILL.md"), "mine");
}

#[test]
fn concurrent_installs_are_serialized() {
    let project = TestProject::new();
    thread::scope(|scope| {
        for number in 0..8 {
            let project = &project;
            let ready = [project.ready(skill(&format!("s{number}"), "1.0.0", BODY), asked())];
            scope.spawn(move || {
                loop {
                    let plan =
                        project.skill_set().install(&ready, &install(&["claude-code", "codex"]));
                    match project.skill_set().apply(&plan.unwrap(), &|| ()) {
                        Ok(()) => break,
                        Err(InstallFailure::Moved(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(Lock::read(&project.path("savoir.lock")).unwrap().skills.len(), 8);
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn later_signature_is_installed() {
    let project = TestProject::new();
    let plain = gaia("search", "1.0.0", &[], &[]);
    // In its own dialect the skill is not converted, so its signatures are installed with it.
    let plain = with(
        &plain,
        "SKILL.md",
        skill("search", "1.0.0", BODY).get("SKILL.md").unwrap().bytes.clone(),
    );
    project.install(vec![plain.clone()], &["codex"]);
    project.install(vec![project.signed("search", "1.0.0", &plain)], &["codex"]);
    assert!(project.path(".agents/skills/search/signature.json").exists());
    assert_eq!(project.problems(), [""; 0]);
}

#[test]
fn unrelated_folders_are_not_touched() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", BODY)], &["codex"]);
    fs::remove_dir_all(project.data().join("store")).unwrap();
    fs::remove_dir_all(project.path(".agents")).unwrap();
    let changes = project.install(vec![skill("b", "1.0.0", BODY)], &["codex"]);
    assert!(
        matches!(&changes[..], [PlannedChange::New { name, .. }] if name == "b"),
        "{changes:?}"
    );
    assert!(!project.path(".agents/skills/a").exists());
    assert_eq!(project.problems().len(), 2, "sync puts it right");
}

#[test]
fn every_file_of_a_plan_is_shown() {
    let project = TestProject::new();
    project.install(vec![with(&skill("a", "1.0.0", BODY), "old.md", "old")], &["codex"]);
    let new = with(&skill("a", "1.1.0", BODY), "new.md", "new");
    let plan = project.plan(&[project.ready(new, FetchReason::Update)], &[]).unwrap();
    let files = plan.files();
    let shown: Vec<_> =
        files.iter().map(|file| (file.path, file.before.is_some(), file.after.is_some())).collect();
    let expected = [("SKILL.md", true, true), ("new.md", false, true), ("old.md", true, false)];
    assert_eq!(shown, expected);
}

#[test]
fn unsigned_copy_does_not_remove_signature() {
    let project = TestProject::new();
    let plain = gaia("search", "1.0.0", &[], &[]);
    project.install(vec![project.signed("search", "1.0.0", &plain)], &["codex"]);
    let other =
        project.skill_set_of(savoir_package::manifest::Scope::User, &project.home("config"));
    let ready = [project.ready(plain, asked())];
    other.apply(&other.install(&ready, &install(&["codex"])).unwrap(), &|| ()).unwrap();
    assert_eq!(project.problems(), [""; 0]);
    assert!(other.verify(&project.trust()).unwrap().is_empty());
}
