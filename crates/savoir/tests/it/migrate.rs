//! Tests `savoir migrate`.

use serde_json::json;

use crate::support::{GOOD, Sandbox};

const CLAW: &str = "---\nname: Search\nversion: 1.0.0\nclaw_version: '1'\ndescription: Searches. Use when searching.\nnetwork: true\nactions:\n  - name: search\n    description: Search\n    parameters:\n      query: {type: string, required: true}\n    handler: search.js#run\n---\n\n# Search\n\nCall `search`.\n";

#[test]
fn one_skill_and_its_report() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run(&["migrate", "examples/word-count-claw", "--validate"]);
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(run);
    insta::assert_snapshot!(sandbox.read("gaia-skills/word-count-claw/SKILL.md"));
    let run = sandbox.run(&["check", "gaia-skills", "--strict"]);
    assert_eq!(run.code, 0, "{run}");
    let run = sandbox.run(&["migrate", "examples/word-count-claw/SKILL.md"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("--force"), "{run}");
    let run = sandbox.run(&["migrate", "examples/word-count-claw", "--force", "--json"]);
    assert_eq!((run.code, &run.json()["migrated"]), (0, &json!(true)), "{run}");
    assert_eq!(run.json()["security_tier"], "experimental");
}

#[test]
fn batch_continues_after_a_blocker() {
    let sandbox = Sandbox::new();
    sandbox.write("claws/a/SKILL.md", "# No frontmatter\n");
    sandbox.write("claws/b/SKILL.md", CLAW);
    sandbox.write("claws/b/search.js", "module.exports = {}\n");
    sandbox.write("claws/c/SKILL.md", GOOD);
    let args = ["migrate", "claws", "--batch", "--out", "out"];
    let run = sandbox.run(&args);
    assert_eq!(run.code, 1, "{run}");
    insta::assert_snapshot!(run);
    assert!(sandbox.path("out/search/tools.py").is_file());
    let again = sandbox.run(&["migrate", ".", "--batch", "--out", "out", "--force", "--json"]);
    assert_eq!(again.json()["migrated"], 2, "results are not migrated again: {again}");
    let run = sandbox.run(&[&args[..], &["--force", "--json", "--dry-run"]].concat());
    let report = run.json();
    assert_eq!((&report["migrated"], &report["blocked"]), (&json!(2), &json!(1)), "{run}");
    assert_eq!(report["skills"][0]["blockers"][0]["code"], "no_frontmatter");
}

#[test]
fn options_that_change_the_result() {
    let sandbox = Sandbox::new();
    sandbox.write("claw/SKILL.md", CLAW.replace("network", "shell"));
    let run = sandbox.run(&["migrate", "claw", "--dry-run", "--strict"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("`shell:execute` has no scope"), "{run}");
    assert!(!sandbox.path("gaia-skills").exists());
    let run = sandbox.run(&["migrate", "claw", "--flat", "--name", "finder", "-o", "out"]);
    assert_eq!(run.code, 0, "{run}");
    let text = sandbox.read("out/finder/SKILL.md");
    assert!(text.contains("\npermissions:\n") && text.contains("\nauthor: unknown\n"), "{text}");
    let run = sandbox.run(&["check", "out/finder"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn wrong_usage() {
    let sandbox = Sandbox::new();
    sandbox.write("many/a/SKILL.md", CLAW);
    std::fs::create_dir(sandbox.path("empty")).expect("a folder");
    for args in [
        &["migrate", "many"][..],
        &["migrate", "nowhere"],
        &["migrate", "nowhere", "--batch"],
        &["migrate", "empty", "--batch"],
        &["migrate", "many", "--batch", "--name", "x"],
        &["migrate", "many", "--from", "nobody"],
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.code, 2, "{args:?}: {run}");
    }
    let run = sandbox.run(&["migrate", "many"]);
    assert!(run.stderr.contains("--batch"), "{run}");
}
