//! Runs LLM nodes, which ask a model.

use savoir_model::Message;
use savoir_skill::{Skill, dialect::agent_flow::model_settings};
use serde_json::Value;

use super::{Exchange, NodeContext, NodeError, NodeResult};
use crate::{
    event::{Emitter, Thought},
    services::{Answer, Question},
    workflow::{graph::Llm, template},
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
    let Settings { system_prompt, temperature, max_tokens } = settings(llm, context, out).await?;
    let system_prompt = template::fill(&system_prompt, &context.scope())?;
    let question = context.input_text().into_owned();
    let mut messages = vec![Message::System(system_prompt)];
    if llm.history {
        messages.extend(context.checkpoint.history.iter().filter_map(message));
    }
    messages.push(Message::User(question.clone()));
    let model = context.model(llm.model.as_deref());
    let user = context.run.user;
    let asked = Question { model, messages, temperature: Some(temperature), max_tokens, user };
    let Answer { text: answer, error } = context.host.services.ask(asked, out).await?;
    if let Some(error) = error {
        tracing::warn!(%error, node = context.id, "a model failed");
        return Err(NodeError::Failed(format!("LLM call failed: {}", error.public_message())));
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
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<Settings, NodeError> {
    let own = Settings {
        system_prompt: llm.system_prompt.clone(),
        temperature: llm.temperature,
        max_tokens: None,
    };
    let Some(name) = &llm.skill else { return Ok(own) };
    let skill = context.skill(name).await?;
    let body = skill.body.trim();
    let has_prompt = !body.is_empty();
    let thought = Thought::about("skill_loaded")
        .with("node_id", context.id)
        .with("skill_name", name.as_str())
        .with("has_prompt", has_prompt)
        .with("has_model_config", has_settings(&skill));
    out.emit(thought).await?;
    let settings = model_settings(&skill);
    Ok(Settings {
        // A skill with an empty body does not replace the prompt.
        system_prompt: if has_prompt { body.to_owned() } else { own.system_prompt },
        temperature: settings.temperature,
        max_tokens: Some(settings.max_tokens),
    })
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
