//! A run: through the nodes, breadth first, with a checkpoint after each.

mod state;

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
};

use savoir_store::{Checkpoint, ExecutionStatus};
use serde_json::Value;

use self::state::State;
use super::{
    graph::{Graph, Node, Work},
    host::Host,
    journal::{Journal, JournalError},
    node::{self, Done, Given, Stop},
};
use crate::event::{self, Emitter, Event, Gone};

/// A workflow with what it is given.
#[derive(Clone, Debug)]
pub struct WorkflowRun<'a> {
    /// Which one.
    pub workflow_id: &'a str,
    /// Its name.
    pub workflow_name: &'a str,
    /// What is to be done.
    pub graph: &'a Graph,
    /// This run of it.
    pub execution_id: &'a str,
    /// What it is given.
    pub input: &'a str,
    /// `provider:model` or a model's name; the default if there is none.
    pub model: Option<&'a str>,
    /// Who runs it.
    pub user: Option<i64>,
    /// How far it is; [`Checkpoint::default`] at the beginning. Its history may hold what was said
    /// in a conversation before.
    pub checkpoint: Checkpoint,
    /// Whether it goes on where it stopped.
    pub resumed: bool,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkflowOutcome {
    /// It went through.
    Completed {
        /// What came of it.
        output: Value,
    },
    /// It stopped, and can be resumed.
    Failed {
        /// The text of the last event.
        error: String,
    },
    /// It took longer than the host allows; it can be resumed.
    TimedOut,
    /// Another worker has it now.
    Taken,
}

/// Runs a workflow and tells what happens, the last event included.
pub async fn run_to_end(
    host: &Host,
    run: WorkflowRun<'_>,
    journal: &dyn Journal,
    out: &Emitter,
) -> Result<WorkflowOutcome, Gone> {
    let outcome = self::run(host, run, journal, out).await?;
    out.emit(Event::Done(event::Done::Complete)).await?;
    Ok(outcome)
}

/// Runs a workflow as a part of something larger: without the last event.
///
/// When nobody listens any more, the run is kept as failed, so that it can be resumed.
pub async fn run(
    host: &Host,
    mut run: WorkflowRun<'_>,
    journal: &dyn Journal,
    out: &Emitter,
) -> Result<WorkflowOutcome, Gone> {
    let limit = host.services.limits.workflow;
    let mut state = State::new(std::mem::take(&mut run.checkpoint));
    let walk = Walk { host, run: &run, journal, out, closing: AtomicBool::new(false) };
    let ended = {
        let mut walking = pin!(tokio::time::timeout(limit, walk.all(&mut state)));
        let ended = tokio::select! {
            biased;
            () = out.gone() => Ok(Err(Halt::Gone)),
            ended = &mut walking => ended,
            // While the last checkpoint is written, the lease may be gone because of it.
            () = journal.taken() => {
                let closing = walk.closing.load(Ordering::Relaxed);
                if closing { walking.await } else { Ok(Err(Halt::Taken)) }
            }
        };
        ended.unwrap_or(Err(Halt::TimedOut))
    };
    match ended {
        Ok(output) => {
            out.emit(Event::WorkflowComplete { final_output: output.clone() }).await?;
            Ok(WorkflowOutcome::Completed { output })
        }
        Err(halt) => walk.halt(halt, &state).await,
    }
}

/// Why a run stops early.
enum Halt {
    Failed(String),
    TimedOut,
    Taken,
    Gone,
}

impl From<Gone> for Halt {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Taken => Self::Taken,
            JournalError::Failed(reason) => {
                tracing::error!(reason, "a checkpoint of a workflow was not kept");
                Self::Failed("Execution state could not be saved".to_owned())
            }
        }
    }
}

/// What stays the same while a run goes on.
struct Walk<'a> {
    host: &'a Host,
    run: &'a WorkflowRun<'a>,
    journal: &'a dyn Journal,
    out: &'a Emitter,
    /// Whether the last checkpoint is being written.
    closing: AtomicBool,
}

impl Walk<'_> {
    /// Goes through all nodes, and gives the last output.
    async fn all(&self, state: &mut State) -> Result<Value, Halt> {
        self.begin(state).await?;
        while let Some(node) = state.next(self.run.graph) {
            self.node(node, state).await?;
            if !state.is_over(self.run.graph) {
                self.journal.save(ExecutionStatus::Running, state.checkpoint()).await?;
            }
        }
        self.closing.store(true, Ordering::Relaxed);
        self.journal.save(ExecutionStatus::Completed, state.checkpoint()).await?;
        Ok(state.last_output())
    }

    async fn begin(&self, state: &mut State) -> Result<(), Halt> {
        let WorkflowRun { graph, .. } = self.run;
        self.out
            .emit(Event::WorkflowStart {
                workflow_id: self.run.workflow_id.to_owned(),
                workflow_name: self.run.workflow_name.to_owned(),
                execution_id: self.run.execution_id.to_owned(),
                resumed: self.run.resumed,
            })
            .await?;
        let is_start = |node: &&Node| matches!(node.work, Work::Start { .. });
        let starts: Vec<String> =
            graph.nodes().iter().filter(is_start).map(|node| node.id.clone()).collect();
        if starts.is_empty() {
            return Err(Halt::Failed("Workflow has no start node".to_owned()));
        }
        if graph.has_cycle() {
            return Err(Halt::Failed("Workflow contains a cycle".to_owned()));
        }
        state.begin(starts);
        Ok(())
    }

    async fn node(&self, node: &Node, state: &mut State) -> Result<(), Halt> {
        let node_id = || node.id.clone();
        let node_type = node.work.name();
        self.out.emit(Event::NodeStart { node_id: node_id(), node_type }).await?;
        let given = Given {
            host: self.host,
            run: self.run,
            id: &node.id,
            input: state.input_of(node, self.run),
            checkpoint: state.checkpoint(),
        };
        let done = match node::perform(&node.work, &given, &self.out.for_node(&node.id)).await {
            Ok(done) => done,
            Err(Stop::Gone) => return Err(Halt::Gone),
            Err(Stop::Failed(error)) => return Err(self.failed(node, error).await),
        };
        let Done { output, status_code, .. } = &done;
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

    async fn failed(&self, node: &Node, error: String) -> Halt {
        let event = Event::NodeError { node_id: node.id.clone(), error: error.clone() };
        match self.out.emit(event).await {
            Ok(()) => Halt::Failed(error),
            Err(Gone) => Halt::Gone,
        }
    }

    /// Keeps how far the run came, and tells why it ends here.
    async fn halt(&self, halt: Halt, state: &State) -> Result<WorkflowOutcome, Gone> {
        // What belongs to someone else is theirs to keep.
        if !matches!(halt, Halt::Taken)
            && let Err(error) = self.journal.save(ExecutionStatus::Failed, state.checkpoint()).await
        {
            tracing::warn!(%error, execution = self.run.execution_id, "a failed run was not kept");
        }
        let (error, outcome) = match halt {
            Halt::Gone => return Err(Gone),
            Halt::Failed(error) => (error.clone(), WorkflowOutcome::Failed { error }),
            Halt::TimedOut => {
                let seconds = self.host.services.limits.workflow.as_secs();
                let error = format!("Workflow execution timed out ({seconds}s)");
                (error, WorkflowOutcome::TimedOut)
            }
            Halt::Taken => {
                ("Execution was taken over by another worker".to_owned(), WorkflowOutcome::Taken)
            }
        };
        self.out.emit(Event::WorkflowError { error }).await?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
