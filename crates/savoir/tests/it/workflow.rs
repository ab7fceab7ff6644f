//! Tests `savoir workflow` without a server.

use crate::{
    live_server::{Provider, ProviderBehavior},
    support::Sandbox,
};

const ASK: &str = r#"{"name": "triage", "graph_data": {"nodes": [
    {"id": "s", "type": "start", "data": {}},
    {"id": "m", "type": "llm", "data": {"systemPrompt": "Be brief."}},
    {"id": "e", "type": "end", "data": {}}
], "edges": [
    {"id": "1", "source": "s", "target": "m"}, {"id": "2", "source": "m", "target": "e"}
]}}"#;

#[test]
fn a_file_is_checked() {
    let sandbox = Sandbox::new();
    sandbox.write("triage.json", ASK);
    let run = sandbox.run(&["workflow", "check", "triage.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "triage: 3 nodes, all fine\n"), "{run}");
    sandbox.write("none.json", r#"{"nodes": [{"id": "e", "type": "end"}], "edges": []}"#);
    let run = sandbox.run(&["workflow", "check", "none.json"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "error: none.json: it has no start node\n"));
    sandbox.write("wrong.json", r#"{"nodes": [{"id": "a", "type": "x"}]}"#);
    let run = sandbox.run(&["workflow", "check", "wrong.json", "--json"]);
    assert_eq!(run.json()["ok"], false, "{run}");
    assert!(run.stderr.contains("Unknown node type: 'x'"), "{run}");
}

#[test]
fn a_file_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("triage.json", ASK);
    let run = sandbox.run(&["workflow", "run", "triage.json", "--input", "x"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.starts_with("error: no language model is configured\n"), "{run}");
    let run = sandbox.run(&["workflow", "run", "triage.json", "--input", "x", "--json"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!((run.code, lines.len()), (2, 2), "{run}");
    assert!(lines[0].contains(r#""code":"no-model","help":["#), "{run}");
    assert!(lines[1].starts_with(r#"{"event":"done""#), "{run}");
    let provider = Provider::new(ProviderBehavior::Says(&["Call ", "the fire brigade."]));
    let run = |more: &[&str]| {
        let words = ["workflow", "run", "triage.json", "--input", "The printer is on fire"];
        let mut command = sandbox.command(&[&words[..], more].concat());
        provider.of(&mut command);
        let output = command.output().expect("savoir runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&[]), "Call the fire brigade.\n");
    let lines = run(&["--json"]);
    let names: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|event| event["event"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!((names[0].as_str(), names[names.len() - 1].as_str()), ("workflow_start", "done"));
    assert!(names.contains(&"token".to_owned()), "{names:?}");
}

#[test]
fn unapproved_steps_do_not_run() {
    let sandbox = Sandbox::new();
    let node = r#"{"nodes": [{"id": "s", "type": "start"}, {"id": "h", "type": "http", "data": {"method": "GET", "url": "http://127.0.0.1:1/"}}], "edges": [{"id": "1", "source": "s", "target": "h"}]}"#;
    sandbox.write("fetch.json", node);
    let run = sandbox.run(&["workflow", "run", "fetch.json", "--input", "x"]);
    assert_eq!(run.code, 1, "{run}");
    let expected = "error: a node sends a request or runs code, which is not allowed\n\
                    hint: a code node needs --allow-code, an http node --allow-http HOST\n";
    assert_eq!(run.stderr, expected, "{run}");
}
