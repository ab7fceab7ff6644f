//! Reads the functions of a GAIA skill's `tools.py` without running it, and compares them with its
//! SKILL.md.
//!
//! ```
//! use savoir_skill::python;
//!
//! let module = python::parse(
//!     "from gaia.agents.base.tools import tool\n\n@tool\ndef greet(name: str):\n    \"\"\"Greet.\"\"\"\n",
//! )?;
//! let greet = module.function("greet").expect("it is there");
//! assert!(greet.decorator.is_some());
//! assert_eq!(greet.docstring.as_deref(), Some("Greet."));
//! # Ok::<(), python::PythonError>(())
//! ```
//!
//! The parser is ruff's. None of its types is visible here, so that it can be exchanged.

mod annotation;
mod compare;
mod depth;
mod import;
mod literal;
mod module;

pub use compare::{Declaration, Mismatch, MismatchKind, compare_tools, declarations};
pub use module::{Decorator, Function, Module, PyParameter};

use std::thread;

use ruff_text_size::TextRange;
use savoir_lint::Span;
use thiserror::Error;

use crate::limits;

/// The file with the tools of a GAIA skill.
pub const TOOLS_FILE: &str = "tools.py";

/// Stack of the thread that parses. The parser grows its own stack, but dropping a deep tree
/// recurses too, and callers run on threads of any size. Only pages that are touched cost memory.
const PARSER_STACK: usize = 64 * 1024 * 1024;

/// Why a text is not a module that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct PythonError {
    /// What is wrong, without the place.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A limit was reached, so the text may well be Python.
    pub is_limit: bool,
}

impl PythonError {
    fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), span, is_limit: false }
    }

    fn limit(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: Span::at(0), is_limit: true }
    }
}

/// Reads the functions of a module. Nothing in it is executed.
pub fn parse(source: &str) -> Result<Module, PythonError> {
    if source.len() > limits::MAX_FILE_BYTES {
        let (size, limit) = (source.len(), limits::MAX_FILE_BYTES);
        let message = format!("the file has {size} bytes, the limit is {limit}");
        return Err(PythonError::limit(message));
    }
    if let Some(at) = memchr::memchr(0, source.as_bytes()) {
        let message = "the file has a NUL byte, which Python does not accept";
        return Err(PythonError::new(message, Span::new(at, at + 1)));
    }
    depth::check(source)?;
    thread::scope(|scope| {
        let parser = thread::Builder::new().name("python parser".into()).stack_size(PARSER_STACK);
        let failed = |why: &str| PythonError::limit(why);
        let running = parser.spawn_scoped(scope, || module::read(source)).map_err(|error| {
            failed(&format!("no thread for the parser could be started: {error}"))
        })?;
        running.join().unwrap_or_else(|_| Err(failed("the parser failed on this file")))
    })
}

/// Reads the functions of a module out of the bytes of its file.
pub fn parse_bytes(bytes: &[u8]) -> Result<Module, PythonError> {
    match str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => {
            let at = error.valid_up_to();
            let message = format!("byte {at} is not valid UTF-8");
            Err(PythonError::new(message, Span::new(at, at + 1)))
        }
    }
}

/// A place of the parser as one of ours.
fn span_of(range: TextRange) -> Span {
    Span::new(range.start().to_usize(), range.end().to_usize())
}

#[cfg(test)]
mod tests;
