//! Tests of a lock without `savoir.toml`: its skills stay installed.

use std::fs;

use savoir_package::{
    install::{FetchReason, PlannedChange, UserEdits},
    manifest::Manifest,
};

use super::test_project::{TestProject, asked, gaia, skill};

/// A project without `savoir.toml` with three skills, one of which another one needs.
fn project() -> TestProject {
    let project = TestProject::new();
    let signed = |name: &str, needs: &[&str]| {
        project.signed(name, "1.0.0", &gaia(name, "1.0.0", &[], needs))
    };
    let base = project.ready(signed("base", &[]), FetchReason::IfNeeded);
    let top = project.ready(signed("top", &["base"]), asked());
    let pdf = project.ready(skill("pdf", "1.0.0", "Read it.\n"), asked());
    project.apply(&project.plan(&[base, top, pdf], &["claude-code"]).unwrap());
    fs::remove_file(project.path("savoir.toml")).unwrap();
    project
}

fn names(project: &TestProject) -> Vec<String> {
    project.skill_set().state().unwrap().lock.skills.into_keys().collect()
}

/// Returns the requirements in `savoir.toml`.
fn wanted(project: &TestProject) -> Vec<String> {
    let manifest = Manifest::read(&project.path("savoir.toml")).unwrap().unwrap();
    manifest.skills.into_keys().collect()
}

#[test]
fn install_without_manifest_keeps_locked_skills() {
    let project = project();
    let changes = project.install(vec![skill("tea", "1.0.0", "Boil it.\n")], &["claude-code"]);
    let removes = |change: &PlannedChange| matches!(change, PlannedChange::Removed { .. });
    assert!(!changes.iter().any(removes), "{changes:?}");
    assert_eq!(names(&project), ["base", "pdf", "tea", "top"]);
    assert_eq!(wanted(&project), ["pdf", "tea", "top"], "what others need is theirs to ask for");
    assert_eq!(project.skill_set().state().unwrap().lock_mismatches(), []);
    assert_eq!(project.problems(), [""; 0]);
    // The next install does not remove any skill either.
    project.install(vec![skill("ink", "1.0.0", "Write.\n")], &["claude-code"]);
    assert_eq!(names(&project), ["base", "ink", "pdf", "tea", "top"]);
}

#[test]
fn derived_manifest_matches_lock() {
    let project = project();
    assert_eq!(project.skill_set().state().unwrap().lock_mismatches(), []);
    assert!(project.sync(UserEdits::Keep).is_empty());
    let newer = [project.ready(skill("pdf", "1.1.0", "Read it twice.\n"), FetchReason::Update)];
    project.apply(&project.plan(&newer, &[]).unwrap());
    assert_eq!(names(&project), ["base", "pdf", "top"]);
    assert!(project.read(".claude/skills/pdf/SKILL.md").contains("twice"));
    assert!(!project.path("savoir.toml").exists(), "nobody asked for anything");
    let skill_set = project.skill_set();
    project.apply(&skill_set.remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    assert_eq!(names(&project), ["base", "top"]);
    assert_eq!(wanted(&project), ["top"]);
    // A skill that is not in the lock is not installed.
    let error = skill_set.remove(&["pdf".to_owned()], UserEdits::Keep).unwrap_err();
    assert_eq!(error.code(), "not_installed");
}
