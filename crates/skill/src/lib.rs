//! Reads, checks, repairs and converts SKILL.md files: text becomes a [`Document`], a document
//! becomes a [`Skill`].
//!
//! A SKILL.md is a Markdown file with YAML frontmatter that teaches an agent a skill. Each of a
//! dozen systems has its own dialect of it. This crate reads all of them into one model, checks
//! them, repairs common errors, and converts one dialect into another without losing a byte.
//!
//! ```
//! use savoir_skill::{Dialect, Source, read};
//!
//! let text = "---\nname: greet\ninputs:\n  - {name: who, type: text, required: true}\n---\nHello {{who}}!\n";
//! let reading = read(Source::from_bytes(text.into())?, None);
//!
//! assert_eq!(reading.detection.dialect, Dialect::AGENT_FLOW);
//! assert_eq!(reading.detection.why, "an input has the type `text` or `textarea`");
//! assert_eq!(reading.skill.inputs[0].name, "who");
//! assert!(reading.is_valid());
//! # Ok::<(), savoir_skill::SourceError>(())
//! ```
//!
//! Modules, from the lowest layer up:
//!
//! - [`Source`] turns bytes into text and offsets into lines and columns.
//! - [`frontmatter`] finds the fences; [`yaml`] parses the text between them into a tree in which
//!   every value knows its position. Common errors are repaired.
//! - [`Document`] is the text with that tree and the structure of its body. Every change is an
//!   [`Edit`] of the text.
//! - [`Dialect`] knows how each system reads, checks and writes the file; [`read`] detects the
//!   dialect and returns the [`Skill`].
//! - [`check`] checks a skill against the rules and applies fixes.
//! - [`convert`] converts a skill for another system and reports which fields were lost.
//! - [`compare`] lists the differences between two versions of a skill; [`tokens`] estimates what a
//!   text costs a model.
//! - `python` reads the functions of `tools.py` and compares them with the declared tools. It is part
//!   of the feature `python`, which is on by default.
//! - [`observed`] records the resources that tools used, to compare them with the declared ones.
//! - [`render`] renders the prompt of a skill; [`template`] and [`command`] insert values into
//!   texts and commands; [`permission`], [`version`], [`name`], [`variable_name`], [`digest`]
//!   and [`allowed_tools`] are small grammars that all dialects share.
//! - [`collation`] sorts texts as JavaScript does.
//!
//! The crate is synchronous and starts no process. Its only I/O is reading a [`Folder`] and
//! checking whether a file that is passed as an input can be read.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod allow_list;
pub mod allowed_tools;
pub mod check;
pub mod collation;
pub mod command;
pub mod compare;
pub mod convert;
pub mod dialect;
pub mod digest;
pub mod folder;
pub mod frontmatter;
pub mod limits;
pub mod markdown;
pub mod name;
pub mod observed;
pub mod permission;
#[cfg(feature = "python")]
pub mod python;
pub mod render;
pub mod skill;
pub mod template;
pub mod tokens;
pub mod variable_name;
pub mod version;
pub mod yaml;

mod document;
mod reading;
mod repair;
mod shape;

pub use dialect::{Detection, Dialect, Hint, Strength};
pub use document::{Document, State};
pub use folder::Folder;
pub use reading::{Reading, read, read_as};
pub use savoir_lint::{
    Diagnostic, Edit, Fix, Position, Safety, Severity, Source, SourceError, Span, edit,
};
pub use skill::Skill;
