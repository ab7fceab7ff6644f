//! Runs skills that need a model: prompts and workflows.
//!
//! - [`services`] provides the models, the knowledge bases and the database that a run may use.
//! - [`prompt`] fills in the text of a skill and asks a model; [`retrieval`] adds passages of a
//!   knowledge base to the question.
//! - [`workflow`] runs graphs of models, skills, searches, requests and code.
//! - [`event`] defines the events that a run streams; [`skill_lookup`] finds the skills of a
//!   workflow.

#![forbid(unsafe_code)]

pub mod event;
pub mod prompt;
pub mod retrieval;
pub mod services;
pub mod skill_lookup;
pub mod workflow;

#[cfg(test)]
mod testing;
