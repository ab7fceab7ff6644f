//! Runs the vectors of gibb.eri.sh: files, commands, arguments, and executions.

use std::fs;

use savoir_engine::{
    Home,
    approval::{ExtraGrants, Trust},
    loaded_skill::LoadedSkill,
    run::{self, CallInput, FinishedRun},
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_skill::{
    Dialect,
    command::{self, CommandTemplate, Token},
    skill::{Parameter, Runner, Tool},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
struct InterpolateInput {
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

pub(super) fn run_operation(op: &str, input: &Value) -> OperationResult {
    match op {
        "parse" => parse(&parse_input::<String>(input)?),
        "tokenize" => Ok(match command::tokenize(&parse_input::<String>(input)?) {
            Ok(tokens) => tokens.iter().map(Token::text).collect(),
            Err(error) => failure(error.code(), &error),
        }),
        "interpolate" => Ok(interpolate(parse_input(input)?)),
        "exec" => exec(&parse_input(input)?),
        _ => Err(OperationError::Unsupported),
    }
}

#[derive(Deserialize)]
struct ExecutionInput {
    argv: Vec<String>,
    timeout: u32,
    parent_env_names: Option<Vec<String>>,
}

/// Runs a command as the only tool of a skill named `demo`, in the sandbox.
fn exec(execution: &ExecutionInput) -> OperationResult {
    let unusable = |error: &dyn std::fmt::Display| OperationError::BadInput(error.to_string());
    let folder = tempfile::tempdir().map_err(|error| unusable(&error))?;
    let root = folder.path();
    let words = execution.argv.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let command = words.collect::<Vec<_>>().join(" ");
    let text = format!(
        "---\nname: demo\nversion: 1.0.0\ndescription: A vector.\nread_only: true\ntimeout: {}\n---\n\n\
         ### run\n\nRun it.\n\n#### Command\n\n```bash\n{command}\n```\n",
        execution.timeout
    );
    let file = root.join("demo/SKILL.md");
    fs::create_dir(root.join("demo")).map_err(|error| unusable(&error))?;
    fs::write(&file, &text).map_err(|error| unusable(&error))?;
    let reading = parse_result::read_skill(&text, Dialect::GIBBERISH)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    let store = TrustStore::default();
    let loaded_skill = LoadedSkill::new(&reading, &file, file.parent(), Trust::Bundled, &store)
        .map_err(|error| unusable(&error))?;
    let mut run_env = RunEnvironment::at(root, &root.join("home"));
    let names = execution.parent_env_names.iter().flatten();
    run_env.variables = names.map(|name| (name.clone(), "value".to_owned())).collect();
    let call = run::Call {
        loaded_skill: &loaded_skill,
        tool: "run",
        input: CallInput::Pairs(Vec::new()),
        run_env: &run_env,
        mode: "Global",
        extra: &ExtraGrants::default(),
    };
    let finished = run::plan(&call)
        .and_then(|plan| plan.run(&loaded_skill, &Home::at(&root.join("savoir")), &mut |_| {}));
    Ok(match finished {
        Err(error) => {
            json!({"ok": false, "error": parse_result::vector_code(&error.code), "message": error.message})
        }
        Ok(FinishedRun { envelope, .. }) if envelope.code.as_deref() == Some("timeout") => {
            json!({"ok": false, "error": "timeout", "message": envelope.error})
        }
        Ok(FinishedRun { envelope, .. }) => {
            let mut names: Vec<&str> =
                envelope.output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
            names.sort_unstable();
            json!({
                "ok": true,
                "env_names": names,
                "envelope": envelope,
            })
        }
    })
}

fn parse(text: &str) -> OperationResult {
    let reading = parse_result::read_skill(text, Dialect::GIBBERISH)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    Ok(json!({
        "ok": true,
        "name": skill.name,
        "version": skill.version,
        "description": skill.truncated_description(),
        "modes": skill.policy.modes,
        "timeout": skill.policy.timeout,
        "read_only": skill.policy.read_only.unwrap_or(false),
        "always_ask": skill.policy.always_ask.unwrap_or(false),
        "tools": skill.tools.iter().map(tool).collect::<Vec<_>>(),
        "warnings": parse_result::warning_codes(&reading),
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

fn interpolate(call: InterpolateInput) -> Value {
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

/// Reads a default from the description, as in the table of a file.
fn with_default(mut parameter: Parameter) -> Parameter {
    if parameter.default.is_none() {
        parameter.default = command::default_in_description(&parameter.description, parameter.kind);
    }
    parameter
}

fn failure(code: &str, error: &dyn std::error::Error) -> Value {
    json!({"ok": false, "error": parse_result::vector_code(code), "message": error.to_string()})
}
