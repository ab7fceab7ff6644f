//! Defines requests to language models and their streamed answers.

use std::fmt;

use futures::{future::BoxFuture, stream::BoxStream};
use serde_json::Value;

use crate::ModelError;

/// A client of a language model provider.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// Streams an answer. The request is sent when the stream is first polled and cancelled when
    /// the stream is dropped. The last item of a complete answer is [`Chunk::End`].
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>>;

    /// Lists the names of the models that the provider offers.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>>;
}

/// A conversation that the model continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The model name that the provider uses.
    pub model: String,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    /// Sampling temperature; `None` uses the provider's default.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of the answer; `None` uses the provider's default.
    pub max_tokens: Option<u32>,
    /// Tools that the model may call.
    pub tools: Vec<ToolDefinition>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The system prompt.
    System(String),
    /// A message from the user.
    User(String),
    /// An answer of the model.
    Assistant {
        text: String,
        /// The tool calls that the model asks for.
        tool_calls: Vec<ToolCall>,
    },
    /// The result of a tool call.
    Tool {
        /// The ID of the call that this message answers.
        call_id: String,
        content: String,
    },
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    /// A description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Identifies the call within one answer.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: an object, unless the model wrote something else.
    pub arguments: Value,
}

/// A part of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// A piece of the text; never empty.
    Text(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// Token usage. Sent once, before the end, by providers that report it.
    Usage(Usage),
    /// The answer is complete.
    End(Finish),
}

/// The number of tokens that a request used.
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
    /// The model finished its answer.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The provider cut the answer off, for example by a filter.
    Other,
}
