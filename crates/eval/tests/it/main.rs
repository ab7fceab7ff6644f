//! Runs whole evaluations with Savoir's agent and a model that follows a script.

mod agents;
mod study;
