//! Runs LLM nodes, which ask a model.

use savoir_model::Message;
use savoir_skill::{Dialect, Skill, dialect::agent_flow::model_settings, render, skill::Input};
use serde_json::Value;

use super::{Exchange, NodeContext, NodeError, NodeResult, skill::mapped_inputs};
use crate::{
    event::{Emitter, Thought},
    prompt::{answer_emitter, check_answer, check_ready, first_input},
    services::{Answer, Question},
    workflow::{
        graph::Llm,
        scope::{PlaceholderValue, text_of},
        template::{self, TemplatePart, TextBudget},
    },
};

/// The settings of a model call.
struct Settings {
    system_prompt: String,
    temperature: f64,
    max_tokens: Option<u32>,
}

pub(super) async fn run(
    llm: &Llm,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    let skill = match &llm.skill {
        Some(name) => Some(context.skill(name).await?),
        None => None,
    };
    if let Some(skill) = &skill {
        check_ready(skill).map_err(|failure| NodeError::Failed(failure.message))?;
    }
    let skill = skill.as_ref();
    let Settings { system_prompt, temperature, max_tokens } =
        settings(llm, skill, context, out).await?;
    let question = context.input_text().into_owned();
    let mut messages = vec![Message::System(system_prompt)];
    if llm.history {
        messages.extend(context.checkpoint.history.iter().filter_map(message));
    }
    messages.push(Message::User(question.clone()));
    let model = context.model(llm.model.as_deref());
    let user = context.run.user;
    let asked =
        Question { model, messages, temperature: Some(temperature), max_tokens, user, skill };
    let tokens = skill.map_or_else(|| out.clone(), |skill| answer_emitter(skill, out));
    let Answer { text: answer, error } = match &context.host.agent {
        Some(agent) => agent.ask(asked, &tokens).await?,
        None => context.host.services.ask(asked, &tokens).await?,
    };
    if let Some(error) = error {
        tracing::warn!(%error, node = context.id, "a model failed");
        return Err(NodeError::Failed(format!("LLM call failed: {}", error.public_message())));
    }
    if let Some(skill) = skill
        && let Some(failure) = check_answer(skill, &answer, out).await?
    {
        return Err(NodeError::Failed(failure.message));
    }
    let output = Value::from(answer.as_str());
    Ok(NodeResult {
        output,
        exchange: Some(Exchange { question, answer }),
        ..NodeResult::default()
    })
}

async fn settings(
    llm: &Llm,
    skill: Option<&Skill>,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<Settings, NodeError> {
    let own_prompt = || template::fill(&llm.system_prompt, &context.scope());
    let (Some(skill), Some(name)) = (skill, &llm.skill) else {
        let system_prompt = own_prompt()?;
        return Ok(Settings { system_prompt, temperature: llm.temperature, max_tokens: None });
    };
    let body = skill.body.trim();
    let has_prompt = !body.is_empty();
    let thought = Thought::about("skill_loaded")
        .with("node_id", context.id)
        .with("skill_name", name.as_str())
        .with("has_prompt", has_prompt)
        .with("has_model_config", has_settings(skill));
    out.emit(thought).await?;
    let settings = model_settings(skill);
    Ok(Settings {
        // A skill with an empty body does not replace the prompt.
        system_prompt: if has_prompt { skill_prompt(skill, llm, context)? } else { own_prompt()? },
        temperature: settings.temperature,
        max_tokens: Some(settings.max_tokens),
    })
}

/// Returns the body of a skill with its inputs: from the mappings of the node, else from a variable
/// of the same name, else the default. Without mappings, the first required input gets the input of
/// the node; if none is required, the first one, unless it has a variable or a default.
fn skill_prompt(skill: &Skill, llm: &Llm, context: &NodeContext<'_>) -> Result<String, NodeError> {
    let scope = context.scope();
    let given = match &llm.mappings {
        Some(mappings) => mapped_inputs(mappings, &scope)?,
        None => first_input(skill, &context.input_text()),
    };
    let value = |input: &Input| {
        let variable = || scope.find(&input.name).map(|found| found.text().into_owned());
        let given = || given.get(&input.name).map(|value| text_of(value).into_owned());
        let default = || input.default.as_ref().map(|value| text_of(value).into_owned());
        if llm.mappings.is_none() && !input.required {
            variable().or_else(default).or_else(given)
        } else {
            given().or_else(variable).or_else(default)
        }
    };
    check_types(skill, value)?;
    let mut budget = TextBudget::default();
    let mut filled = String::new();
    for part in template::parts(skill.body.trim()) {
        let text = match part {
            TemplatePart::Text(text) => text.into(),
            TemplatePart::Placeholder { whole, path } => {
                match skill.inputs.iter().find(|input| input.name == path) {
                    Some(input) => value(input).unwrap_or_default().into(),
                    None => scope.find(path).map_or_else(|| whole.into(), PlaceholderValue::text),
                }
            }
        };
        budget.take(&text)?;
        filled.push_str(&text);
    }
    Ok(filled)
}

/// Refuses values that do not have the type of their input, and missing ones, in a dialect with types.
fn check_types(skill: &Skill, value: impl Fn(&Input) -> Option<String>) -> Result<(), NodeError> {
    if skill.dialect != Dialect::SKILLRT {
        return Ok(());
    }
    let given = |input: &Input| Some((input.name.clone(), Value::from(value(input)?)));
    let values = skill.inputs.iter().filter_map(given).collect();
    match render::problems(skill, &values).into_iter().next() {
        Some(problem) => Err(NodeError::failed(problem.to_string())),
        None => Ok(()),
    }
}

fn has_settings(skill: &Skill) -> bool {
    skill.policy.temperature.is_some() || skill.policy.max_tokens.is_some()
}

/// Converts a message of the history.
fn message(kept: &Value) -> Option<Message> {
    let text = kept.get("content")?.as_str()?.to_owned();
    match kept.get("role")?.as_str()? {
        "user" => Some(Message::User(text)),
        "assistant" => Some(Message::Assistant { text, tool_calls: Vec::new() }),
        _ => None,
    }
}
