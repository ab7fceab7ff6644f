//! Tests that `skill-lock.json` of GAIA follows `savoir.lock`, and that GAIA's own entries are
//! kept.

use std::{fs, path::PathBuf};

use savoir_package::{
    Tree,
    gaia_lock::{GaiaLock, dependencies_hash},
    install::{FetchReason, InstallOptions, OccupiedFolders, UserEdits},
    manifest::Scope,
};
use serde_json::{Value, json};

use super::test_project::{TestProject, asked, gaia, install, skill};

const LOCK: &str = ".gaia/skills/skill-lock.json";

/// A lock that GAIA wrote, with unknown keys and other formatting.
const FOREIGN: &str = r#"{"schema_version": 1, "later": [1], "skills":
  {"theirs": {"version": "3.1.0", "installed_at": "2026-01-01T00:00:00Z", "stars": 5}}}"#;

fn lock(project: &TestProject) -> GaiaLock {
    GaiaLock::read(&project.path(LOCK)).unwrap()
}

fn names(project: &TestProject) -> Vec<String> {
    lock(project).skills.into_keys().collect()
}

#[test]
fn gaia_lock_entry_describes_installed_files() {
    let project = TestProject::new();
    let need = project.signed("helper", "2.0.0", &gaia("helper", "2.0.0", &[], &[]));
    let tree = gaia("finder", "1.2.0", &["shell:execute:git"], &["helper"]);
    let tree = project.signed("finder", "1.2.0", &tree);
    let ready = [project.ready(tree, asked()), project.ready(need, FetchReason::IfNeeded)];
    project.apply(&project.plan(&ready, &["gaia", "claude-code"]).unwrap());
    let text: Value = serde_json::from_str(&project.read(LOCK)).unwrap();
    let entry = &text["skills"]["finder"];
    let there = Tree::read(&project.path(".gaia/skills/finder")).unwrap();
    let skills = [("helper".to_owned(), "2.0.0".to_owned())].into();
    let hash = dependencies_hash(&[].into(), &[].into(), &skills);
    let expected = json!({
        "version": "1.2.0",
        "integrity": there.integrity(),
        "security_tier": "community",
        "installed_at": entry["installed_at"],
        "dependencies_hash": hash,
        "source": "path",
        "claimed_tier": "community",
        "attested_tier": "community",
        "installed_tier": "community",
        "signature": {
            "signed": true, "key_id": entry["signature"]["key_id"],
            "publisher": "acme", "role": "publisher",
        },
        "permissions": ["network:read:example.com", "shell:execute:git"],
    });
    assert_eq!(*entry, expected);
    let key = entry["signature"]["key_id"].as_str().unwrap();
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    assert_eq!((&text["version"], &text["schema_version"]), (&json!(1), &json!(1)));
    assert_eq!(text["generated_at"], entry["installed_at"], "both are now");
    assert!(text["generated_at"].as_str().unwrap().parse::<jiff_time::Time>().is_ok());
    assert_eq!(names(&project), ["finder", "helper"], "what it needs is there, too");
}

/// A timestamp in the format of the lock.
mod jiff_time {
    pub(super) struct Time;

    impl std::str::FromStr for Time {
        type Err = ();

        fn from_str(text: &str) -> Result<Self, ()> {
            let shape: String =
                text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            (shape == "0000-00-00T00:00:00Z").then_some(Self).ok_or(())
        }
    }
}

#[test]
fn no_gaia_lock_without_gaia_agent() {
    let project = TestProject::new();
    project.write(LOCK, "not a lock");
    project.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    assert_eq!(project.read(LOCK), "not a lock", "it is nobody's business");
    let ready = [project.ready(skill("a", "1.0.0", "A\n"), asked())];
    let refused = project.plan(&ready, &["gaia"]).unwrap_err();
    assert_eq!(refused.code(), "corrupt_lock");
    assert!(refused.to_string().contains("skill-lock.json:1:"), "{refused}");
}

#[test]
fn foreign_gaia_lock_entries_are_kept() {
    let project = TestProject::new();
    project.write(LOCK, FOREIGN);
    project.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["gaia"]);
    assert_eq!(names(&project), ["a", "b", "theirs"]);
    let theirs = lock(&project).skills["theirs"].clone();
    assert_eq!(theirs.unknown["stars"], 5);
    assert_eq!(lock(&project).unknown["later"], json!([1]));
    project.apply(&project.skill_set().remove(&["a".into(), "b".into()], UserEdits::Keep).unwrap());
    assert_eq!(names(&project), ["theirs"]);
    assert_eq!(lock(&project).skills["theirs"], theirs);
    let text: Value = serde_json::from_str(&project.read(LOCK)).unwrap();
    let written = json!({"version": "3.1.0", "installed_at": "2026-01-01T00:00:00Z", "stars": 5});
    assert_eq!(text["skills"]["theirs"], written, "no key is added");
    for expected in [&["a", "b", "theirs"][..], &["theirs"]] {
        project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
        assert_eq!(names(&project), expected);
    }
    assert_eq!(project.read(LOCK), FOREIGN, "to the byte");
}

