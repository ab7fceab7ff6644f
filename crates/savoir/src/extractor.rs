//! Documents are read by this program itself; PDFs by another process of it, in the sandbox.

use std::env;

use savoir_engine::knowledge::extract::{Extractor, Isolated};

/// The hidden command that reads one PDF from standard input.
pub(crate) const COMMAND: &str = "__extract";

/// Reads documents. Where this program cannot find itself, PDFs are refused.
pub(crate) fn extractor() -> Extractor {
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
    Extractor::new(program.map(|program| Isolated { program, arguments: vec![COMMAND.to_owned()] }))
}
