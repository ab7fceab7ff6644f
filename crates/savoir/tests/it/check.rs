//! Tests `savoir check`.

use std::fs;

use crate::support::{GOOD, Sandbox};

const BROKEN: &str = "---\nname: demo\ndescription: Use for: demos\nallowed-tools: Read, Grep\n---\n\n# Demo\n\nSee [the guide](references/guide.md).\n";

#[test]
fn the_examples_are_clean() {
    let run = Sandbox::with_examples().run(&["check", "examples", "--strict"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.stdout, "checked 17 skills: all fine\n");
}

#[test]
fn findings_look_like_rustc() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    insta::assert_snapshot!(sandbox.run(&["check", "demo"]));
}

#[test]
fn json_has_the_documented_shape() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    let run = sandbox.run(&["check", "demo", "--format", "json"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&run.json()).expect("json"));
    assert_eq!(run.json(), sandbox.run(&["check", "demo", "--json"]).json());
}

#[test]
fn github_and_sarif() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    insta::assert_snapshot!(sandbox.run(&["check", "demo", "--format", "github"]));
    let sarif = sandbox.run(&["check", "demo", "--format", "sarif"]).json();
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "unquoted-colon");
    assert_eq!(
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "demo/SKILL.md"
    );
}

#[test]
fn fix_is_minimal_and_idempotent() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    sandbox.write("demo/references/guide.md", "# Guide\n");
    let run = sandbox.run(&["check", "demo", "--fix"]);
    let fixed = BROKEN.replace("Use for: demos", "\"Use for: demos\"");
    assert_eq!(sandbox.read("demo/SKILL.md"), fixed, "{run}");
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("fixed 1 finding in 1 file"), "{run}");
    let again = sandbox.run(&["check", "demo", "--fix"]);
    assert_eq!(sandbox.read("demo/SKILL.md"), fixed);
    assert_eq!(again.stderr, "");
    sandbox.run(&["check", "demo", "--fix", "--unsafe", "--target", "agentskills"]);
    assert_eq!(sandbox.read("demo/SKILL.md"), fixed.replace("Read, Grep", "Read Grep"));
}

#[test]
fn diff_option_does_not_write_files() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    let run = sandbox.run(&["check", "demo", "--diff"]);
    insta::assert_snapshot!(run);
    assert_eq!(run.code, 1, "there is something to change");
    assert_eq!(sandbox.read("demo/SKILL.md"), BROKEN);
    for other in ["--json", "--fix", "--format=sarif"] {
        let run = sandbox.run(&["check", "demo", "--diff", other]);
        assert_eq!(run.code, 2, "{other}: {run}");
    }
    sandbox.write("demo/SKILL.md", GOOD);
    assert_eq!(sandbox.run(&["check", "demo", "--diff"]).code, 0);
}

#[cfg(unix)]
#[test]
fn fixing_keeps_the_mode_of_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new();
    let path = sandbox.write("demo/SKILL.md", BROKEN);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
    sandbox.run(&["check", "demo", "--fix"]);
    assert_ne!(sandbox.read("demo/SKILL.md"), BROKEN);
    assert_eq!(fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o640);
}

#[test]
fn selecting_and_ignoring() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    let codes = |args: &[&str]| -> Vec<String> {
        let report = sandbox.run(&[&["check", "demo", "--json"], args].concat()).json();
        let found = report["files"][0]["diagnostics"].as_array().expect("diagnostics").clone();
        found.iter().map(|one| one["code"].as_str().expect("code").to_owned()).collect()
    };
    assert_eq!(codes(&["--select", "unquoted-colon"]), ["unquoted-colon"]);
    assert_eq!(codes(&["--ignore", "unquoted-colon"]), ["broken-link"]);
    assert_eq!(codes(&["--select", "allowed-tools-commas"]), ["allowed-tools-commas"]);
    let run = sandbox.run(&["check", "demo", "--ignore", "unquotd-colon"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("there is no rule `unquotd-colon`"), "{run}");
}

#[test]
fn strict_fails_on_warnings() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD.replace('\n', "\r\n"));
    assert_eq!(sandbox.run(&["check", "demo"]).code, 0);
    assert_eq!(sandbox.run(&["check", "demo", "--strict"]).code, 1);
}

