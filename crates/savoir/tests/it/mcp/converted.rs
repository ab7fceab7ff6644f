//! Tests that converted skills still offer the tools of their originals.

use std::{fs, process::Command};

use serde_json::json;

use super::{Client, code, sandbox_with_examples};
use crate::support::{Sandbox, repository};

fn savoir(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    command.current_dir(sandbox.path("work")).env("HOME", sandbox.path("home"));
    command
}

fn run_ok(mut command: Command) -> String {
    let output = command.output().expect("savoir runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Installs an example that is converted for Claude Code.
fn installed(example: &str) -> Sandbox {
    let sandbox = sandbox_with_examples(&[]);
    fs::create_dir_all(sandbox.path("work/.git")).expect("a folder");
    let source = repository().join("examples").join(example);
    let source = source.to_str().expect("a path");
    let folder = sandbox.path("work/.claude/skills").join(example);
    fs::create_dir_all(folder.parent().expect("a parent")).expect("a folder");
    let output = folder.to_str().expect("a path");
    run_ok(savoir(&sandbox, &["convert", source, "--to", "claude-code", "--output", output]));
    let text = folder.join("SKILL.md");
    let text = fs::read_to_string(text).expect("a text");
    assert!(text.contains("savoir-from: "), "{text}");
    sandbox
}

#[test]
fn tools_of_the_original_are_offered_and_run() {
    let sandbox = installed("git-helper");
    run_ok({
        let mut git = Command::new("git");
        git.args(["init", "--quiet"]).current_dir(sandbox.path("work"));
        git
    });
    let mut client = Client::with(&sandbox, &[], &json!({}));
    let used = client.call("use_skill", &json!({"name": "git-helper"}));
    let tools = used["structuredContent"]["tools"].as_array().cloned().unwrap_or_default();
    assert!(tools.contains(&json!("git-helper__git_status")), "{used}");
    assert!(client.tools().contains(&"git-helper__git_status".to_owned()));
    let refused = client.call("git-helper__git_status", &json!({}));
    if refused["isError"] == true {
        assert_eq!(code(&refused), "approval-needed", "{refused}");
        run_ok(savoir(&sandbox, &["approve", ".claude/skills/git-helper", "--yes"]));
    }
    let run = client.call("git-helper__git_status", &json!({}));
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
}

#[test]
fn commands_list_tools_of_converted_skills() {
    let sandbox = installed("git-helper");
    let document = run_ok(savoir(&sandbox, &["tools", ".claude/skills"]));
    assert!(document.contains("git_status"), "{document}");
}
