//! Runs condition nodes, which choose a branch.

use super::{NodeContext, NodeError, NodeResult};
use crate::{
    event::{Emitter, Event, Thought},
    workflow::condition,
};

pub(super) async fn run(
    expression: &str,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    let branch = match condition::evaluate(expression, &context.scope()) {
        Ok(evaluation) => {
            for note in evaluation.notes {
                out.emit(Event::warning(format!("In the condition `{expression}`, {note}")))
                    .await?;
            }
            evaluation.is_true
        }
        Err(why) => {
            let message = format!("The condition `{expression}` counts as false: {why}");
            out.emit(Event::warning(message)).await?;
            false
        }
    };
    let thought = Thought::about("condition")
        .with("node_id", context.id)
        .with("expression", expression)
        .with("branch", if branch { "true" } else { "false" });
    out.emit(thought).await?;
    let output = context.input.clone().into_owned();
    Ok(NodeResult { output, branch: Some(branch), ..NodeResult::default() })
}
