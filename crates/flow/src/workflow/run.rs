//! Executes the nodes of a workflow, breadth first, and stores a checkpoint after each.

mod state;

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
};

use savoir_store::{Checkpoint, ExecutionStatus};
use serde_json::Value;

use self::state::RunState;
use super::{
    graph::{Graph, Node, NodeKind},
    host::WorkflowHost,
    journal::{Journal, JournalError},
    node::{self, NodeContext, NodeError, NodeResult},
};
use crate::event::{self, Emitter, Event, ListenerDisconnected};

/// One run of a workflow, with its input.
#[derive(Clone, Debug)]
pub struct WorkflowRun<'a> {
    pub workflow_id: &'a str,
    pub workflow_name: &'a str,
    pub graph: &'a Graph,
    /// The id of this run.
    pub execution_id: &'a str,
    pub input: &'a str,
    /// `provider:model` or a model's name; `None` for the default.
    pub model: Option<&'a str>,
    /// The account that is charged for the usage.
    pub user: Option<i64>,
    /// The progress; [`Checkpoint::default`] for a new run. Its history may contain earlier
    /// messages of a conversation.
    pub checkpoint: Checkpoint,
    /// Whether the run resumes from a checkpoint.
    pub resumed: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkflowOutcome {
    /// All nodes completed.
    Completed { output: Value },
    /// A node failed; the run can be resumed.
    Failed {
        /// The text of the last error event.
        error: String,
    },
    /// The run exceeded the host's time limit; it can be resumed.
    TimedOut,
    /// Another worker has taken the run.
    TakenOver,
}

/// Runs a workflow and emits all events, including the final `done`.
pub async fn run_to_end(
    host: &WorkflowHost,
    run: WorkflowRun<'_>,
    journal: &dyn Journal,
    out: &Emitter,
) -> Result<WorkflowOutcome, ListenerDisconnected> {
    let outcome = self::run(host, run, journal, out).await?;
    let done = match &outcome {
        WorkflowOutcome::Completed { .. } => event::Done::Complete,
        WorkflowOutcome::Failed { .. } | WorkflowOutcome::TimedOut | WorkflowOutcome::TakenOver => {
            event::Done::Failed
        }
    };
    out.emit(Event::Done(done)).await?;
    Ok(outcome)
}

/// Runs a workflow as part of a larger run: without the final `done` event.
///
/// When the listener is gone, the run is stored as failed, so that it can be resumed.
pub async fn run(
    host: &WorkflowHost,
    mut run: WorkflowRun<'_>,
    journal: &dyn Journal,
    out: &Emitter,
) -> Result<WorkflowOutcome, ListenerDisconnected> {
    let limit = host.services.limits.workflow;
    let mut state = RunState::new(std::mem::take(&mut run.checkpoint), run.graph);
    let runner =
        WorkflowRunner { host, run: &run, journal, out, saving_last: AtomicBool::new(false) };
    let result = {
        let mut running = pin!(tokio::time::timeout(limit, runner.run_all(&mut state)));
        let result = tokio::select! {
            biased;
            () = out.gone() => Ok(Err(RunStop::ListenerDisconnected)),
            result = &mut running => result,
            // Writing the last checkpoint releases the lease, so losing it is expected then.
            () = journal.lease_lost() => {
                let saving_last = runner.saving_last.load(Ordering::Relaxed);
                if saving_last { running.await } else { Ok(Err(RunStop::TakenOver)) }
            }
        };
        result.unwrap_or(Err(RunStop::TimedOut))
    };
    match result {
        Ok(output) => {
            out.emit(Event::WorkflowComplete { final_output: output.clone() }).await?;
            Ok(WorkflowOutcome::Completed { output })
        }
        Err(stop_reason) => runner.stop(stop_reason, &state).await,
    }
}

/// Why a run stops early.
enum RunStop {
    Failed(String),
    TimedOut,
    TakenOver,
    ListenerDisconnected,
}

impl From<ListenerDisconnected> for RunStop {
    fn from(_: ListenerDisconnected) -> Self {
        Self::ListenerDisconnected
    }
}

impl From<JournalError> for RunStop {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::TakenOver => Self::TakenOver,
            JournalError::Failed(reason) => {
                tracing::error!(reason, "a checkpoint of a workflow was not stored");
                Self::Failed("Execution state could not be saved".to_owned())
            }
        }
    }
}

