//! An agent: a model, the tools that it may use, and what a skill lets it do with them.
//!
//! - [`library`] is where it finds skills; [`machinery`] are the tools by which it asks for them.
//! - [`usage`] remembers what was used.
//! - [`skill_tools`] run what skills bring, once [`consent`] is given.
//! - [`toolset`] is whatever can be called; [`allowance`] is the fence around all of it, which a skill
//!   narrows for as long as it is followed.
//!
//! The same functions serve our own agent and others that come over MCP.

pub mod allowance;
pub mod consent;
pub mod library;
pub mod machinery;
pub mod skill_tools;
pub mod toolset;
pub mod usage;
