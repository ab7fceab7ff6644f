//! Renders the tools of skills in the formats that models and programs read.

use savoir_lint::words::one_line;
use savoir_skill::{
    Skill,
    command::{ArgTemplate, Fragment, Modifier},
    permission::{Domain, Level},
    skill::{Parameter, ParameterKind, Runner, Tool},
};
use serde_json::{Map, Value, json};

use crate::call::{ToolName, ToolNames, undeclared_placeholders};

mod found;
mod gemma;

pub use found::{FoundTools, SkillScripts};

/// The tools of some skills, in their order.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    names: ToolNames,
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: ToolName,
    /// The version of its skill.
    pub skill_version: Option<String>,
    /// The description of the tool, or else of its skill.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// The type of the return value, if declared.
    pub returns: Option<Value>,
    /// Whether the tool must run alone.
    pub atomic: bool,
    /// Example calls in the notation of gibb.eri.sh.
    pub examples: Vec<String>,
    /// `command`, `python` or `handler`.
    pub runner: &'static str,
    pub policy: ToolPolicy,
    /// Whether its skill may use the network.
    pub network: bool,
}

/// A tool of the program that calls the model, which no skill declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeTool {
    pub name: String,
    pub description: String,
}

/// Whether the user is asked before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// The tool changes nothing, so it may run without asking.
    pub read_only: bool,
    /// The user is asked before every run, regardless of other rules.
    pub always_ask: bool,
}

/// The modes of gibb.eri.sh; in the first one, nothing particular is done.
pub const MODES: [&str; 4] = ["Global", "Dev", "Meeting", "Writer"];

/// Parses a mode, ignoring case; the default is the first one. The error lists the valid modes.
pub fn mode(written: Option<&str>) -> Result<&'static str, String> {
    let Some(written) = written else { return Ok(MODES[0]) };
    let known = MODES.into_iter().find(|mode| mode.eq_ignore_ascii_case(written));
    known.ok_or_else(|| format!("there is no such mode: write one of {}", MODES.join(", ")))
}

/// Whether a skill is offered in a mode of gibb.eri.sh: those that are `Global`, or say nothing,
/// are offered in every mode.
pub fn is_offered(skill: &Skill, mode: &str) -> bool {
    is_offered_in(&skill.policy.modes, mode)
}

/// Like [`is_offered`], for a skill with these modes.
pub fn is_offered_in(modes: &[String], mode: &str) -> bool {
    modes.is_empty() || modes.iter().any(|own| own == "Global" || own == mode)
}

