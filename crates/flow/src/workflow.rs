//! Runs workflows: graphs of nodes that pass their outputs along edges.
//!
//! - [`graph`] parses a graph from the editor; [`file`](mod@file) parses an exported file.
//! - [`scope`] resolves placeholders; [`template`] inserts the values into texts, [`condition`]
//!   evaluates expressions with them.
//! - [`run`](fn@run) executes the nodes, breadth first, and emits events; each type of node has a
//!   file of its own in `node`.
//! - [`journal`] stores the progress of a run, so that it can resume later.

pub mod condition;
pub mod file;
pub mod graph;
pub mod journal;
pub mod limits;
pub mod scope;
pub mod template;

mod host;
mod node;
mod run;

pub use graph::Graph;
pub use host::{CodePolicy, Features, HttpPolicy, NodeAgent, WorkflowHost};
pub use journal::{Journal, JournalError, NoJournal, StoreJournal};
pub use node::http::read_page;
pub use node::{DISABLED, skill::mapped_inputs};
pub use run::{WorkflowOutcome, WorkflowRun, run, run_to_end};
pub use savoir_store::Checkpoint;
pub use scope::Scope;
