//! A node that chooses a way.

use super::{Done, Given, Stop};
use crate::{
    event::{Emitter, Thought},
    workflow::condition,
};

pub(super) async fn perform(
    expression: &str,
    given: &Given<'_>,
    out: &Emitter,
) -> Result<Done, Stop> {
    let branch = condition::holds(expression, &given.scope());
    let thought = Thought::about("condition")
        .with("node_id", given.id)
        .with("expression", expression)
        .with("branch", if branch { "true" } else { "false" });
    out.emit(thought).await?;
    let output = given.input.clone().into_owned();
    Ok(Done { output, branch: Some(branch), ..Done::default() })
}
