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
    graph::Work,
    host::Host,
    run::WorkflowRun,
    scope::{Scope, text_of},
    template::TooLong,
};
use crate::event::{Emitter, Gone};

/// The error of a node whose type is not enabled.
pub const DISABLED: &str = "This feature has been disabled by the administrator";

/// The data that a node can use.
pub(super) struct Given<'a> {
    pub(super) host: &'a Host,
    pub(super) run: &'a WorkflowRun<'a>,
    pub(super) id: &'a str,
    pub(super) input: Cow<'a, Value>,
    pub(super) checkpoint: &'a Checkpoint,
}

/// The result of a node.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) output: Value,
    pub(super) status_code: Option<u16>,
    /// A variable in which the output is stored, too.
    pub(super) variable: Option<String>,
    /// The branch that a condition chose.
    pub(super) branch: Option<bool>,
    /// The question to a model and its answer, for the history.
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
pub(super) enum Stop {
    /// The error message for clients.
    Failed(String),
    /// The listener is gone.
    Gone,
}

impl Stop {
    fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<TooLong> for Stop {
    fn from(error: TooLong) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Value> for Done {
    fn from(output: Value) -> Self {
        Self { output, ..Self::default() }
    }
}

impl<'a> Given<'a> {
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

    async fn skill(&self, name: &str) -> Result<Skill, Stop> {
        let loaded = self.host.shelf.load(name).await;
        loaded.map_err(|error| Stop::Failed(format!("Failed to load skill '{name}': {error}")))
    }
}

/// Executes a node.
pub(super) async fn perform(work: &Work, given: &Given<'_>, out: &Emitter) -> Result<Done, Stop> {
    match work {
        Work::Start { variable } => {
            let output = given.input.clone().into_owned();
            Ok(Done { output, variable: variable.clone(), ..Done::default() })
        }
        Work::Llm(llm) => llm::perform(llm, given, out).await,
        Work::Knowledge { base } => knowledge::perform(base.as_deref(), given, out).await,
        Work::Condition { expression } => condition::perform(expression, given, out).await,
        Work::Skill { name, mappings } => {
            skill::perform(name.as_deref(), mappings.as_ref(), given, out).await
        }
        Work::Http(http) => http::perform(http, given).await,
        Work::Code(code) => code::perform(code, given).await,
        Work::End => Ok(given.input.clone().into_owned().into()),
    }
}
