//! Runs one tool of a skill because a user asked for it, and emits what happens.

use std::{pin::pin, time::Duration};

use savoir_flow::event::{Done, Emitter, Event, ListenerDisconnected, Thought};
use serde_json::{Map, Value};

use super::{allowed_tools::CallGuard, skill_tools::SkillTools, toolset::ToolAnswer};

/// How long a tool may take, including the question whether it may run.
const RUN_TIMEOUT: Duration = Duration::from_mins(10);

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolRun {
    pub skill: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// Runs a tool and emits all events, including the final `done`. The run ends when the listener is
/// gone.
pub async fn run(
    tools: &SkillTools,
    run: &ToolRun,
    out: &Emitter,
) -> Result<(), ListenerDisconnected> {
    let ToolRun { skill, tool, arguments } = run;
    let thought = |status| {
        Thought::new("tool", status)
            .with("tool", tool.as_str())
            .with("skill_name", skill.as_str())
            .with("call_id", tool.as_str())
    };
    out.emit(thought("start")).await?;
    let call = tools.call_skill_tool(skill, tool, arguments, CallGuard::unrestricted());
    let mut call = pin!(tokio::time::timeout(RUN_TIMEOUT, call));
    let answer = tokio::select! {
        biased;
        () = out.gone() => return Err(ListenerDisconnected),
        answer = &mut call => answer,
    };
    let answer = answer.unwrap_or_else(|_| {
        let message = format!("`{tool}` took longer than {} minutes", RUN_TIMEOUT.as_secs() / 60);
        ToolAnswer::failed("tool-timeout", message)
    });
    let output = output(&answer);
    if !output.is_empty() {
        out.emit(Event::token(output)).await?;
    }
    let failure = answer.failure.as_ref().map(|code| (code.clone(), failure_message(&answer)));
    let ended = match &failure {
        None => thought("complete"),
        Some((code, message)) => {
            thought("error").with("code", code.as_str()).with("message", message.as_str())
        }
    };
    let ended = match answer.access.as_ref().map(serde_json::to_value) {
        Some(Ok(access)) => ended.with("access", access),
        _ => ended,
    };
    out.emit(ended).await?;
    let done = match failure {
        None => Done::Success { message: "The tool is done" },
        Some((_, message)) => Done::Error { message },
    };
    out.emit(Event::Done(done)).await
}

/// What the tool printed.
fn output(answer: &ToolAnswer) -> &str {
    answer.data.as_ref().and_then(|data| data["output"].as_str()).unwrap_or_default()
}

/// Why the tool failed or did not run.
fn failure_message(answer: &ToolAnswer) -> String {
    let data = answer.data.as_ref();
    let message = data.and_then(|data| data["error"].as_str());
    message.unwrap_or(&answer.text).to_owned()
}
