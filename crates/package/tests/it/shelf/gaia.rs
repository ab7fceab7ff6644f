//! The lock of GAIA follows ours, and is never ours alone.

use std::{fs, path::PathBuf};

use savoir_package::{
    Tree,
    gaia_lock::{GaiaLock, dependencies_hash},
    install::{FetchReason, InstallOptions, OccupiedFolders, UserEdits},
    manifest::Scope,
};
use serde_json::{Value, json};

use super::bench::{Bench, asked, gaia, install, skill};

const LOCK: &str = ".gaia/skills/skill-lock.json";

/// What somebody else's GAIA wrote: keys that nobody knows, and not as we would write it.
const FOREIGN: &str = r#"{"schema_version": 1, "later": [1], "skills":
  {"theirs": {"version": "3.1.0", "installed_at": "2026-01-01T00:00:00Z", "stars": 5}}}"#;

fn lock(bench: &Bench) -> GaiaLock {
    GaiaLock::read(&bench.path(LOCK)).unwrap()
}

fn names(bench: &Bench) -> Vec<String> {
    lock(bench).skills.into_keys().collect()
}

#[test]
fn an_entry_says_what_is_on_the_disk() {
    let bench = Bench::new();
    let need = bench.signed("helper", "2.0.0", &gaia("helper", "2.0.0", &[], &[]));
    let tree = gaia("finder", "1.2.0", &["shell:execute:git"], &["helper"]);
    let tree = bench.signed("finder", "1.2.0", &tree);
    let ready = [bench.ready(tree, asked()), bench.ready(need, FetchReason::IfNeeded)];
    bench.apply(&bench.plan(&ready, &["gaia", "claude-code"]).unwrap());
    let text: Value = serde_json::from_str(&bench.read(LOCK)).unwrap();
    let entry = &text["skills"]["finder"];
    let there = Tree::read(&bench.path(".gaia/skills/finder")).unwrap();
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
    assert_eq!(names(&bench), ["finder", "helper"], "what it needs is there, too");
}

/// A time as the format has it, to the second and in UTC.
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
fn without_the_agent_there_is_no_such_file() {
    let bench = Bench::new();
    bench.write(LOCK, "not a lock");
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    assert_eq!(bench.read(LOCK), "not a lock", "it is nobody's business");
    let ready = [bench.ready(skill("a", "1.0.0", "A\n"), asked())];
    let refused = bench.plan(&ready, &["gaia"]).unwrap_err();
    assert_eq!(refused.code(), "corrupt_lock");
    assert!(refused.to_string().contains("skill-lock.json:1:"), "{refused}");
}

#[test]
fn entries_of_others_stay_whatever_happens() {
    let bench = Bench::new();
    bench.write(LOCK, FOREIGN);
    bench.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["gaia"]);
    assert_eq!(names(&bench), ["a", "b", "theirs"]);
    let theirs = lock(&bench).skills["theirs"].clone();
    assert_eq!(theirs.unknown["stars"], 5);
    assert_eq!(lock(&bench).unknown["later"], json!([1]));
    bench.apply(&bench.shelf().remove(&["a".into(), "b".into()], UserEdits::Keep).unwrap());
    assert_eq!(names(&bench), ["theirs"]);
    assert_eq!(lock(&bench).skills["theirs"], theirs);
    for expected in [&["a", "b", "theirs"][..], &["theirs"]] {
        bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
        assert_eq!(names(&bench), expected);
    }
    assert_eq!(bench.read(LOCK), FOREIGN, "to the byte");
}