#[test]
fn unchanged_gaia_lock_entry_keeps_time_and_keys() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["gaia"]);
    let old = "2020-01-01T00:00:00Z";
    GaiaLock::update(&project.path(LOCK), |lock| {
        for skill in lock.skills.values_mut() {
            skill.installed_at = Some(old.into());
            skill.unknown.insert("stars".into(), json!(5));
        }
    })
    .unwrap();
    assert!(project.sync(UserEdits::Keep).is_empty(), "they are what they were");
    project.install(vec![skill("b", "2.0.0", "B\n")], &[]);
    let lock = lock(&project);
    assert_eq!(lock.skills["a"].installed_at.as_deref(), Some(old));
    assert_ne!(lock.skills["b"].installed_at.as_deref(), Some(old));
    assert_eq!(lock.skills["b"].version, "2.0.0");
    for name in ["a", "b"] {
        assert_eq!(lock.skills[name].unknown["stars"], 5, "{name}");
    }
}

#[test]
fn order_of_permissions_does_not_change_the_gaia_lock() {
    let project = TestProject::new();
    let tree = gaia("finder", "1.2.0", &["shell:execute:git", "env:read:A"], &[]);
    let ready = [project.ready(tree, asked())];
    project.apply(&project.plan(&ready, &["gaia"]).unwrap());
    let text = project.read(LOCK);
    let plan = project.sync(UserEdits::Keep);
    assert!(plan.is_empty() && plan.changed_files().is_empty(), "{:?}", plan.changed_files());
    assert_eq!(project.read(LOCK), text);
}

/// GAIA may write its lock between planning and applying, and after applying.
#[test]
fn concurrent_gaia_lock_changes_are_kept() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    let ready = [project.ready(skill("b", "1.0.0", "B\n"), asked())];
    let plan = project.plan(&ready, &["gaia"]).unwrap();
    let add = |name: &str| {
        GaiaLock::update(&project.path(LOCK), |lock| {
            let skill = lock.skills["a"].clone();
            lock.skills.insert(name.into(), skill);
        })
        .unwrap();
    };
    add("early");
    project.apply(&plan);
    assert_eq!(names(&project), ["a", "b", "early"]);
    add("late");
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(names(&project), ["a", "early", "late"]);
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(names(&project), ["early", "late"]);
}

#[test]
fn undo_restores_gaia_lock() {
    let project = TestProject::new();
    let before = project.everything();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    assert!(project.path(LOCK).exists());
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(project.everything(), before);
    project.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    project.apply(&project.skill_set().remove(&["a".into()], UserEdits::Keep).unwrap());
    assert!(!project.path(LOCK).exists(), "a lock of nothing says nothing");
}

#[test]
fn missing_or_wrong_gaia_lock_is_repaired() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    fs::remove_file(project.path(LOCK)).unwrap();
    project.apply(&project.sync(UserEdits::Keep));
    assert_eq!(names(&project), ["a"]);
    GaiaLock::update(&project.path(LOCK), |lock| {
        lock.skills.get_mut("a").unwrap().version = "9.9.9".into();
    })
    .unwrap();
    project.apply(&project.sync(UserEdits::Keep));
    assert_eq!(lock(&project).skills["a"].version, "1.0.0");
    assert!(project.sync(UserEdits::Keep).is_empty());
}

#[test]
fn existing_gaia_skill_blocks_until_replaced() {
    let project = TestProject::new();
    project.write(LOCK, FOREIGN);
    project.write(".gaia/skills/theirs/SKILL.md", "---\nname: theirs\ndescription: X.\n---\n");
    let before = project.everything();
    let ready = [project.ready(skill("theirs", "1.0.0", "A\n"), asked())];
    assert_eq!(project.plan(&ready, &["gaia"]).unwrap_err().code(), "occupied");
    let how = InstallOptions { occupied: OccupiedFolders::Replace, ..install(&["gaia"]) };
    project.apply(&project.skill_set().install(&ready, &how).unwrap());
    let entry = &lock(&project).skills["theirs"];
    assert_eq!((entry.version.as_str(), &entry.unknown["stars"]), ("1.0.0", &json!(5)));
    assert_ne!(entry.installed_at.as_deref(), Some("2026-01-01T00:00:00Z"));
    project.apply(&project.skill_set().undo(UserEdits::Keep).unwrap());
    assert_eq!(project.everything(), before);
}

#[test]
fn user_install_writes_gaia_lock_in_home() {
    let project = TestProject::new();
    let root: PathBuf = project.home(".config/savoir");
    let skill_set = project.skill_set_of(Scope::User, &root);
    let ready = [project.ready(skill("a", "1.0.0", "A\n"), asked())];
    skill_set.apply(&skill_set.install(&ready, &install(&["gaia"])).unwrap(), &|| ()).unwrap();
    let lock = GaiaLock::read(&project.home(LOCK)).unwrap();
    assert_eq!(lock.skills["a"].version, "1.0.0");
    assert_eq!(lock.skills["a"].source.as_deref(), Some("path"));
    assert!(!fs::read_to_string(project.home(LOCK)).unwrap().contains("/home"));
}
