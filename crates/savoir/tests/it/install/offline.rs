//! Tests commands without a network and with an empty cache.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{PDF, TestEnv};

#[test]
fn the_cache_is_emptied_and_installed_skills_stay() {
    let (test_env, url) = TestEnv::with_repository();
    test_env.run_ok(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    let cache = "home/.cache/savoir/sources/git";
    assert!(test_env.has(cache));
    let looked = test_env.run_ok(&["cache", "clean", "--dry-run"]);
    assert!(looked.stdout.starts_with("Would free "), "{looked}");
    assert!(looked.stdout.contains("1 repository"), "{looked}");
    let counted = test_env.run_ok(&["cache", "clean", "--dry-run", "--json"]).json();
    assert_eq!((&counted["repositories"], &counted["in_use"]), (&1.into(), &0.into()));
    test_env.sandbox.write("home/.cache/savoir/tries/skill-left/SKILL.md", "left by a killed run");
    let left = test_env.sandbox.path("home/.cache/savoir/tries/skill-left");
    fs::set_permissions(left, fs::Permissions::from_mode(0o555)).expect("a folder");
    let freed = test_env.run_ok(&["cache", "clean"]);
    assert!(!test_env.has("home/.cache/savoir/tries/skill-left"), "{freed}");
    assert!(freed.stdout.starts_with("Freed "), "{freed}");
    let counted = test_env.run_ok(&["cache", "clean", "--json"]).json();
    assert_eq!((&counted["repositories"], &counted["bytes"]), (&0.into(), &0.into()));
    assert!(test_env.has(PDF));
    test_env.run_ok(&["verify"]);
    test_env.run_ok(&["undo"]);
    assert!(!test_env.has(PDF), "what undo needs is not in the cache");
}

#[test]
fn missing_skills_are_named_when_offline() {
    let test_env = TestEnv::new();
    for args in [
        &["install", "https://host.invalid/o/r", "--list", "--offline"][..],
        &["install", "https://host.invalid/x.zip", "--offline"],
    ] {
        let refused = test_env.run(args);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("host.invalid"), "{refused}");
        assert!(refused.stderr.contains("is not in the cache"), "{refused}");
        assert!(refused.stderr.contains("without --offline"), "{refused}");
    }
}

#[test]
fn local_sources_work_offline() {
    let (test_env, url) = TestEnv::with_repository();
    let args = ["install", &url, "--skill", "pdf", "--allow-experimental", "--offline"];
    test_env.run_ok(&args);
    assert!(test_env.has(PDF));
}

#[test]
fn a_fresh_clone_with_committed_skills_matches_the_lock() {
    let test_env = TestEnv::with_pdf();
    fs::create_dir_all(test_env.sandbox.path("colleague/.claude")).expect("a folder");
    let run = |args: &[&str]| test_env.sandbox.run_as("colleague", "project", args);
    let verified = run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(verified.stderr.contains("`pdf` was not installed on this machine"), "{verified}");
    let compared = run(&["sync", "--check"]);
    assert_eq!((compared.code, &*compared.stdout), (0, "everything matches savoir.lock\n"));
    test_env.sandbox.write("project/.claude/skills/pdf/SKILL.md", "changed");
    assert_eq!(run(&["verify"]).code, 1);
    assert_eq!(run(&["sync", "--check"]).code, 1);
}
