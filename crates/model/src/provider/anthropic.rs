//! The Messages API of Anthropic.

mod body;

use std::{collections::BTreeMap, mem::take};

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Decoder, Wrong, answer, names, parse, peculiar::Peculiarities};
use crate::{ChatRequest, Chunk, Finish, LanguageModel, ModelError, Usage, http::Http, limits};

/// The version of the interface that is spoken here.
pub(crate) const VERSION: &str = "2023-06-01";

/// A server that speaks the Messages API.
#[derive(Clone, Debug)]
pub(crate) struct Anthropic {
    http: Http,
    peculiarities: Peculiarities,
}

impl Anthropic {
    pub(crate) fn new(http: Http) -> Self {
        Self { http, peculiarities: Peculiarities::default() }
    }
}

impl LanguageModel for Anthropic {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let Self { http, peculiarities } = self.clone();
        let open = async move {
            let content = body::body(&request);
            peculiarities.ask(&http, "v1/messages", &request.model, content).await
        };
        answer(self.http.clone(), Events::default(), open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("v1/models?limit=1000").await?;
            Ok(names(list.get("data"), "id").collect())
        }
        .boxed()
    }
}

/// Reads the events of one message.
#[derive(Debug, Default)]
struct Events {
    calls: BTreeMap<u64, Call>,
    usage: Option<Usage>,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    /// What the block began with; it counts if nothing follows.
    input: Value,
    json: String,
    closed: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Piece,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: End,
        usage: Option<Cost>,
    },
    MessageStop,
    Error {
        error: Failure,
    },
    /// `ping`, and what may be added to the interface.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Cost>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct End {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Cost {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    written: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    read: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

impl Decoder for Events {
    fn read(&mut self, frame: &str, answer: &mut Answer) -> Result<(), Wrong> {
        match parse(frame)? {
            Event::MessageStart { message } => self.count(message.usage),
            Event::ContentBlockStart { index, content_block } => {
                self.start(index, content_block, answer)?;
            }
            Event::ContentBlockDelta { index, delta } => self.add(index, delta, answer),
            Event::ContentBlockStop { index } => {
                if let Some(call) = self.calls.get_mut(&index) {
                    call.closed = true;
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.count(usage);
                if let Some(reason) = delta.stop_reason {
                    answer.finish = Some(finish(&reason));
                    self.hand_on(answer)?;
                }
            }
            Event::MessageStop => answer.closed = true,
            Event::Error { error } => {
                return Err(Wrong::Refused { status: error.status(), message: error.message });
            }
            Event::Other => {}
        }
        answer.usage = self.usage;
        Ok(())
    }
}

impl Events {
    /// Later counts take the place of earlier ones. What was cached was also read.
    fn count(&mut self, cost: Option<Cost>) {
        let Some(cost) = cost else { return };
        let usage = self.usage.get_or_insert_default();
        if let Some(input) = cost.input {
            usage.input =
                [cost.written, cost.read].into_iter().flatten().fold(input, u64::saturating_add);
        }
        if let Some(output) = cost.output {
            usage.output = output;
        }
    }

    /// Hands on the calls. They wait for the reason to finish: a limit may have cut off the last.
    fn hand_on(&mut self, answer: &mut Answer) -> Result<(), Wrong> {
        for Call { id, name, input, json, closed } in take(&mut self.calls).into_values() {
            if !closed {
                return Err(Wrong::Garbled(
                    "the answer ended early, within a tool call".to_owned(),
                ));
            }
            answer.call(&id, &name, if json.is_empty() { input } else { Value::String(json) })?;
        }
        Ok(())
    }

    fn start(&mut self, index: u64, block: Block, answer: &mut Answer) -> Result<(), Wrong> {
        match block {
            Block::Text { text } => answer.text(&text),
            Block::ToolUse { id, name, input } => {
                if self.calls.len() == limits::TOOL_CALLS {
                    return Err(Wrong::TooManyCalls);
                }
                self.calls
                    .insert(index, Call { id, name, input, json: String::new(), closed: false });
            }
            Block::Other => {}
        }
        Ok(())
    }

    fn add(&mut self, index: u64, delta: Piece, answer: &mut Answer) {
        match delta {
            Piece::TextDelta { text } => answer.text(&text),
            Piece::InputJsonDelta { partial_json } => {
                // Tools that the provider runs itself have blocks of other kinds.
                if let Some(call) = self.calls.get_mut(&index) {
                    call.json.push_str(&partial_json);
                }
            }
            Piece::Other => {}
        }
    }
}

impl Failure {
    /// The status that the same error has outside of a stream.
    fn status(&self) -> u16 {
        match self.kind.as_str() {
            "invalid_request_error" => 400,
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "rate_limit_error" => 429,
            "overloaded_error" => 529,
            _ => 500,
        }
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        _ => Finish::Other,
    }
}
