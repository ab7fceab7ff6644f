//! The language of SKILL.md: text becomes a [`Document`], a document becomes a [`Skill`].
//!
//! A SKILL.md is a Markdown file with YAML frontmatter that teaches an agent a skill. A dozen
//! systems each invented their own dialect of it. This crate reads all of them into one model,
//! checks them, repairs what is broken, and converts one into another without losing a byte.
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
//! - [`frontmatter`] finds the fences; [`yaml`] reads what is between them into a tree in which
//!   every value knows its bytes; what is broken in a well-known way is repaired.
//! - [`Document`] is the text with that tree and the structure of its body. Every change is an
//!   [`Edit`] of the text.
//! - [`Dialect`] knows how each system reads, checks and writes the file; [`read`] finds out which
//!   it is and gives the [`Skill`].
//! - [`check`] checks a skill against the rules and fixes what can be fixed.
//! - [`convert`] writes it for another system and reports what did not carry over.
//! - [`python`] reads the functions of `tools.py` and compares them with the declared tools.
//! - [`observed`] records what tools were seen to use, to compare it with what they declare.
//! - [`render`] makes the prompt of a skill; [`template`] and [`command`] put values into texts and
//!   commands; [`permission`], [`version`], [`name`], [`digest`] and [`allowed_tools`] are the small
//!   grammars that all share.
//!
//! The crate is synchronous, starts no process, and does no I/O but reading a [`Folder`] and
//! asking whether a file that is given as an input can be read.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod allow_list;
pub mod allowed_tools;
pub mod check;
pub mod command;
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
pub mod python;
pub mod render;
pub mod skill;
pub mod template;
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
