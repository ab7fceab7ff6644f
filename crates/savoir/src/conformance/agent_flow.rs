//! Runs the vectors of Agent Flow Lite: names, files, prompts, inputs, events, workflows and requests.

mod events;
mod http;

use savoir_flow::{
    event,
    workflow::{Scope, condition, mapped_inputs},
};
use savoir_skill::{
    Dialect,
    dialect::agent_flow::{self, Refusal},
    name,
    skill::Input,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
struct SubstitutionInput {
    template: String,
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    provided: Map<String, Value>,
}

#[derive(Deserialize)]
struct ProvidedInputs {
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    provided: Map<String, Value>,
}

#[derive(Deserialize)]
struct RunInput {
    skill: String,
}

#[derive(Deserialize)]
struct ConditionInput {
    expr: String,
    #[serde(default)]
    ctx: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputMapping {
    input_mappings: Map<String, Value>,
    #[serde(default, rename = "step_outputs")]
    outputs: Map<String, Value>,
    #[serde(default)]
    variables: Map<String, Value>,
}

#[derive(Deserialize)]
struct EventInput {
    event: String,
    data: Value,
}

pub(super) fn run_operation(op: &str, input: &Value) -> OperationResult {
    Ok(match op {
        "validate_name" => verdict(agent_flow::check_name(&parse_input::<String>(input)?)),
        "normalize_name" => name::normalize(&parse_input::<String>(input)?).into(),
        "parse_skill_md" => match agent_flow::parse(&parse_input::<String>(input)?) {
            Ok(content) => {
                json!({"ok": true, "frontmatter": content.frontmatter, "body": content.body})
            }
            Err(refusal) => verdict(Err(refusal)),
        },
        "substitute" => {
            let SubstitutionInput { template, inputs, provided } = parse_input(input)?;
            agent_flow::substitute(&template, &input_list(&inputs)?, &provided).into()
        }
        "validate_inputs" => {
            let ProvidedInputs { inputs, provided } = parse_input(input)?;
            verdict(agent_flow::check_inputs(&input_list(&inputs)?, &provided))
        }
        "placeholder_validation" => placeholders(&parse_input::<String>(input)?)?,
        "size" => verdict(agent_flow::check_size(parse_input(input)?)),
        "parse_at_skill" => {
            let message: String = parse_input(input)?;
            let (skill, text) = agent_flow::parse_at_skill(&message);
            json!([skill, text])
        }
        "llm_args" => {
            let RunInput { skill } = parse_input(input)?;
            let skill = parse_result::read_skill(&skill, Dialect::AGENT_FLOW)?.skill;
            json!(agent_flow::model_settings(&skill))
        }
        "condition_eval" => {
            let ConditionInput { expr, ctx } = parse_input(input)?;
            condition::is_true(&expr, &Scope::new("", &ctx, &Map::new())).into()
        }
        "workflow_skill_mapping" => {
            let InputMapping { input_mappings, outputs, variables } = parse_input(input)?;
            let inputs = mapped_inputs(&input_mappings, &Scope::new("", &outputs, &variables));
            inputs.map_err(|error| OperationError::BadInput(error.to_string()))?.into()
        }
        "sse_bytes" => {
            let EventInput { event, data } = parse_input(input)?;
            event::sse(&event, &data).into()
        }
        "sse" => events::skill_events(input)?,
        "workflow" => events::workflow_events(input)?,
        "http" => http::run_http_operation(input)?,
        _ => return Err(OperationError::Unsupported),
    })
}

fn verdict(outcome: Result<(), Refusal>) -> Value {
    match outcome {
        Ok(()) => json!({"ok": true}),
        Err(refusal) => {
            json!({"ok": false, "field": refusal.field, "message": refusal.message})
        }
    }
}

/// Parses definitions of inputs like those in a skill file. JSON is also YAML.
fn input_list(inputs: &Value) -> Result<Vec<Input>, OperationError> {
    let text = format!("---\ninputs: {inputs}\n---\n");
    Ok(parse_result::read_skill(&text, Dialect::AGENT_FLOW)?.skill.inputs)
}

fn placeholders(text: &str) -> OperationResult {
    let content = match agent_flow::parse(text) {
        Ok(content) => content,
        Err(refusal) => return Ok(verdict(Err(refusal))),
    };
    let inputs = parse_result::read_skill(text, Dialect::AGENT_FLOW)?.skill.inputs;
    Ok(verdict(agent_flow::check_placeholders(&content.body, &inputs)))
}
