//! An agent: a model, the tools that it may use, and what a skill lets it do with them.
//!
//! - [`library`] is where it finds skills; [`builtin_tools`] are the tools by which it asks for them.
//! - [`usage`] remembers what was used.
//! - [`skill_tools`] run what skills bring, once [`consent`] is given.
//! - [`host_tools`] work in one folder of the person's, and nowhere else.
//! - [`toolset`] is whatever can be called; [`allowed_tools`] is the fence around all of it, which a skill
//!   narrows for as long as it is followed.
//! - [`turn`] is the agent itself: it asks a model, calls what the model asks for, and ends.
//!
//! The same functions serve our own agent and others that come over MCP.

pub mod allowed_tools;
pub mod builtin_tools;
pub mod consent;
pub mod host_tools;
pub mod library;
pub mod skill_tools;
pub mod toolset;
pub mod turn;
pub mod usage;
pub mod workspaces;
