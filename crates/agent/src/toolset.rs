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

/// Tools that belong together.
pub trait Toolset: fmt::Debug + Send + Sync {
    /// The tools, as they are now.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Calls one of them. Whoever asks a person first asks the fence once more after that.
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        call_guard: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer>;

    /// Whether it asks a person about calls of which a list cannot say what they do. Calls of all
    /// others are refused then.
    fn asks_about_doubts(&self) -> bool {
        false
    }
}

/// A tool that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name under which it is called, what it does, and what it takes.
    pub definition: ToolDefinition,
    /// Whose it is.
    pub origin: Origin,
    /// Whether it must run alone.
    pub atomic: bool,
}

/// Whose a tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A built-in tool. Allow-lists remove only those that save and search skills.
    Builtin,
    /// The host.
    Host,
    /// A skill.
    Skill {
        /// The skill.
        skill: String,
        /// The name of the tool there.
        tool: String,
    },
}

impl ToolSpec {
    /// A tool that takes these properties and no others.
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

    /// The tool as allow-lists name it; `None` if no list takes it away.
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
    /// The text.
    pub text: String,
    /// The same as data, where there is more to it than a text.
    pub data: Option<Value>,
    /// The stable word for what went wrong.
    pub failure: Option<String>,
    /// What the tool accessed, for the user and not for the model.
    pub access: Option<AccessSummary>,
}

impl ToolAnswer {
    /// Data that a model reads as JSON.
    pub fn data(data: Value) -> Self {
        Self { text: data.to_string(), data: Some(data), ..Self::default() }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Something went wrong, and what to do about it.
    pub fn failed(code: &str, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let data = json!({"error": {"code": code, "message": message}});
        Self { text: message, data: Some(data), failure: Some(code.to_owned()), access: None }
    }
}
