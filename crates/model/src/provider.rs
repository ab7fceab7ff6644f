//! Those who answer, each in a wire format of its own.

mod anthropic;
mod ollama;
mod openai;
mod peculiar;

use std::collections::VecDeque;

use futures::stream::{self, BoxStream, StreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use self::{
    anthropic::{Anthropic, VERSION},
    ollama::Ollama,
    openai::OpenAi,
};
use crate::{
    Chunk, Finish, ModelError, ToolCall, Usage,
    http::{Frames, Http},
    limits,
};

/// Reads the pieces of an answer in one wire format.
trait Decoder: Send {
    /// Reads one piece.
    fn read(&mut self, frame: &str, answer: &mut Answer) -> Result<(), Wrong>;

    /// Nothing more will come; calls that are still being put together are complete.
    fn complete(&mut self, _answer: &mut Answer) -> Result<(), Wrong> {
        Ok(())
    }
}

/// What is wrong with a piece of an answer.
enum Wrong {
    /// It cannot be read.
    Garbled(String),
    /// It has more calls than are taken.
    TooManyCalls,
    /// It says that the provider failed half-way.
    Refused { status: u16, message: String },
}

/// An answer as far as it is known, and what of it was not yet handed on.
#[derive(Debug, Default)]
struct Answer {
    ready: VecDeque<Chunk>,
    calls: usize,
    usage: Option<Usage>,
    finish: Option<Finish>,
    /// The provider said that nothing follows.
    closed: bool,
    /// Its end was handed on.
    over: bool,
}

impl Answer {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.ready.push_back(Chunk::Text(text.to_owned()));
        }
    }

    /// A whole call. One that the limit of tokens cut off is left out.
    fn call(&mut self, id: &str, name: &str, arguments: Value) -> Result<(), Wrong> {
        let cut = self.finish == Some(Finish::Length);
        let arguments = match whole_object(arguments) {
            Ok(arguments) if !cut || arguments != json!({}) => arguments,
            // Whoever carries out calls tells the model what is wrong with this one.
            Err(sent) if !cut => sent,
            _ => return Ok(()),
        };
        self.calls += 1;
        if self.calls > limits::TOOL_CALLS {
            return Err(Wrong::TooManyCalls);
        }
        if name.is_empty() {
            return Err(Wrong::Garbled("a tool call without a name".to_owned()));
        }
        let id = if id.is_empty() { format!("call_{}", self.calls) } else { id.to_owned() };
        self.ready.push_back(Chunk::ToolCall(ToolCall { id, name: name.to_owned(), arguments }));
        Ok(())
    }

    /// Hands on what it cost and that it is over.
    fn conclude(&mut self) -> Result<(), Wrong> {
        let finish = self.finish.ok_or_else(|| {
            Wrong::Garbled("the answer ended early, without a reason to finish".to_owned())
        })?;
        self.ready.extend(self.usage.take().map(Chunk::Usage));
        // Some servers call it a stop although they wait for results.
        let waits = self.calls > 0 && finish == Finish::Stop;
        self.ready.push_back(Chunk::End(if waits { Finish::ToolCalls } else { finish }));
        self.over = true;
        Ok(())
    }
}

/// Arguments come as an object or as its text; none at all are an empty object. Anything else is given
/// back as it was sent.
fn whole_object(arguments: Value) -> Result<Value, Value> {
    let parsed = match &arguments {
        Value::Null => Some(json!({})),
        Value::String(text) if text.trim().is_empty() => Some(json!({})),
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    };
    parsed.filter(Value::is_object).ok_or(arguments)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    serde_json::from_str(text).map_err(|error| Wrong::Garbled(error.to_string()))
}

/// An answer that is on its way.
struct Incoming<D> {
    http: Http,
    frames: Frames,
    decoder: D,
    answer: Answer,
}

impl<D: Decoder> Incoming<D> {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        loop {
            if let Some(chunk) = self.answer.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.answer.over {
                return Ok(None);
            }
            let frame = if self.answer.closed { None } else { self.frame().await? };
            let read = match frame {
                Some(frame) => self.decoder.read(&frame, &mut self.answer),
                None => {
                    self.decoder.complete(&mut self.answer).and_then(|()| self.answer.conclude())
                }
            };
            read.map_err(|wrong| self.error(wrong))?;
        }
    }

    /// The next piece. What follows the finish is welcome but not waited for.
    async fn frame(&mut self) -> Result<Option<String>, ModelError> {
        if self.answer.finish.is_none() {
            return self.frames.next().await;
        }
        timeout(limits::TAIL, self.frames.next()).await.unwrap_or(Ok(None))
    }

    fn error(&self, wrong: Wrong) -> ModelError {
        match wrong {
            Wrong::Garbled(message) => self.http.garbled(message),
            Wrong::TooManyCalls => self.http.too_many_calls(),
            Wrong::Refused { status, message } => self.http.refused(status, &message),
        }
    }
}

/// Opens an answer when it is first polled and hands on its pieces until the end or an error.
fn answer<D, F>(http: Http, decoder: D, open: F) -> BoxStream<'static, Result<Chunk, ModelError>>
where
    D: Decoder + 'static,
    F: Future<Output = Result<Frames, ModelError>> + Send + 'static,
{
    stream::once(async move {
        match open.await {
            Ok(frames) => pieces(Incoming { http, frames, decoder, answer: Answer::default() }),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    })
    .flatten()
    .boxed()
}

fn pieces<D: Decoder + 'static>(
    incoming: Incoming<D>,
) -> BoxStream<'static, Result<Chunk, ModelError>> {
    stream::try_unfold(incoming, async |mut incoming| {
        Ok(incoming.next().await?.map(|chunk| (chunk, incoming)))
    })
    .boxed()
}

/// The text of a list's entries.
fn names<'a>(list: Option<&'a Value>, field: &'a str) -> impl Iterator<Item = String> + 'a {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(move |entry| Some(entry.get(field)?.as_str()?.to_owned()))
}
