//! Defines the events that a run streams to clients.
//!
//! Prompts, conversations and workflows share one event type. Clients (server-sent events,
//! terminal, JSON) only render the events; the code that executes the run alone decides their
//! order.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use savoir_model::{Finish, Usage};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, ser::Formatter};
use thiserror::Error;
use tokio::sync::mpsc;

/// One event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A step that the run is about to do, or has done.
    Thought(Thought),
    /// A piece of an answer.
    Token {
        /// The node of a workflow that answers.
        node: Option<Arc<str>>,
        content: String,
    },
    /// The sources of an answer.
    Citation {
        /// The node of a workflow that searched.
        node: Option<Arc<str>>,
        /// All passages that were found.
        sources: Vec<CitedSource>,
    },
    /// The run did something other than its author may have meant.
    Warning {
        /// The node of a workflow that it is about.
        node: Option<Arc<str>>,
        /// What happened, and what to do about it.
        message: String,
    },
    /// A question whether a tool may run, or its answer. Only runs whose user can answer have them.
    Approval(Map<String, Value>),
    /// The run failed.
    Error {
        /// The reason, as a sentence.
        message: String,
        /// The stable identifier of the error, if it has one.
        code: Option<&'static str>,
    },
    /// The last event of a run.
    Done(Done),
    /// A workflow starts or resumes.
    WorkflowStart {
        workflow_id: String,
        workflow_name: String,
        /// The id of this run of the workflow.
        execution_id: String,
        /// Whether the run resumes from a checkpoint.
        resumed: bool,
    },
    NodeStart {
        node_id: String,
        /// The type of the node, such as `llm`.
        node_type: &'static str,
    },
    /// A node is done.
    NodeComplete {
        node_id: String,
        output: Value,
        /// The HTTP status, for a node that sent a request.
        status_code: Option<u16>,
    },
    /// A node failed.
    NodeError { node_id: String, error: String },
    /// A workflow failed.
    WorkflowError { error: String },
    /// A workflow is done.
    WorkflowComplete { final_output: Value },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Success {
        message: &'static str,
    },
    Error {
        /// The reason, as a sentence.
        message: String,
    },
    /// A workflow completed.
    Complete,
    /// A workflow failed; the event `workflow_error` says why.
    Failed,
}

/// A step of a run, shown to the user as progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// The kind of step: `validation`, `retrieval`, …
    topic: &'static str,
    /// The node of a workflow in which it happens.
    node: Option<Arc<str>>,
    /// Whether the topic is serialized as `type_detail` instead of `type`.
    detail: bool,
    /// The other members of the JSON object, in order.
    members: Map<String, Value>,
}

impl Thought {
    /// A step with a status.
    pub fn new(topic: &'static str, status: &'static str) -> Self {
        Self::about(topic).with("status", status)
    }

    /// A step without a status.
    pub fn about(topic: &'static str) -> Self {
        Self { topic, node: None, detail: false, members: Map::new() }
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }

    pub fn topic(&self) -> &'static str {
        self.topic
    }

    pub fn member(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    /// Serializes the topic as `type`, as conversations expect it for a step of a workflow.
    #[must_use]
    pub fn in_conversation(mut self) -> Self {
        self.detail = false;
        self
    }
}

impl From<Thought> for Event {
    fn from(thought: Thought) -> Self {
        Self::Thought(thought)
    }
}

impl Serialize for Thought {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(if self.detail { "type_detail" } else { "type" }, self.topic)?;
        if let Some(node) = &self.node
            && !self.members.contains_key("node_id")
        {
            map.serialize_entry("node_id", &**node)?;
        }
        for (key, value) in &self.members {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A passage that an answer is based on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CitedSource {
    /// The id of the document.
    pub doc_id: String,
    /// The index of the passage in the document.
    pub chunk_index: u64,
    /// The relevance of the passage.
    pub score: f64,
    /// The beginning of the passage.
    pub text: String,
}

impl Event {
    /// A piece of an answer outside of workflows.
    pub fn token(content: impl Into<String>) -> Self {
        Self::Token { node: None, content: content.into() }
    }

    /// A warning outside of workflows.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::Warning { node: None, message: message.into() }
    }

    /// The run failed for a reason without an identifier.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), code: None }
    }

