//! Chat completions as `OpenAI` defined them and many others speak them.

mod calls;

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::{Value, json};

use self::calls::{Calls, Part};
use super::{Answer, Decoder, Wrong, answer, names, parse, peculiar::Peculiarities};
use crate::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, ToolDefinition,
    Usage, http::Http,
};

/// A server that speaks chat completions.
#[derive(Clone, Debug)]
pub(crate) struct OpenAi {
    http: Http,
    peculiarities: Peculiarities,
}

impl OpenAi {
    pub(crate) fn new(http: Http) -> Self {
        Self { http, peculiarities: Peculiarities::default() }
    }
}

impl LanguageModel for OpenAi {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let Self { http, peculiarities } = self.clone();
        let open = async move {
            let content = body(&request);
            peculiarities.ask(&http, "chat/completions", &request.model, content).await
        };
        answer(self.http.clone(), Completion::default(), open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("models").await?;
            Ok(names(list.get("data"), "id").collect())
        }
        .boxed()
    }
}

fn body(request: &ChatRequest) -> Value {
    let mut body = json!({
        "model": request.model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(tokens) = request.max_tokens {
        body["max_tokens"] = json!(tokens);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(text) => json!({ "role": "system", "content": text }),
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, tool_calls } if tool_calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, tool_calls } => {
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            let calls: Vec<_> = tool_calls.iter().map(call).collect();
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
        Message::Tool { call_id, content } => {
            json!({ "role": "tool", "tool_call_id": call_id, "content": content })
        }
    }
}

fn call(call: &ToolCall) -> Value {
    let arguments = call.arguments.to_string();
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// A function as `OpenAI` and Ollama want it.
pub(super) fn tool(tool: &ToolDefinition) -> Value {
    let ToolDefinition { name, description, parameters } = tool;
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

/// Reads the events of one completion.
#[derive(Debug, Default)]
struct Completion {
    calls: Calls,
}

#[derive(Deserialize)]
struct Event {
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    tool_calls: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Decoder for Completion {
    fn read(&mut self, frame: &str, answer: &mut Answer) -> Result<(), Wrong> {
        if frame.trim() == "[DONE]" {
            // The sign of the end counts as a finish where no other one was given.
            answer.finish.get_or_insert(Finish::Stop);
            answer.closed = true;
            return Ok(());
        }
        let event: Event = parse(frame)?;
        if let Some(error) = event.error {
            return Err(failure(&error));
        }
        for choice in
            event.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.choice(choice, answer)?;
        }
        if let Some(Tokens { prompt_tokens, completion_tokens }) = event.usage {
            let (input, output) = (prompt_tokens.unwrap_or(0), completion_tokens.unwrap_or(0));
            answer.usage = Some(Usage { input, output });
        }
        Ok(())
    }

    fn complete(&mut self, answer: &mut Answer) -> Result<(), Wrong> {
        if answer.finish.is_some() { self.calls.hand_on(answer) } else { Ok(()) }
    }
}

impl Completion {
    fn choice(&mut self, choice: Choice, answer: &mut Answer) -> Result<(), Wrong> {
        if let Some(delta) = choice.delta {
            say(delta.content.as_ref(), answer);
            for part in delta.tool_calls.into_iter().flatten() {
                self.calls.add(part)?;
            }
        }
        // Some servers send an empty reason until there is one.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            answer.finish = Some(finish(&reason));
            self.calls.hand_on(answer)?;
        }
        Ok(())
    }
}

/// Words come as a text, or as a list of parts of which some are texts.
fn say(content: Option<&Value>, answer: &mut Answer) {
    match content {
        Some(Value::String(text)) => answer.text(text),
        Some(parts @ Value::Array(_)) => {
            for text in names(Some(parts), "text") {
                answer.text(&text);
            }
        }
        _ => {}
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        _ => Finish::Other,
    }
}

/// An error in the middle of a stream, with the status that it names.
fn failure(error: &Value) -> Wrong {
    let status = ["code", "status"].iter().find_map(|field| error.get(field)?.as_u64());
    let status = status.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let message = error.get("message").and_then(Value::as_str).or(error.as_str());
    Wrong::Refused { status, message: message.map_or_else(|| error.to_string(), str::to_owned) }
}