#[test]
fn the_project_and_the_environment_set_options() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    sandbox.write("savoir.toml", "[check]\nignore = [\"unquoted-colon\"]\nstrict = true\n");
    let run = sandbox.run(&["check", "demo"]);
    assert!(run.stdout.contains("broken-link") && !run.stdout.contains("unquoted-colon"), "{run}");
    assert_eq!(run.code, 1, "{run}");
    let config = sandbox.run(&["config"]);
    assert!(config.stdout.contains("check.strict = true"), "{config}");
    sandbox.write("savoir.toml", "[check]\nstirct = true\n");
    let run = sandbox.run(&["check", "demo"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("stirct"), "{run}");
}

#[test]
fn ignored_files_are_not_checked() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "/build\n");
    sandbox.write("skills/.gitignore", "draft-*\n!draft-kept\n");
    for folder in ["build/demo", "skills/draft-one", "node_modules/x"] {
        sandbox.write(&format!("{folder}/SKILL.md"), "broken");
    }
    sandbox.write("skills/demo/SKILL.md", GOOD);
    sandbox.write("skills/draft-kept/SKILL.md", GOOD.replace("demo", "draft-kept"));
    sandbox.write(".claude/skills/demo/SKILL.md", GOOD);
    let run = sandbox.run(&["check", ".", "--json"]);
    let report = run.json();
    let paths: Vec<_> = report["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| file["path"].as_str().expect("path"))
        .collect();
    assert_eq!(
        paths,
        [".claude/skills/demo/SKILL.md", "skills/demo/SKILL.md", "skills/draft-kept/SKILL.md"]
    );
}