    /// The last event of a run that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Done(Done::Error { message: message.into() })
    }

    /// The name in a server-sent event, after `event:`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thought(_) => "thought",
            Self::Token { .. } => "token",
            Self::Citation { .. } => "citation",
            Self::Warning { .. } => "warning",
            Self::Approval(_) => "approval",
            Self::Error { .. } => "error",
            Self::Done(_) => "done",
            Self::WorkflowStart { .. } => "workflow_start",
            Self::NodeStart { .. } => "node_start",
            Self::NodeComplete { .. } => "node_complete",
            Self::NodeError { .. } => "node_error",
            Self::WorkflowError { .. } => "workflow_error",
            Self::WorkflowComplete { .. } => "workflow_complete",
        }
    }

    /// The event as a JSON object, with the members in the order of the API contract.
    pub fn data(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The event as the text of a server-sent event.
    pub fn to_sse(&self) -> String {
        sse(self.name(), self)
    }

    /// Marks the event as one of a workflow node.
    fn of_node(self, id: &Arc<str>) -> Self {
        let node = Some(Arc::clone(id));
        match self {
            Self::Thought(thought) => Self::Thought(Thought { node, detail: true, ..thought }),
            Self::Token { content, .. } => Self::Token { node, content },
            Self::Citation { sources, .. } => Self::Citation { node, sources },
            Self::Warning { message, .. } => Self::Warning { node, message },
            other => other,
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Thought(thought) = self {
            return thought.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Thought(_) => {}
            Self::Approval(members) => {
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
            }
            Self::Token { node, content } => {
                if let Some(node) = node {
                    map.serialize_entry("node_id", &**node)?;
                }
                map.serialize_entry("content", content)?;
            }
            Self::Citation { node, sources } => {
                if let Some(node) = node {
                    map.serialize_entry("node_id", &**node)?;
                }
                map.serialize_entry("sources", sources)?;
            }
            Self::Warning { node, message } => {
                if let Some(node) = node {
                    map.serialize_entry("node_id", &**node)?;
                }
                map.serialize_entry("message", message)?;
            }
            Self::Error { message, code } => {
                map.serialize_entry("message", message)?;
                if let Some(code) = code {
                    map.serialize_entry("code", code)?;
                }
            }
            Self::Done(Done::Success { message }) => {
                map.serialize_entry("status", "success")?;
                map.serialize_entry("message", message)?;
            }
            Self::Done(Done::Error { message }) => {
                map.serialize_entry("status", "error")?;
                map.serialize_entry("message", message)?;
            }
            Self::Done(Done::Complete) => map.serialize_entry("status", "complete")?,
            Self::Done(Done::Failed) => map.serialize_entry("status", "error")?,
            Self::WorkflowStart { workflow_id, workflow_name, execution_id, resumed } => {
                map.serialize_entry("workflow_id", workflow_id)?;
                map.serialize_entry("workflow_name", workflow_name)?;
                map.serialize_entry("execution_id", execution_id)?;
                if *resumed {
                    map.serialize_entry("resumed", resumed)?;
                }
            }
            Self::NodeStart { node_id, node_type } => {
                map.serialize_entry("node_id", node_id)?;
                map.serialize_entry("node_type", node_type)?;
            }
            Self::NodeComplete { node_id, output, status_code } => {
                map.serialize_entry("node_id", node_id)?;
                map.serialize_entry("output", output)?;
                if let Some(status_code) = status_code {
                    map.serialize_entry("status_code", status_code)?;
                }
            }
            Self::NodeError { node_id, error } => {
                map.serialize_entry("node_id", node_id)?;
                map.serialize_entry("error", error)?;
            }
            Self::WorkflowError { error } => map.serialize_entry("error", error)?,
            Self::WorkflowComplete { final_output } => {
                map.serialize_entry("final_output", final_output)?;
            }
        }
        map.end()
    }
}

/// Formats a server-sent event: the JSON is on one line, with a space after each comma and colon.
pub fn sse(name: &str, data: &impl Serialize) -> String {
    let mut bytes = format!("event: {name}\ndata: ").into_bytes();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Serialization fails only for a map whose keys are not strings.
    if data.serialize(&mut serializer).is_err() {
        tracing::error!(event = name, "an event cannot be written as JSON");
    }
    bytes.extend_from_slice(b"\n\n");
    String::from_utf8(bytes).unwrap_or_default()
}

/// A JSON formatter that puts a space after each comma and colon, as clients of the original API
/// expect.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The error when the listener is gone, so that the run should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the listener has disconnected")]
pub struct ListenerDisconnected;

/// One model request, for the record of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// The node of a workflow that sent the request.
    pub node: Option<Arc<str>>,
    /// `provider:model`
    pub model: String,
    /// The token counts, if the provider reports them, or an estimate.
    pub usage: Option<Usage>,
    /// Whether `usage` is an estimate, because the answer was stopped before the provider reported
    /// it.
    pub is_estimate: bool,
    /// Why the answer ended; `None` if it failed or was cancelled.
    pub finish: Option<Finish>,
    /// What failed, in words for users.
    pub error: Option<String>,
    pub duration: Duration,
}

