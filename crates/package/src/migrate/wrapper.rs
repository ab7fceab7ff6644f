//! Generates `tools.py` with a function for each action that calls its handler.
//!
//! All texts from the skill are written as ASCII literals, so that none can inject code. Names were
//! converted to Python identifiers before.

use std::fmt::Write as _;

use savoir_skill::skill::{Parameter, ParameterKind};
use serde_json::Value;

use super::handler::{HandlerCall, Target};

const MODULE_HEADER: &str = r#""""The tools of this skill. Each calls the handler of an action of OpenClaw."""

import importlib.util
import os
import sys

from gaia.agents.base.tools import tool

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_MODULES = {}


def _load(path):
    """The module of a file of this skill, which is loaded once."""
    if path in _MODULES:
        return _MODULES[path]
    file = os.path.join(_FOLDER, *path.split("/"))
    for folder in (os.path.dirname(file), _FOLDER):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    name = path[: -len(".py")].replace("/", ".")
    if name in sys.modules:
        name = "openclaw_" + name
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    _MODULES[path] = module
    return module


def _call(path, function, arguments, optional):
    """Calls a handler; what is optional and was not given is left out."""
    for name, value in optional.items():
        if value is not None:
            arguments[name] = value
    return getattr(_load(path), function)(**arguments)
"#;

/// Generates the module.
pub(super) fn write(calls: &[HandlerCall<'_>]) -> String {
    let functions = calls.iter().map(function);
    std::iter::once(MODULE_HEADER.to_owned()).chain(functions).collect()
}

fn function(call: &HandlerCall<'_>) -> String {
    let tool = &call.tool.tool;
    // Python requires parameters without default to come first.
    let (needed, others): (Vec<&Parameter>, Vec<&Parameter>) =
        tool.parameters.iter().partition(|parameter| parameter.required);
    let parameters: Vec<String> = needed.into_iter().chain(others).map(parameter).collect();
    let mut text = format!("\n\n@tool\ndef {}({}):\n", tool.name, parameters.join(", "));
    let described = tool.description.trim();
    let about = if described.is_empty() { "Calls the handler of an action." } else { described };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "    {}", docstring(about));
    let _ = match &call.target {
        Target::Nothing(why) => writeln!(text, "    raise NotImplementedError({})", string(why)),
        Target::Function { path, name } => {
            let (path, name) = (string(path), string(name));
            let [given, optional] = [ArgumentPresence::Always, ArgumentPresence::Perhaps]
                .map(|when| arguments(call, when));
            writeln!(text, "    return _call({path}, {name}, {given}, {optional})")
        }
    };
    text
}

fn parameter(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        ParameterKind::String => "str",
        ParameterKind::Integer => "int",
        ParameterKind::Number => "float",
        ParameterKind::Boolean => "bool",
        ParameterKind::Array => "list",
        ParameterKind::Object => "dict",
    };
    let name = &parameter.name;
    match (&parameter.default, parameter.required) {
        (None, true) => format!("{name}: {kind}"),
        (default, _) => {
            format!("{name}: {kind} = {}", default.as_ref().map_or("None".into(), literal))
        }
    }
}

/// When an argument is passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentPresence {
    Always,
    /// Only if it has a value, because the handler may have its own default.
    Perhaps,
}

/// Formats the arguments with the handler's parameter names.
fn arguments(call: &HandlerCall<'_>, when: ArgumentPresence) -> String {
    let parameters = call.tool.tool.parameters.iter().zip(&call.tool.arguments);
    let pairs: Vec<String> = parameters
        .filter(|(parameter, _)| {
            let perhaps = !parameter.required && parameter.default.is_none();
            perhaps == (when == ArgumentPresence::Perhaps)
        })
        .map(|(parameter, name)| format!("{}: {}", string(name), parameter.name))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

/// Formats a value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let pairs =
                map.iter().map(|(key, value)| format!("{}: {}", string(key), literal(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a docstring; as a plain literal if the text contains quotes or escapes.
fn docstring(text: &str) -> String {
    let plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
    if text.chars().all(plain) { format!("\"\"\"{text}\"\"\"") } else { string(text) }
}

/// Formats a text as a Python literal on one line of ASCII.
fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '"' | '\\' => write!(literal, "\\{c}"),
            '\n' => write!(literal, "\\n"),
            ' '..='~' => write!(literal, "{c}"),
            c => write!(literal, "\\U{:08x}", u32::from(c)),
        };
    }
    literal.push('"');
    literal
}
