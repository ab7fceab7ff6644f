//! Progress of a workflow run.

use std::borrow::Cow;

use savoir_store::Checkpoint;
use serde_json::{Value, json};
use thiserror::Error;

use super::WorkflowRun;
use crate::workflow::{
    graph::{Graph, Node, Work},
    limits,
    node::{Done, Exchange},
    scope::text_of,
};

/// How far a run is: a checkpoint, and what it takes to stay within bounds.
pub(super) struct State {
    checkpoint: Checkpoint,
    /// Bytes of all outputs.
    bytes: usize,
}

/// The outputs of all nodes are more than a checkpoint should hold.
#[derive(Clone, Copy, Debug, Error)]
#[error("Workflow outputs exceed {} MiB", limits::OUTPUT_BYTES >> 20)]
pub(super) struct TooMuch;

impl State {
    pub(super) fn new(mut checkpoint: Checkpoint) -> Self {
        forget(&mut checkpoint.history);
        let bytes = checkpoint.outputs.values().map(|output| text_of(output).len()).sum();
        Self { checkpoint, bytes }
    }

    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Queues the first nodes, unless the run is further already.
    pub(super) fn begin(&mut self, starts: Vec<String>) {
        if self.checkpoint.executed_nodes.is_empty() && self.checkpoint.queue.is_empty() {
            self.checkpoint.queue = starts;
        }
    }

    /// The head of the queue. It stays there until it is done.
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

    /// The output of the first edge that comes from a node that has run, else the run's own input.
    pub(super) fn input_of<'a>(&'a self, node: &Node, run: &'a WorkflowRun<'_>) -> Cow<'a, Value> {
        let mut before = run.graph.before(&node.id);
        match before.find_map(|source| self.checkpoint.outputs.get(&source.id)) {
            Some(output) if !matches!(node.work, Work::Start { .. }) => Cow::Borrowed(output),
            _ => Cow::Owned(run.input.into()),
        }
    }

    /// Keeps what came of a node, and queues what follows.
    pub(super) fn complete(
        &mut self,
        node: &Node,
        done: Done,
        graph: &Graph,
    ) -> Result<(), TooMuch> {
        let Done { output, variable, branch, exchange, .. } = done;
        let bytes = self.bytes + text_of(&output).len();
        if bytes > limits::OUTPUT_BYTES {
            return Err(TooMuch);
        }
        self.bytes = bytes;
        if let Some(name) = variable {
            self.checkpoint.variables.insert(name, output.clone());
        }
        self.checkpoint.outputs.insert(node.id.clone(), output);
        self.checkpoint.executed_nodes.push(node.id.clone());
        self.checkpoint.queue.retain(|id| *id != node.id);
        if let Some(exchange) = exchange {
            self.remember(exchange);
        }
        if node.work == Work::End {
            self.checkpoint.queue.clear();
            return Ok(());
        }
        for (edge, target) in graph.from(&node.id) {
            let leads = match (branch, &edge.handle) {
                (Some(branch), Some(handle)) => handle == if branch { "true" } else { "false" },
                _ => true,
            };
            if leads && !self.has_run(&target.id) && !self.checkpoint.queue.contains(&target.id) {
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

    fn remember(&mut self, Exchange { question, answer }: Exchange) {
        let history = &mut self.checkpoint.history;
        history.push(json!({"role": "user", "content": question}));
        history.push(json!({"role": "assistant", "content": answer}));
        forget(history);
    }
}

/// Drops the oldest messages when there are too many. The last two always stay.
fn forget(history: &mut Vec<Value>) {
    let mut bytes = 0;
    let fits = |message: &&Value| {
        bytes += message["content"].as_str().map_or(0, str::len);
        bytes <= limits::HISTORY_BYTES
    };
    let kept = history.iter().rev().take(limits::HISTORY_MESSAGES).take_while(fits).count();
    let kept = kept.max(2).min(history.len());
    history.drain(..history.len() - kept);
}
