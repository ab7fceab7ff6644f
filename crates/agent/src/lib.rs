//! The agent: a model, the tools that it may use, and what a skill lets it do with them.
//!
//! - [`disclosure`] is what a model is told about skills before it asks for one.
//! - [`library`] is where it finds skills; [`builtin_tools`] are the tools by which it asks for them;
//!   [`usage`] remembers which were used.
//! - [`skill_tools`] run the tools of skills, after [`consent`]; [`host_tools`] work in one folder of
//!   the person's ([`workspaces`]) and nowhere else.
//! - [`toolset`] is everything that can be called; [`allowed_tools`] is the allow-list over it, which a
//!   skill narrows for as long as it is followed.
//! - [`turn`] is the loop: it asks a model, calls the tools that the model asks for, and ends.
//! - [`chat`] answers in a stored conversation.
//!
//! The same functions serve our own agent and others that connect over MCP.

#![forbid(unsafe_code)]

pub mod allowed_tools;
pub mod builtin_tools;
pub mod chat;
pub mod consent;
pub mod disclosure;
pub mod host_tools;
pub mod library;
pub mod skill_tools;
pub mod toolset;
pub mod turn;
pub mod usage;
pub mod workspaces;
