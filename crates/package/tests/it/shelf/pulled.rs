//! A lock that somebody else brought, such as `git pull`.

use std::fs;

use savoir_package::install::{FetchReason, PlannedChange, UserEdits};

use super::bench::{Bench, skill};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";
const FILE: &str = ".agents/skills/pdf/SKILL.md";

/// A project in which 1.0.0 lies, and whose lock is that of 1.1.0.
fn pulled() -> Bench {
    let bench = Bench::new();
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    bench.install(vec![new], &["codex", "claude-code"]);
    let lock = bench.read("savoir.lock");
    bench.apply(&bench.shelf().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["codex", "claude-code"]);
    bench.write("savoir.lock", &lock);
    bench
}

#[test]
fn what_savoir_put_there_is_no_edit() {
    let bench = pulled();
    let plan = bench.sync(UserEdits::Keep);
    let [change] = plan.changes() else { panic!("{plan:?}") };
    assert_eq!(change.to_string(), "`pdf` goes from 1.0.0 to 1.1.0");
    bench.apply(&plan);
    assert!(bench.read(FILE).contains("Uno."));
    assert_eq!(bench.problems(), [""; 0]);
    assert!(bench.sync(UserEdits::Keep).is_empty());
}

#[test]
fn edits_are_compared_with_what_was_put_there() {
    let bench = pulled();
    bench.write(FILE, &bench.read(FILE).replace("Three.", "Drei."));
    let told = bench.apply(&bench.sync(UserEdits::Keep));
    assert!(told.iter().any(|change| matches!(change, PlannedChange::Merged { .. })), "{told:?}");
    let text = bench.read(FILE);
    assert!(text.contains("Uno.") && text.contains("Drei.") && !text.contains("One."), "{text}");
    let told = bench.sync(UserEdits::Keep);
    assert!(matches!(told.changes(), [PlannedChange::EditsLeft(_)]), "{told:?}");
}

#[test]
fn an_update_keeps_no_line_of_what_was_put_there() {
    let bench = pulled();
    let newest = skill("pdf", "1.2.0", &BODY.replace("One.", "Eins."));
    bench.apply(&bench.plan(&[bench.ready(newest.clone(), FetchReason::Update)], &[]).unwrap());
    assert_eq!(bench.read(FILE).as_bytes(), newest.get("SKILL.md").unwrap().bytes);
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn what_was_put_there_is_removed() {
    let bench = pulled();
    bench.apply(&bench.shelf().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap());
    assert!(!bench.path(".agents/skills/pdf").exists());
}

#[test]
fn without_the_index_nothing_is_lost() {
    let bench = pulled();
    fs::remove_dir_all(bench.data().join("installed")).unwrap();
    let plan = bench.sync(UserEdits::Keep);
    assert!(
        matches!(plan.changes(), [PlannedChange::EditsLeft(_), PlannedChange::EditsLeft(_)]),
        "{plan:?}"
    );
}

#[test]
fn files_that_came_with_the_lock_are_written_down() {
    let bench = pulled();
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    for folder in [".agents/skills/pdf", ".claude/skills/pdf"] {
        fs::remove_dir_all(bench.path(folder)).unwrap();
        new.write(&bench.path(folder)).unwrap();
    }
    assert!(bench.sync(UserEdits::Keep).is_empty());
    bench.install(vec![skill("other", "1.0.0", "")], &["codex"]);
    fs::remove_dir_all(bench.path(".agents/skills/other")).unwrap();
    bench.apply(&bench.sync(UserEdits::Keep));
    bench.write(FILE, &bench.read(FILE).replace("Three.", "Drei."));
    let newest = skill("pdf", "1.2.0", &BODY.replace("One.", "Eins."));
    bench.apply(&bench.plan(&[bench.ready(newest, FetchReason::Update)], &[]).unwrap());
    let text = bench.read(FILE);
    assert!(text.contains("Eins.") && text.contains("Drei.") && !text.contains("<<<"), "{text}");
}
