//! `models`, and what is said where there is none.

use std::{
    io::Read as _,
    process::{Command, Stdio},
};

use crate::{
    house::{Manner, Provider},
    support::{GOOD, Sandbox},
};

#[test]
fn what_can_be_reached_is_listed() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["models"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(
        run.stderr.starts_with(
            "error: no language model is configured\nhelp: set one in a line: OPENAI_API_KEY=…"
        ),
        "{run}"
    );

    let provider = Provider::new(Manner::Refuses);
    let mut command = sandbox.command(&["models", "--json"]);
    provider.of(&mut command);
    let output = command.output().expect("savoir runs");
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(listed["providers"][0]["models"], serde_json::json!(["echo-1"]));
    assert_eq!(output.status.code(), Some(0));

    let mut command = sandbox.command(&["models"]);
    command.env("OLLAMA_HOST", "http://127.0.0.1:1");
    let output = command.output().expect("savoir runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ollama cannot be reached at http://127.0.0.1:1"), "{said}");
}

#[test]
fn a_prompt_needs_a_model_and_says_how_to_get_one() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    let run = sandbox.run(&["run", "demo"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains("help: set one in a line: OPENAI_API_KEY=…"), "{run}");
    assert!(
        run.stderr.ends_with("help: `savoir render` shows the prompt without a model\n"),
        "{run}"
    );
    let run = sandbox.run(&["run", "demo", "--json"]);
    assert_eq!(run.json()["code"], "no-model", "{run}");
}

#[test]
fn why_a_model_failed_is_told_to_who_asked_it() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    let provider = Provider::new(Manner::Refuses);
    let run = |words: &[&str]| {
        let mut command = sandbox.command(words);
        provider.of(&mut command);
        let output = command.output().expect("savoir runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["run", "demo"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("openai answered 401: the key is wrong\nhelp: "), "{stderr}");
    let (code, _, stderr) = run(&["run", "demo", "--model", "anthropic:x"]);
    assert!(matches!(code, Some(1 | 2)), "{stderr}");
    let (code, stdout, stderr) = run(&["run", "demo", "--json"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("openai answered 401"), "{stderr}");
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.contains(r#""event":"done""#), "{stdout}");
}

#[test]
fn an_interrupt_ends_an_answer() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    let provider = Provider::new(Manner::Dawdles);
    let mut command = sandbox.command(&["run", "demo"]);
    provider.of(&mut command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("savoir");
    let mut first = [0; 10];
    child.stdout.as_mut().expect("an answer").read_exact(&mut first).expect("words");
    assert_eq!(&first, b"and so on ");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("savoir ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.ends_with(b"\n"), "the line is ended");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: the run was stopped\n");
}
