//! Defines the agent that is evaluated.

use std::{fmt, path::Path, time::Duration};

use futures::future::BoxFuture;
use savoir_agent::preamble::hosts::HostRules;

use crate::trace::{HostRecord, TokenUsage, TraceCall, TraceMessage};

/// What an agent gets for a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialSetup<'a> {
    pub prompt: &'a str,
    /// The folder of the trial.
    pub workspace: &'a Path,
    /// A folder for data of the agent, outside of the workspace.
    pub scratch: &'a Path,
    /// The names of the skills that are placed in the workspace.
    pub skills: &'a [String],
    /// Requests to the model.
    pub max_steps: u32,
    pub time: Duration,
    /// The trial may end when the agent uses this skill: nothing else is measured.
    pub until_used: Option<&'a str>,
}

/// What an agent did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRun {
    pub answer: String,
    pub messages: Vec<TraceMessage>,
    pub calls: Vec<TraceCall>,
    pub skills_used: Vec<String>,
    pub usage: TokenUsage,
    pub requests: u32,
    /// The limit that ended it before it was done.
    pub limit: Option<String>,
}

/// How an agent shows skills to its model.
#[derive(Clone, Copy, Debug)]
pub enum Disclosure {
    /// As Savoir's own agent does.
    Savoir,
    /// By rules that were recorded.
    Rules(&'static HostRules),
    Unknown,
}

/// An agent.
pub trait Host: fmt::Debug + Send + Sync {
    fn record(&self) -> HostRecord;

    /// The names of its own tools; empty if they are not known.
    fn tools(&self) -> Vec<String>;

    /// How it shows skills to its model.
    fn disclosure(&self) -> Disclosure;

    /// The servers that the agent and its commands can reach, in words.
    fn network(&self) -> String;

    /// The folder in the workspace in which the agent finds skills.
    fn skills_folder(&self) -> &'static str;

    /// Runs one trial. The error is the reason why the trial is invalid.
    fn run<'a>(&'a self, setup: TrialSetup<'a>) -> BoxFuture<'a, Result<HostRun, String>>;
}
