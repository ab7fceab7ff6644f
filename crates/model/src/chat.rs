//! What is said to a language model, and what it answers.

use std::fmt;

use futures::{future::BoxFuture, stream::BoxStream};
use serde_json::Value;

use crate::ModelError;

/// Something that answers.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// Answers piece by piece. The request is sent when the stream is first polled and given up when
    /// it is dropped. The last piece of a whole answer is [`Chunk::End`].
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>>;

    /// The names of the models that it offers.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>>;
}

/// One question with all that was said before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The model, as its provider names it.
    pub model: String,
    /// What was said, oldest first.
    pub messages: Vec<Message>,
    /// Sampling temperature; the provider's own if there is none.
    pub temperature: Option<f64>,
    /// Most tokens of the answer; the provider's own if there is none.
    pub max_tokens: Option<u32>,
    /// Functions that the model may ask for.
    pub tools: Vec<ToolDefinition>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What the model is told to be.
    System(String),
    /// What a person said.
    User(String),
    /// What the model said.
    Assistant {
        /// Its words.
        text: String,
        /// The functions that it asked for.
        tool_calls: Vec<ToolCall>,
    },
    /// What a function returned.
    Tool {
        /// The call that it answers.
        call_id: String,
        /// The result.
        content: String,
    },
}

/// A function that a model may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A function that a model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Names the call among those of one answer.
    pub id: String,
    /// The function.
    pub name: String,
    /// Its arguments: an object, unless the model wrote something else.
    pub arguments: Value,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Some words; never empty.
    Text(String),
    /// A whole call: its arguments are complete.
    ToolCall(ToolCall),
    /// What the answer cost. Comes once, before the end, from providers that tell.
    Usage(Usage),
    /// The answer is complete.
    End(Finish),
}

/// What an answer cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the question.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model had no more to say.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The provider cut it off, for example by a filter.
    Other,
}
