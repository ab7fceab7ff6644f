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

use std::sync::Arc;

use savoir_agent::{library::Library, skill_tools::SkillTools};

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
}
