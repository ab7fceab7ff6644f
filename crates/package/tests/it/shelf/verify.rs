//! What is not what the lock says is named.

use std::fs;

use savoir_package::{
    install::FetchReason,
    trust::{SigningKey, sign},
};

use super::bench::{Bench, asked, gaia, install, skill, with};

#[test]
fn every_file_that_differs_is_named() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n"), skill("b", "1.0.0", "B\n")], &["codex"]);
    bench.write(".agents/skills/a/SKILL.md", "mine");
    bench.write(".agents/skills/a/more.md", "more");
    fs::remove_file(bench.path(".agents/skills/a/scripts/run.sh")).unwrap();
    fs::create_dir(bench.path(".agents/skills/a/__pycache__")).unwrap();
    fs::remove_dir_all(bench.path(".agents/skills/b")).unwrap();
    let expected = [
        ".agents/skills/a/SKILL.md was changed",
        ".agents/skills/a/more.md does not belong to the skill",
        ".agents/skills/a/scripts/run.sh is missing",
        ".agents/skills/b is missing",
    ];
    assert_eq!(bench.problems(), expected);
}

#[test]
fn signatures_are_checked_again() {
    let bench = Bench::new();
    let tree = bench.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    bench.install(vec![tree], &["codex"]);
    assert_eq!(bench.problems(), [""; 0]);
    let nobody = savoir_package::trust::TrustStore::default();
    let problems = bench.shelf().verify(&nobody).unwrap();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = ["`search` is locked as community, and its signatures attest experimental"];
    assert_eq!(shown, expected);
}

#[test]
fn a_forged_signature_is_named() {
    let bench = Bench::new();
    let tree = skill("pdf", "1.0.0", "A\n");
    bench.install(vec![bench.signed("pdf", "1.0.0", &tree)], &["codex"]);
    bench.write(".agents/skills/pdf/signature.json", "{}");
    let problems = bench.shelf().verify(&bench.trust()).unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].fault.code(), "signature");
}

/// The lock with one line changed, and one added behind it.
fn edit(bench: &Bench, from: &str, to: &str) {
    let lock = bench.read("savoir.lock");
    assert!(lock.contains(from), "{lock}");
    bench.write("savoir.lock", &lock.replacen(from, to, 1));
}

#[test]
fn a_lock_that_says_more_than_the_files_is_named() {
    let version = "version = \"1.0.0\"";
    for (from, to, field) in [
        (version, "version = \"1.0.1\"", "version"),
        ("network:read:example.com", "filesystem:write", "permissions"),
        ("find_it", "Bash", "tools"),
        ("claimed = \"community\"", "claimed = \"verified\"", "claimed"),
        (version, "version = \"1.0.0\"\ndependencies = [\"other\"]", "dependencies"),
        ("signature = \"ed25519:", "signature = \"ed25519:0", "signature"),
    ] {
        let bench = Bench::new();
        let tree = bench.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
        bench.install(vec![tree], &["codex"]);
        edit(&bench, from, to);
        let problems = bench.shelf().verify(&bench.trust()).unwrap();
        let [problem] = &problems[..] else { panic!("{field}: {problems:?}") };
        assert_eq!(problem.fault.code(), "lock");
        assert!(
            problem.to_string().contains(&format!("its {field}, and the lock says")),
            "{problem}"
        );
    }
}

#[test]
fn a_key_counts_and_not_what_its_owner_is_called() {
    let bench = Bench::new();
    let tree = bench.signed("search", "1.0.0", &gaia("search", "1.0.0", &[], &[]));
    bench.install(vec![tree], &["codex"]);
    edit(&bench, "signer = \"acme\"", "signer = \"Acme Tools\"");
    assert_eq!(bench.problems(), [""; 0]);
    // Whoever takes the key out of a lock is held to the name.
    let lock = bench.read("savoir.lock");
    let signature = lock.lines().find(|line| line.starts_with("signature = ")).unwrap();
    edit(&bench, &format!("{signature}\n"), "");
    let problems = bench.problems();
    assert!(problems[0].contains("has acme for its signer, and the lock says Acme Tools"));
}

#[test]
fn a_lock_grants_nothing_beforehand() {
    let bench = Bench::new();
    bench.install(vec![gaia("search", "1.0.0", &[], &[])], &["codex"]);
    edit(&bench, "network:read:example.com", "filesystem:write\", \"network:read:example.com");
    let new = gaia("search", "1.1.0", &["filesystem:write"], &[]);
    let ready = [bench.ready(new, FetchReason::Update)];
    let grown = |bench: &Bench| -> Vec<String> {
        let plan = bench.plan(&ready, &[]).unwrap();
        plan.added_capabilities().iter().map(|growth| growth.capability.to_string()).collect()
    };
    assert_eq!(grown(&bench), ["filesystem:write"]);
    // What it was put into an agent as tells the same.
    fs::remove_dir_all(bench.data().join("store")).unwrap();
    fs::remove_dir_all(bench.path(".agents/skills/search")).unwrap();
    gaia("search", "1.0.0", &[], &[]).write(&bench.path(".agents/skills/search")).unwrap();
    assert_eq!(grown(&bench), ["filesystem:write"]);
}

#[test]
fn another_project_takes_no_signature_away() {
    let bench = Bench::new();
    let tree = gaia("search", "1.0.0", &[], &[]);
    bench.install(vec![bench.signed("search", "1.0.0", &tree)], &["gaia"]);
    let stranger = SigningKey::generate().unwrap();
    let record = sign(&tree, "search", "1.0.0", "acme", &stranger);
    let other = bench.shelf_of(savoir_package::manifest::Scope::Project, &bench.home("other"));
    let ready = [bench.ready(with(&tree, "signature.json", record), asked())];
    let plan = other.install(&ready, &install(&["gaia"])).unwrap();
    other.apply(&plan, &|| ()).unwrap();
    assert_eq!(bench.problems(), [""; 0]);
    assert_eq!(other.verify(&bench.trust()).unwrap(), []);
}

#[test]
fn what_nothing_covers_is_listed() {
    let bench = Bench::new();
    bench.install(vec![skill("a", "1.0.0", "A\n")], &["codex", "claude-code"]);
    assert_eq!(bench.shelf().uncovered().unwrap(), [""; 0].map(std::path::PathBuf::from));
    bench.write(".agents/skills/a/scripts/__pycache__/run.pyc", "x");
    bench.write(".claude/skills/a/node_modules/b/index.js", "x");
    bench.write(".claude/skills/a/.savoir/observed.json", "{}");
    let expected = [".claude/skills/a/node_modules", ".agents/skills/a/scripts/__pycache__"];
    let mut expected = expected.map(|path| bench.path(path));
    let mut found = bench.shelf().uncovered().unwrap();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(bench.problems(), [""; 0], "it is no problem by itself");
}
