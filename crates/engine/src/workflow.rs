//! Workflows: nodes that pass their outputs on along edges.
//!
//! - [`graph`] reads what was drawn; [`file`](mod@file) reads a file that was exported.
//! - [`scope`] knows what a placeholder stands for; [`template`] fills it into a text, [`condition`]
//!   judges an expression with it.
//! - [`run`](fn@run) goes through the nodes, breadth first, and tells what happens; each type of
//!   node has a file of its own in `node`.
//! - [`journal`] keeps how far a run is, so that it can go on later.

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
pub use host::{CodePolicy, Features, Host, HttpPolicy};
pub use journal::{Journal, JournalError, NoJournal, StoreJournal};
pub use node::http::read_page;
pub use node::{DISABLED, skill::mapped_inputs};
pub use run::{WorkflowOutcome, WorkflowRun, run, run_to_end};
pub use savoir_store::Checkpoint;
pub use scope::Scope;
