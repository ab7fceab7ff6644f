//! Parses and validates the arguments of a tool call.
//!
//! A caller is a user who types `name=value`, or a model that sends JSON. In both cases all errors
//! of a call are reported at once, since each round with a model costs time and money.

use std::{collections::BTreeMap, error::Error, fmt};

use savoir_lint::words::nearest;
use savoir_skill::{
    Skill,
    command::{ArgTemplate, Fragment, Modifier},
    name::shorten_name,
    skill::{Parameter, ParameterKind, Runner, Tool},
};
use serde_json::{Map, Value};

mod names;

pub use names::{ToolName, ToolNames};

/// Arguments by the names of their parameters.
pub type Arguments = Map<String, Value>;

/// Why a call cannot be made.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// No tool has this name.
    UnknownTool {
        /// The requested name.
        name: String,
        /// The names of the existing tools.
        available: Vec<String>,
        /// The most similar existing name.
        similar: Option<String>,
    },
    /// Several skills have a tool of this name.
    AmbiguousTool {
        /// The requested name.
        name: String,
        /// The skills that have such a tool.
        skills: Vec<String>,
    },
    /// The arguments do not fit the tool.
    Arguments {
        tool: String,
        /// The names of the tool's parameters.
        available: Vec<String>,
        /// All errors, at least one.
        problems: Vec<ArgumentError>,
    },
}

/// One error in the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentError {
    /// A required parameter is missing.
    Missing { parameter: String },
    /// A value does not have the declared type.
    Invalid {
        parameter: String,
        /// The declared type.
        expected: ParameterKind,
    },
    /// A parameter that takes one value was passed several times.
    Repeated {
        parameter: String,
        /// How often it was passed.
        times: usize,
    },
    /// The tool has no such parameter.
    Unknown {
        /// The requested name.
        parameter: String,
        /// The most similar existing name.
        similar: Option<String>,
    },
}

impl ArgumentError {
    /// The stable identifier of the problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing-parameter",
            Self::Invalid { .. } | Self::Repeated { .. } => "invalid-parameter",
            Self::Unknown { .. } => "unknown-parameter",
        }
    }

    /// The name of the invalid parameter.
    pub fn parameter(&self) -> &str {
        match self {
            Self::Missing { parameter }
            | Self::Invalid { parameter, .. }
            | Self::Repeated { parameter, .. }
            | Self::Unknown { parameter, .. } => parameter,
        }
    }

    fn sentence(&self, tool: &str) -> String {
        match self {
            Self::Missing { parameter } => {
                format!("Missing required parameter '{parameter}' for tool '{tool}'")
            }
            Self::Invalid { parameter, expected } => {
                format!("Invalid value for parameter '{parameter}': expected {}", expected.as_str())
            }
            Self::Repeated { parameter, times } => {
                format!("Parameter '{parameter}' takes one value, not {times}")
            }
            Self::Unknown { parameter, similar } => {
                let guess = similar.as_ref().map(|similar| format!(", did you mean '{similar}'?"));
                let (parameter, guess) = (shorten_name(parameter), guess.unwrap_or_default());
                format!("Tool '{tool}' has no parameter '{parameter}'{guess}")
            }
        }
    }
}

