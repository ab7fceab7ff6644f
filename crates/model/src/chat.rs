//! Requests to language models and their streamed answers.

use std::fmt;

use futures::{future::BoxFuture, stream::BoxStream};
use serde_json::Value;

use crate::ModelError;

/// A client of a language model provider.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// Streams an answer. The request is sent when the stream is first polled and cancelled when it
    /// is dropped. The last item of a complete answer is [`Chunk::End`].
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>>;

    /// The names of the models that it offers.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>>;
}

/// A conversation to continue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The model, as its provider names it.
    pub model: String,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    /// Sampling temperature; the provider's own if there is none.
    pub temperature: Option<f64>,
    /// Most tokens of the answer; the provider's own if there is none.
    pub max_tokens: Option<u32>,
    /// Tools that the model may call.
    pub tools: Vec<ToolDefinition>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The system prompt.
    System(String),
    /// A message of the user.
    User(String),
    /// An answer of the model.
    Assistant {
        /// Its text.
        text: String,
        /// The tools that it calls.
        tool_calls: Vec<ToolCall>,
    },
    /// The result of a tool call.
    Tool {
        /// The call that it answers.
        call_id: String,
        /// The result.
        content: String,
    },
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Identifies the call within one answer.
    pub id: String,
    /// The function.
    pub name: String,
    /// Its arguments: an object, unless the model wrote something else.
    pub arguments: Value,
}

/// A part of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Some text; never empty.
    Text(String),
    /// A whole call: its arguments are complete.
    ToolCall(ToolCall),
    /// Token usage. Comes once, before the end, from providers that report it.
    Usage(Usage),
    /// The answer is complete.
    End(Finish),
}

/// Tokens that a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The provider cut it off, for example by a filter.
    Other,
}
