//! Claude Code: `claude -p` with a stream of JSON.

use serde_json::Value;

use super::{HeadlessAgent, Transcript};
use crate::trace::TokenUsage;

pub(super) const AGENT: HeadlessAgent = HeadlessAgent {
    id: "claude-code",
    program: "claude",
    helper: None,
    skills_folder: ".claude/skills",
    url_variable: "ANTHROPIC_BASE_URL",
    default_url: "https://api.anthropic.com",
    key_variable: "ANTHROPIC_API_KEY",
    has_default_model: true,
    arguments: |call| {
        let steps = call.max_steps.to_string();
        let mut arguments = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Skill,Read,Write,Edit,Glob,Grep,Bash",
            "--max-turns",
            &steps,
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(model) = call.model {
            arguments.extend(["--model".to_owned(), model.to_owned()]);
        }
        arguments
    },
    environment: |call| {
        vec![
            ("CLAUDE_CONFIG_DIR", call.home.join(".claude").display().to_string()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    },
    read,
};

fn read(event: &Value, transcript: &mut Transcript) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let content = event["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
    match event["type"].as_str() {
        Some("assistant") => {
            transcript.run.requests += 1;
            for part in content {
                match part["type"].as_str() {
                    Some("text") => transcript.says(&text(&part["text"])),
                    Some("tool_use") => {
                        let (name, input) = (text(&part["name"]), &part["input"]);
                        transcript.calls(&text(&part["id"]), &name, input);
                        match name.as_str() {
                            "Skill" => {
                                let given = input.get("skill").or_else(|| input.get("command"));
                                transcript.uses(given.and_then(Value::as_str).unwrap_or_default());
                            }
                            "Read" => {
                                transcript.reads(&text(&input["file_path"]), AGENT.skills_folder);
                            }
                            "Bash" => {
                                transcript.reads(&text(&input["command"]), AGENT.skills_folder);
                            }
                            _ => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        Some("user") => {
            for part in content.iter().filter(|part| part["type"] == "tool_result") {
                let said = match &part["content"] {
                    Value::String(said) => said.clone(),
                    other => other.to_string(),
                };
                transcript.answers(&text(&part["tool_use_id"]), &said, part["is_error"] == true);
            }
        }
        Some("result") => {
            transcript.is_done = true;
            let number = |key: &str| event["usage"][key].as_u64().unwrap_or_default();
            let cached = number("cache_creation_input_tokens") + number("cache_read_input_tokens");
            transcript.run.usage = TokenUsage {
                input: number("input_tokens") + cached,
                output: number("output_tokens"),
                incomplete: event["usage"].is_null(),
            };
            match event["subtype"].as_str() {
                Some("error_max_turns") => {
                    transcript.run.limit = Some("the number of steps".to_owned());
                }
                _ if event["is_error"] == true => {
                    transcript.failure = Some(text(&event["result"]));
                }
                _ => transcript.run.answer = text(&event["result"]),
            }
        }
        _ => {}
    }
}
