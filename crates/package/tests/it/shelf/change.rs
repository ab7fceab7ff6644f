//! Skills are updated, removed and put right.

use std::{fs, thread};

use savoir_package::{
    InstallFailure,
    install::{FetchReason, LockMismatch, PlannedChange, UserEdits},
    lock::Lock,
};

use super::bench::{Bench, asked, gaia, install, skill, with};

const BODY: &str = "One.\n\nTwo.\n\nThree.\n";
const FILE: &str = ".claude/skills/pdf/SKILL.md";

#[test]
fn edits_and_a_new_version_go_together() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    let edited = bench.read(FILE).replace("Three.", "Drei.");
    bench.write(FILE, &edited);
    bench.write(".claude/skills/pdf/notes.md", "mine\n");
    let new = skill("pdf", "1.1.0", &BODY.replace("One.", "Uno."));
    let ready = [bench.ready(new.clone(), FetchReason::Update)];
    let told = bench.apply(&bench.plan(&ready, &[]).unwrap());
    assert!(matches!(&told[0], PlannedChange::Updated { from, to, .. }
        if from.to_string() == "1.0.0" && to.to_string() == "1.1.0"));
    assert!(
        matches!(&told[1..], [PlannedChange::Merged { file, .. }] if file == "SKILL.md"),
        "{told:?}"
    );
    assert!(bench.read(FILE).ends_with("Uno.\n\nTwo.\n\nDrei.\n"));
    assert_eq!(bench.read(".claude/skills/pdf/notes.md"), "mine\n");
    assert!(bench.read(".agents/skills/pdf/SKILL.md").ends_with("Uno.\n\nTwo.\n\nThree.\n"));
    let wrong = [
        ".claude/skills/pdf/SKILL.md was changed",
        ".claude/skills/pdf/notes.md does not belong to the skill",
    ];
    assert_eq!(bench.problems(), wrong);
    let plan = bench.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::EditsLeft(_)]) && plan.is_empty());
    bench.apply(&bench.sync(UserEdits::Discard));
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn what_does_not_go_together_is_marked() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    bench.write(FILE, &bench.read(FILE).replace("Two.", "Zwei."));
    let before = bench.everything();
    let new = skill("pdf", "2.0.0", &BODY.replace("Two.", "Dos."));
    let told = bench.apply(&bench.plan(&[bench.ready(new, FetchReason::Update)], &[]).unwrap());
    assert!(
        told.iter().any(|change| matches!(change, PlannedChange::Conflict { places: 1, .. })),
        "{told:?}"
    );
    let text = bench.read(FILE);
    assert!(text.contains("<<<<<<< yours\nZwei.\n=======\nDos.\n>>>>>>> 2.0.0\n"), "{text}");
    bench.apply(&bench.shelf().undo(UserEdits::Keep).unwrap());
    assert_eq!(bench.everything(), before);
}

#[test]
fn the_same_version_leaves_edits_alone() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    bench.write(FILE, &bench.read(FILE).replace("Two.", "Zwei."));
    let told = bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    assert!(matches!(&told[..], [PlannedChange::EditsLeft(_)]), "{told:?}");
    assert!(bench.read(FILE).contains("Zwei."));
}

