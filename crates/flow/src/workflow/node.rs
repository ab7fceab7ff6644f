//! Executes workflow nodes by type.

mod code;
mod condition;
pub(super) mod http;
mod knowledge;
mod llm;
pub(super) mod skill;

use std::borrow::Cow;

use savoir_skill::Skill;
use savoir_store::Checkpoint;
use serde_json::Value;

use super::{
    graph::NodeKind,
    host::WorkflowHost,
    run::WorkflowRun,
    scope::{Scope, text_of},
    template::TextTooLong,
};
use crate::event::{Emitter, ListenerDisconnected};

/// The error of a node whose type is not enabled.
pub const DISABLED: &str = "This feature has been disabled by the administrator";

/// The data that a node can use.
pub(super) struct NodeContext<'a> {
    pub(super) host: &'a WorkflowHost,
    pub(super) run: &'a WorkflowRun<'a>,
    pub(super) id: &'a str,
    pub(super) input: Cow<'a, Value>,
    pub(super) checkpoint: &'a Checkpoint,
}

#[derive(Debug, Default)]
pub(super) struct NodeResult {
    pub(super) output: Value,
    pub(super) status_code: Option<u16>,
    /// A variable in which the output is also stored.
    pub(super) variable: Option<String>,
    /// The branch that a condition chose.
    pub(super) branch: Option<bool>,
    /// Further data of the result: `{{node.status}}` and `{{node.headers.name}}`.
    pub(super) details: Option<Value>,
    /// The question to the model and its answer, for the history.
    pub(super) exchange: Option<Exchange>,
}

/// A question to a model, and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) question: String,
    pub(super) answer: String,
}

/// Why a node did not complete.
#[derive(Debug)]
pub(super) enum NodeError {
    /// The error message for clients.
    Failed(String),
    /// The listener is gone.
    ListenerDisconnected,
}

impl NodeError {
    fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

impl From<ListenerDisconnected> for NodeError {
    fn from(_: ListenerDisconnected) -> Self {
        Self::ListenerDisconnected
    }
}

impl From<TextTooLong> for NodeError {
    fn from(error: TextTooLong) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Value> for NodeResult {
    fn from(output: Value) -> Self {
        Self { output, ..Self::default() }
    }
}

impl<'a> NodeContext<'a> {
    fn scope(&self) -> Scope<'_> {
        Scope::of(self.run.input, self.checkpoint)
    }

    fn input_text(&self) -> Cow<'_, str> {
        text_of(&self.input)
    }

    fn model<'b>(&self, own: Option<&'b str>) -> Option<&'b str>
    where
        'a: 'b,
    {
        own.or(self.run.model)
    }

    async fn skill(&self, name: &str) -> Result<Skill, NodeError> {
        let loaded = self.host.skill_lookup.load(name).await;
        loaded.map_err(|error| NodeError::Failed(format!("Failed to load skill '{name}': {error}")))
    }
}

/// Executes a node.
pub(super) async fn run_node(
    kind: &NodeKind,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    match kind {
        NodeKind::Start { variable } => {
            let output = context.input.clone().into_owned();
            Ok(NodeResult { output, variable: variable.clone(), ..NodeResult::default() })
        }
        NodeKind::Llm(llm) => llm::run(llm, context, out).await,
        NodeKind::Knowledge { base } => knowledge::run(base.as_deref(), context, out).await,
        NodeKind::Condition { expression } => condition::run(expression, context, out).await,
        NodeKind::Skill { name, mappings } => {
            skill::run(name.as_deref(), mappings.as_ref(), context, out).await
        }
        NodeKind::Http(http) => http::run(http, context, out).await,
        NodeKind::Code(code) => code::run(code, context, out).await,
        NodeKind::End => Ok(context.input.clone().into_owned().into()),
    }
}
