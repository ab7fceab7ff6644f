//! Defines the `Toolset` trait: tools that a model can call, and their answers.

use std::fmt;

use futures::future::BoxFuture;
use savoir_engine::record::AccessSummary;
use savoir_model::ToolDefinition;
use savoir_skill::allow_list::OfferedTool;
use serde_json::{Map, Value, json};

use super::allowed_tools::CallGuard;

/// The built-in tools that no allow-list removes, so that an agent can always switch skills.
pub(crate) const ALWAYS_ALLOWED: [&str; 2] = ["use_skill", "read_skill_file"];

/// A set of tools that a model can call.
pub trait Toolset: fmt::Debug + Send + Sync {
    /// The tools that are available now.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Calls one of the tools. An implementation that asks the user must check `call_guard` again
    /// after the answer, because another skill may have been loaded during the question.
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        call_guard: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer>;

    /// Whether the tool set asks the user about calls for which an allow-list cannot decide whether
    /// they are allowed. Other tool sets refuse such calls.
    fn asks_about_doubts(&self) -> bool {
        false
    }
}

/// A tool that is offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name, the description and the parameters.
    pub definition: ToolDefinition,
    pub origin: Origin,
    /// Whether it must run alone.
    pub atomic: bool,
}

/// The provider of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A built-in tool. Allow-lists remove only those that save and search skills.
    Builtin,
    /// A tool of the program that runs the agent.
    Host,
    /// A tool of a skill.
    Skill {
        /// The name of the skill.
        skill: String,
        /// The name of the tool within the skill.
        tool: String,
    },
}

impl ToolSpec {
    /// Creates a tool that accepts these properties and no others.
    #[expect(clippy::needless_pass_by_value, reason = "they are written where they are used")]
    pub fn new(
        name: &str,
        description: &str,
        properties: Value,
        required: &[&str],
        origin: Origin,
    ) -> Self {
        let parameters = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        });
        let (name, description) = (name.to_owned(), description.to_owned());
        let definition = ToolDefinition { name, description, parameters };
        Self { definition, origin, atomic: false }
    }

    /// The tool as allow-lists name it; `None` if no allow-list can remove it.
    pub fn offered(&self) -> Option<OfferedTool<'_>> {
        let called = self.definition.name.as_str();
        match &self.origin {
            Origin::Builtin if ALWAYS_ALLOWED.contains(&called) => None,
            Origin::Builtin | Origin::Host => Some(OfferedTool::Host(called)),
            Origin::Skill { skill, tool } => Some(OfferedTool::Skill { skill, tool, called }),
        }
    }
}

/// The answer of a tool call for the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolAnswer {
    /// The text for the model.
    pub text: String,
    /// The answer as structured data, if it has more than a text.
    pub data: Option<Value>,
    /// The error code, if the call failed.
    pub failure: Option<String>,
    /// What the tool accessed, for the user and not for the model.
    pub access: Option<AccessSummary>,
}

impl ToolAnswer {
    /// Creates an answer of data, which the model reads as JSON.
    pub fn data(data: Value) -> Self {
        Self { text: data.to_string(), data: Some(data), ..Self::default() }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates an error answer with a code and a message that says what to do.
    pub fn failed(code: &str, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let data = json!({"error": {"code": code, "message": message}});
        Self { text: message, data: Some(data), failure: Some(code.to_owned()), access: None }
    }
}
