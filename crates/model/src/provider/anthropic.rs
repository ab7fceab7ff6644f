//! Implements a client of the Anthropic Messages API.

mod request_body;

use std::{collections::BTreeMap, mem::take};

use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde::Deserialize;
use serde_json::Value;

use super::{
    AnswerState, DecodeError, Decoder, parse, quirks::ModelQuirks, stream_answer, texts_of_field,
};
use crate::{ChatRequest, Chunk, Finish, LanguageModel, ModelError, Usage, http::Http, limits};

/// The API version that this client implements.
pub(crate) const ANTHROPIC_API_VERSION: &str = "2023-06-01";

/// Client of a Messages API server.
#[derive(Clone, Debug)]
pub(crate) struct Anthropic {
    http: Http,
    quirks: ModelQuirks,
}

impl Anthropic {
    pub(crate) fn new(http: Http) -> Self {
        Self { http, quirks: ModelQuirks::default() }
    }
}

impl LanguageModel for Anthropic {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let Self { http, quirks } = self.clone();
        let open = async move {
            let content = request_body::build_request_body(&request);
            quirks.open_stream(&http, "v1/messages", &request.model, content).await
        };
        stream_answer(self.http.clone(), AnthropicDecoder::default(), open)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async move {
            let list: Value = self.http.get("v1/models?limit=1000").await?;
            Ok(texts_of_field(list.get("data"), "id").collect())
        }
        .boxed()
    }
}

/// Decodes the events of one message.
#[derive(Debug, Default)]
struct AnthropicDecoder {
    calls: BTreeMap<u64, PendingCall>,
    usage: Option<Usage>,
}

#[derive(Debug)]
struct PendingCall {
    id: String,
    name: String,
    /// The input of the start event; used if no deltas follow.
    input: Value,
    json: String,
    closed: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        index: u64,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: MessageEnd,
        usage: Option<TokenCounts>,
    },
    MessageStop,
    Error {
        error: StreamError,
    },
    /// `ping`, and events that the API may add later.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<TokenCounts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
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
enum BlockDelta {
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
struct MessageEnd {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct TokenCounts {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_written: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    read: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
}

#[derive(Deserialize)]
struct StreamError {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

impl Decoder for AnthropicDecoder {
    fn read(&mut self, frame: &str, answer: &mut AnswerState) -> Result<(), DecodeError> {
        match parse(frame)? {
            Event::MessageStart { message } => self.update_usage(message.usage),
            Event::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block, answer)?;
            }
            Event::ContentBlockDelta { index, delta } => self.apply_delta(index, delta, answer),
            Event::ContentBlockStop { index } => {
                if let Some(call) = self.calls.get_mut(&index) {
                    call.closed = true;
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.update_usage(usage);
                if let Some(reason) = delta.stop_reason {
                    answer.finish = Some(finish_reason(&reason));
                    self.push_calls(answer)?;
                }
            }
            Event::MessageStop => answer.stream_closed = true,
            Event::Error { error } => {
                return Err(DecodeError::Refused {
                    status: error.status(),
                    message: error.message,
                });
            }
            Event::Other => {}
        }
        answer.usage = self.usage;
        Ok(())
    }
}

impl AnthropicDecoder {
    /// Updates the token usage: later counts replace earlier ones, and cached tokens count as
    /// input.
    fn update_usage(&mut self, counts: Option<TokenCounts>) {
        let Some(counts) = counts else { return };
        let usage = self.usage.get_or_insert_default();
        if let Some(input) = counts.input {
            usage.input = [counts.cache_written, counts.read]
                .into_iter()
                .flatten()
                .fold(input, u64::saturating_add);
        }
        if let Some(output) = counts.output {
            usage.output = output;
        }
    }

    /// Queues the tool calls. The caller waits for the finish reason first, because the token limit
    /// may have cut off the last call.
    fn push_calls(&mut self, answer: &mut AnswerState) -> Result<(), DecodeError> {
        for PendingCall { id, name, input, json, closed } in take(&mut self.calls).into_values() {
            if !closed {
                return Err(DecodeError::InvalidResponse(
                    "the answer ended early, within a tool call".to_owned(),
                ));
            }
            answer.push_tool_call(
                &id,
                &name,
                if json.is_empty() { input } else { Value::String(json) },
            )?;
        }
        Ok(())
    }

    fn start_block(
        &mut self,
        index: u64,
        block: ContentBlock,
        answer: &mut AnswerState,
    ) -> Result<(), DecodeError> {
        match block {
            ContentBlock::Text { text } => answer.push_text(&text),
            ContentBlock::ToolUse { id, name, input } => {
                if self.calls.len() == limits::MAX_TOOL_CALLS {
                    return Err(DecodeError::TooManyCalls);
                }
                self.calls.insert(
                    index,
                    PendingCall { id, name, input, json: String::new(), closed: false },
                );
            }
            ContentBlock::Other => {}
        }
        Ok(())
    }

    fn apply_delta(&mut self, index: u64, delta: BlockDelta, answer: &mut AnswerState) {
        match delta {
            BlockDelta::TextDelta { text } => answer.push_text(&text),
            BlockDelta::InputJsonDelta { partial_json } => {
                // Tools that the provider runs itself use other kinds of blocks.
                if let Some(call) = self.calls.get_mut(&index) {
                    call.json.push_str(&partial_json);
                }
            }
            BlockDelta::Other => {}
        }
    }
}

impl StreamError {
    /// Returns the HTTP status that the same error has outside of a stream.
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

fn finish_reason(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        _ => Finish::Other,
    }
}
