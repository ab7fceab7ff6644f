//! Without a network, and with an empty cache.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{Machine, PDF};

#[test]
fn the_cache_is_emptied_and_installed_skills_stay() {
    let (machine, url) = Machine::with_repository();
    machine.well(&["install", &url, "--skill", "pdf", "--allow-experimental"]);
    let cache = "home/.cache/savoir/sources/git";
    assert!(machine.has(cache));
    let looked = machine.well(&["cache", "clean", "--dry-run"]);
    assert!(looked.stdout.starts_with("Would free "), "{looked}");
    assert!(looked.stdout.contains("1 repository"), "{looked}");
    let counted = machine.well(&["cache", "clean", "--dry-run", "--json"]).json();
    assert_eq!((&counted["repositories"], &counted["in_use"]), (&1.into(), &0.into()));
    machine.sandbox.write("home/.cache/savoir/tries/skill-left/SKILL.md", "left by a killed run");
    let left = machine.sandbox.path("home/.cache/savoir/tries/skill-left");
    fs::set_permissions(left, fs::Permissions::from_mode(0o555)).expect("a folder");
    let freed = machine.well(&["cache", "clean"]);
    assert!(!machine.has("home/.cache/savoir/tries/skill-left"), "{freed}");
    assert!(freed.stdout.starts_with("Freed "), "{freed}");
    let counted = machine.well(&["cache", "clean", "--json"]).json();
    assert_eq!((&counted["repositories"], &counted["bytes"]), (&0.into(), &0.into()));
    assert!(machine.has(PDF));
    machine.well(&["verify"]);
    machine.well(&["undo"]);
    assert!(!machine.has(PDF), "what undo needs is not in the cache");
}

#[test]
fn what_is_missing_without_a_network_is_named() {
    let machine = Machine::new();
    for args in [
        &["install", "https://host.invalid/o/r", "--list", "--offline"][..],
        &["install", "https://host.invalid/x.zip", "--offline"],
    ] {
        let refused = machine.run(args);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("host.invalid"), "{refused}");
        assert!(refused.stderr.contains("is not in the cache"), "{refused}");
        assert!(refused.stderr.contains("without --offline"), "{refused}");
    }
}

#[test]
fn what_is_on_this_system_needs_no_network() {
    let (machine, url) = Machine::with_repository();
    let args = ["install", &url, "--skill", "pdf", "--allow-experimental", "--offline"];
    machine.well(&args);
    assert!(machine.has(PDF));
}

#[test]
fn a_fresh_clone_with_committed_skills_matches_the_lock() {
    let machine = Machine::with_pdf();
    fs::create_dir_all(machine.sandbox.path("colleague/.claude")).expect("a folder");
    let run = |args: &[&str]| machine.sandbox.run_as("colleague", "project", args);
    let verified = run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(verified.stderr.contains("`pdf` was not installed on this machine"), "{verified}");
    let compared = run(&["sync", "--check"]);
    assert_eq!((compared.code, &*compared.stdout), (0, "everything matches savoir.lock\n"));
    machine.sandbox.write("project/.claude/skills/pdf/SKILL.md", "changed");
    assert_eq!(run(&["verify"]).code, 1);
    assert_eq!(run(&["sync", "--check"]).code, 1);
}
