//! Tests `savoir models`, and errors without a model.

use std::{
    io::Read as _,
    process::{Command, Stdio},
};

use crate::{
    live_server::{Provider, ProviderBehavior},
    support::{GOOD, Sandbox},
};

#[test]
fn reachable_models_are_listed() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["models"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(
        run.stderr.starts_with(
            "error: no language model is configured\nhint: set an environment variable: OPENAI_API_KEY=…"
        ),
        "{run}"
    );

    let provider = Provider::new(ProviderBehavior::Refuses);
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
fn prompt_without_a_model_is_an_error_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    let run = sandbox.run(&["run", "demo"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains("hint: set an environment variable: OPENAI_API_KEY=…"), "{run}");
    assert!(
        run.stderr.ends_with("hint: `savoir render` shows the prompt without a model\n"),
        "{run}"
    );
}

#[test]
fn prompt_failures_are_events() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    for (words, code) in [
        (&["demo"][..], "no-model"),
        (&["demo", "--model", "nobody:x"], "no-model"),
        (&["demo", "--input", "a=b"], "unknown-input"),
        (&["demo", "--param", "a=b"], "invalid-call"),
    ] {
        let run = sandbox.run(&[&["run", "--json"], words].concat());
        assert_eq!(run.code, 2, "{run}");
        let events: Vec<serde_json::Value> =
            run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let names: Vec<_> = events.iter().map(|event| event["event"].as_str()).collect();
        assert_eq!(names, [Some("error"), Some("done")], "{run}");
        let error = &events[0]["data"];
        assert_eq!(error["code"], code, "{run}");
        let help = error["help"][0].as_str().unwrap_or_else(|| panic!("no help: {run}"));
        assert!(run.stderr.contains(&format!("hint: {help}\n")), "{run}");
        assert_eq!(events[1]["data"]["status"], "error", "{run}");
        assert_eq!(events[1]["data"]["message"], error["message"], "{run}");
    }
}

#[test]
fn prompt_contains_the_path_of_the_skill_folder() {
    let sandbox = Sandbox::new();
    let text = "---\nname: shot\ndescription: Takes shots.\nmetadata:\n  openclaw:\n    requires: {bins: [sh]}\n---\n\nRun `{baseDir}/shot.sh`.\n";
    sandbox.write("shot/SKILL.md", text);
    let provider = Provider::new(ProviderBehavior::Says(&["Done."]));
    let mut command = sandbox.command(&["run", "shot"]);
    provider.of(&mut command);
    let output = command.output().expect("savoir runs");
    assert!(output.status.success(), "{output:?}");
    let asked = &provider.questions()[0]["messages"][1]["content"];
    let rendered = sandbox.run(&["render", "shot"]).stdout;
    let folder = sandbox.path("shot").canonicalize().expect("a folder");
    assert!(rendered.contains(&format!("`{}/shot.sh`", folder.display())), "{rendered}");
    assert_eq!(asked.as_str().map(str::trim_end), Some(rendered.trim_end()));
}

const REVIEW: &str = "---\nname: review\nversion: 1.0.0\ndescription: Reviews.\nruntime: {type: markdown-skill}\noutputs:\n  type: json\n  schema:\n    type: object\n    required: [verdict]\n    properties:\n      verdict: {enum: [approve, comment]}\n---\n\nReview it.\n";

#[test]
fn answer_is_validated_against_the_output_schema() {
    let sandbox = Sandbox::new();
    sandbox.write("review/SKILL.md", REVIEW);
    let run = |words: &'static [&'static str], json: &[&str]| {
        let provider = Provider::new(ProviderBehavior::Says(words));
        let mut command = sandbox.command(&[&["run", "review"], json].concat());
        provider.of(&mut command);
        let output = command.output().expect("savoir runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["```json\n{\"verdict\":", " \"approve\"}\n```"], &[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "{\"verdict\": \"approve\"}\n");
    let (code, stdout, stderr) = run(&["{\"verdict\": \"maybe\"}"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("{\"verdict\": \"maybe\"}\nerror: "), "{stderr}");
    assert!(
        stderr.contains("does not match the schema: /verdict: value must be one of"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&["Looks good."], &["--json"]);
    assert_eq!(code, Some(1), "{stderr}");
    let last: Vec<&str> = stdout.lines().rev().take(2).collect();
    assert!(last[1].starts_with(r#"{"event":"error","data":{"message":"the answer is not JSON"#));
    assert!(last[0].contains(r#""status":"error""#), "{stdout}");
}

#[test]
fn model_errors_are_reported_to_the_user() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", GOOD);
    let provider = Provider::new(ProviderBehavior::Refuses);
    let run = |words: &[&str]| {
        let mut command = sandbox.command(words);
        provider.of(&mut command);
        let output = command.output().expect("savoir runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["run", "demo"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("openai answered 401: the key is wrong\nhint: "), "{stderr}");
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
    let provider = Provider::new(ProviderBehavior::Dawdles);
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
