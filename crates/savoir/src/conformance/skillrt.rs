//! Runs the vectors of skillrt: files, prompts, and command output.

use std::env;

use savoir_engine::structured::find_program;
use savoir_skill::{
    Dialect,
    dialect::skillrt::{self, InstallId, InstalledSkill, SkillrtRunError},
    render::{self, RenderError},
    skill::Mode,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
struct RunInput {
    text: String,
    #[serde(default)]
    inputs: Map<String, Value>,
}

#[derive(Deserialize)]
struct InstallInput {
    text: String,
}

#[derive(Deserialize)]
struct InstalledInput {
    installed: Vec<NameInput>,
}

#[derive(Deserialize)]
struct NameInput {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
}

pub(super) fn run_operation(op: &str, input: &Value) -> OperationResult {
    match op {
        "parse" => parse(&parse_input::<String>(input)?),
        "run" => run(&parse_input(input)?),
        "install" => install(&parse_input::<InstallInput>(input)?.text),
        "list" => Ok(json!({"stdout": list(parse_input::<InstalledInput>(input)?.installed)})),
        _ => Err(OperationError::Unsupported),
    }
}

fn parse(text: &str) -> OperationResult {
    let reading = parse_result::read_skill(text, Dialect::SKILLRT)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    let mut value = json!({
        "ok": true,
        "kind": skill.mode,
        "body": skill.body,
        "warnings": parse_result::warning_codes(&reading),
    });
    if skill.mode == Mode::Structured {
        value["name"] = json!(skill.name);
        value["version"] = json!(skill.version);
        value["description"] = json!(skill.description);
        value["extra"] = json!(skill.extra);
    }
    Ok(value)
}

fn run(call: &RunInput) -> OperationResult {
    let reading = parse_result::read_skill(&call.text, Dialect::SKILLRT)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    if let Err(refusal) = skillrt::check_runtime(skill) {
        return Ok(run_error_json(&refusal));
    }
    let rendered = match render::fill(skill, &call.inputs, None) {
        Ok(rendered) => rendered,
        Err(error) => return Ok(render_error_json(&error)),
    };
    Ok(match skillrt::check_tools(skill, is_on_path) {
        Ok(()) => json!({"ok": true, "rendered": rendered}),
        Err(refusal) => run_error_json(&refusal),
    })
}

fn run_error_json(refusal: &SkillrtRunError) -> Value {
    let message = refusal.to_string();
    let mut value = json!({"ok": false, "error": parse_result::vector_code(refusal.code()), "message": message});
    if let SkillrtRunError::MissingTools(tools) = refusal {
        value["tools"] = json!(tools);
    }
    value
}

fn render_error_json(error: &RenderError) -> Value {
    let code = match error {
        RenderError::InvalidInput { .. } => "invalid_value".to_owned(),
        other => parse_result::vector_code(other.code()),
    };
    let (message, input) = (error.to_string(), error.input());
    json!({"ok": false, "error": code, "message": message, "input": input, "field": input})
}

/// Whether a program would be found.
fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    find_program(program, &path).is_some()
}

fn install(text: &str) -> OperationResult {
    let reading = parse_result::read_skill(text, Dialect::SKILLRT)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    Ok(match skillrt::install_id(&reading.skill, text) {
        Ok(id) => json!({"ok": true, "kind": reading.skill.mode, "id": id.to_string()}),
        Err(error) => json!({
            "ok": false,
            "error": parse_result::vector_code(error.code()),
            "field": "name",
            "message": error.to_string(),
        }),
    })
}

fn list(installed: Vec<NameInput>) -> String {
    let listed = installed.into_iter().map(|skill| InstalledSkill {
        id: InstallId::Named { name: skill.name, version: skill.version },
        description: skill.description,
    });
    skillrt::listing(&listed.collect::<Vec<_>>())
}
