//! Tests user errors of `savoir run`: their messages, and one JSON document for every outcome.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::support::{Sandbox, Transcript};

/// A Python tool.
const GREET: &str = "---\nname: greet\nversion: 1.0.0\ndescription: Greets. Use when greeting.\nauthor: me\nlicense: MIT\nsecurity_tier: experimental\npermissions:\n  - filesystem:none\ntools:\n  - name: greet\n    description: Greet somebody\n    parameters:\n      who: {type: string, required: true}\n---\n\n# Greet\n";
const GREET_TOOLS: &str = "from gaia.agents.base.tools import tool\n\n\n@tool\ndef greet(who: str) -> dict:\n    \"\"\"Greet somebody.\"\"\"\n    return {\"hello\": who}\n";

/// A skill with a script and no tools.
const SCRIPT: &str = "---\nname: keeper\ndescription: Keeps things. Use when keeping.\n---\n\n# Keeper\n\nRun scripts/keep.sh.\n";

fn greet() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("greet/SKILL.md", GREET);
    sandbox.write("greet/tools.py", GREET_TOOLS);
    sandbox
}

fn script(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("keeper/SKILL.md", SCRIPT);
    let path = sandbox.write("keeper/scripts/keep.sh", text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    sandbox
}

fn approve(sandbox: &Sandbox, skill: &str) {
    let run = sandbox.run(&["approve", skill, "--yes"]);
    assert_eq!(run.code, 0, "{run}");
}

/// The error code in the only JSON document on standard output.
fn code(run: &Transcript) -> String {
    let envelope = run.json();
    assert_eq!(envelope["success"], false, "{run}");
    assert!(!envelope["error"].as_str().unwrap_or_default().is_empty(), "{run}");
    envelope["code"].as_str().unwrap_or_else(|| panic!("no code: {run}")).to_owned()
}

#[test]
fn every_failure_is_one_json_document_with_a_code() {
    let sandbox = greet();
    sandbox.write("broken/SKILL.md", "---\nname: [\n---\n");
    sandbox.write(
        "two/SKILL.md",
        GREET.replace("---\n\n#", "  - name: part\n    description: Say goodbye\n---\n\n#"),
    );
    sandbox.write("two/tools.py", GREET_TOOLS);
    for (words, exit, name) in [
        (&["nowhere"][..], 2, "no-skill"),
        (&["two"], 2, "tool-not-named"),
        (&["greet", "--params-json", "[1]"], 2, "invalid-json"),
        (&["greet", "--input", "who=Ada"], 2, "invalid-call"),
        (&["greet", "--", "Ada"], 2, "invalid-call"),
        (&["greet/scripts/none.sh"], 2, "unknown-tool"),
        (&["greet/gret"], 2, "unknown-tool"),
        (&["greet"], 2, "missing-parameter"),
        (&["greet", "--params-json", r#"{"who": 3}"#], 2, "invalid-parameter"),
        (&["greet", "--param", "wo=Ada", "--param", "who=Ada"], 2, "unknown-parameter"),
        (&["broken"], 1, "skill-invalid"),
        (&["greet", "--param", "who=Ada"], 3, "not-approved"),
    ] {
        // Options come before the arguments of the script.
        let words: Vec<&str> = ["run", "--json"].iter().chain(words).copied().collect();
        let run = sandbox.run(&words);
        assert_eq!((run.code, code(&run).as_str()), (exit, name), "{words:?}: {run}");
    }
}

#[test]
fn errors_have_hints() {
    let sandbox = greet();
    for (words, help) in [
        (
            &["greet"][..],
            "hint: its parameters: who\nhint: pass a parameter with --param NAME=VALUE\n",
        ),
        (&["greet/gret"], "did you mean 'greet'?\nhint: its tools: greet\n"),
        (&["greet", "--params-json", "[1]"], "hint: write it as '{\"name\": \"value\"}'\n"),
        (&["greet", "--", "Ada"], "hint: pass parameters of a tool with --param\n"),
    ] {
        let words: Vec<&str> = std::iter::once("run").chain(words.iter().copied()).collect();
        let run = sandbox.run(&words);
        assert!(run.stderr.ends_with(help), "{words:?}: {run}");
    }
    let sandbox = script("#!/bin/sh\n");
    let run = sandbox.run(&["run", "keeper/scripts/keep.sh", "--param", "a=b"]);
    assert!(run.stderr.ends_with("hint: pass arguments to a script after its path\n"), "{run}");
    let run = sandbox.run(&["run", "keeper/kep.sh"]);
    assert!(run.stderr.contains("pass the path of a script in its folder"), "{run}");
}

#[test]
fn failed_run_lists_denials() {
    let sandbox = script("#!/bin/sh\nread line < /etc/shadow || no-such-program\n");
    approve(&sandbox, "keeper");
    let run = sandbox.run(&["run", "keeper/scripts/keep.sh"]);
    assert_eq!(run.code, 127, "{run}");
    let secret = "the sandbox denied reading /etc/shadow, which is a secret; only if you trust";
    assert!(run.stderr.contains(secret) && !run.stderr.contains("to allow it:"), "{run}");
    // A successful run is not changed.
    let sandbox = script("#!/bin/sh\nread line < /etc/shadow || echo fine\n");
    approve(&sandbox, "keeper");
    let run = sandbox.run(&["run", "keeper/scripts/keep.sh"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!run.stderr.contains("help"), "{run}");
}

#[test]
fn recording_always_needs_approval() {
    let sandbox = greet();
    approve(&sandbox, "greet");
    let run = sandbox.run(&["run", "greet", "--param", "who=Ada", "--record", "--json"]);
    assert_eq!((run.code, code(&run).as_str()), (3, "not-approved"), "{run}");
    assert!(run.stderr.contains("to ask on: a recording has almost all permissions\n"), "{run}");
    assert!(!run.stderr.contains("savoir approve"), "{run}");
    assert!(!sandbox.path("greet/.savoir").exists(), "nothing is noted");
}

#[test]
fn a_tool_starts_in_your_folder_in_a_repository_and_outside() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["new", "lister", "--dialect", "gibberish"]);
    assert_eq!(run.code, 0, "{run}");
    approve(&sandbox, "lister");
    let run = sandbox.run(&["run", "lister"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "lister\n"), "the folder is read: {run}");
    fs::create_dir(sandbox.path(".git")).expect("a repository");
    let run = sandbox.run(&["run", "lister"]);
    assert_eq!(run.stdout, "lister\n", "{run}");
}

#[test]
fn edited_skill_needs_a_new_approval() {
    let sandbox = greet();
    approve(&sandbox, "greet");
    let call = ["run", "greet", "--param", "who=Ada", "--json"];
    let run = sandbox.run(&call);
    assert_eq!(run.json()["parsed"]["hello"], "Ada", "{run}");
    sandbox.write("greet/tools.py", format!("{GREET_TOOLS}# changed\n"));
    let run = sandbox.run(&call);
    assert_eq!((run.code, code(&run).as_str()), (3, "not-approved"), "{run}");
    assert!(run.stderr.contains("a file of the skill changed"), "{run}");
    let records = sandbox.run(&["runs", "--json"]).json();
    let verdicts: Vec<_> = records["runs"].as_array().into_iter().flatten().collect();
    let verdicts: Vec<_> =
        verdicts.iter().map(|record| record["decision"]["verdict"].as_str()).collect();
    assert_eq!(verdicts, [Some("refused"), Some("run")]);
}

#[test]
fn required_variables_are_part_of_the_question() {
    let sandbox = greet();
    let needs = "requirements:\n  env_vars: [DEMO_TOKEN]\ntools:";
    sandbox.write("greet/SKILL.md", GREET.replace("tools:", needs));
    let run = sandbox.run(&["run", "greet", "--param", "who=Ada"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("not set: DEMO_TOKEN\n"), "{run}");
    assert!(run.stderr.contains("savoir secret set DEMO_TOKEN"), "{run}");
    let run = sandbox.run(&["approve", "greet", "--yes"]);
    assert!(run.stdout.contains("DEMO_TOKEN"), "{run}");
}

#[test]
fn code_of_a_prompt_answers_with_an_envelope() {
    let sandbox = Sandbox::new();
    sandbox.write("answer/SKILL.md", "---\nname: answer\nversion: 1.0.0\ndescription: Answers. Use when asked.\nlicense: MIT\noutputs:\n  type: json\npermissions:\n  network: []\n  filesystem: []\n  env: []\n---\n\n# Answer\n\n```sh\necho '{\"answer\": 42}'\n```\n");
    approve(&sandbox, "answer");
    let run = sandbox.run(&["run", "answer", "--exec-fences", "--json"]);
    let envelope = run.json();
    assert_eq!(envelope["success"], true, "{run}");
    assert_eq!(envelope["parsed"]["answer"], 42, "{run}");
    let run = sandbox.run(&["run", "answer", "--exec-fences"]);
    assert_eq!(run.json()["answer"], 42, "{run}");
}
