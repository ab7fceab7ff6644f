//! Codex: `codex exec --json`.

use serde_json::Value;

use super::{HeadlessAgent, Transcript};
use crate::trace::TokenUsage;

pub(super) const AGENT: HeadlessAgent = HeadlessAgent {
    id: "codex",
    program: "codex",
    helper: None,
    skills_folder: ".agents/skills",
    url_variable: "OPENAI_BASE_URL",
    default_url: "https://api.openai.com/v1",
    key_variable: "OPENAI_API_KEY",
    has_default_model: true,
    arguments: |call| {
        // A string of JSON is one of TOML, too.
        let url = Value::from(call.url);
        let provider = format!(
            "model_providers.savoir={{name=\"savoir\",base_url={url},env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}}"
        );
        let mut arguments = [
            "exec",
            "--json",
            "--skip-git-repo-check",
            // The sandbox of the trial takes the place of its own, which does not work within another.
            "--dangerously-bypass-approvals-and-sandbox",
            "-c",
            "model_provider=\"savoir\"",
            "-c",
            &provider,
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(model) = call.model {
            arguments.extend(["-m".to_owned(), model.to_owned()]);
        }
        arguments.push("-".to_owned());
        arguments
    },
    environment: |call| vec![("CODEX_HOME", call.home.join(".codex").display().to_string())],
    read,
};

fn read(event: &Value, transcript: &mut Transcript) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let item = &event["item"];
    match event["type"].as_str() {
        Some("item.started") if item["type"] == "command_execution" => {
            transcript.reads(&text(&item["command"]), AGENT.skills_folder);
        }
        Some("item.completed") => {
            let id = text(&item["id"]);
            match item["type"].as_str() {
                Some("agent_message") => transcript.says(&text(&item["text"])),
                Some("command_execution") => {
                    let command = text(&item["command"]);
                    transcript.run.requests += 1;
                    transcript.calls(&id, "shell", &serde_json::json!({"command": command}));
                    let has_failed = item["exit_code"].as_i64().is_some_and(|code| code != 0);
                    transcript.answers(&id, &text(&item["aggregated_output"]), has_failed);
                    transcript.reads(&command, AGENT.skills_folder);
                }
                Some("file_change") => {
                    transcript.run.requests += 1;
                    transcript.calls(&id, "apply_patch", &item["changes"]);
                }
                Some("mcp_tool_call") => {
                    transcript.run.requests += 1;
                    transcript.calls(&id, &text(&item["tool"]), &item["arguments"]);
                }
                _ => {}
            }
        }
        Some("turn.completed") => {
            transcript.is_done = true;
            // The one that answered.
            transcript.run.requests += 1;
            let number = |key: &str| event["usage"][key].as_u64().unwrap_or_default();
            transcript.run.usage += TokenUsage {
                input: number("input_tokens"),
                output: number("output_tokens"),
                incomplete: event["usage"].is_null(),
            };
        }
        Some("turn.failed") => transcript.failure = Some(text(&event["error"]["message"])),
        _ => {}
    }
}
