//! skillrt: files, prompts, and what its commands print.

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

use super::{OperationError, OperationResult, parse_input, report};

#[derive(Deserialize)]
struct Run {
    text: String,
    #[serde(default)]
    inputs: Map<String, Value>,
}

#[derive(Deserialize)]
struct Install {
    text: String,
}

#[derive(Deserialize)]
struct Installed {
    installed: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
}

pub(super) fn answer(op: &str, input: &Value) -> OperationResult {
    match op {
        "parse" => parse(&parse_input::<String>(input)?),
        "run" => run(&parse_input(input)?),
        "install" => install(&parse_input::<Install>(input)?.text),
        "list" => Ok(json!({"stdout": list(parse_input::<Installed>(input)?.installed)})),
        _ => Err(OperationError::Unsupported),
    }
}

fn parse(text: &str) -> OperationResult {
    let reading = report::reading(text, Dialect::SKILLRT)?;
    if let Some(failure) = report::failure(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    let mut value = json!({
        "ok": true,
        "kind": skill.mode,
        "body": skill.body,
        "warnings": report::warnings(&reading),
    });
    if skill.mode == Mode::Structured {
        value["name"] = json!(skill.name);
        value["version"] = json!(skill.version);
        value["description"] = json!(skill.description);
        value["extra"] = json!(skill.extra);
    }
    Ok(value)
}

fn run(call: &Run) -> OperationResult {
    let reading = report::reading(&call.text, Dialect::SKILLRT)?;
    if let Some(failure) = report::failure(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    if let Err(refusal) = skillrt::check_runtime(skill) {
        return Ok(refused(&refusal));
    }
    let rendered = match render::fill(skill, &call.inputs, None) {
        Ok(rendered) => rendered,
        Err(error) => return Ok(unfilled(&error)),
    };
    Ok(match skillrt::check_tools(skill, is_on_path) {
        Ok(()) => json!({"ok": true, "rendered": rendered}),
        Err(refusal) => refused(&refusal),
    })
}

fn refused(refusal: &SkillrtRunError) -> Value {
    let message = refusal.to_string();
    let mut value = json!({"ok": false, "error": report::code(refusal.code()), "message": message});
    if let SkillrtRunError::MissingTools(tools) = refusal {
        value["tools"] = json!(tools);
    }
    value
}

fn unfilled(error: &RenderError) -> Value {
    let code = match error {
        RenderError::InvalidInput { .. } => "invalid_value".to_owned(),
        other => report::code(other.code()),
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
    let reading = report::reading(text, Dialect::SKILLRT)?;
    if let Some(failure) = report::failure(&reading) {
        return Ok(failure);
    }
    Ok(match skillrt::install_id(&reading.skill, text) {
        Ok(id) => json!({"ok": true, "kind": reading.skill.mode, "id": id.to_string()}),
        Err(error) => json!({
            "ok": false,
            "error": report::code(error.code()),
            "field": "name",
            "message": error.to_string(),
        }),
    })
}

fn list(installed: Vec<Named>) -> String {
    let listed = installed.into_iter().map(|skill| InstalledSkill {
        id: InstallId::Named { name: skill.name, version: skill.version },
        description: skill.description,
    });
    skillrt::listing(&listed.collect::<Vec<_>>())
}