/// The model requests of one run. They are not events, because the API contract defines the events
/// of a stream.
#[derive(Clone, Debug, Default)]
pub struct ModelCalls(Arc<Mutex<Vec<ModelCall>>>);

impl ModelCalls {
    fn add(&self, call: ModelCall) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Whether no emitter can add a request: the run has ended.
    pub fn is_complete(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Removes and returns the requests so far.
    pub fn take(&self) -> Vec<ModelCall> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends the events of a run to its listener. Clones send to the same listener.
#[derive(Clone, Debug)]
pub struct Emitter {
    sender: mpsc::Sender<Event>,
    node: Option<Arc<str>>,
    transcript: Option<Transcript>,
    calls: ModelCalls,
    /// Whether tokens are dropped, because the caller checks the answer before it emits it.
    drops_tokens: bool,
}

/// The answer so far, for a caller that needs it even when the run is cancelled.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, words: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(words);
    }
}

/// Events that are buffered for a listener. A slow listener makes the run wait, instead of using
/// more memory.
const EVENT_BUFFER: usize = 16;

impl Emitter {
    /// Creates an emitter and the receiver of its events.
    pub fn channel() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(EVENT_BUFFER);
        let calls = ModelCalls::default();
        (Self { sender, node: None, transcript: None, calls, drops_tokens: false }, receiver)
    }

    /// An emitter with another listener, for a run within this one.
    pub fn nested(&self) -> (Self, mpsc::Receiver<Event>) {
        let (inner, events) = Self::channel();
        (Self { calls: self.calls.clone(), ..inner }, events)
    }

    /// Returns the model requests of this run.
    pub fn model_calls(&self) -> ModelCalls {
        self.calls.clone()
    }

    /// Records a model request.
    pub fn note_model_call(&self, call: ModelCall) {
        let node = call.node.or_else(|| self.node.clone());
        self.calls.add(ModelCall { node, ..call });
    }

    /// An emitter for one node of a workflow: thoughts, tokens and citations carry the id of the
    /// node, and errors are not sent, because the workflow reports them.
    #[must_use]
    pub fn for_node(&self, id: &str) -> Self {
        Self { node: Some(id.into()), ..self.clone() }
    }

    /// An emitter for an answer that must be checked first: it drops tokens, and its caller emits
    /// the whole answer as one token.
    #[must_use]
    pub fn without_tokens(&self) -> Self {
        Self { drops_tokens: true, ..self.clone() }
    }

    /// An emitter that also writes its tokens into a transcript.
    pub fn with_transcript(&self) -> (Self, Transcript) {
        let transcript = Transcript::default();
        (Self { transcript: Some(transcript.clone()), ..self.clone() }, transcript)
    }

    /// Sends an event; waits until the buffer has room.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<(), ListenerDisconnected> {
        let event = match (event.into(), &self.node) {
            // The workflow reports an error in a node as `NodeError`.
            (Event::Error { .. }, Some(_)) => return Ok(()),
            (Event::Token { .. }, _) if self.drops_tokens => return Ok(()),
            (event, Some(node)) => event.of_node(node),
            (event, None) => event,
        };
        if let (Some(transcript), Event::Token { content, .. }) = (&self.transcript, &event) {
            transcript.add(content);
        }
        self.sender.send(event).await.map_err(|_| ListenerDisconnected)
    }

    /// Waits until the listener is gone.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_has_spaces_and_unescaped_letters() {
        let event = Event::from(
            Thought::new("retrieval", "complete")
                .with("top_results", json!([{"a": 1, "b": "é\n"}])),
        );
        assert_eq!(
            event.to_sse(),
            "event: thought\ndata: {\"type\": \"retrieval\", \"status\": \"complete\", \
             \"top_results\": [{\"a\": 1, \"b\": \"é\\n\"}]}\n\n"
        );
        assert_eq!(
            sse("x", &json!({"a": [], "b": {}})),
            "event: x\ndata: {\"a\": [], \"b\": {}}\n\n"
        );
    }

    #[tokio::test]
    async fn events_of_a_node_have_its_id() {
        let (emitter, mut events) = Emitter::channel();
        let node = emitter.for_node("n1");
        node.emit(Thought::new("validation", "start")).await.unwrap();
        node.emit(Event::token("x")).await.unwrap();
        assert_eq!(
            events.recv().await.unwrap().data().to_string(),
            r#"{"type_detail":"validation","node_id":"n1","status":"start"}"#
        );
        assert_eq!(
            events.recv().await.unwrap().data().to_string(),
            r#"{"node_id":"n1","content":"x"}"#
        );
        drop(events);
        assert_eq!(node.emit(Event::token("y")).await, Err(ListenerDisconnected));
    }
}