#[test]
fn whoever_wants_more_must_be_accepted() {
    let bench = Bench::new();
    let version = |version, permissions: &[&str]| {
        bench.signed("search", version, &gaia("search", version, permissions, &[]))
    };
    bench.install(vec![version("1.0.0", &[])], &["codex"]);
    let before = bench.everything();
    let ready = [bench.ready(version("1.1.0", &["shell:execute:git"]), FetchReason::Update)];
    let mut plan = bench.plan(&ready, &[]).unwrap();
    let growth: Vec<String> = plan.added_capabilities().iter().map(ToString::to_string).collect();
    assert_eq!(growth, ["`search` 1.1.0 wants shell:execute:git, which 1.0.0 did not have"]);
    let refused = bench.shelf().apply(&plan, &|| ()).unwrap_err();
    assert_eq!(refused.code(), "wants_more");
    assert_eq!(bench.everything(), before);
    assert!(!plan.accept("shell:execute:npm"));
    assert!(plan.accept("shell:execute:git"));
    bench.apply(&plan);
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn removing_keeps_what_others_need() {
    let bench = Bench::new();
    let base = bench.signed("base", "1.0.0", &gaia("base", "1.0.0", &[], &[]));
    let top = bench.signed("top", "1.0.0", &gaia("top", "1.0.0", &[], &["base"]));
    bench.install(vec![base, top], &["codex"]);
    let remove = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        bench.apply(&bench.shelf().remove(&names, UserEdits::Keep).unwrap())
    };
    let told = remove(&["base"]);
    assert!(
        matches!(&told[..], [PlannedChange::StillNeeded { by, .. }] if by == &["top"]),
        "{told:?}"
    );
    assert!(bench.path(".agents/skills/base").exists());
    let told = remove(&["top"]);
    assert_eq!(told.len(), 2, "and what only it needed: {told:?}");
    assert!(!bench.path(".agents/skills/base").exists());
    assert!(!bench.path(".agents/skills/top").exists());
    assert!(Lock::read(&bench.path("savoir.lock")).unwrap().skills.is_empty());
    let gone = bench.shelf().remove(&["top".to_owned()], UserEdits::Keep).unwrap_err();
    assert_eq!(gone.code(), "not_installed");
}

#[test]
fn removing_leaves_edits() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    bench.write(FILE, "mine");
    let plan = bench.shelf().remove(&["pdf".to_owned()], UserEdits::Keep).unwrap();
    let told = bench.apply(&plan);
    assert!(told.iter().any(|change| matches!(change, PlannedChange::EditsLeft(_))), "{told:?}");
    assert_eq!(bench.read(FILE), "mine");
    assert!(!bench.path(".agents/skills/pdf").exists());
}

#[test]
fn what_is_missing_is_put_there_again() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code", "codex"]);
    fs::remove_dir_all(bench.path(".claude")).unwrap();
    let plan = bench.sync(UserEdits::Keep);
    assert!(matches!(plan.changes(), [PlannedChange::Written(_)]));
    bench.apply(&plan);
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn what_the_store_lost_is_fetched_again() {
    let bench = Bench::new();
    let tree = skill("pdf", "1.0.0", BODY);
    bench.install(vec![tree.clone()], &["claude-code"]);
    fs::remove_dir_all(bench.data().join("store")).unwrap();
    assert_eq!(bench.problems(), [""; 0], "the folder has the same files");
    bench.apply(&bench.sync(UserEdits::Keep));
    assert_eq!(bench.problems(), [""; 0], "the folder has it still");

    fs::remove_dir_all(bench.data().join("store")).unwrap();
    fs::remove_dir_all(bench.path(".claude")).unwrap();
    let shelf = bench.shelf();
    let failed = shelf.sync(UserEdits::Keep, &mut |_, _| Err("there is no network".into()));
    assert_eq!(failed.unwrap_err().code(), "fetch");
    let other = skill("pdf", "1.0.0", "Other.\n");
    let wrong = shelf.sync(UserEdits::Keep, &mut |_, _| Ok(other.clone()));
    assert_eq!(wrong.unwrap_err().code(), "integrity");
    bench.apply(&shelf.sync(UserEdits::Keep, &mut |_, _| Ok(tree.clone())).unwrap());
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn a_link_of_its_owner_stays() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["claude-code"]);
    fs::rename(bench.path(".claude/skills/pdf"), bench.path("work")).unwrap();
    std::os::unix::fs::symlink("../../work", bench.path(".claude/skills/pdf")).unwrap();
    let new = [bench.ready(skill("pdf", "1.1.0", BODY), FetchReason::Update)];
    bench.apply(&bench.plan(&new, &[]).unwrap());
    assert!(bench.path(".claude/skills/pdf").is_symlink());
}

#[test]
fn a_lock_can_be_stale() {
    let bench = Bench::new();
    bench.install(vec![skill("pdf", "1.0.0", BODY)], &["codex"]);
    let text = "[skills]\nother = \"^1\"\npdf = \"^2\"\n";
    bench.write("savoir.toml", text);
    let stale = bench.shelf().state().unwrap().lock_mismatches();
    assert!(
        matches!(&stale[..], [LockMismatch::Missing { .. }, LockMismatch::Source { .. }]),
        "{stale:?}"
    );
    bench.write("savoir.toml", "");
    let stale = bench.shelf().state().unwrap().lock_mismatches();
    assert!(matches!(&stale[..], [LockMismatch::Unneeded { .. }]), "{stale:?}");
}

