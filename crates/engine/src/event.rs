//! Events of runs, streamed to clients while the run happens.
//!
//! There is one type of event for prompts, conversations and workflows. Doors only render it: as
//! server-sent events, on a terminal, as JSON. The order of events is decided where a run is, and
//! nowhere else.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, ser::Formatter};
use thiserror::Error;
use tokio::sync::mpsc;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// What the run is about to do, or has done.
    Thought(Thought),
    /// A piece of an answer.
    Token {
        /// The node of a workflow that answers.
        node: Option<Arc<str>>,
        /// The words.
        content: String,
    },
    /// Where an answer comes from.
    Citation {
        /// The node of a workflow that searched.
        node: Option<Arc<str>>,
        /// All that was found.
        sources: Vec<CitedSource>,
    },
    /// The run failed.
    Error {
        /// Why, for people.
        message: String,
    },
    /// The last event of a run.
    Done(Done),
    /// A workflow begins or goes on.
    WorkflowStart {
        /// Which one.
        workflow_id: String,
        /// Its name.
        workflow_name: String,
        /// This run of it.
        execution_id: String,
        /// Whether it goes on where it stopped.
        resumed: bool,
    },
    /// A node begins.
    NodeStart {
        /// Which one.
        node_id: String,
        /// What it is.
        node_type: &'static str,
    },
    /// A node is done.
    NodeComplete {
        /// Which one.
        node_id: String,
        /// What came of it.
        output: Value,
        /// The status of the answer, for a node that asked a server.
        status_code: Option<u16>,
    },
    /// A node failed.
    NodeError {
        /// Which one.
        node_id: String,
        /// Why.
        error: String,
    },
    /// A workflow failed.
    WorkflowError {
        /// Why.
        error: String,
    },
    /// A workflow is done.
    WorkflowComplete {
        /// What came of it.
        final_output: Value,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Well.
    Success {
        /// For people.
        message: &'static str,
    },
    /// Not well.
    Error {
        /// Why, for people.
        message: String,
    },
    /// A workflow ended, well or not: the events before tell.
    Complete,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// What it is about: `validation`, `retrieval`, …
    topic: &'static str,
    /// The node of a workflow in which it happens.
    node: Option<Arc<str>>,
    /// Whether clients look for the topic under `type_detail`.
    detail: bool,
    /// Everything else, in order.
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

    /// The topic.
    pub fn topic(&self) -> &'static str {
        self.topic
    }

    /// A member.
    pub fn member(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    /// As a conversation tells a step of a workflow: the topic under `type`.
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

/// A passage that an answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CitedSource {
    /// The document.
    pub doc_id: String,
    /// The place in the document.
    pub chunk_index: u64,
    /// How well it fits.
    pub score: f64,
    /// The words, cut short.
    pub text: String,
}

impl Event {
    /// A piece of an answer outside of workflows.
    pub fn token(content: impl Into<String>) -> Self {
        Self::Token { node: None, content: content.into() }
    }

    /// The last event of a run that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Done(Done::Error { message: message.into() })
    }

    /// The word after `event:`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thought(_) => "thought",
            Self::Token { .. } => "token",
            Self::Citation { .. } => "citation",
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

    /// The members, in the order of the contract.
    pub fn data(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The event as the lines of a stream of server-sent events.
    pub fn to_sse(&self) -> String {
        sse(self.name(), self)
    }

    /// The same event, as one of a node of a workflow.
    fn of_node(self, id: &Arc<str>) -> Self {
        let node = Some(Arc::clone(id));
        match self {
            Self::Thought(thought) => Self::Thought(Thought { node, detail: true, ..thought }),
            Self::Token { content, .. } => Self::Token { node, content },
            Self::Citation { sources, .. } => Self::Citation { node, sources },
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
            Self::Error { message } => map.serialize_entry("message", message)?,
            Self::Done(Done::Success { message }) => {
                map.serialize_entry("status", "success")?;
                map.serialize_entry("message", message)?;
            }
            Self::Done(Done::Error { message }) => {
                map.serialize_entry("status", "error")?;
                map.serialize_entry("message", message)?;
            }
            Self::Done(Done::Complete) => map.serialize_entry("status", "complete")?,
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

/// One event of a stream of server-sent events: a blank after each comma and colon, all on one line.
pub fn sse(name: &str, data: &impl Serialize) -> String {
    let mut bytes = format!("event: {name}\ndata: ").into_bytes();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Only a map with keys that are no text, or a writer that fails, makes this fail.
    if data.serialize(&mut serializer).is_err() {
        tracing::error!(event = name, "an event cannot be written as JSON");
    }
    bytes.extend_from_slice(b"\n\n");
    String::from_utf8(bytes).unwrap_or_default()
}

/// JSON as clients of the original see it.
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

/// Nobody listens any more: the run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("nobody listens any more")]
pub struct Gone;

/// Where a run tells what happens. Clones tell the same listener.
#[derive(Clone, Debug)]
pub struct Emitter {
    sender: mpsc::Sender<Event>,
    node: Option<Arc<str>>,
    transcript: Option<Transcript>,
}

/// What was answered so far, for one who must know it also when the run is cut short.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    /// The words so far.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, words: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(words);
    }
}

/// Events that wait for a listener. A slow listener makes the run wait, not the memory grow.
const WAITING: usize = 16;

impl Emitter {
    /// An emitter and the place where its events arrive.
    pub fn channel() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self { sender, node: None, transcript: None }, receiver)
    }

    /// The same listener; thoughts, tokens and citations are those of a node, and errors are left
    /// to the workflow.
    #[must_use]
    pub fn for_node(&self, id: &str) -> Self {
        Self { node: Some(id.into()), ..self.clone() }
    }

    /// The same listener; tokens are written down, too.
    pub fn with_transcript(&self) -> (Self, Transcript) {
        let transcript = Transcript::default();
        (Self { transcript: Some(transcript.clone()), ..self.clone() }, transcript)
    }

    /// Tells an event, and waits until there is room for it.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<(), Gone> {
        let event = match (event.into(), &self.node) {
            // What fails in a node is told by the workflow, as the error of the node.
            (Event::Error { .. }, Some(_)) => return Ok(()),
            (event, Some(node)) => event.of_node(node),
            (event, None) => event,
        };
        if let (Some(transcript), Event::Token { content, .. }) = (&self.transcript, &event) {
            transcript.add(content);
        }
        self.sender.send(event).await.map_err(|_| Gone)
    }

    /// Waits until nobody listens.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blanks_after_commas_and_colons_and_letters_as_they_are() {
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
    async fn a_node_puts_its_name_on_what_it_tells() {
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
        assert_eq!(node.emit(Event::token("y")).await, Err(Gone));
    }
}
