//! gibb.eri.sh: files, commands and arguments. Running them is not here.

use savoir_skill::{
    Dialect,
    command::{self, CommandTemplate, Token},
    skill::{Parameter, Runner, Tool},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Miss, report, take};

#[derive(Deserialize)]
struct Call {
    command: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default = "some_tool")]
    tool: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
}

fn some_tool() -> String {
    "t".to_owned()
}

pub(super) fn answer(op: &str, input: &Value) -> Answer {
    match op {
        "parse" => parse(&take::<String>(input)?),
        "tokenize" => Ok(match command::tokenize(&take::<String>(input)?) {
            Ok(tokens) => tokens.iter().map(Token::text).collect(),
            Err(error) => failure(error.code(), &error),
        }),
        "interpolate" => Ok(interpolate(take(input)?)),
        _ => Err(Miss::Unsupported),
    }
}

fn parse(text: &str) -> Answer {
    let reading = report::reading(text, Dialect::GIBBERISH)?;
    if let Some(failure) = report::failure(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    Ok(json!({
        "ok": true,
        "name": skill.name,
        "version": skill.version,
        "description": skill.kept_description(),
        "modes": skill.policy.modes,
        "timeout": skill.policy.timeout,
        "read_only": skill.policy.read_only.unwrap_or(false),
        "always_ask": skill.policy.always_ask.unwrap_or(false),
        "tools": skill.tools.iter().map(tool).collect::<Vec<_>>(),
        "warnings": report::warnings(&reading),
    }))
}

fn tool(tool: &Tool) -> Value {
    let mut value = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    });
    if let Runner::Command(command) = &tool.runner {
        value["program"] = json!(command.program);
        value["args"] = json!(command.args);
    }
    value
}

fn interpolate(call: Call) -> Value {
    let parameters: Vec<Parameter> = call.parameters.into_iter().map(with_default).collect();
    let template = match CommandTemplate::parse(&call.command) {
        Ok(template) => template,
        Err(error) => return failure(error.code(), &error),
    };
    match template.interpolate(&call.tool, &parameters, &call.args) {
        Ok(args) => json!({"ok": true, "args": args}),
        Err(error) => {
            let mut value = failure(error.code(), &error);
            value["parameter"] = json!(error.parameter());
            value["tool"] = json!(call.tool);
            value
        }
    }
}

/// A description may hold the default, as in the table of a file.
fn with_default(mut parameter: Parameter) -> Parameter {
    if parameter.default.is_none() {
        parameter.default = command::default_in_description(&parameter.description, parameter.kind);
    }
    parameter
}

fn failure(code: &str, error: &dyn std::error::Error) -> Value {
    json!({"ok": false, "error": report::code(code), "message": error.to_string()})
}
