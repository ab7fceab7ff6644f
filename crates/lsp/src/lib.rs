//! The language server: diagnostics, completion and other help for SKILL.md in editors.
//!
//! [`serve`] speaks the language server protocol on two streams. It is synchronous: messages are
//! handled one after the other, in the order in which they arrive, on one thread. Only the walk
//! over the workspace runs on another one.
//!
//! The findings are those of `savoir check`: the server calls the same functions, and asks the
//! program around it ([`Environment`]) for settings and for what other crates know. It never runs a
//! skill; code lenses only name commands, which the editor runs when the user clicks them.
//!
//! - `transport` reads and writes messages, `server` dispatches them, `client` knows what the
//!   client can do.
//! - `open_file` is an open file, `position` converts offsets, `state` is all of the state,
//!   `index` the skills of the workspace.
//! - Each feature is a module that reads the state: `diagnostics`, `completion`, `hover` and so on.

#![forbid(unsafe_code)]

mod actions;
mod client;
mod completion;
mod cursor;
mod diagnostics;
mod environment;
mod failure;
mod file_kind;
mod foreign_fields;
mod formatting;
mod hover;
mod index;
mod inlay_hints;
mod lenses;
mod limits;
mod lookup;
mod mentions;
mod navigation;
mod open_file;
mod position;
mod rename;
mod schema;
mod server;
mod side_files;
mod state;
mod symbols;
mod transport;

pub use environment::{Environment, FileProblem, ListedSkill, Listing};
pub use server::{Ending, serve};
