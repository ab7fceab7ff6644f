//! Runs the trials of an evaluation with an agent and a model.
//!
//! - [`Study`] is what to run; [`run()`] runs it and returns [`Results`](crate::results::Results)
//!   with the records of all trials.
//! - `host` is the agent: [`SavoirHost`] is Savoir's own, [`AgentHost`] one that others wrote.
//! - `workspace` prepares a folder per trial, `cache` stores finished trials, `budget` ends a run
//!   that costs too much, `grader` runs commands and judges.
//! - [`replay()`] grades recorded trials again.

mod agents;
mod budget;
mod cache;
mod grader;
mod host;
mod replay;
mod savoir;
mod skill;
mod study;
mod triggers;
mod workspace;

pub use self::{
    agents::{AgentError, AgentHost, agent_ids},
    budget::{Budget, Spending},
    cache::Cache,
    grader::{Graders, Judge},
    host::{Disclosure, Host, HostRun, TrialSetup},
    replay::{Recorded, read_recorded, replay},
    savoir::SavoirHost,
    skill::EvaluatedSkill,
    study::{Finished, Study, run},
};
