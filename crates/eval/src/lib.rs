//! Evaluates skills: does a skill help, when is it used, and who measured it.
//!
//! - [`formats`] reads the evaluation files of every known format into one [`EvalSet`], with a
//!   [`Diagnostic`](savoir_lint::Diagnostic) for each mistake; [`template`] writes a new file.
//! - `run` runs trials with an agent and a model (feature `run`).
//! - [`trace`] is the record of one trial; [`mod@grade`] checks the assertions of a case against it,
//!   [`judge`] asks a model about assertions in prose.
//! - [`stats`] computes uplift, its interval, and a verdict; [`gate`] is the condition of a CI job;
//!   [`trigger`] counts when a skill is used.
//! - [`analyze`] compares the arms and concludes; [`results`] is what comes out; [`mod@compare`]
//!   compares two evaluations.
//! - [`attest`] makes signed statements of results and checks those in the folder of a skill.
//! - [`report`] renders results, [`store`] writes them into a folder and reads them.

#![forbid(unsafe_code)]

pub mod analyze;
pub mod attest;
pub mod compare;
pub mod formats;
pub mod gate;
pub mod grade;
pub mod judge;
pub mod limits;
pub mod report;
pub mod results;
#[cfg(feature = "run")]
pub mod run;
pub mod set;
pub mod stats;
pub mod store;
pub mod template;
pub mod trace;
pub mod trigger;

mod json;

pub use set::{Assertion, Case, CaseFile, EvalSet, Grader, Location, Trigger};
