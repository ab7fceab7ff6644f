//! A lock without `savoir.toml` is all there is: what it has stays.

use std::fs;

use savoir_package::{
    install::{FetchReason, PlannedChange, UserEdits},
    manifest::Manifest,
};

use super::bench::{Bench, asked, gaia, skill};

/// A project with three skills, one of which another needs, and without `savoir.toml`.
fn project() -> Bench {
    let bench = Bench::new();
    let signed =
        |name: &str, needs: &[&str]| bench.signed(name, "1.0.0", &gaia(name, "1.0.0", &[], needs));
    let base = bench.ready(signed("base", &[]), FetchReason::IfNeeded);
    let top = bench.ready(signed("top", &["base"]), asked());
    let pdf = bench.ready(skill("pdf", "1.0.0", "Read it.\n"), asked());
    bench.apply(&bench.plan(&[base, top, pdf], &["claude-code"]).unwrap());
    fs::remove_file(bench.path("savoir.toml")).unwrap();
    bench
}

fn names(bench: &Bench) -> Vec<String> {
    bench.shelf().state().unwrap().lock.skills.into_keys().collect()
}

/// What `savoir.toml` asks for.
fn wanted(bench: &Bench) -> Vec<String> {
    let manifest = Manifest::read(&bench.path("savoir.toml")).unwrap().unwrap();
    manifest.skills.into_keys().collect()
}

#[test]
fn what_is_installed_beside_it_removes_nothing() {
    let bench = project();
    let told = bench.install(vec![skill("tea", "1.0.0", "Boil it.\n")], &["claude-code"]);
    let removes = |change: &PlannedChange| matches!(change, PlannedChange::Removed { .. });
    assert!(!told.iter().any(removes), "{told:?}");
    assert_eq!(names(&bench), ["base", "pdf", "tea", "top"]);
    assert_eq!(wanted(&bench), ["pdf", "tea", "top"], "what others need is theirs to ask for");
    assert_eq!(bench.shelf().state().unwrap().lock_mismatches(), []);
    assert_eq!(bench.problems(), [""; 0]);
    // The next one removes nothing, either.
    bench.install(vec![skill("ink", "1.0.0", "Write.\n")], &["claude-code"]);
    assert_eq!(names(&bench), ["base", "ink", "pdf", "tea", "top"]);
}

#[test]
fn it_fits_itself_and_is_updated_and_reduced() {
    let bench = project();
    assert_eq!(bench.shelf().state().unwrap().lock_mismatches(), []);
    assert!(bench.sync(UserEdits::Keep).is_empty());
    let newer = [bench.ready(skill("pdf", "1.1.0", "Read it twice.\n"), FetchReason::Update)];
    bench.apply(&bench.plan(&newer, &[]).unwrap());
    assert_eq!(names(&bench), ["base", "pdf", "top"]);
    assert!(bench.read(".claude/skills/pdf/SKILL.md").contains("twice"));
    assert!(!bench.path("savoir.toml").exists(), "nobody asked for anything");
    let shelf = bench.shelf();
    bench.apply(&shelf.remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    assert_eq!(names(&bench), ["base", "top"]);
    assert_eq!(wanted(&bench), ["top"]);
    // What is not in it is not there.
    let error = shelf.remove(&["pdf".to_owned()], UserEdits::Keep).unwrap_err();
    assert_eq!(error.code(), "not_installed");
}
