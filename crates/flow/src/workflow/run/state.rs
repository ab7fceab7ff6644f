//! Progress of a workflow run.

use std::borrow::Cow;

use savoir_store::Checkpoint;
use serde_json::{Value, json};
use thiserror::Error;

use super::WorkflowRun;
use crate::workflow::{
    graph::{Edge, Graph, Node, NodeKind},
    limits,
    node::{Exchange, NodeResult},
    scope::text_of,
};

/// The progress of a run: a checkpoint, and the size of its outputs.
pub(super) struct RunState {
    checkpoint: Checkpoint,
    sizes: OutputSizes,
}

/// Bytes of outputs.
#[derive(Clone, Copy, Default)]
struct OutputSizes {
    /// Of nodes that created new content.
    made: usize,
    /// Of all nodes.
    stored: usize,
}

/// The outputs of all nodes exceed a size limit of a checkpoint.
#[derive(Clone, Copy, Debug, Error)]
pub(super) enum OutputsTooLarge {
    #[error("Workflow outputs exceed {} MiB", limits::MAX_OUTPUT_BYTES >> 20)]
    Made,
    #[error(
        "Workflow outputs exceed {} MiB together with the nodes that pass them on",
        limits::MAX_STORED_OUTPUT_BYTES >> 20
    )]
    Stored,
}

impl OutputSizes {
    /// Returns the sizes with an additional output.
    fn with(self, node: Option<&Node>, output: &Value) -> Self {
        let size = text_of(output).len();
        let made = if node.is_some_and(passes_input_on) { 0 } else { size };
        Self { made: self.made + made, stored: self.stored + size }
    }

    fn check(self) -> Result<Self, OutputsTooLarge> {
        if self.made > limits::MAX_OUTPUT_BYTES {
            Err(OutputsTooLarge::Made)
        } else if self.stored > limits::MAX_STORED_OUTPUT_BYTES {
            Err(OutputsTooLarge::Stored)
        } else {
            Ok(self)
        }
    }
}

/// Whether the output of a node is its input.
fn passes_input_on(node: &Node) -> bool {
    matches!(node.work, NodeKind::Start { .. } | NodeKind::Condition { .. } | NodeKind::End)
}

impl RunState {
    pub(super) fn new(mut checkpoint: Checkpoint, graph: &Graph) -> Self {
        trim_history(&mut checkpoint.history);
        let outputs = checkpoint.outputs.iter();
        let sizes = outputs
            .fold(OutputSizes::default(), |sizes, (id, output)| sizes.with(graph.node(id), output));
        Self { checkpoint, sizes }
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

    /// Returns the first node of the queue that no other one in it leads to, so that a node runs
    /// after all nodes whose outputs it receives. It stays in the queue until it is complete.
    pub(super) fn next<'a>(&mut self, graph: &'a Graph) -> Option<&'a Node> {
        // A saved queue may name nodes that were removed since.
        let outputs = &self.checkpoint.outputs;
        self.checkpoint.queue.retain(|id| graph.node(id).is_some() && !outputs.contains_key(id));
        let queue = &self.checkpoint.queue;
        let waits =
            |id: &String| queue.iter().any(|other| other != id && graph.leads_to(other, id));
        graph.node(queue.iter().find(|id| !waits(id))?)
    }

    /// Returns the output of the predecessor that has run, the outputs of several as one text, or
    /// else the input of the run.
    pub(super) fn input_of<'a>(&'a self, node: &Node, run: &'a WorkflowRun<'_>) -> Cow<'a, Value> {
        if matches!(node.work, NodeKind::Start { .. }) {
            return Cow::Owned(run.input.into());
        }
        let mut outputs: Vec<(&str, &Value)> = Vec::new();
        for (edge, source) in run.graph.before(&node.id) {
            let branch = self.checkpoint.branches.get(&source.id).copied();
            if is_followed(edge, branch)
                && !outputs.iter().any(|(id, _)| *id == source.id)
                && let Some(output) = self.checkpoint.outputs.get(&source.id)
            {
                outputs.push((&source.id, output));
            }
        }
        match outputs.as_slice() {
            [] => Cow::Owned(run.input.into()),
            [(_, output)] => Cow::Borrowed(*output),
            several => {
                let texts: Vec<_> = several.iter().map(|(_, output)| text_of(output)).collect();
                Cow::Owned(texts.join("\n\n").into())
            }
        }
    }

    /// Stores the result of a node and queues the next nodes.
    pub(super) fn complete(
        &mut self,
        node: &Node,
        result: NodeResult,
        graph: &Graph,
    ) -> Result<(), OutputsTooLarge> {
        let NodeResult { output, variable, branch, exchange, details, .. } = result;
        self.sizes = self.sizes.with(Some(node), &output).check()?;
        if let Some(name) = variable {
            self.checkpoint.variables.insert(name, output.clone());
        }
        if let Some(branch) = branch {
            self.checkpoint.branches.insert(node.id.clone(), branch);
        }
        if let Some(details) = details {
            // A variable that the author chose has precedence.
            self.checkpoint.variables.entry(node.id.clone()).or_insert(details);
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
            if is_followed(edge, branch)
                && !self.has_run(&target.id)
                && !self.checkpoint.queue.contains(&target.id)
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

    /// Returns the output of the last executed node.
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

/// Whether an edge is followed after its source chose a branch.
fn is_followed(edge: &Edge, branch: Option<bool>) -> bool {
    match (branch, &edge.handle) {
        (Some(branch), Some(handle)) => handle == if branch { "true" } else { "false" },
        _ => true,
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