/// The constant data of a run.
struct WorkflowRunner<'a> {
    host: &'a WorkflowHost,
    run: &'a WorkflowRun<'a>,
    journal: &'a dyn Journal,
    out: &'a Emitter,
    /// Whether the last checkpoint is being written.
    saving_last: AtomicBool,
}

impl WorkflowRunner<'_> {
    /// Executes all nodes; returns the last output.
    async fn run_all(&self, state: &mut RunState) -> Result<Value, RunStop> {
        self.start_run(state).await?;
        while let Some(node) = state.next(self.run.graph) {
            self.run_node(node, state).await?;
            if !state.is_over(self.run.graph) {
                self.journal.save(ExecutionStatus::Running, state.checkpoint()).await?;
            }
        }
        self.saving_last.store(true, Ordering::Relaxed);
        self.journal.save(ExecutionStatus::Completed, state.checkpoint()).await?;
        Ok(state.last_output())
    }

    async fn start_run(&self, state: &mut RunState) -> Result<(), RunStop> {
        let WorkflowRun { graph, .. } = self.run;
        self.out
            .emit(Event::WorkflowStart {
                workflow_id: self.run.workflow_id.to_owned(),
                workflow_name: self.run.workflow_name.to_owned(),
                execution_id: self.run.execution_id.to_owned(),
                resumed: self.run.resumed,
            })
            .await?;
        let is_start = |node: &&Node| matches!(node.work, NodeKind::Start { .. });
        let starts: Vec<String> =
            graph.nodes().iter().filter(is_start).map(|node| node.id.clone()).collect();
        if starts.is_empty() {
            return Err(RunStop::Failed("Workflow has no start node".to_owned()));
        }
        if graph.has_cycle() {
            return Err(RunStop::Failed("Workflow contains a cycle".to_owned()));
        }
        state.queue_start_nodes(starts);
        Ok(())
    }

    async fn run_node(&self, node: &Node, state: &mut RunState) -> Result<(), RunStop> {
        let node_id = || node.id.clone();
        let node_type = node.work.name();
        self.out.emit(Event::NodeStart { node_id: node_id(), node_type }).await?;
        let out = self.out.for_node(&node.id);
        for warning in &node.warnings {
            out.emit(Event::warning(warning)).await?;
        }
        let context = NodeContext {
            host: self.host,
            run: self.run,
            id: &node.id,
            input: state.input_of(node, self.run),
            checkpoint: state.checkpoint(),
        };
        let done = match node::run_node(&node.work, &context, &out).await {
            Ok(done) => done,
            Err(NodeError::ListenerDisconnected) => return Err(RunStop::ListenerDisconnected),
            Err(NodeError::Failed(error)) => return Err(self.failed(node, error).await),
        };
        let NodeResult { output, status_code, .. } = &done;
        let complete = Event::NodeComplete {
            node_id: node_id(),
            output: output.clone(),
            status_code: *status_code,
        };
        if let Err(error) = state.complete(node, done, self.run.graph) {
            return Err(self.failed(node, error.to_string()).await);
        }
        Ok(self.out.emit(complete).await?)
    }

    async fn failed(&self, node: &Node, error: String) -> RunStop {
        let event = Event::NodeError { node_id: node.id.clone(), error: error.clone() };
        match self.out.emit(event).await {
            Ok(()) => RunStop::Failed(error),
            Err(ListenerDisconnected) => RunStop::ListenerDisconnected,
        }
    }

    /// Stores the progress of a run that ends early, and emits the reason.
    async fn stop(
        &self,
        stop_reason: RunStop,
        state: &RunState,
    ) -> Result<WorkflowOutcome, ListenerDisconnected> {
        // The worker that has taken the run stores its checkpoints.
        if !matches!(stop_reason, RunStop::TakenOver)
            && let Err(error) = self.journal.save(ExecutionStatus::Failed, state.checkpoint()).await
        {
            tracing::warn!(%error, execution = self.run.execution_id, "a failed run was not stored");
        }
        let (error, outcome) = match stop_reason {
            RunStop::ListenerDisconnected => return Err(ListenerDisconnected),
            RunStop::Failed(error) => (error.clone(), WorkflowOutcome::Failed { error }),
            RunStop::TimedOut => {
                let seconds = self.host.services.limits.workflow.as_secs();
                let error = format!("Workflow execution timed out ({seconds}s)");
                (error, WorkflowOutcome::TimedOut)
            }
            RunStop::TakenOver => (
                "Execution was taken over by another worker".to_owned(),
                WorkflowOutcome::TakenOver,
            ),
        };
        self.out.emit(Event::WorkflowError { error }).await?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