impl CallError {
    /// The stable identifier of the error: that of the first problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool { .. } => "unknown-tool",
            Self::AmbiguousTool { .. } => "ambiguous-tool",
            Self::Arguments { problems, .. } => {
                problems.first().map_or("invalid-parameter", ArgumentError::code)
            }
        }
    }

    /// The errors in the arguments; empty if the tool itself was not found.
    pub fn problems(&self) -> &[ArgumentError] {
        match self {
            Self::Arguments { problems, .. } => problems,
            Self::UnknownTool { .. } | Self::AmbiguousTool { .. } => &[],
        }
    }

    /// A hint that lists the valid tools or parameters.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownTool { available, .. } if available.is_empty() => {
                "the skill has no tools; pass the path of a script in its folder".to_owned()
            }
            Self::UnknownTool { available, .. } => format!("its tools: {}", available.join(", ")),
            Self::AmbiguousTool { name, skills } => {
                let tool = name.rsplit('/').next().unwrap_or(name);
                let names: Vec<String> =
                    skills.iter().map(|skill| format!("{skill}/{tool}")).collect();
                format!("use the full name: {}", names.join(", "))
            }
            Self::Arguments { available, .. } => match available.as_slice() {
                [] => "it has no parameters".to_owned(),
                available => format!("its parameters: {}", available.join(", ")),
            },
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { name, similar: Some(similar), .. } => {
                write!(f, "Unknown tool '{}', did you mean '{similar}'?", shorten_name(name))
            }
            Self::UnknownTool { name, similar: None, .. } => {
                write!(f, "Unknown tool '{}'", shorten_name(name))
            }
            Self::AmbiguousTool { name, skills } => {
                write!(f, "Tool '{name}' is in several skills: {}", skills.join(", "))
            }
            Self::Arguments { tool, problems, .. } => {
                for (index, problem) in problems.iter().enumerate() {
                    let between = if index == 0 { "" } else { "; " };
                    write!(f, "{between}{}", problem.sentence(tool))?;
                }
                Ok(())
            }
        }
    }
}

impl Error for CallError {}

/// Finds a tool of a skill by its name, or by `skill/tool`.
pub fn find_tool<'a>(skill: &'a Skill, name: &str) -> Result<&'a Tool, CallError> {
    let short = name.strip_prefix(&skill.name).and_then(|rest| rest.strip_prefix('/'));
    let named = |wanted: &str| skill.tools.iter().find(|tool| tool.name == wanted);
    named(name).or_else(|| named(short?)).ok_or_else(|| {
        let available: Vec<String> = skill.tools.iter().map(|tool| tool.name.clone()).collect();
        let similar = nearest(short.unwrap_or(name), available.iter().map(String::as_str));
        CallError::UnknownTool {
            name: name.to_owned(),
            similar: similar.map(str::to_owned),
            available,
        }
    })
}

/// Parses arguments that a user typed as `name=value`, by the types that the tool declares.
///
/// A list is written as JSON or with commas; if the name is passed several times, each text becomes
/// one element, unparsed.
pub fn parse_arguments(tool: &Tool, pairs: &[(String, String)]) -> Result<Arguments, CallError> {
    let mut order: Vec<&str> = Vec::new();
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in pairs {
        let values = texts.entry(name).or_default();
        if values.is_empty() {
            order.push(name);
        }
        values.push(text);
    }
    let mut arguments = Arguments::new();
    let mut problems = Vec::new();
    for name in order {
        let texts = texts.get(name).map(Vec::as_slice).unwrap_or_default();
        match parse_value(kind_of(tool, name), name, texts) {
            Ok(value) => {
                arguments.insert(name.to_owned(), value);
            }
            Err(problem) => problems.push(problem),
        }
    }
    let unparsed: Vec<String> = problems.iter().map(|found| found.parameter().to_owned()).collect();
    let rest = find_problems(tool, &arguments);
    problems
        .extend(rest.into_iter().filter(|found| !unparsed.iter().any(|n| n == found.parameter())));
    reject_problems(tool, problems)?;
    Ok(with_defaults(tool, arguments))
}

/// Checks the arguments of a call against the declared parameters. Returns them as the tool gets
/// them: without nulls, and, for a function, with the declared defaults.
pub fn check_arguments(tool: &Tool, arguments: &Arguments) -> Result<Arguments, CallError> {
    reject_problems(tool, find_problems(tool, arguments))?;
    Ok(with_defaults(tool, arguments.clone()))
}

fn parse_value(kind: ParameterKind, name: &str, texts: &[&str]) -> Result<Value, ArgumentError> {
    match texts {
        [text] => kind
            .read(text)
            .ok_or_else(|| ArgumentError::Invalid { parameter: name.to_owned(), expected: kind }),
        texts if kind == ParameterKind::Array => Ok(texts.iter().copied().collect()),
        texts => Err(ArgumentError::Repeated { parameter: name.to_owned(), times: texts.len() }),
    }
}