impl Manifest {
    /// Lists the tools of some skills. If several skills have a tool of the same name, its name
    /// becomes `skill/tool`.
    pub fn new<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> Self {
        let skills: Vec<&Skill> = skills.into_iter().collect();
        let names = ToolNames::new(skills.iter().copied());
        let mut entries = Vec::new();
        for skill in skills {
            for tool in &skill.tools {
                if let Some(name) = names.of(&skill.name, &tool.name) {
                    entries.push(entry(skill, tool, name.clone()));
                }
            }
        }
        Self { entries, names }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The names under which they can be called.
    pub fn names(&self) -> &ToolNames {
        &self.names
    }

    /// All data of the tools as JSON, with all their names and with the policy for asking.
    pub fn json(&self) -> Value {
        let tools = self.entries.iter().map(|entry| {
            let mut tool = json!({
                "name": entry.name.shown,
                "qualified_name": entry.name.qualified(),
                "api_name": entry.name.api,
                "description": entry.description,
                "parameters": entry.parameters,
            });
            if let Some(returns) = &entry.returns {
                tool["returns"] = returns.clone();
            }
            tool["atomic"] = json!(entry.atomic);
            if !entry.examples.is_empty() {
                tool["examples"] = json!(entry.examples);
            }
            tool["runner"] = json!(entry.runner);
            tool["skill"] = json!(entry.name.skill);
            tool["skill_version"] = json!(entry.skill_version);
            tool["policy"] = json!({
                "name": entry.name.shown,
                "read_only": entry.policy.read_only,
                "always_ask": entry.policy.always_ask,
                "source": {"skill": entry.name.skill},
            });
            tool
        });
        json!({"tools": tools.collect::<Vec<_>>()})
    }

    /// Renders the tools for the chat API of `OpenAI` and compatible APIs.
    pub fn openai(&self) -> Value {
        let tools = self.entries.iter().map(|entry| {
            json!({"type": "function", "function": {
                "name": entry.name.api,
                "description": entry.description,
                "parameters": entry.parameters,
            }})
        });
        tools.collect()
    }

    /// Renders the tools for the messages API of Anthropic.
    pub fn anthropic(&self) -> Value {
        let tools = self.entries.iter().map(|entry| {
            json!({
                "name": entry.name.api,
                "description": entry.description,
                "input_schema": entry.parameters,
            })
        });
        tools.collect()
    }

    /// The answer to `tools/list` of MCP.
    pub fn mcp(&self) -> Value {
        let tools = self.entries.iter().map(|entry| {
            let mut tool = json!({"name": entry.name.api});
            if entry.name.api != entry.name.shown {
                tool["title"] = json!(entry.name.shown);
            }
            tool["description"] = json!(entry.description);
            tool["inputSchema"] = entry.parameters.clone();
            tool["annotations"] =
                json!({"readOnlyHint": entry.policy.read_only, "openWorldHint": entry.network});
            tool
        });
        json!({"tools": tools.collect::<Vec<_>>()})
    }

    /// The prompt of gibb.eri.sh for `FunctionGemma`, with the tools of the host itself.
    pub fn function_gemma(&self, native: &[NativeTool]) -> String {
        gemma::prompt(native, &self.entries)
    }

    /// The tools in the tokens that `FunctionGemma` was trained on, one declaration each.
    pub fn function_declarations(&self) -> Vec<String> {
        self.entries.iter().map(gemma::declaration).collect()
    }
}

fn entry(skill: &Skill, tool: &Tool, name: ToolName) -> Entry {
    let own = tool.description.trim();
    let description = if own.is_empty() { skill.truncated_description().trim() } else { own };
    Entry {
        name,
        skill_version: skill.version.clone(),
        description: description.to_owned(),
        parameters: schema(tool),
        returns: tool.returns.clone(),
        atomic: tool.atomic,
        examples: tool.examples.clone(),
        runner: match &tool.runner {
            Runner::Command(_) => "command",
            Runner::Python { .. } => "python",
            Runner::Handler { .. } => "handler",
        },
        policy: ToolPolicy {
            read_only: skill.policy.read_only.unwrap_or(false),
            always_ask: skill.policy.always_ask.unwrap_or(false),
        },
        network: skill
            .permissions
            .iter()
            .any(|grant| grant.domain == Domain::Network && grant.level != Level::None),
    }
}

/// The JSON Schema of the arguments of a tool.
pub fn schema(tool: &Tool) -> Value {
    let mut properties = Map::new();
    for parameter in &tool.parameters {
        properties.insert(parameter.name.clone(), property(tool, parameter));
    }
    for (name, kind) in undeclared_placeholders(tool) {
        let (name, description) = (name.to_owned(), String::new());
        let parameter = Parameter { name, kind, required: false, description, default: None };
        properties.insert(parameter.name.clone(), property(tool, &parameter));
    }
    let required: Vec<&str> = tool
        .parameters
        .iter()
        .filter(|parameter| parameter.required)
        .map(|parameter| parameter.name.as_str())
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(tool: &Tool, parameter: &Parameter) -> Value {
    let mut property = json!({"type": parameter.kind.as_str()});
    if parameter.kind == ParameterKind::Array {
        // Some APIs refuse an array whose item type is missing. A function takes items of any type.
        let words = matches!(tool.runner, Runner::Command(_));
        property["items"] = if words { json!({"type": "string"}) } else { json!({}) };
    }
    let description = one_line(&parameter.description);
    if !description.is_empty() {
        property["description"] = json!(description);
    }
    let inline = inline_default(tool, &parameter.name).and_then(|text| parameter.kind.read(text));
    if let Some(default) = inline.or_else(|| parameter.default.clone()) {
        property["default"] = default;
    }
    property
}

/// The default in the command's placeholder, which takes precedence over the declared one.
fn inline_default<'a>(tool: &'a Tool, parameter: &str) -> Option<&'a str> {
    let Runner::Command(command) = &tool.runner else { return None };
    let mut fragments = command.args.iter().flat_map(ArgTemplate::fragments);
    fragments.find_map(|fragment| match fragment {
        Fragment::Variable { name, modifier: Some(Modifier::Default(text)) }
            if name == parameter =>
        {
            Some(text.as_str())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
