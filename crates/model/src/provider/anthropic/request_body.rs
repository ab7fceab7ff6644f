//! Builds the request body of the Messages API, in which the system prompt is separate and roles
//! alternate.

use serde_json::{Value, json};

use crate::{ChatRequest, Message, ToolDefinition, limits};

pub(super) fn build_request_body(request: &ChatRequest) -> Value {
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_tokens.unwrap_or(limits::DEFAULT_MAX_TOKENS),
        "messages": messages(&request.messages),
        "stream": true,
    });
    let system: Vec<_> = request.messages.iter().filter_map(system_text).collect();
    if !system.is_empty() {
        body["system"] = json!(system.join("\n\n"));
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool_value).collect();
    }
    body
}

fn system_text(message: &Message) -> Option<&str> {
    match message {
        Message::System(text) => Some(text),
        _ => None,
    }
}

/// Converts messages and merges neighbors of the same role, because the results of several calls
/// belong in one message.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (role, content_blocks) in messages.iter().filter_map(content_blocks) {
        match turns.last_mut() {
            Some((last, known)) if *last == role => known.extend(content_blocks),
            _ => turns.push((role, content_blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn content_blocks(message: &Message) -> Option<(&'static str, Vec<Value>)> {
    match message {
        Message::System(_) => None,
        Message::User(text) => Some(("user", vec![json!({ "type": "text", "text": text })])),
        Message::Assistant { text, tool_calls } => {
            // The API refuses empty texts.
            let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
            let calls = tool_calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments })
            });
            let content_blocks: Vec<_> = said.into_iter().chain(calls).collect();
            (!content_blocks.is_empty()).then_some(("assistant", content_blocks))
        }
        Message::Tool { call_id, content } => {
            let result = json!({
                "type": "tool_result", "tool_use_id": call_id, "content": content,
            });
            Some(("user", vec![result]))
        }
    }
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let ToolDefinition { name, description, parameters } = tool;
    json!({ "name": name, "description": description, "input_schema": parameters })
}
