//! Tests the order of syncs and renames, which matters if the power fails.

use std::{
    env, fs,
    process::{Command, Stdio},
};

use savoir_package::{
    install::{CheckedSkill, FetchedSkill},
    trust::TrustStore,
};

use super::test_project::{TestProject, asked, install, skill};

const PLACE: &str = "SAVOIR_TEST_POWER";
const COUNT: &str = "SAVOIR_TEST_POWER_COUNT";
const CALLS: &str = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2";

/// Returns the system calls of a program that installs skills; `None` with a note if they cannot be
/// traced.
fn calls(count: usize) -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
        {
            eprintln!("=== SKIPPED: the order of writing: strace is not installed ===");
        }
        return None;
    }
    let project = TestProject::new();
    let trace = project.home("trace");
    let output = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-e", CALLS, "-o"])
        .arg(&trace)
        .arg(env::current_exe().unwrap())
        .args(["--exact", "install::write_order::child", "--nocapture"])
        .env(PLACE, project.path("").parent().unwrap())
        .env(COUNT, count.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(project.problems(), [""; 0]);
    Some(fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect())
}

/// Returns the positions of calls that contain all these texts.
fn places(calls: &[String], parts: &[&str]) -> Vec<usize> {
    let has = |call: &String| parts.iter().all(|part| call.contains(part));
    (0..calls.len()).filter(|at| has(&calls[*at])).collect()
}

/// Checks the order that is required for any number of skills; returns where the record was opened.
fn check_order(calls: &[String], count: usize) -> usize {
    let open = places(calls, &["rename", ".open\""])[0];
    let known = places(calls, &["fsync(", "/data/undo>"])[0];
    let swaps = places(calls, &["rename", ".savoir-shelf-", ".new\"", ".claude/skills"]);
    assert_eq!(swaps.len(), count, "{calls:#?}");
    assert!(open < known && known < swaps[0], "the journal is first: {calls:#?}");
    let settled = places(calls, &["fsync(", ".claude/skills>"]);
    let lock = places(calls, &["rename", "savoir.lock\""])[0];
    let last = swaps[count - 1];
    assert!(settled.iter().any(|at| last < *at && *at < lock), "the lock is last: {calls:#?}");
    let root = places(calls, &["fsync(", "/project>"]);
    assert!(root.iter().any(|at| lock < *at), "it is known at the end: {calls:#?}");
    open
}

#[test]
fn few_files_are_synced_before_rename() {
    let Some(calls) = calls(1) else { return };
    let open = check_order(&calls, 1);
    assert_eq!(places(&calls, &["syncfs("]), [0; 0], "others do not have to be waited for");
    for name in ["SKILL.md>", "run.sh>", "0.new>", "record.json>"] {
        let settled = places(&calls, &["fsync(", name]);
        assert!(settled.iter().any(|at| *at < open), "{name}: {calls:#?}");
    }
}

#[test]
fn many_files_are_synced_before_rename() {
    let Some(calls) = calls(40) else { return };
    let open = check_order(&calls, 40);
    let settled = places(&calls, &["syncfs("]);
    assert_eq!(settled.len(), 1, "once is enough: {calls:#?}");
    assert!(settled[0] < open, "{calls:#?}");
    assert!(places(&calls, &["fsync("]).len() < 10, "not each on its own: {calls:#?}");
}

#[test]
fn child() {
    let Some(place) = env::var_os(PLACE) else { return };
    let count: usize = env::var(COUNT).unwrap().parse().unwrap();
    let project = TestProject::at(place.as_ref());
    let trust = TrustStore::default();
    let ready: Vec<CheckedSkill> = (0..count)
        .map(|number| {
            let (called, source) = (format!("s{number}"), "path+./source".parse().unwrap());
            let tree = skill(&called, "1.0.0", "Text\n");
            CheckedSkill::check(
                FetchedSkill { tree, called, source, why: asked(), counted: None },
                &trust,
            )
            .unwrap()
        })
        .collect();
    let plan = project.skill_set().install(&ready, &install(&["claude-code"])).unwrap();
    project.skill_set().apply(&plan, &|| ()).unwrap();
}
