//! Extracts text from documents; PDFs in a separate process of this program, in the sandbox.

use std::env;

use savoir_knowledge::extract::{Extractor, Isolated};

/// The hidden command that reads one PDF from standard input.
pub(crate) const COMMAND: &str = "__extract";

/// The extractor. If the path of this program is unknown, it refuses PDFs.
pub(crate) fn extractor() -> Extractor {
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
    Extractor::new(program.map(|program| Isolated { program, arguments: vec![COMMAND.to_owned()] }))
}
