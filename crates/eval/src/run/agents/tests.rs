use serde_json::json;

use super::*;
use crate::trace::TokenUsage;

fn read_all(agent: HeadlessAgent, events: &[Value]) -> Transcript {
    let mut transcript = Transcript::default();
    for event in events {
        (agent.read)(event, &mut transcript);
    }
    transcript
}

fn ended(transcript: Transcript, end: ProcessEnd) -> Result<HostRun, String> {
    let errors = "a line\nit has no key".to_owned();
    EndedAgent { transcript, end, is_enough: false, errors }.into_run("codex", 5)
}

#[test]
fn the_output_of_claude_code_is_read() {
    let events = [
        json!({"type": "system", "subtype": "init"}),
        json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "1", "name": "Skill", "input": {"skill": "totals"}}]}}),
        json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "Launching", "is_error": true}]}}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "42"}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "42",
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5}}),
    ];
    let transcript = read_all(claude_code::AGENT, &events);
    let run = ended(transcript, ProcessEnd::Exited(0)).unwrap();
    assert_eq!(
        (run.answer.as_str(), run.skills_used.as_slice()),
        ("42", &["totals".to_owned()][..])
    );
    assert_eq!(run.usage, TokenUsage { input: 7, output: 5, incomplete: false });
    assert_eq!((run.requests, run.calls[0].failure.as_deref()), (2, Some("tool-failed")));
    let failed = [json!({"type": "result", "is_error": true, "result": "Invalid API key"})];
    let failed = ended(read_all(claude_code::AGENT, &failed), ProcessEnd::Exited(1));
    assert_eq!(failed.unwrap_err(), "codex failed: Invalid API key");
}

#[test]
fn the_output_of_codex_is_read() {
    let events = [
        json!({"type": "item.completed", "item": {"id": "i", "type": "command_execution",
            "command": "bash -lc 'cat /w/.agents/skills/totals/SKILL.md'", "exit_code": 1,
            "aggregated_output": "text"}}),
        json!({"type": "item.completed", "item": {"id": "j", "type": "agent_message", "text": "42"}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2}}),
    ];
    let run = ended(read_all(codex::AGENT, &events), ProcessEnd::Exited(0)).unwrap();
    assert_eq!(
        (run.answer.as_str(), run.skills_used.as_slice()),
        ("42", &["totals".to_owned()][..])
    );
    assert_eq!((run.usage.total(), run.requests), (12, 2));
    let failed = [json!({"type": "turn.failed", "error": {"message": "no such model"}})];
    let failed = ended(read_all(codex::AGENT, &failed), ProcessEnd::Exited(1));
    assert_eq!(failed.unwrap_err(), "codex failed: no such model");
    let silent = ended(Transcript::default(), ProcessEnd::Exited(1)).unwrap_err();
    assert!(silent.contains("no answer") && silent.contains("it has no key"), "{silent}");
    let late = ended(Transcript::default(), ProcessEnd::TimedOut).unwrap_err();
    assert_eq!(late, "the agent did not finish within 5 s");
}

#[test]
fn the_output_of_opencode_is_read() {
    let events = [
        json!({"type": "tool_use", "part": {"callID": "1", "tool": "skill",
            "state": {"status": "completed", "input": {"name": "totals"}, "output": "x"}}}),
        json!({"type": "step_finish", "part": {"reason": "tool-calls",
            "tokens": {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 3}}}}),
        json!({"type": "text", "part": {"text": "42"}}),
        json!({"type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 1, "output": 1}}}),
    ];
    let run = ended(read_all(opencode::AGENT, &events), ProcessEnd::Exited(0)).unwrap();
    assert_eq!(
        (run.answer.as_str(), run.skills_used.as_slice()),
        ("42", &["totals".to_owned()][..])
    );
    assert_eq!((run.usage.total(), run.requests), (8, 2));
}

#[test]
fn missing_keys_models_and_programs_have_hints() {
    let find = |id: &str, model, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        AgentHost::find(id, model, &variable).unwrap_err()
    };
    for (error, words) in [
        (find("pi", None, &[]), "not an agent"),
        (find("opencode", None, &[]), "name of a model"),
        (find("codex", None, &[("PATH", "/nowhere")]), "not installed"),
    ] {
        assert!(error.to_string().contains(words) && !error.hint().is_empty(), "{error}");
    }
}

#[test]
fn an_agent_without_its_helper_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("opencode"), "").expect("a program");
    let variable = |name: &str| match name {
        "PATH" => Some(folder.path().display().to_string()),
        "OPENAI_BASE_URL" => Some("http://127.0.0.1:9/v1".to_owned()),
        _ => None,
    };
    let error = AgentHost::find("opencode", Some("m"), &variable).expect_err("no rg");
    assert!(matches!(error, AgentError::NoHelper { helper: "rg", .. }), "{error}");
    assert!(error.hint().contains("rg --version"), "{}", error.hint());
}
