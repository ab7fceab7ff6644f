//! The native interface of Ollama: a line of JSON for each piece.

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Decoder, Wrong, answer, names, openai, parse};
use crate::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, Usage,
    http::{Framing, Http},
};

/// An Ollama server.
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
        let open = async move { http.stream("api/chat", &body(&request), Framing::Lines).await };
        answer(self.http.clone(), Reader, open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("api/tags").await?;
            Ok(names(list.get("models"), "name").collect())
        }
        .boxed()
    }
}

fn body(request: &ChatRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len());
    for (position, said) in request.messages.iter().enumerate() {
        messages.push(message(said, &request.messages[..position]));
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
        body["tools"] = request.tools.iter().map(openai::tool).collect();
    }
    body
}

fn message(message: &Message, before: &[Message]) -> Value {
    match message {
        Message::System(text) => json!({ "role": "system", "content": text }),
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, tool_calls } => {
            let mut said = json!({ "role": "assistant", "content": text });
            if !tool_calls.is_empty() {
                said["tool_calls"] = tool_calls.iter().map(call).collect();
            }
            said
        }
        Message::Tool { call_id, content } => {
            let mut result = json!({ "role": "tool", "content": content });
            if let Some(name) = called(call_id, before) {
                result["tool_name"] = json!(name);
            }
            result
        }
    }
}

fn call(call: &ToolCall) -> Value {
    json!({ "function": { "name": call.name, "arguments": call.arguments } })
}

/// The function of a call: Ollama knows calls by the names of their functions.
fn called<'a>(id: &str, before: &'a [Message]) -> Option<&'a str> {
    before.iter().rev().find_map(|message| match message {
        Message::Assistant { tool_calls, .. } => {
            tool_calls.iter().find(|call| call.id == id).map(|call| call.name.as_str())
        }
        _ => None,
    })
}

/// Reads the lines of one answer.
#[derive(Debug)]
struct Reader;

#[derive(Deserialize)]
struct Line {
    message: Option<Said>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
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

impl Decoder for Reader {
    fn read(&mut self, frame: &str, answer: &mut Answer) -> Result<(), Wrong> {
        let line: Line = parse(frame)?;
        if let Some(error) = line.error {
            let message = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(Wrong::Refused { status: 500, message });
        }
        if line.message.is_none() && !line.done {
            return Err(Wrong::Garbled("a line without a message".to_owned()));
        }
        if let Some(said) = line.message {
            answer.text(&said.content.unwrap_or_default());
            for Called { id, function } in said.tool_calls.into_iter().flatten() {
                answer.call(&id, &function.name, function.arguments)?;
            }
        }
        if line.done {
            let (input, output) = (line.prompt_eval_count, line.eval_count);
            if input.is_some() || output.is_some() {
                let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
                answer.usage = Some(Usage { input, output });
            }
            answer.finish = Some(finish(line.done_reason.as_deref()));
            answer.closed = true;
        }
        Ok(())
    }
}

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        None | Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some(_) => Finish::Other,
    }
}
