//! opencode: `opencode run --format json`.

use serde_json::{Value, json};

use super::{HeadlessAgent, Transcript};
use crate::trace::TokenUsage;

pub(super) const AGENT: HeadlessAgent = HeadlessAgent {
    id: "opencode",
    program: "opencode",
    helper: Some("rg"),
    skills_folder: ".agents/skills",
    url_variable: "OPENAI_BASE_URL",
    default_url: "https://api.openai.com/v1",
    key_variable: "OPENAI_API_KEY",
    has_default_model: false,
    arguments: |call| {
        let model = format!("savoir/{}", call.model.unwrap_or_default());
        ["run", "--format", "json", "--title", "trial", "-m", &model].map(str::to_owned).to_vec()
    },
    environment: |call| {
        let model = call.model.unwrap_or_default();
        let settings = json!({
            "model": format!("savoir/{model}"),
            "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"},
            "provider": {"savoir": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": call.url, "apiKey": "{env:OPENAI_API_KEY}"},
                "models": {model: {}},
            }},
        });
        vec![
            ("OPENCODE_CONFIG_CONTENT", settings.to_string()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ]
    },
    read,
};

fn read(event: &Value, transcript: &mut Transcript) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = &event["part"];
    match event["type"].as_str() {
        Some("text") => transcript.says(&text(&part["text"])),
        Some("tool_use") => {
            let (id, state) = (text(&part["callID"]), &part["state"]);
            let tool = text(&part["tool"]);
            transcript.calls(&id, &tool, &state["input"]);
            let has_failed = state["status"] == "error";
            let said = if has_failed { &state["error"] } else { &state["output"] };
            transcript.answers(&id, &text(said), has_failed);
            match tool.as_str() {
                "skill" if !has_failed => transcript.uses(&text(&state["input"]["name"])),
                "read" => transcript.reads(&text(&state["input"]["filePath"]), AGENT.skills_folder),
                "bash" => transcript.reads(&text(&state["input"]["command"]), AGENT.skills_folder),
                _ => {}
            }
        }
        Some("step_finish") => {
            transcript.run.requests += 1;
            let tokens = &part["tokens"];
            let number = |value: &Value| value.as_u64().unwrap_or_default();
            transcript.run.usage += TokenUsage {
                input: number(&tokens["input"]) + number(&tokens["cache"]["read"]),
                output: number(&tokens["output"]) + number(&tokens["reasoning"]),
                incomplete: tokens.is_null(),
            };
            transcript.is_done |= part["reason"] == "stop" || part["reason"] == "length";
        }
        Some("error") => {
            let error = &event["error"];
            let message = error["data"]["message"].as_str().or_else(|| error["name"].as_str());
            transcript.failure = Some(message.unwrap_or("it names no reason").to_owned());
        }
        _ => {}
    }
}
