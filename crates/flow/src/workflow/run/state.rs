//! Progress of a workflow run.

use std::borrow::Cow;

use savoir_store::Checkpoint;
use serde_json::{Value, json};
use thiserror::Error;

use super::WorkflowRun;
use crate::workflow::{
    graph::{Graph, Node, NodeKind},
    limits,
    node::{Exchange, NodeResult},
    scope::text_of,
};

/// The progress of a run: a checkpoint, and the size of its outputs.
pub(super) struct RunState {
    checkpoint: Checkpoint,
    /// Bytes of all outputs.
    bytes: usize,
}

/// The outputs of all nodes exceed the size limit of a checkpoint.
#[derive(Clone, Copy, Debug, Error)]
#[error("Workflow outputs exceed {} MiB", limits::MAX_OUTPUT_BYTES >> 20)]
pub(super) struct OutputsTooLarge;

impl RunState {
    pub(super) fn new(mut checkpoint: Checkpoint) -> Self {
        trim_history(&mut checkpoint.history);
        let bytes = checkpoint.outputs.values().map(|output| text_of(output).len()).sum();
        Self { checkpoint, bytes }
    }

    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Queues the start nodes, unless the run has already started.
    pub(super) fn queue_start_nodes(&mut self, starts: Vec<String>) {
        if self.checkpoint.executed_nodes.is_empty() && self.checkpoint.queue.is_empty() {
            self.checkpoint.queue = starts;
        }
    }

    /// Returns the first node of the queue, which stays there until it is complete.
    pub(super) fn next<'a>(&mut self, graph: &'a Graph) -> Option<&'a Node> {
        loop {
            let id = self.checkpoint.queue.first()?;
            // A saved queue may name nodes that were removed since.
            match graph.node(id).filter(|_| !self.has_run(id)) {
                Some(node) => return Some(node),
                None => drop(self.checkpoint.queue.remove(0)),
            }
        }
    }

    /// Returns the output of the first predecessor that has run, or else the input of the run.
    pub(super) fn input_of<'a>(&'a self, node: &Node, run: &'a WorkflowRun<'_>) -> Cow<'a, Value> {
        let mut before = run.graph.before(&node.id);
        match before.find_map(|source| self.checkpoint.outputs.get(&source.id)) {
            Some(output) if !matches!(node.work, NodeKind::Start { .. }) => Cow::Borrowed(output),
            _ => Cow::Owned(run.input.into()),
        }
    }

    /// Stores the result of a node and queues the next nodes.
    pub(super) fn complete(
        &mut self,
        node: &Node,
        result: NodeResult,
        graph: &Graph,
    ) -> Result<(), OutputsTooLarge> {
        let NodeResult { output, variable, branch, exchange, .. } = result;
        let bytes = self.bytes + text_of(&output).len();
        if bytes > limits::MAX_OUTPUT_BYTES {
            return Err(OutputsTooLarge);
        }
        self.bytes = bytes;
        if let Some(name) = variable {
            self.checkpoint.variables.insert(name, output.clone());
        }
        self.checkpoint.outputs.insert(node.id.clone(), output);
        self.checkpoint.executed_nodes.push(node.id.clone());
        self.checkpoint.queue.retain(|id| *id != node.id);
        if let Some(exchange) = exchange {
            self.add_to_history(exchange);
        }
        if node.work == NodeKind::End {
            self.checkpoint.queue.clear();
            return Ok(());
        }
        for (edge, target) in graph.from(&node.id) {
            let is_taken = match (branch, &edge.handle) {
                (Some(branch), Some(handle)) => handle == if branch { "true" } else { "false" },
                _ => true,
            };
            if is_taken && !self.has_run(&target.id) && !self.checkpoint.queue.contains(&target.id)
            {
                self.checkpoint.queue.push(target.id.clone());
            }
        }
        Ok(())
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&mut self, graph: &Graph) -> bool {
        self.next(graph).is_none()
    }

    /// The output of the last node that ran.
    pub(super) fn last_output(&self) -> Value {
        let last = self.checkpoint.executed_nodes.last();
        last.and_then(|id| self.checkpoint.outputs.get(id)).cloned().unwrap_or_default()
    }

    fn has_run(&self, id: &str) -> bool {
        self.checkpoint.outputs.contains_key(id)
    }

    fn add_to_history(&mut self, Exchange { question, answer }: Exchange) {
        let history = &mut self.checkpoint.history;
        history.push(json!({"role": "user", "content": question}));
        history.push(json!({"role": "assistant", "content": answer}));
        trim_history(history);
    }
}

/// Drops the oldest messages when there are too many. The last two always stay.
fn trim_history(history: &mut Vec<Value>) {
    let mut bytes = 0;
    let fits = |message: &&Value| {
        bytes += message["content"].as_str().map_or(0, str::len);
        bytes <= limits::MAX_HISTORY_BYTES
    };
    let remaining =
        history.iter().rev().take(limits::MAX_HISTORY_MESSAGES).take_while(fits).count();
    let remaining = remaining.max(2).min(history.len());
    history.drain(..history.len() - remaining);
}
