//! Tests that `verify` names all differences from the lock.

use std::fs;

use savoir_package::{
    install::FetchReason,
    trust::{SigningKey, sign},
};

use super::test_project::{TestProject, asked, gaia, install, skill, with};

#[test]
fn verify_names_differing_files() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["codex"]);
    project.write(".agents/skills/a/SKILL.md", "mine");
    project.write(".agents/skills/a/more.md", "more");
    fs::remove_file(project.path(".agents/skills/a/scripts/run.sh")).unwrap();
    fs::create_dir(project.path(".agents/skills/a/__pycache__")).unwrap();
    fs::remove_dir_all(project.path(".agents/skills/b")).unwrap();
    let expected = [
        ".agents/skills/a/SKILL.md was changed",
        ".agents/skills/a/more.md does not belong to the skill",
        ".agents/skills/a/scripts/run.sh is missing",
        ".agents/skills/b is missing",
    ];
    assert_eq!(project.problems(), expected);
}

#[test]
fn signatures_are_checked_again() {
    let project = TestProject::new();
    let tree = project.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    project.install(vec![tree], &["codex"]);
    assert_eq!(project.problems(), [""; 0]);
    let nobody = savoir_package::trust::TrustStore::default();
    let problems = project.skill_set().verify(&nobody).unwrap();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = ["`search` is locked as community, and its signatures attest experimental"];
    assert_eq!(shown, expected);
}

#[test]
fn a_forged_signature_is_named() {
    let project = TestProject::new();
    let tree = skill("pdf", "1.0.0", "A\n");
    project.install(vec![project.signed("pdf", "1.0.0", &tree)], &["codex"]);
    project.write(".agents/skills/pdf/signature.json", "{}");
    let problems = project.skill_set().verify(&project.trust()).unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].fault.code(), "signature");
}

/// Edits the lock: replaces one line, and adds another after it.
fn edit(project: &TestProject, from: &str, to: &str) {
    let lock = project.read("savoir.lock");
    assert!(lock.contains(from), "{lock}");
    project.write("savoir.lock", &lock.replacen(from, to, 1));
}

#[test]
fn verify_reports_wrong_lock_fields() {
    let version = "version = \"1.0.0\"";
    for (from, to, field) in [
        (version, "version = \"1.0.1\"", "version"),
        ("network:read:example.com", "filesystem:write", "permissions"),
        ("find_it", "Bash", "tools"),
        ("claimed = \"community\"", "claimed = \"verified\"", "claimed"),
        (version, "version = \"1.0.0\"\ndependencies = [\"other\"]", "dependencies"),
        ("signature = \"ed25519:", "signature = \"ed25519:0", "signature"),
    ] {
        let project = TestProject::new();
        let tree = project.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
        project.install(vec![tree], &["codex"]);
        edit(&project, from, to);
        let problems = project.skill_set().verify(&project.trust()).unwrap();
        let [problem] = &problems[..] else { panic!("{field}: {problems:?}") };
        assert_eq!(problem.fault.code(), "lock");
        assert!(
            problem.to_string().contains(&format!("its {field}, and the lock says")),
            "{problem}"
        );
    }
}

#[test]
fn verify_uses_key_not_signer_name() {
    let project = TestProject::new();
    let tree = project.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    project.install(vec![tree], &["codex"]);
    edit(&project, "signer = \"acme\"", "signer = \"Acme Tools\"");
    assert_eq!(project.problems(), [""; 0]);
    // If the key is removed from the lock, the signer is compared by name.
    let lock = project.read("savoir.lock");
    let signature = lock.lines().find(|line| line.starts_with("signature = ")).unwrap();
    edit(&project, &format!("{signature}\n"), "");
    let problems = project.problems();
    assert!(problems[0].contains("has acme for its signer, and the lock says Acme Tools"));
}

#[test]
fn locked_tier_is_not_trusted() {
    let project = TestProject::new();
    project.install(vec![gaia("search", "1.0.0", &[], &[])], &["codex"]);
    edit(&project, "network:read:example.com", "filesystem:write\", \"network:read:example.com");
    let new = gaia("search", "1.1.0", &["filesystem:write"], &[]);
    let ready = [project.ready(new, FetchReason::Update)];
    let grown = |project: &TestProject| -> Vec<String> {
        let plan = project.plan(&ready, &[]).unwrap();
        plan.added_capabilities().iter().map(|growth| growth.capability.to_string()).collect()
    };
    assert_eq!(grown(&project), ["filesystem:write"]);
    // The files in the folder of another agent can be compared as well.
    fs::remove_dir_all(project.data().join("store")).unwrap();
    fs::remove_dir_all(project.path(".agents/skills/search")).unwrap();
    gaia("search", "1.0.0", &[], &[]).write(&project.path(".agents/skills/search")).unwrap();
    assert_eq!(grown(&project), ["filesystem:write"]);
}

#[test]
fn unsigned_copy_in_other_project_keeps_signature() {
    let project = TestProject::new();
    let tree = gaia("search", "1.0.0", &[], &[]);
    project.install(vec![project.signed("search", "1.0.0", &tree)], &["gaia"]);
    let stranger = SigningKey::generate().unwrap();
    let record = sign(&tree, "search", "1.0.0", "acme", &stranger);
    let other =
        project.skill_set_of(savoir_package::manifest::Scope::Project, &project.home("other"));
    let ready = [project.ready(with(&tree, "signature.json", record), asked())];
    let plan = other.install(&ready, &install(&["gaia"])).unwrap();
    other.apply(&plan, &|| ()).unwrap();
    assert_eq!(project.problems(), [""; 0]);
    assert_eq!(other.verify(&project.trust()).unwrap(), []);
}

#[test]
fn uncovered_folders_are_listed() {
    let project = TestProject::new();
    project.install(vec![skill("a", "1.0.0", "A\n")], &["codex", "claude-code"]);
    assert_eq!(project.skill_set().uncovered().unwrap(), [""; 0].map(std::path::PathBuf::from));
    project.write(".agents/skills/a/scripts/__pycache__/run.pyc", "x");
    project.write(".claude/skills/a/node_modules/b/index.js", "x");
    project.write(".claude/skills/a/.savoir/observed.json", "{}");
    let expected = [".claude/skills/a/node_modules", ".agents/skills/a/scripts/__pycache__"];
    let mut expected = expected.map(|path| project.path(path));
    let mut found = project.skill_set().uncovered().unwrap();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(project.problems(), [""; 0], "it is not a problem by itself");
}
