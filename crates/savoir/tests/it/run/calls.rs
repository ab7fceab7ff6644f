//! Invalid calls: each has a stable error code, an exit code and a hint.

use super::Stage;

const ROWS: &str = "| query | string | yes | What |\n| limit | integer | no | How many |\n| deep | boolean | no | All |";

fn stage() -> Stage {
    Stage::with_commands(
        "read_only: true\n",
        &[
            ("search", ROWS, "echo {{query}} {{limit}} {{deep:--deep}}"),
            ("other", "", "echo other"),
        ],
    )
}

#[test]
fn parameters_that_do_not_fit() {
    let stage = stage();
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
            &["no parameter 'limt', did you mean 'limit'?", "it takes query, limit, deep"],
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
        let run = stage.run("demo/search", options);
        run.fails(2, code);
        run.says(parts);
    }
    assert_eq!(stage.records().len(), 0, "nothing was run or refused");
    let skill = stage.skill("demo/search");
    for options in [["--param", "query"], ["--param", "=x"], ["--params-json", "{}"]] {
        // The last one conflicts with the first; clap says so.
        let run = stage.savoir(&["run", &skill, "--param", "query=x", options[0], options[1]]);
        assert_eq!(run.code, 2, "{run}");
    }
    let fine = stage
        .run("demo/search", &["--params-json", r#"{"query": "a b", "limit": -3, "deep": true}"#]);
    assert_eq!(fine.succeeds()["output"], "a b -3 --deep");
}

#[test]
fn targets_that_are_not_there() {
    let stage = stage();
    let run = stage.run("demo/serch", &[]);
    run.fails(2, "unknown-tool");
    run.says(&["Unknown tool 'serch', did you mean 'search'?", "its tools: search, other"]);
    let run = stage.run("demo", &[]);
    run.fails(2, "tool-not-named");
    run.says(&["demo has several tools: search, other", "name one: savoir run"]);
    let run = stage.run("nowhere/search", &[]);
    run.fails(2, "no-skill");
    run.says(&["there is no skill at", "write SKILL/TOOL"]);

    stage.write("skills/broken/SKILL.md", "---\nname: [\n---\n\n### x\n");
    let run = stage.run("broken/x", &[]);
    run.fails(1, "skill-invalid");
    run.says(&["SKILL.md:", "savoir check"]);
    stage.write("skills/bytes/SKILL.md", b"---\nname: \xff\n---\n");
    stage.run("bytes", &[]).fails(2, "skill-unreadable");
    // Names with odd bytes and endless names are only names.
    stage.run(&format!("{}/x", "a".repeat(5000)), &[]).fails(2, "no-skill");
    stage.run("demo/../../etc/passwd", &[]).envelope();
    stage.run("demo/search\u{1b}[2J", &[]).fails(2, "unknown-tool");
    // Without JSON the same is told to people, and no terminal acts on it.
    let run = stage.savoir(&["run", &stage.skill("demo/\u{1b}[2J")]);
    assert_eq!((run.code, run.stderr.contains('\u{1b}')), (2, false), "{run}");
    assert_eq!(run.stdout, "");
}

#[test]
fn skills_are_found_by_name() {
    let stage = stage();
    crate::support::copy(&stage.path("skills/demo"), &stage.path(".savoir/data/skills/demo"));
    let run = stage.savoir(&["run", "demo/other", "--json"]);
    // It is another place, so the approval of the first does not count.
    assert_eq!((run.code, &run.json()["code"]), (3, &"not-approved".into()), "{run}");
    let all = stage.savoir(&["tools", &stage.skill("demo"), "--json"]);
    assert_eq!(all.code, 0, "{all}");
    assert!(all.stdout.contains("search") && all.stdout.contains("other"), "{all}");
}

#[test]
fn programs_that_cannot_run() {
    let stage = Stage::with_commands(
        "",
        &[
            ("gone", "", "no-such-program-here x"),
            ("lost", "", "./scripts/none.sh"),
            ("away", "", "./scripts/away.sh"),
            ("odd", "", "./scripts/odd.sh"),
            ("folder", "", "./scripts"),
        ],
    );
    stage.script("outside.sh", "#!/bin/bash\necho out\n");
    stage.script("skills/demo/scripts/odd.sh", "#!/no/such/interpreter\n");
    std::os::unix::fs::symlink(stage.path("outside.sh"), stage.path("skills/demo/scripts/away.sh"))
        .expect("a link");
    stage.approve("demo");
    for (tool, code, part) in [
        ("gone", "program-not-found", "program 'no-such-program-here' was not found"),
        ("lost", "program-not-found", "none.sh"),
        ("away", "program-outside-skill", "not inside the skill's folder"),
        ("odd", "program-not-runnable", "/no/such/interpreter"),
        ("folder", "program-not-executable", "scripts"),
    ] {
        let run = stage.run(&format!("demo/{tool}"), &[]);
        run.fails(1, code);
        run.says(&[part]);
    }
}

#[test]
fn scripts_take_words() {
    let stage = Stage::new();
    stage.write(
        "skills/notes/SKILL.md",
        "---\nname: notes\ndescription: Keeps notes. Use when noting.\n---\n\n# Notes\n\nRun scripts/say.sh.\n",
    );
    stage.script("skills/notes/scripts/say.sh", "#!/bin/bash\nprintf '<%s>' \"$@\"\n");
    stage.approve("notes");
    let run = stage.run("notes/scripts/say.sh", &["--", "a b", "--flag", "$(id)", ""]);
    assert_eq!(run.succeeds()["output"], "<a b><--flag><$(id)><>");
    stage.run("notes/scripts/none.sh", &[]).fails(2, "unknown-tool");
    let run = stage.run("notes/../outside.sh", &[]);
    stage.script("outside.sh", "#!/bin/bash\n");
    assert_ne!(run.0.code, 0, "{}", run.0);
}
