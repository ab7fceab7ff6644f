//! What a skill leaves behind that somebody else took out of the lock.

use std::{fs, os::unix::fs::symlink};

use savoir_package::install::{
    FetchReason, LockMismatch, OccupiedFolders, PlannedChange, UserEdits,
};

use super::bench::{Bench, asked, gaia, install, put, skill};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";

/// A project with two skills, of which somebody took one out.
fn pulled() -> Bench {
    let bench = Bench::new();
    bench.install(vec![skill("keep", "1.0.0", BODY)], &["claude-code", "codex"]);
    let (toml, lock) = (bench.read("savoir.toml"), bench.read("savoir.lock"));
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    bench.write("savoir.toml", &toml);
    bench.write("savoir.lock", &lock);
    bench
}

#[test]
fn an_orphan_goes() {
    let bench = pulled();
    let plan = bench.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::Orphan(_), PlannedChange::Orphan(_)]),
        "{plan:?}"
    );
    assert!(plan.changes()[0].to_string().ends_with("since nothing needs it"));
    bench.apply(&plan);
    for folder in [".claude/skills", ".agents/skills"] {
        assert!(!bench.path(folder).join("pdf").exists());
        assert!(bench.path(folder).join("keep").exists());
    }
    assert!(bench.sync(UserEdits::Keep).is_empty());
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert!(bench.path(".claude/skills/pdf/SKILL.md").exists());
    assert!(bench.sync(UserEdits::Keep).is_empty(), "whoever wanted it back is heard");
}

#[test]
fn an_orphan_that_was_edited_stays() {
    let bench = pulled();
    bench.write(".claude/skills/pdf/notes.md", "mine");
    let plan = bench.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::Orphan(_), PlannedChange::EditsLeft(_)]),
        "{plan:?}"
    );
    bench.apply(&plan);
    assert_eq!(bench.read(".claude/skills/pdf/notes.md"), "mine");
    assert!(!bench.path(".agents/skills/pdf").exists());
    bench.apply(&bench.sync(UserEdits::Discard));
    assert!(!bench.path(".claude/skills/pdf").exists());
}

#[test]
fn edits_that_were_merged_are_edits_still() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    let file = ".agents/skills/pdf/SKILL.md";
    bench.write(file, &bench.read(file).replace("Three.", "Drei."));
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    bench.apply(&bench.plan(&[bench.ready(new, FetchReason::Update)], &[]).unwrap());
    bench.write("savoir.toml", "");
    fs::remove_file(bench.path("savoir.lock")).unwrap();
    let plan = bench.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::EditsLeft(_)]), "{plan:?}");
}

#[test]
fn what_savoir_did_not_write_is_never_an_orphan() {
    let bench = Bench::new();
    // The same files were there already, so that nothing was written.
    put(&bench.path(".agents/skills/pdf"), &skill("pdf", "1.0.0", BODY));
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    bench.write("savoir.toml", "");
    fs::remove_file(bench.path("savoir.lock")).unwrap();
    assert!(bench.sync(UserEdits::Discard).is_empty());
    assert!(bench.path(".agents/skills/pdf").exists());
}

#[test]
fn what_was_put_back_is_its_owners_again() {
    let bench = Bench::new();
    bench.write(".agents/skills/pdf/SKILL.md", "mine");
    let ready = [bench.ready(skill("pdf", "1.0.0", BODY), asked())];
    let mut how = install(&["codex"]);
    how.occupied = OccupiedFolders::Replace;
    bench.apply(&bench.shelf().install(&ready, &how).unwrap());
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert!(bench.sync(UserEdits::Discard).is_empty());
    assert_eq!(bench.read(".agents/skills/pdf/SKILL.md"), "mine");
}

#[test]
fn what_is_still_asked_for_waits() {
    let bench = pulled();
    let toml = bench.read("savoir.toml") + "pdf = { path = \"./source\" }\n";
    bench.write("savoir.toml", &toml);
    assert!(bench.sync(UserEdits::Keep).is_empty(), "the lock is only too old");
    assert!(matches!(
        &bench.shelf().state().unwrap().lock_mismatches()[..],
        [LockMismatch::Missing { .. }]
    ));
}

#[test]
fn an_orphan_is_known_in_the_dialect_of_its_agent() {
    let bench = Bench::new();
    let tree = bench.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    bench.install(vec![tree], &["claude-code"]);
    bench.write("savoir.toml", "");
    fs::remove_file(bench.path("savoir.lock")).unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
    assert!(!bench.path(".claude/skills/search").exists());
}

#[test]
fn a_store_that_lost_it_still_knows_what_was_not_converted() {
    let bench = pulled();
    fs::remove_dir_all(bench.data().join("store")).unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
    assert!(!bench.path(".claude/skills/pdf").exists());
}

#[test]
fn a_parent_that_became_a_link_protects_others() {
    let bench = pulled();
    fs::create_dir(bench.home("others")).unwrap();
    fs::rename(bench.path(".claude/skills"), bench.home("others/skills")).unwrap();
    fs::remove_dir(bench.path(".claude")).unwrap();
    symlink(bench.home("others"), bench.path(".claude")).unwrap();
    let toml = "";
    bench.write("savoir.toml", toml);
    fs::remove_file(bench.path("savoir.lock")).unwrap();
    bench.apply(&bench.sync(UserEdits::Discard));
    assert!(bench.home("others/skills/pdf/SKILL.md").exists());
    assert!(!bench.path(".agents/skills/pdf").exists());
}

#[test]
fn an_index_that_is_damaged_removes_nothing() {
    let bench = pulled();
    let folder = bench.data().join("installed");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let good = fs::read(file).unwrap();
    for cut in [0, 1, good.len() / 2, good.len() - 1] {
        fs::write(file, &good[..cut]).unwrap();
        assert!(bench.sync(UserEdits::Discard).is_empty(), "cut at {cut}");
    }
    fs::write(file, String::from_utf8_lossy(&good).replace("\"version\":1", "\"version\":2"))
        .unwrap();
    assert!(bench.sync(UserEdits::Discard).is_empty());
    fs::write(file, good).unwrap();
    assert!(!bench.sync(UserEdits::Keep).is_empty());
}

#[test]
fn a_skill_that_calls_itself_otherwise() {
    let bench = Bench::new();
    bench.write("savoir.toml", "[skills]\nwrong = { path = \"./source\" }\n");
    let before = bench.everything();
    let ready = [bench.ready(skill("right", "1.0.0", ""), asked())];
    let refused = bench.plan(&ready, &["codex"]).unwrap_err();
    assert_eq!(refused.code(), "renamed");
    let text = "`wrong` in savoir.toml is a skill that calls itself `right`";
    assert_eq!(refused.to_string(), text);
    assert_eq!(bench.everything(), before);

    bench.write("savoir.toml", "");
    bench.install(vec![skill("right", "1.0.0", "")], &["codex"]);
    bench.write("savoir.toml", "[skills]\nwrong = { path = \"./source\" }\n");
    let stale = bench.shelf().state().unwrap().lock_mismatches();
    let [name @ LockMismatch::Name { .. }] = &stale[..] else { panic!("{stale:?}") };
    assert_eq!(
        name.to_string(),
        "`wrong` in `savoir.toml` is a skill that calls itself `right`; write `right`"
    );
}
