//! Runs condition nodes, which choose a branch.

use super::{NodeContext, NodeError, NodeResult};
use crate::{
    event::{Emitter, Thought},
    workflow::condition,
};

pub(super) async fn run(
    expression: &str,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    let branch = condition::is_true(expression, &context.scope());
    let thought = Thought::about("condition")
        .with("node_id", context.id)
        .with("expression", expression)
        .with("branch", if branch { "true" } else { "false" });
    out.emit(thought).await?;
    let output = context.input.clone().into_owned();
    Ok(NodeResult { output, branch: Some(branch), ..NodeResult::default() })
}