#[test]
fn what_did_not_change_keeps_its_time_and_its_keys() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["gaia"]);
    let old = "2020-01-01T00:00:00Z";
    GaiaLock::update(&bench.path(LOCK), |lock| {
        for skill in lock.skills.values_mut() {
            skill.installed_at = Some(old.into());
            skill.unknown.insert("stars".into(), json!(5));
        }
    })
    .unwrap();
    assert!(bench.sync(UserEdits::Keep).is_empty(), "they are what they were");
    bench.install(vec![skill("b", "2.0.0", "B\n")], &[]);
    let lock = lock(&bench);
    assert_eq!(lock.skills["a"].installed_at.as_deref(), Some(old));
    assert_ne!(lock.skills["b"].installed_at.as_deref(), Some(old));
    assert_eq!(lock.skills["b"].version, "2.0.0");
    for name in ["a", "b"] {
        assert_eq!(lock.skills[name].unknown["stars"], 5, "{name}");
    }
}

/// GAIA does not wait for us: it may write between a plan and its change, and after the change.
#[test]
fn what_gaia_writes_meanwhile_is_not_lost() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    let ready = [bench.ready(skill("b", "1.0.0", "B\n"), asked())];
    let plan = bench.plan(&ready, &["gaia"]).unwrap();
    let add = |name: &str| {
        GaiaLock::update(&bench.path(LOCK), |lock| {
            let skill = lock.skills["a"].clone();
            lock.skills.insert(name.into(), skill);
        })
        .unwrap();
    };
    add("early");
    bench.apply(&plan);
    assert_eq!(names(&bench), ["a", "b", "early"]);
    add("late");
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(names(&bench), ["a", "early", "late"]);
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(names(&bench), ["early", "late"]);
}

#[test]
fn everything_comes_back_and_nothing_is_left() {
    let bench = Bench::new();
    let before = bench.everything();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    assert!(bench.path(LOCK).exists());
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(bench.everything(), before);
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    bench.apply(&bench.shelf().remove(&["a".into()], UserEdits::Keep).unwrap());
    assert!(!bench.path(LOCK).exists(), "a lock of nothing says nothing");
}

#[test]
fn a_lock_that_is_gone_or_wrong_is_mended() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["gaia"]);
    fs::remove_file(bench.path(LOCK)).unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
    assert_eq!(names(&bench), ["a"]);
    GaiaLock::update(&bench.path(LOCK), |lock| {
        lock.skills.get_mut("a").unwrap().version = "9.9.9".into();
    })
    .unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
    assert_eq!(lock(&bench).skills["a"].version, "1.0.0");
    assert!(bench.sync(UserEdits::Keep).is_empty());
}

#[test]
fn a_skill_of_gaia_itself_is_in_the_way_and_can_be_replaced() {
    let bench = Bench::new();
    bench.write(LOCK, FOREIGN);
    bench.write(".gaia/skills/theirs/SKILL.md", "---\nname: theirs\ndescription: X.\n---\n");
    let before = bench.everything();
    let ready = [bench.ready(skill("theirs", "1.0.0", "A\n"), asked())];
    assert_eq!(bench.plan(&ready, &["gaia"]).unwrap_err().code(), "occupied");
    let how = InstallOptions { occupied: OccupiedFolders::Replace, ..install(&["gaia"]) };
    bench.apply(&bench.shelf().install(&ready, &how).unwrap());
    let entry = &lock(&bench).skills["theirs"];
    assert_eq!((entry.version.as_str(), &entry.unknown["stars"]), ("1.0.0", &json!(5)));
    assert_ne!(entry.installed_at.as_deref(), Some("2026-01-01T00:00:00Z"));
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(bench.everything(), before);
}

#[test]
fn a_person_has_one_in_the_home() {
    let bench = Bench::new();
    let root: PathBuf = bench.home(".config/savoir");
    let shelf = bench.shelf_of(Scope::User, &root);
    let ready = [bench.ready(skill("a", "1.0.0", "A\n"), asked())];
    shelf.apply(&shelf.install(&ready, &install(&["gaia"])).unwrap(), &|| ()).unwrap();
    let lock = GaiaLock::read(&bench.home(LOCK)).unwrap();
    assert_eq!(lock.skills["a"].version, "1.0.0");
    assert_eq!(lock.skills["a"].source.as_deref(), Some("path"));
    assert!(!fs::read_to_string(bench.home(LOCK)).unwrap().contains("/home"));
}
