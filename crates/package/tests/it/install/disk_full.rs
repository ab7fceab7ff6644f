//! Tests of a full disk: the error names the path, and nothing changes.

use std::{env, process::Command};

use savoir_package::{
    Tree,
    install::{CheckedSkill, FetchedSkill},
    trust::TrustStore,
};

use super::test_project::{TestProject, asked, install, skill, with};

const VARIABLE: &str = "SAVOIR_TEST_FULL";

#[test]
fn full_disk_leaves_project_unchanged() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code", "codex"]);
    // The store already has the large skill, so that only the other folders lack space.
    project.skill_set().store().put(&large()).unwrap();
    let before = project.everything();
    // Limits the size of files to this many blocks of 512 or 1024 bytes.
    for (blocks, place) in [("0", "/data/"), ("1", "/data/"), ("64", "/.claude/skills/z/z.bin: ")] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &script])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "install::disk_full::child", "--nocapture"])
            .env(VARIABLE, project.path("").parent().unwrap())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stderr);
        let refused = shown.lines().find(|line| line.starts_with("refused: io: "));
        assert!(refused.is_some_and(|line| line.contains(place)), "{blocks}: {shown}");
        assert_eq!(project.everything(), before, "{blocks}");
        assert_eq!(project.problems(), [""; 0]);
        assert!(!project.skill_set().recover(&|| ()).unwrap(), "nothing is half done");
    }
}

/// A skill with a file that is larger than the limit.
fn large() -> Tree {
    with(&skill("z", "1.0.0", "Z\n"), "z.bin", vec![1; 100_000])
}

#[test]
fn child() {
    let Some(place) = env::var_os(VARIABLE) else { return };
    let project = TestProject::at(place.as_ref());
    let trust = TrustStore::default();
    let ready = [skill("a", "1.1.0", "A\n"), large()].map(|tree| {
        let source = "path+./source".parse().unwrap();
        let arrival =
            FetchedSkill { tree, called: "x".to_owned(), source, why: asked(), counted: None };
        CheckedSkill::check(arrival, &trust).unwrap()
    });
    let plan = project.skill_set().install(&ready, &install(&["claude-code", "codex"])).unwrap();
    let error = project.skill_set().apply(&plan, &|| ()).unwrap_err();
    eprintln!("refused: {}: {error}", error.code());
}

#[test]
fn unwritable_folder_leaves_project_unchanged() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["claude-code"]);
    // A file where the folder of the second agent should be.
    project.write(".agents", "in the way");
    let before = project.everything();
    let ready = [project.ready(skill("a", "1.1.0", "A\n"), asked())];
    let failed =
        project.plan(&ready, &["codex"]).and_then(|plan| project.skill_set().apply(&plan, &|| ()));
    assert_eq!(failed.unwrap_err().code(), "io");
    assert_eq!(project.everything(), before);
    assert_eq!(project.problems(), [""; 0]);
}
