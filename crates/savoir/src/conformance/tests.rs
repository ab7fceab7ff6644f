use std::{fs, path::PathBuf};

use super::*;

fn load(path: &str) -> Option<VectorFile> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = fs::read_to_string(path).ok()?;
    Some(VectorFile::parse(&text).unwrap())
}

#[track_caller]
fn assert_none_failed(outcome: &Outcome) {
    let failed = serde_json::to_string_pretty(&outcome.failed).unwrap();
    assert!(outcome.failed.is_empty(), "{failed}");
}

#[test]
fn own_vectors_pass() {
    let file = load("conformance/vectors.json").unwrap();
    let outcome = run(&file);
    assert_none_failed(&outcome);
    assert_eq!(outcome.unsupported, [""; 0]);
    assert!(outcome.passed.len() >= 150, "{}", outcome.passed.len());
    let mut ids = outcome.passed.clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), outcome.passed.len(), "an identifier appears twice");
}

#[test]
fn shared_vectors_pass() {
    let Some(file) = load("../shared/conformance/vectors.json") else {
        anstream::eprintln!("=== SKIPPED: the shared vectors are not beside the repository ===");
        return;
    };
    let outcome = run(&file);
    assert_none_failed(&outcome);
    assert_eq!(outcome.unsupported, [""; 0]);
}

#[test]
fn outcome_has_three_lists() {
    let text = r#"{"vectors": [
        {"id": "a", "dialect": "gaia", "op": "version", "input": "1.0.0", "expected": {"ok": true}},
        {"id": "b", "dialect": "gaia", "op": "version", "input": "1.0.0", "expected": {"ok": false}},
        {"id": "c", "dialect": "gaia", "op": "version", "input": 5, "expected": {"ok": true}},
        {"id": "d", "dialect": "gaia", "op": "sing", "input": null, "expected": null},
        {"id": "e", "dialect": "klingon", "op": "parse", "input": "", "expected": null}
    ]}"#;
    let outcome = run(&VectorFile::parse(text).unwrap());
    assert_eq!(outcome.passed, ["a"]);
    assert_eq!(outcome.unsupported, ["d", "e"]);
    let failed = serde_json::to_value(&outcome.failed).unwrap();
    assert_eq!(failed[0], json!({"id": "b", "expected": {"ok": false}, "got": {"ok": true}}));
    assert_eq!(failed[1]["got"]["error"], "bad_input");
}
