//! Tests `savoir convert`.

use std::fs;

use crate::support::{Sandbox, repository};

const DIALECTS: [&str; 10] = [
    "agentskills", "claude-code", "codex", "openclaw", "agent-flow", "gibberish", "gaia",
    "skillrt", "personal-agent", "prose",
];

fn examples() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(repository().join("examples"))
        .expect("examples")
        .map(|entry| entry.expect("entry"))
        // The examples also contain workflows.
        .filter(|entry| entry.path().join("SKILL.md").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn examples_round_trip_through_every_dialect() {
    let sandbox = Sandbox::with_examples();
    for name in examples() {
        let show = sandbox.run(&["show", &format!("examples/{name}"), "--json"]).json();
        let home = show["dialect"].as_str().expect("dialect").to_owned();
        for dialect in DIALECTS {
            let there = format!("there/{dialect}/{name}");
            let back = format!("back/{dialect}/{name}");
            let run = sandbox.run(&[
                "convert",
                &format!("examples/{name}"),
                "--to",
                dialect,
                "-o",
                &there,
            ]);
            if dialect == "gibberish" && run.stderr.contains("needs a tool, and this one has none")
            {
                assert_eq!(run.code, 1, "{name} to {dialect}: {run}");
                continue;
            }
            assert_eq!(run.code, 0, "{name} to {dialect}: {run}");
            let run =
                sandbox.run(&["convert", &there, "--dialect", dialect, "--to", &home, "-o", &back]);
            assert_eq!(run.code, 0, "{name} from {dialect}: {run}");
            let original = sandbox.read(&format!("examples/{name}/SKILL.md"));
            assert_eq!(sandbox.read(&format!("{back}/SKILL.md")), original, "{name} by {dialect}");
        }
    }
}

#[test]
fn converting_to_the_same_dialect_changes_nothing() {
    let sandbox = Sandbox::new();
    let odd = "\u{feff}---\r\nname:   demo  # odd\r\ndescription: 'd'\r\nmetadata: {\"a\": \"1.10\"}\r\n---\r\nbody\r\n\r\n";
    sandbox.write("demo/SKILL.md", odd);
    let run = sandbox.run(&["convert", "demo", "--to", "agentskills", "-o", "out"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(sandbox.read("out/SKILL.md"), odd);
}

#[test]
fn report_lists_every_field() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox
        .run(&["convert", "examples/text-statistics", "--to", "skillrt", "--report", "json"]);
    let report = run.json();
    let tools = report
        .as_array()
        .expect("list")
        .iter()
        .find(|entry| entry["field"] == "tools")
        .expect("tools");
    assert_eq!(tools["from"], "tools");
    assert_eq!(tools["to"], "metadata.savoir-keep");
    assert_eq!(tools["how"], "moved");
    assert!(tools["why"].as_str().is_some_and(|why| !why.is_empty()));
}

#[test]
fn other_files_come_along_and_nothing_is_overwritten() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox
        .run(&["convert", "examples/weekly-report", "--to", "codex", "-o", "out/weekly-report"]);
    assert_eq!(run.code, 0, "{run}");
    let template = "references/template.md";
    assert_eq!(
        sandbox.read(&format!("out/weekly-report/{template}")),
        sandbox.read(&format!("examples/weekly-report/{template}"))
    );
    let again = sandbox
        .run(&["convert", "examples/weekly-report", "--to", "gaia", "-o", "out/weekly-report"]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("already exists"), "{again}");
    assert!(!sandbox.read("out/weekly-report/SKILL.md").contains("security_tier"));
}

#[test]
fn unreadable_skills_are_not_converted() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", "---\nname: demo\nx: {a: [}\n  b\n---\n");
    let run = sandbox.run(&["convert", "demo", "--to", "codex", "-o", "out"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(!sandbox.path("out").exists());
}

#[test]
fn converting_back_removes_the_added_file_and_keeps_an_edited_one() {
    let sandbox = Sandbox::with_examples();
    let convert = |from: &str, to: &str, out: &str| {
        let run = sandbox.run(&["convert", from, "--to", to, "-o", out]);
        assert_eq!(run.code, 0, "{run}");
        run
    };
    convert("examples/fix-issue", "codex", "codex");
    convert("codex", "claude-code", "back");
    let names = |folder: &str| {
        let mut names: Vec<_> = fs::read_dir(sandbox.path(folder))
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("back"), names("examples/fix-issue"));
    sandbox.write("codex/agents/openai.yaml", "interface: {}\n");
    let run = convert("codex", "claude-code", "edited");
    assert!(run.stdout.contains("agents/openai.yaml: it stays"), "{run}");
    assert_eq!(sandbox.read("edited/agents/openai.yaml"), "interface: {}\n");
}

#[test]
fn repairs_of_the_input_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", "---\nname: demo\ndescription: Use for: x\n---\nDo.\n");
    let run = sandbox.run(&["convert", "demo", "--to", "codex", "-o", "out", "--report", "json"]);
    assert!(run.stderr.contains("the input was repaired: line 3"), "{run}");
    let report = run.json();
    let repaired = |one: &serde_json::Value| one["field"] == "frontmatter";
    assert!(report.as_array().unwrap().iter().any(repaired), "{report}");
}

#[test]
fn commands_converted_to_gaia_need_functions() {
    let sandbox = Sandbox::with_examples();
    let run =
        sandbox.run(&["convert", "examples/git-helper", "--to", "gaia", "-o", "out/git-helper"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("warning: GAIA cannot use this skill yet"), "{run}");
    assert!(run.stderr.contains("in out/git-helper/tools.py"), "{run}");
}
