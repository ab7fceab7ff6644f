//! What is not what the lock says is named.

use std::fs;

use super::bench::{Bench, gaia, skill};

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
        ".agents/skills/a/more.md is no part of the skill",
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
