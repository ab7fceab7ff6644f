//! Tests invalid calls: each has a stable error code, an exit code and a hint.

use std::fs;

use super::RunTestEnv;

const ROWS: &str = "| query | string | yes | What |\n| limit | integer | no | How many |\n| deep | boolean | no | All |";

fn test_env() -> RunTestEnv {
    RunTestEnv::with_commands(
        "read_only: true\n",
        &[
            ("search", ROWS, "echo {{query}} {{limit}} {{deep:--deep}}"),
            ("other", "", "echo other"),
        ],
    )
}

#[test]
fn invalid_parameters_are_rejected() {
    let test_env = test_env();
    let cases: [(&[&str], &str, &[&str]); 9] = [
        (&[], "missing-parameter", &["Missing required parameter 'query' for tool 'search'"]),
        (
            &["--param", "query=x", "--param", "limit=ten"],
            "invalid-parameter",
            &["Invalid value for parameter 'limit': expected integer"],
        ),
        (
            &["--param", "query=x", "--param", "limit=1.5"],
            "invalid-parameter",
            &["expected integer"],
        ),
        (
            &["--params-json", r#"{"query": 7, "deep": "yes"}"#],
            "invalid-parameter",
            &["'query': expected string", "'deep': expected boolean"],
        ),
        (
            &["--param", "query=x", "--param", "limt=3"],
            "unknown-parameter",
            &["no parameter 'limt', did you mean 'limit'?", "its parameters: query, limit, deep"],
        ),
        (
            &["--param", "limit=ten", "--param", "far=3"],
            "invalid-parameter",
            &["'query'", "expected integer", "no parameter 'far'"],
        ),
        (&["--param", "query=a", "--param", "query=b"], "invalid-parameter", &["takes one value"]),
        (&["--params-json", "{\"query\": "], "invalid-json", &["--params-json"]),
        (&["--params-json", "[1]"], "invalid-json", &["--params-json"]),
    ];
    for (options, code, parts) in cases {
        let run = test_env.run("demo/search", options);
        run.fails(2, code);
        run.assert_error_contains(parts);
    }
    assert_eq!(test_env.records().len(), 0, "nothing was run or refused");
    let skill = test_env.skill("demo/search");
    for options in [["--param", "query"], ["--param", "=x"], ["--params-json", "{}"]] {
        // The last options conflict, which clap reports.
        let run = test_env.savoir(&["run", &skill, "--param", "query=x", options[0], options[1]]);
        assert_eq!(run.code, 2, "{run}");
    }
    let fine = test_env
        .run("demo/search", &["--params-json", r#"{"query": "a b", "limit": -3, "deep": true}"#]);
    assert_eq!(fine.succeeds()["output"], "a b -3 --deep");
}

#[test]
fn missing_targets_are_reported() {
    let test_env = test_env();
    let run = test_env.run("demo/serch", &[]);
    run.fails(2, "unknown-tool");
    run.assert_error_contains(&[
        "Unknown tool 'serch', did you mean 'search'?",
        "its tools: search, other",
    ]);
    let run = test_env.run("demo", &[]);
    run.fails(2, "tool-not-named");
    run.assert_error_contains(&["demo has several tools: search, other", "name one: savoir run"]);
    let run = test_env.run("nowhere/search", &[]);
    run.fails(2, "no-skill");
    run.assert_error_contains(&["there is no skill at", "write SKILL/TOOL"]);

    test_env.write("skills/broken/SKILL.md", "---\nname: [\n---\n\n### x\n");
    let run = test_env.run("broken/x", &[]);
    run.fails(1, "skill-invalid");
    run.assert_error_contains(&["SKILL.md:", "savoir check"]);
    test_env.write("skills/bytes/SKILL.md", b"---\nname: \xff\n---\n");
    test_env.run("bytes", &[]).fails(2, "skill-unreadable");
    // Names with unusual bytes and very long names are ordinary unknown names.
    test_env.run(&format!("{}/x", "a".repeat(5000)), &[]).fails(2, "no-skill");
    test_env.run("demo/../../etc/passwd", &[]).envelope();
    test_env.run("demo/search\u{1b}[2J", &[]).fails(2, "unknown-tool");
    // Without JSON the same text is printed, with escapes removed.
    let run = test_env.savoir(&["run", &test_env.skill("demo/\u{1b}[2J")]);
    assert_eq!((run.code, run.stderr.contains('\u{1b}')), (2, false), "{run}");
    assert_eq!(run.stdout, "");
}

#[test]
fn skills_are_found_by_name() {
    let test_env = test_env();
    crate::support::copy(&test_env.path("skills/demo"), &test_env.path(".savoir/data/skills/demo"));
    let run = test_env.savoir(&["run", "demo/other", "--json"]);
    // It is in another folder, so the approval of the first copy does not apply.
    assert_eq!((run.code, &run.json()["code"]), (3, &"not-approved".into()), "{run}");
    let all = test_env.savoir(&["tools", &test_env.skill("demo"), "--json"]);
    assert_eq!(all.code, 0, "{all}");
    assert!(all.stdout.contains("search") && all.stdout.contains("other"), "{all}");
}

#[test]
fn unusable_programs_are_reported() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let outside = elsewhere.path().join("run").to_string_lossy().into_owned();
    fs::copy("/bin/true", &outside).expect("a program");
    let test_env = RunTestEnv::with_commands(
        "",
        &[
            ("gone", "", "no-such-program-here x"),
            ("lost", "", "./scripts/none.sh"),
            ("away", "", "./scripts/away.sh"),
            ("odd", "", "./scripts/odd.sh"),
            ("folder", "", "./scripts"),
            ("plain", "", "./scripts/machine-code"),
            ("text", "", "./notes.txt"),
            ("host", "", "/etc/passwd"),
            ("etc", "", "/etc"),
            ("other", "", &outside),
        ],
    );
    test_env.write("skills/demo/scripts/machine-code", b"\x7fELF\x02\0");
    test_env.write("skills/demo/notes.txt", "Only notes.\n");
    test_env.script("outside.sh", "#!/bin/bash\necho out\n");
    test_env.script("skills/demo/scripts/odd.sh", "#!/no/such/interpreter\n");
    std::os::unix::fs::symlink(
        test_env.path("outside.sh"),
        test_env.path("skills/demo/scripts/away.sh"),
    )
    .expect("a link");
    test_env.approve("demo");
    for (tool, code, part) in [
        ("gone", "command-not-found", "Command not found: no-such-program-here"),
        ("lost", "command-not-found", "Command not found: ./scripts/none.sh"),
        ("away", "program-outside-skill", "not inside the skill's folder"),
        ("odd", "program-not-runnable", "/no/such/interpreter"),
        ("other", "program-outside-skill", "copy it into the skill's folder"),
        ("folder", "permission-denied", "name a file in this folder"),
        ("plain", "permission-denied", "chmod +x"),
        ("text", "permission-denied", "#!/usr/bin/env"),
        ("host", "permission-denied", "the file is not a program"),
        ("etc", "permission-denied", "name a file in this folder"),
    ] {
        let run = test_env.run(&format!("demo/{tool}"), &[]);
        run.fails(1, code);
        run.assert_error_contains(&[part]);
    } // The message of gibb.eri.sh has the program as it is written.
    for (tool, program) in [
        ("folder", "./scripts"),
        ("plain", "./scripts/machine-code"),
        ("text", "./notes.txt"),
        ("host", "/etc/passwd"),
        ("etc", "/etc"),
    ] {
        let envelope = test_env.run(&format!("demo/{tool}"), &[]).fails(1, "permission-denied");
        assert_eq!(envelope["error"], format!("Permission denied: {program}"));
    }
}

#[test]
fn scripts_accept_arguments() {
    let test_env = RunTestEnv::new();
    test_env.write(
        "skills/notes/SKILL.md",
        "---\nname: notes\ndescription: Keeps notes. Use when noting.\n---\n\n# Notes\n\nRun scripts/say.sh.\n",
    );
    test_env.script("skills/notes/scripts/say.sh", "#!/bin/bash\nprintf '<%s>' \"$@\"\n");
    test_env.approve("notes");
    let run = test_env.run("notes/scripts/say.sh", &["--", "a b", "--flag", "$(id)", ""]);
    assert_eq!(run.succeeds()["output"], "<a b><--flag><$(id)><>");
    test_env.run("notes/scripts/none.sh", &[]).fails(2, "unknown-tool");
    let run = test_env.run("notes/../outside.sh", &[]);
    test_env.script("outside.sh", "#!/bin/bash\n");
    assert_ne!(run.0.code, 0, "{}", run.0);
}
