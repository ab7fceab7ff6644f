//! The MCP server: offers skills to agents.
//!
//! - [`McpContext`] is what a client is given: a library, the files of its skills, and perhaps what runs
//!   their tools. `session` is one client that sits there.
//! - `tools` offers and calls, [`Elicitation`] asks the person behind the client.
//! - `resources` and `prompts` hand skills on, whole or with inputs put in, from their [`SkillFiles`].
//! - [`serve_stdio`] talks over standard input and output, `http` is `/mcp` on a server, with the
//!   skills of whoever asks.
//!
//! Everything that is decided about skills is decided by the engine; this room knows the protocol.

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

/// What a client is given.
#[derive(Clone, Debug)]
pub struct McpContext {
    /// The skills.
    pub library: Arc<dyn Library>,
    /// Their files.
    pub files: Arc<dyn SkillFiles>,
    /// What runs tools of skills, if they may run.
    pub tools: Option<Arc<SkillTools>>,
    /// What the client needs for tools to run that do not.
    pub lacking: Option<String>,
    /// Skills whose tools are offered from the beginning.
    pub pinned: Vec<String>,
}
