//! Contains one client for each wire format of providers, and the decoding of streamed answers.

mod anthropic;
mod ollama;
mod openai;
mod quirks;

use std::collections::VecDeque;

use futures::stream::{self, BoxStream, StreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use self::{
    anthropic::{ANTHROPIC_API_VERSION, Anthropic},
    ollama::Ollama,
    openai::OpenAi,
};
use crate::{
    Chunk, Finish, ModelError, ToolCall, Usage,
    http::{Frames, Http},
    limits,
};

/// Decodes the frames of an answer in one wire format.
trait Decoder: Send {
    /// Decodes one frame.
    fn read(&mut self, frame: &str, answer: &mut AnswerState) -> Result<(), DecodeError>;

    /// Called at the end of the stream, when pending tool calls are complete.
    fn complete(&mut self, _answer: &mut AnswerState) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Why a frame of an answer cannot be used.
enum DecodeError {
    /// The frame cannot be parsed.
    InvalidResponse(String),
    /// The answer has more tool calls than the limit.
    TooManyCalls,
    /// The provider reported an error in the middle of the stream.
    Refused { status: u16, message: String },
}

/// The state of an answer that is being decoded, and chunks that the stream has not returned yet.
#[derive(Debug, Default)]
struct AnswerState {
    ready_chunks: VecDeque<Chunk>,
    call_count: usize,
    usage: Option<Usage>,
    finish: Option<Finish>,
    /// The provider signalled the end of the stream.
    stream_closed: bool,
    /// [`Chunk::End`] was queued.
    end_sent: bool,
}

impl AnswerState {
    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.ready_chunks.push_back(Chunk::Text(text.to_owned()));
        }
    }

    /// Queues a complete tool call. A call that the token limit cut off is dropped.
    fn push_tool_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: Value,
    ) -> Result<(), DecodeError> {
        let cut = self.finish == Some(Finish::Length);
        let arguments = match parse_arguments(arguments) {
            Ok(arguments) if !cut || arguments != json!({}) => arguments,
            // The tool runner reports the invalid arguments to the model.
            Err(sent) if !cut => sent,
            _ => return Ok(()),
        };
        self.call_count += 1;
        if self.call_count > limits::MAX_TOOL_CALLS {
            return Err(DecodeError::TooManyCalls);
        }
        if name.is_empty() {
            return Err(DecodeError::InvalidResponse("a tool call without a name".to_owned()));
        }
        let id = if id.is_empty() { format!("call_{}", self.call_count) } else { id.to_owned() };
        self.ready_chunks.push_back(Chunk::ToolCall(ToolCall {
            id,
            name: name.to_owned(),
            arguments,
        }));
        Ok(())
    }

    /// Queues the token usage and the end.
    fn push_end(&mut self) -> Result<(), DecodeError> {
        let finish = self.finish.ok_or_else(|| {
            DecodeError::InvalidResponse(
                "the answer ended early, without a reason to finish".to_owned(),
            )
        })?;
        self.ready_chunks.extend(self.usage.take().map(Chunk::Usage));
        // Some servers report `stop` although they wait for tool results.
        let waits = self.call_count > 0 && finish == Finish::Stop;
        self.ready_chunks.push_back(Chunk::End(if waits { Finish::ToolCalls } else { finish }));
        self.end_sent = true;
        Ok(())
    }
}

/// Parses tool arguments, which are an object or its JSON text. Missing arguments become an empty
/// object; `Err` returns anything else unchanged.
fn parse_arguments(arguments: Value) -> Result<Value, Value> {
    let parsed = match &arguments {
        Value::Null => Some(json!({})),
        Value::String(text) if text.trim().is_empty() => Some(json!({})),
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    };
    parsed.filter(Value::is_object).ok_or(arguments)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError::InvalidResponse(error.to_string()))
}

/// An answer that is being received.
struct AnswerStream<D> {
    http: Http,
    frames: Frames,
    decoder: D,
    answer: AnswerState,
}

impl<D: Decoder> AnswerStream<D> {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        loop {
            if let Some(chunk) = self.answer.ready_chunks.pop_front() {
                return Ok(Some(chunk));
            }
            if self.answer.end_sent {
                return Ok(None);
            }
            let frame = if self.answer.stream_closed { None } else { self.frame().await? };
            let read = match frame {
                Some(frame) => self.decoder.read(&frame, &mut self.answer),
                None => {
                    self.decoder.complete(&mut self.answer).and_then(|()| self.answer.push_end())
                }
            };
            read.map_err(|error_cause| self.error(error_cause))?;
        }
    }

    /// Returns the next frame. After the finish reason, it waits only briefly for further frames.
    async fn frame(&mut self) -> Result<Option<String>, ModelError> {
        if self.answer.finish.is_none() {
            return self.frames.next().await;
        }
        timeout(limits::USAGE_TIMEOUT, self.frames.next()).await.unwrap_or(Ok(None))
    }

    fn error(&self, error_cause: DecodeError) -> ModelError {
        match error_cause {
            DecodeError::InvalidResponse(message) => self.http.invalid_response(message),
            DecodeError::TooManyCalls => self.http.too_many_calls(),
            DecodeError::Refused { status, message } => self.http.status_error(status, &message),
        }
    }
}

/// Sends the request when the stream is first polled and yields chunks until the end or an error.
fn stream_answer<D, F>(
    http: Http,
    decoder: D,
    open: F,
) -> BoxStream<'static, Result<Chunk, ModelError>>
where
    D: Decoder + 'static,
    F: Future<Output = Result<Frames, ModelError>> + Send + 'static,
{
    stream::once(async move {
        match open.await {
            Ok(frames) => {
                chunk_stream(AnswerStream { http, frames, decoder, answer: AnswerState::default() })
            }
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    })
    .flatten()
    .boxed()
}

fn chunk_stream<D: Decoder + 'static>(
    incoming: AnswerStream<D>,
) -> BoxStream<'static, Result<Chunk, ModelError>> {
    stream::try_unfold(incoming, async |mut incoming| {
        Ok(incoming.next().await?.map(|chunk| (chunk, incoming)))
    })
    .boxed()
}

/// Returns the texts of `field` in the entries of a list.
fn texts_of_field<'a>(
    list: Option<&'a Value>,
    field: &'a str,
) -> impl Iterator<Item = String> + 'a {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(move |entry| Some(entry.get(field)?.as_str()?.to_owned()))
}
