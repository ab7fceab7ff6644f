//! Implements a client of the native Ollama API, which streams one JSON document per line.

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AnswerState, DecodeError, Decoder, openai, parse, stream_answer, texts_of_field};
use crate::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, Usage,
    http::{Framing, Http},
};

/// A client of an Ollama server.
#[derive(Clone, Debug)]
pub(crate) struct Ollama {
    http: Http,
}

impl Ollama {
    pub(crate) fn new(http: Http) -> Self {
        Self { http }
    }
}

impl LanguageModel for Ollama {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let http = self.http.clone();
        let open = async move {
            http.stream("api/chat", &build_request_body(&request), Framing::Lines).await
        };
        stream_answer(self.http.clone(), OllamaDecoder, open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("api/tags").await?;
            Ok(texts_of_field(list.get("models"), "name").collect())
        }
        .boxed()
    }
}

fn build_request_body(request: &ChatRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len());
    for (position, line_message) in request.messages.iter().enumerate() {
        messages.push(message(line_message, &request.messages[..position]));
    }
    let mut options = Map::new();
    if let Some(temperature) = request.temperature {
        options.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(tokens) = request.max_tokens {
        options.insert("num_predict".to_owned(), json!(tokens));
    }
    let mut body = json!({ "model": request.model, "messages": messages, "stream": true });
    if !options.is_empty() {
        body["options"] = Value::Object(options);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(openai::tool_value).collect();
    }
    body
}

fn message(message: &Message, before: &[Message]) -> Value {
    match message {
        Message::System(text) => json!({ "role": "system", "content": text }),
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, tool_calls } => {
            let mut line_message = json!({ "role": "assistant", "content": text });
            if !tool_calls.is_empty() {
                line_message["tool_calls"] = tool_calls.iter().map(call).collect();
            }
            line_message
        }
        Message::Tool { call_id, content } => {
            let mut result = json!({ "role": "tool", "content": content });
            if let Some(name) = tool_name_of_call(call_id, before) {
                result["tool_name"] = json!(name);
            }
            result
        }
    }
}

fn call(call: &ToolCall) -> Value {
    json!({ "function": { "name": call.name, "arguments": call.arguments } })
}

/// Returns the tool name of a call, because Ollama identifies calls by tool name.
fn tool_name_of_call<'a>(id: &str, before: &'a [Message]) -> Option<&'a str> {
    before.iter().rev().find_map(|message| match message {
        Message::Assistant { tool_calls, .. } => {
            tool_calls.iter().find(|call| call.id == id).map(|call| call.name.as_str())
        }
        _ => None,
    })
}

/// Decodes the lines of one answer.
#[derive(Debug)]
struct OllamaDecoder;

#[derive(Deserialize)]
struct ChatLine {
    message: Option<LineMessage>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct LineMessage {
    content: Option<String>,
    tool_calls: Option<Vec<LineToolCall>>,
}

#[derive(Deserialize)]
struct LineToolCall {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Decoder for OllamaDecoder {
    fn read(&mut self, frame: &str, answer: &mut AnswerState) -> Result<(), DecodeError> {
        let line: ChatLine = parse(frame)?;
        if let Some(error) = line.error {
            let message = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(DecodeError::Refused { status: 500, message });
        }
        if line.message.is_none() && !line.done {
            return Err(DecodeError::InvalidResponse("a line without a message".to_owned()));
        }
        if let Some(line_message) = line.message {
            answer.push_text(&line_message.content.unwrap_or_default());
            for LineToolCall { id, function } in line_message.tool_calls.into_iter().flatten() {
                answer.push_tool_call(&id, &function.name, function.arguments)?;
            }
        }
        if line.done {
            let (input, output) = (line.prompt_eval_count, line.eval_count);
            if input.is_some() || output.is_some() {
                let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
                answer.usage = Some(Usage { input, output });
            }
            answer.finish = Some(finish_reason(line.done_reason.as_deref()));
            answer.stream_closed = true;
        }
        Ok(())
    }
}

fn finish_reason(reason: Option<&str>) -> Finish {
    match reason {
        None | Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some(_) => Finish::Other,
    }
}
