//! Provides the parts that all checkers share: source text with positions, diagnostics, fixes and
//! reports.
//!
//! - [`Source`] is the text of one file; a [`Span`] is a range of it, a [`Position`] its line and
//!   column.
//! - A [`Diagnostic`] is one problem; its [`Fix`] is a list of [`Edit`]s, which [`edit::apply`]
//!   applies.
//! - [`RuleDocs`] is the documentation of a rule, written as the doc comment above it.
//! - [`render`] writes reports as text, JSON, SARIF or GitHub annotations.
//! - [`visible`] and [`harmless`] escape hidden and control characters.
//! - [`Utf16Text`] converts byte offsets for editors in browsers.
//! - [`words`] joins words into lists and finds the closest of some words.

#![forbid(unsafe_code)]

pub mod edit;
pub mod render;
pub mod words;

mod diagnostic;
mod rule_docs;
mod source;
mod utf16;
mod visible;

pub use diagnostic::{Diagnostic, Edit, Fix, Safety, Severity};
pub use rule_docs::RuleDocs;
pub use source::{MAX_FILE_BYTES, Position, Source, SourceError, Span, floor_char_boundary};
pub use utf16::Utf16Text;
pub use visible::{harmless, visible, visible_json};
