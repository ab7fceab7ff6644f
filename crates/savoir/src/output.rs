//! Standard output, with colour only on a terminal.

use std::io::{self, BufWriter, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use crate::error::CommandError;

/// Buffered standard output that strips colour when it is not a terminal.
pub(crate) fn stdout() -> BufWriter<AutoStream<StdoutLock<'static>>> {
    let stdout = io::stdout().lock();
    BufWriter::new(AutoStream::new(stdout, ColorChoice::Auto))
}

/// Whether colour makes sense on standard output.
pub(crate) fn wants_color() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Prints a value as JSON, one line per field.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    flush(out)
}

/// Prints text.
pub(crate) fn text(text: &str) -> Result<(), CommandError> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    flush(out)
}

/// Ends the output. A reader that went away (`| head`) is no failure.
pub(crate) fn flush(mut out: impl Write) -> Result<(), CommandError> {
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Text from a file made harmless for a terminal: control and bidirectional characters are shown,
/// not obeyed.
pub(crate) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let dangerous = c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        if dangerous {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}
