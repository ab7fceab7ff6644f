//! Tests `savoir run --events`: one line of JSON per event, and nothing else on standard output.

use serde_json::{Value, json};

use super::RunTestEnv;
use crate::support::Transcript;

fn events(run: &Transcript) -> Vec<Value> {
    let lines = run.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}: {run}")))
        .collect()
}

/// The path of a tool of a skill of the test.
fn target(test_env: &RunTestEnv, tool: &str) -> String {
    test_env.path("skills").join(tool).to_string_lossy().into_owned()
}

#[test]
fn output_arrives_before_the_result() {
    let test_env = RunTestEnv::with_commands(
        "",
        &[("talk", "", "sh -c \"echo one; sleep 0.2; printf 'zwei-é' >&2; exit 3\"")],
    );
    let run = test_env.savoir(&["run", "--events", &target(&test_env, "demo/talk")]);
    assert_eq!(run.code, 3, "{run}");
    let events = events(&run);
    let (result, printed) = events.split_last().expect("an event");
    let text = |stream: &str| -> String {
        let of_stream = printed.iter().filter(|event| event["data"]["stream"] == stream);
        of_stream.filter_map(|event| event["data"]["text"].as_str()).collect()
    };
    assert_eq!((text("stdout"), text("stderr")), ("one\n".to_owned(), "zwei-é".to_owned()));
    assert_eq!(result["event"], "result");
    assert_eq!(result["data"]["exit_code"], 3, "{run}");
}

#[test]
fn value_of_a_python_tool_is_in_the_result() {
    let test_env = RunTestEnv::with_example("hello-world");
    let run = test_env.savoir(&[
        "run",
        &target(&test_env, "hello-world/say_hello"),
        "--param",
        "name=Ada",
        "--events",
    ]);
    let events = events(&run);
    let result = events.last().expect("an event");
    assert_eq!(result["data"]["value"], json!({"greeting": "Hello, Ada!"}), "{run}");
}

#[test]
fn refused_run_lists_its_permissions() {
    let test_env = RunTestEnv::new();
    test_env.commands("demo", "network: true\n", &[("other", "", "echo other")]);
    let run = test_env.savoir(&["run", &target(&test_env, "demo/other"), "--events"]);
    assert_eq!(run.code, 3, "{run}");
    let events = events(&run);
    let [only] = events.as_slice() else { panic!("{run}") };
    assert_eq!((&only["event"], &only["data"]["code"]), (&json!("error"), &json!("not-approved")));
    let fingerprint = only["data"]["fingerprint"].as_str().expect("a fingerprint");
    assert!(only["data"]["permissions"].as_array().is_some_and(|all| !all.is_empty()), "{run}");
    let run = test_env.savoir(&[
        "run",
        &target(&test_env, "demo/other"),
        "--events",
        "--approve",
        fingerprint,
    ]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn wrong_call_is_an_error_event() {
    let test_env = RunTestEnv::with_example("hello-world");
    let run = test_env.savoir(&["run", &target(&test_env, "hello-world/none"), "--events"]);
    let events = events(&run);
    assert_eq!(events.last().expect("an event")["event"], "error", "{run}");
    assert!(events[0]["data"]["hints"].is_array(), "{run}");
}