#[test]
fn a_plan_that_is_too_old_is_refused() {
    let bench = Bench::new();
    let old = bench.plan(&[bench.ready(skill("a", "1.0.0", ""), asked())], &["codex"]).unwrap();
    bench.install(vec![skill("b", "1.0.0", "")], &["codex"]);
    assert_eq!(bench.shelf().apply(&old, &|| ()).unwrap_err().code(), "changed_meanwhile");
    let old = bench.plan(&[bench.ready(skill("a", "1.0.0", ""), asked())], &["codex"]).unwrap();
    bench.write(".agents/skills/a/SKILL.md", "mine");
    assert_eq!(bench.shelf().apply(&old, &|| ()).unwrap_err().code(), "changed_meanwhile");
    assert_eq!(bench.read(".agents/skills/a/SKILL.md"), "mine");
}

#[test]
fn many_at_once() {
    let bench = Bench::new();
    thread::scope(|scope| {
        for number in 0..8 {
            let bench = &bench;
            let ready = [bench.ready(skill(&format!("s{number}"), "1.0.0", BODY), asked())];
            scope.spawn(move || {
                loop {
                    let plan = bench.shelf().install(&ready, &install(&["claude-code", "codex"]));
                    match bench.shelf().apply(&plan.unwrap(), &|| ()) {
                        Ok(()) => break,
                        Err(InstallFailure::Moved(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(Lock::read(&bench.path("savoir.lock")).unwrap().skills.len(), 8);
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn a_signature_that_came_later_arrives() {
    let bench = Bench::new();
    let plain = gaia("search", "1.0.0", &[], &[]);
    // In its own dialect nothing is converted, so that signatures lie beside it.
    let plain = with(
        &plain,
        "SKILL.md",
        skill("search", "1.0.0", BODY).get("SKILL.md").unwrap().bytes.clone(),
    );
    bench.install(vec![plain.clone()], &["codex"]);
    bench.install(vec![bench.signed("search", "1.0.0", &plain)], &["codex"]);
    assert!(bench.path(".agents/skills/search/signature.json").exists());
    assert_eq!(bench.problems(), [""; 0]);
}

#[test]
fn what_is_not_concerned_is_left_alone() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", BODY)], &["codex"]);
    fs::remove_dir_all(bench.data().join("store")).unwrap();
    fs::remove_dir_all(bench.path(".agents")).unwrap();
    let told = bench.install(vec![skill("b", "1.0.0", BODY)], &["codex"]);
    assert!(matches!(&told[..], [PlannedChange::New { name, .. }] if name == "b"), "{told:?}");
    assert!(!bench.path(".agents/skills/a").exists());
    assert_eq!(bench.problems().len(), 2, "sync puts it right");
}

#[test]
fn every_file_of_a_plan_is_shown() {
    let bench = Bench::new();
    bench.install(vec![with(&skill("a", "1.0.0", BODY), "old.md", "old")], &["codex"]);
    let new = with(&skill("a", "1.1.0", BODY), "new.md", "new");
    let plan = bench.plan(&[bench.ready(new, FetchReason::Update)], &[]).unwrap();
    let files = plan.files();
    let shown: Vec<_> =
        files.iter().map(|file| (file.path, file.before.is_some(), file.after.is_some())).collect();
    let expected = [("SKILL.md", true, true), ("new.md", false, true), ("old.md", true, false)];
    assert_eq!(shown, expected);
}

#[test]
fn a_signature_is_not_lost_to_a_copy_without() {
    let bench = Bench::new();
    let plain = gaia("search", "1.0.0", &[], &[]);
    bench.install(vec![bench.signed("search", "1.0.0", &plain)], &["codex"]);
    let other = bench.shelf_of(savoir_package::manifest::Scope::User, &bench.home("config"));
    let ready = [bench.ready(plain, asked())];
    other.apply(&other.install(&ready, &install(&["codex"])).unwrap(), &|| ()).unwrap();
    assert_eq!(bench.problems(), [""; 0]);
    assert!(other.verify(&bench.trust()).unwrap().is_empty());
}
