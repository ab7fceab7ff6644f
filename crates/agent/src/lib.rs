//! Runs an agent: a model that calls tools, limited by what the skills in use allow.
//!
//! - [`preamble`] lists the available skills for a model's system prompt.
//! - [`library`] finds skills; [`builtin_tools`] are the tools by which a model searches and loads
//!   them; [`usage`] records which skills were used.
//! - [`skill_tools`] run the tools of skills, after [`consent`]; [`host_tools`] read and change
//!   files in one folder of the user, run commands there, and fetch web pages; [`workspaces`]
//!   stores files that the tools of skills leave. [`tool_run`] runs one tool without a model.
//! - [`toolset`] defines the interface of all tools; [`allowed_tools`] is the allow-list over them,
//!   which a skill narrows while it is in use.
//! - [`turn`] is the loop that asks a model and executes the tool calls in its answers.
//! - [`chat`] answers in a stored conversation, [`node_agent`] in a node of a workflow.
//!
//! Savoir's own agent and other agents that connect over MCP use the same functions.

#![forbid(unsafe_code)]

pub mod allowed_tools;
pub mod builtin_tools;
pub mod chat;
pub mod consent;
pub mod host_tools;
pub mod library;
pub mod node_agent;
pub mod preamble;
pub mod skill_tools;
pub mod tool_run;
pub mod toolset;
pub mod turn;
pub mod usage;
pub mod workspaces;
