//! Implements a client of the chat completions API of `OpenAI` and compatible servers.

mod calls;

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::{Value, json};

use self::calls::{CallPart, PendingCalls};
use super::{
    AnswerState, DecodeError, Decoder, parse, quirks::ModelQuirks, stream_answer, texts_of_field,
};
use crate::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, ToolDefinition,
    Usage, http::Http,
};

/// Client of a chat completions server.
#[derive(Clone, Debug)]
pub(crate) struct OpenAi {
    http: Http,
    quirks: ModelQuirks,
}

impl OpenAi {
    pub(crate) fn new(http: Http) -> Self {
        Self { http, quirks: ModelQuirks::default() }
    }
}

impl LanguageModel for OpenAi {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let Self { http, quirks } = self.clone();
        let open = async move {
            let content = build_request_body(&request);
            quirks.open_stream(&http, "chat/completions", &request.model, content).await
        };
        stream_answer(self.http.clone(), OpenAiDecoder::default(), open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("models").await?;
            Ok(texts_of_field(list.get("data"), "id").collect())
        }
        .boxed()
    }
}

fn build_request_body(request: &ChatRequest) -> Value {
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
        body["tools"] = request.tools.iter().map(tool_value).collect();
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

/// Returns a tool definition in the format of `OpenAI` and Ollama.
pub(super) fn tool_value(tool: &ToolDefinition) -> Value {
    let ToolDefinition { name, description, parameters } = tool;
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

/// Decodes the events of one completion.
#[derive(Debug, Default)]
struct OpenAiDecoder {
    calls: PendingCalls,
}

#[derive(Deserialize)]
struct CompletionEvent {
    choices: Option<Vec<CompletionChoice>>,
    usage: Option<TokenCounts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct TokenCounts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Decoder for OpenAiDecoder {
    fn read(&mut self, frame: &str, answer: &mut AnswerState) -> Result<(), DecodeError> {
        if frame.trim() == "[DONE]" {
            // The end marker counts as the finish reason if there was no other.
            answer.finish.get_or_insert(Finish::Stop);
            answer.stream_closed = true;
            return Ok(());
        }
        let event: CompletionEvent = parse(frame)?;
        if let Some(error) = event.error {
            return Err(stream_error(&error));
        }
        for choice in
            event.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.choice(choice, answer)?;
        }
        if let Some(TokenCounts { prompt_tokens, completion_tokens }) = event.usage {
            let (input, output) = (prompt_tokens.unwrap_or(0), completion_tokens.unwrap_or(0));
            answer.usage = Some(Usage { input, output });
        }
        Ok(())
    }

    fn complete(&mut self, answer: &mut AnswerState) -> Result<(), DecodeError> {
        if answer.finish.is_some() { self.calls.push_calls(answer) } else { Ok(()) }
    }
}

impl OpenAiDecoder {
    fn choice(
        &mut self,
        choice: CompletionChoice,
        answer: &mut AnswerState,
    ) -> Result<(), DecodeError> {
        if let Some(delta) = choice.delta {
            push_content(delta.content.as_ref(), answer);
            for part in delta.tool_calls.into_iter().flatten() {
                self.calls.add(part)?;
            }
        }
        // Some servers send an empty reason before the last event.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            answer.finish = Some(finish_reason(&reason));
            self.calls.push_calls(answer)?;
        }
        Ok(())
    }
}

/// Queues the content of a message, which is a text or a list of parts, some of which are texts.
fn push_content(content: Option<&Value>, answer: &mut AnswerState) {
    match content {
        Some(Value::String(text)) => answer.push_text(text),
        Some(parts @ Value::Array(_)) => {
            for text in texts_of_field(Some(parts), "text") {
                answer.push_text(&text);
            }
        }
        _ => {}
    }
}

fn finish_reason(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        _ => Finish::Other,
    }
}

/// Returns an error that arrived in the middle of a stream, with the status that it names.
fn stream_error(error: &Value) -> DecodeError {
    let status = ["code", "status"].iter().find_map(|field| error.get(field)?.as_u64());
    let status = status.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let message = error.get("message").and_then(Value::as_str).or(error.as_str());
    DecodeError::Refused {
        status,
        message: message.map_or_else(|| error.to_string(), str::to_owned),
    }
}