#[test]
fn many_skills_come_in_order() {
    let sandbox = Sandbox::new();
    for number in 0..300 {
        let name = format!("skill-{number:03}");
        sandbox.write(&format!("{name}/SKILL.md"), GOOD.replace("demo", &name));
    }
    let report = sandbox.run(&["check", "--json"]).json();
    let paths: Vec<_> = report["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| file["path"].as_str().expect("path").to_owned())
        .collect();
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(paths.len(), 300);
    assert_eq!(paths, sorted);
    let summary = serde_json::json!({"files": 300, "errors": 0, "warnings": 0, "fixable": 0});
    assert_eq!(report["summary"], summary);
}

#[test]
fn target_option_reports_host_errors() {
    let sandbox = Sandbox::new();
    sandbox.write("claude-helper/SKILL.md", GOOD.replace("demo", "claude-helper"));
    assert_eq!(sandbox.run(&["check", "claude-helper"]).code, 0);
    let run = sandbox.run(&["check", "claude-helper", "--target", "claude-ai"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("target-rejects"), "{run}");
    assert_eq!(sandbox.run(&["check", "--target", "nowhere"]).code, 2);
}

#[test]
fn summary_counts_fixable_problems() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", BROKEN);
    let run = sandbox.run(&["check", "demo"]);
    let last = run.stdout.lines().last().unwrap_or_default();
    assert_eq!(last, "1 of 2 findings can be fixed with --fix", "{run}");
    assert_eq!(sandbox.run(&["check", "demo", "--json"]).json()["summary"]["fixable"], 1);
}

#[test]
fn diff_of_a_missing_path_is_an_error() {
    let run = Sandbox::new().run(&["check", "--diff", "missing"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("error: missing: the file or folder does not exist"), "{run}");
    assert!(run.stderr.contains("hint: "), "{run}");
}

#[test]
fn plain_text_is_prose() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.md", "Remember: trains leave at 9.\n\n- a\n- b\n");
    let run = sandbox.run(&["check", "notes.md"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("not-a-skill"), "{run}");
    assert!(run.stdout.contains("is read as prose"), "{run}");
}

#[test]
fn folder_determines_the_dialect() {
    let sandbox = Sandbox::new();
    let text =
        "---\nname: demo\ndescription: Shows it. Use when learning.\nversion: 1.0\n---\n# Demo\n";
    for (folder, dialect) in [
        ("a/.claude/skills/demo", "claude-code"),
        ("a/.codex/skills/demo", "codex"),
        ("a/skills/demo", "agentskills"),
        ("plugin/skills/demo", "claude-code"),
    ] {
        sandbox.write(&format!("{folder}/SKILL.md"), text);
        sandbox.write("plugin/.claude-plugin/plugin.json", "{}");
        let shown = sandbox.run(&["show", folder, "--json"]).json();
        assert_eq!(shown["dialect"], dialect, "{folder}");
        let walked = sandbox.run(&["check", &folder[..folder.len() - 5], "--json"]).json();
        assert_eq!(walked["files"][0]["dialect"], dialect, "{folder}");
    }
}

#[test]
fn copies_of_a_locked_skill_are_checked_once() {
    let sandbox = Sandbox::new();
    let demo = "---\nname: demo\ndescription: Shows it. Use when learning.\n---\n# Demo\n";
    sandbox.write("skills/demo/SKILL.md", demo);
    sandbox.write("elsewhere/far/SKILL.md", demo.replace("demo", "far"));
    let install = |source: &str| {
        let run = sandbox.run(&[
            "install", source, "--agent", "claude-code", "--agent", "cursor", "-y",
            "--allow-experimental",
        ]);
        assert_eq!(run.code, 0, "{run}");
    };
    install("./skills/demo");
    let checked = |path: &str| -> Vec<String> {
        let files = sandbox.run(&["check", path, "--json"]).json();
        let files = files["files"].as_array().cloned().unwrap_or_default();
        files.iter().filter_map(|file| file["path"].as_str().map(str::to_owned)).collect()
    };
    assert!(sandbox.read(".claude/skills/demo/SKILL.md").contains("Shows it"));
    let all = checked(".");
    assert_eq!(all, ["elsewhere/far/SKILL.md", "skills/demo/SKILL.md"]);
    assert_eq!(checked(".claude/skills/demo").len(), 1, "a copy that is named is checked");
}

/// GAIA's command is called `validate`, and users often try `lint`.
#[test]
fn validate_is_an_alias_of_check() {
    let sandbox = Sandbox::with_examples();
    sandbox.write("bad/SKILL.md", "---\nname: other\n---\n");
    for args in [&["examples/hello-world"][..], &["bad"], &["nowhere"], &["bad", "--json"]] {
        let check = sandbox.run(&[&["check"], args].concat());
        for alias in ["validate", "lint"] {
            let run = sandbox.run(&[&[alias], args].concat());
            assert_eq!(run.to_string(), check.to_string());
        }
    }
    assert_eq!(sandbox.run(&["validate", "bad"]).code, 1);
    let help = sandbox.run(&["check", "--help"]).stdout;
    assert!(help.contains("Aliases: lint, and validate"), "{help}");
    assert!(sandbox.run(&["--help"]).stdout.contains("[aliases: validate, lint]"));
}

#[test]
fn conflict_markers_are_errors() {
    let sandbox = Sandbox::new();
    let head = "---\nname: demo\ndescription: Shows it. Use when testing.\n---\n\n# Demo\n\n";
    let conflict = "<<<<<<< HEAD\nSay hello.\n=======\nSay hi.\n>>>>>>> main\n";
    sandbox.write("demo/SKILL.md", format!("{head}{conflict}"));
    let run = sandbox.run(&["check", "demo", "--json"]);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(run.json()["files"][0]["diagnostics"][0]["code"], "conflict-markers", "{run}");
    sandbox.write("demo/SKILL.md", format!("{head}A conflict:\n\n```text\n{conflict}```\n"));
    let run = sandbox.run(&["check", "demo"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn link_to_a_skill_inside_the_skill_is_not_broken() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "outer/SKILL.md",
        GOOD.replace("name: demo", "name: outer")
            + "\nSee [sub](sub/SKILL.md) and [it](sub/refs/a.md).\n",
    );
    sandbox.write("outer/sub/SKILL.md", GOOD.replace("name: demo", "name: sub"));
    sandbox.write("outer/sub/refs/a.md", "More.\n");
    let run = sandbox.run(&["check", "outer"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!format!("{run}").contains("broken-link"), "{run}");
}

#[test]
fn text_that_was_converted_to_prose_is_fine() {
    let sandbox = Sandbox::new();
    sandbox.write("nh/SKILL.md", "---\nname: nh\ndescription: Keeps it short. Use when answering.\n---\nAnswer in short sentences. No headings here.\n");
    let converted = sandbox.run(&["convert", "nh", "--to", "prose", "-o", "out/nh"]);
    assert_eq!(converted.code, 0, "{converted}");
    let run = sandbox.run(&["check", "out/nh"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!format!("{run}").contains("not-a-skill"), "{run}");
}