fn find_problems(tool: &Tool, arguments: &Arguments) -> Vec<ArgumentError> {
    let mut problems = Vec::new();
    for Parameter { name, kind, required, .. } in &tool.parameters {
        match arguments.get(name).filter(|value| !value.is_null()) {
            None if *required => problems.push(ArgumentError::Missing { parameter: name.clone() }),
            Some(value) if !accepts(tool, *kind, value) => {
                problems.push(ArgumentError::Invalid { parameter: name.clone(), expected: *kind });
            }
            _ => {}
        }
    }
    let available = parameter_names(tool);
    for name in arguments.keys().filter(|name| !available.contains(*name)) {
        let similar = nearest(name, available.iter().map(String::as_str)).map(str::to_owned);
        problems.push(ArgumentError::Unknown { parameter: name.clone(), similar });
    }
    problems
}

/// A program accepts a list without nested lists and objects, because it becomes arguments; a
/// function accepts any list.
fn accepts(tool: &Tool, kind: ParameterKind, value: &Value) -> bool {
    match (&tool.runner, kind) {
        (Runner::Python { .. } | Runner::Handler { .. }, ParameterKind::Array) => value.is_array(),
        _ => kind.accepts(value),
    }
}

fn reject_problems(tool: &Tool, problems: Vec<ArgumentError>) -> Result<(), CallError> {
    if problems.is_empty() {
        return Ok(());
    }
    let (available, tool) = (parameter_names(tool), tool.name.clone());
    Err(CallError::Arguments { tool, available, problems })
}

/// The arguments without nulls, and, for a function, with the declared defaults.
fn with_defaults(tool: &Tool, mut arguments: Arguments) -> Arguments {
    // A null counts as a missing argument, so that a model may send every parameter.
    arguments.retain(|_, value| !value.is_null());
    if !matches!(tool.runner, Runner::Command(_)) {
        for Parameter { name, default, .. } in &tool.parameters {
            if let Some(default) = default.as_ref().filter(|default| !default.is_null()) {
                arguments.entry(name.clone()).or_insert_with(|| default.clone());
            }
        }
    }
    arguments
}

fn find_parameter<'a>(tool: &'a Tool, name: &str) -> Option<&'a Parameter> {
    tool.parameters.iter().find(|parameter| parameter.name == name)
}

/// The declared type, or the one that is guessed from how the command uses the name.
fn kind_of(tool: &Tool, name: &str) -> ParameterKind {
    let guessed =
        || undeclared_placeholders(tool).into_iter().find(|(available, _)| *available == name);
    let declared = find_parameter(tool, name).map(|parameter| parameter.kind);
    declared.or_else(|| guessed().map(|(_, kind)| kind)).unwrap_or_default()
}

/// The names that a call may use: the declared parameters, and undeclared placeholders of the
/// command.
fn parameter_names(tool: &Tool) -> Vec<String> {
    let declared = tool.parameters.iter().map(|parameter| parameter.name.clone());
    declared
        .chain(undeclared_placeholders(tool).into_iter().map(|(name, _)| name.to_owned()))
        .collect()
}

/// Placeholders of the command that the table of parameters leaves out; a call may fill them. The
/// type is guessed from how they are used.
pub(crate) fn undeclared_placeholders(tool: &Tool) -> Vec<(&str, ParameterKind)> {
    let Runner::Command(command) = &tool.runner else { return Vec::new() };
    let mut found: Vec<(&str, ParameterKind)> = Vec::new();
    for fragment in command.args.iter().flat_map(ArgTemplate::fragments) {
        let Fragment::Variable { name, modifier } = fragment else { continue };
        let seen = found.iter().any(|(available, _)| available == name);
        if !seen && find_parameter(tool, name).is_none() {
            let flag = matches!(modifier, Some(Modifier::Flag(_)));
            found.push((name, if flag { ParameterKind::Boolean } else { ParameterKind::String }));
        }
    }
    found
}

#[cfg(test)]
mod tests;
