//! Runs the conformance vectors of Personal Agent: allowed tools, preamble, lifecycle.

use savoir_skill::{
    Dialect,
    allowed_tools::{self, ToolGrant},
    dialect::personal_agent::{self, CurationInfo},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
struct PreambleInput {
    name: String,
    #[serde(default)]
    description: String,
    when_to_use: Option<String>,
}

#[derive(Deserialize)]
struct IdleInput {
    #[serde(flatten)]
    curation: CurationInfo,
    idle_days: Vec<u32>,
}

pub(super) fn run_operation(op: &str, input: &Value) -> OperationResult {
    match op {
        "allowed_tools" => {
            let text = format!("---\n{}\n---\n", parse_input::<String>(input)?);
            let reading = parse_result::read_skill(&text, Dialect::PERSONAL_AGENT)?;
            if let Some(failure) = parse_result::first_error(&reading) {
                return Ok(failure);
            }
            let grants = reading.skill.policy.allowed_tools.unwrap_or_default();
            Ok(grants.iter().map(ToolGrant::normalized).collect())
        }
        "tool_alias" => {
            let grants = allowed_tools::split(&parse_input::<String>(input)?);
            Ok(grants.first().map(ToolGrant::normalized).unwrap_or_default().into())
        }
        "preamble" => {
            let PreambleInput { name, description, when_to_use } = parse_input(input)?;
            Ok(personal_agent::preamble_line(&name, &description, when_to_use.as_deref()).into())
        }
        "curator" => {
            let IdleInput { curation, idle_days } = parse_input(input)?;
            let states = idle_days.into_iter().map(|days| curation.state_after_idle(days));
            Ok(states.map(|state| json!({"state": state, "enabled": state.is_enabled()})).collect())
        }
        _ => Err(OperationError::Unsupported),
    }
}
