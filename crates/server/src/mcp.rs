//! The MCP server: offers skills to agents.
//!
//! - [`McpContext`] is what a client can use: a library of skills, their files, and optionally a
//!   runner for their tools. `session` is the state of one client.
//! - `tools` lists and calls tools, [`Elicitation`] asks the user of the client for approval.
//! - `resources` and `prompts` return skills, whole or with inputs filled in, from their
//!   [`SkillFiles`].
//! - [`serve_stdio`] serves one client over standard input and output. `http` serves `/mcp` on a
//!   server, with the skills of the authenticated user.
//!
//! All decisions about skills are made by the engine; this module only implements the protocol.

mod elicitation;
mod files;
mod http;
mod message;
mod prompts;
mod resources;
mod session;
mod session_activity;
mod stdio;
mod tools;

use std::{sync::Arc, time::Duration};

use savoir_agent::{library::Library, skill_tools::SkillTools, toolset::ToolAnswer};
use savoir_store::RunKind;
use serde_json::Value;

use crate::{
    app::App,
    run_history::{NewRun, record_finished},
};

pub(crate) use self::http::{PATH, router};
pub use self::{
    elicitation::Elicitation,
    files::SkillFiles,
    stdio::{serve_lines, serve_stdio},
};

/// The skills and services that one client can use.
#[derive(Clone, Debug)]
pub struct McpContext {
    pub library: Arc<dyn Library>,
    /// The files of the skills.
    pub files: Arc<dyn SkillFiles>,
    /// Runs tools of skills; `None` if tools must not run.
    pub tools: Option<Arc<SkillTools>>,
    /// The scope that the client lacks to run tools, as a message.
    pub lacking: Option<String>,
    /// Skills whose tools are listed from the start.
    pub pinned: Vec<String>,
    /// Records calls in the history of a server; `None` outside of one.
    pub history: Option<CallHistory>,
}

/// Records the calls of one user in the history of runs.
#[derive(Clone, Debug)]
pub struct CallHistory {
    app: App,
    user_id: i64,
}

impl CallHistory {
    fn new(app: &App, user_id: i64) -> Self {
        Self { app: app.clone(), user_id }
    }

    async fn record(&self, name: &str, arguments: Value, took: Duration, answer: &ToolAnswer) {
        let new = NewRun {
            id: None,
            kind: RunKind::Mcp,
            user_id: self.user_id,
            name: name.to_owned(),
            target: name.to_owned(),
            inputs: arguments,
        };
        let text = answer.text.clone();
        let outcome = if answer.failure.is_some() { Err(text) } else { Ok(text) };
        record_finished(&self.app, new, took, outcome).await;
    }
}
