//! Standard output, with colour only on a terminal.

use std::{
    borrow::Cow,
    io::{self, BufWriter, IsTerminal as _, StdoutLock, Write},
};

use anstream::{AutoStream, ColorChoice};
use savoir_skill::check::render::{self, visible};
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

/// Columns of the terminal that standard output is, if it is one.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Prints a value as JSON, one line per field.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    flush(out)
}

/// Prints text that this program made.
pub(crate) fn text(text: &str) -> Result<(), CommandError> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    flush(out)
}

/// Prints a long text without colour in one piece.
pub(crate) fn long_text(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    flush(out)
}

/// Prints text out of a file: byte for byte for a program, harmless for a person.
pub(crate) fn content(content: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(harmless(content).as_bytes())?;
    } else {
        out.write_all(content.as_bytes())?;
    }
    flush(out)
}

/// Tells a person something beside the output.
pub(crate) fn note(text: &str) {
    let grey = anstyle::Style::new().dimmed();
    let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(err, "{grey}{}{grey:#}", harmless(text));
}

/// Shows a person something of several lines beside the output; what is from elsewhere in it was made
/// harmless.
pub(crate) fn aside(text: &str) {
    let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
    // Nobody is left to tell when standard error is closed.
    let _ = err.write_all(text.as_bytes());
}

/// Ends the output.
pub(crate) fn flush(mut out: impl Write) -> Result<(), CommandError> {
    Ok(out.flush()?)
}

/// Text from a file made harmless for a terminal: what would act is shown instead. Line ends and
/// tabs stay.
pub(crate) fn harmless(text: &str) -> String {
    render::harmless(text).into_owned()
}

/// One line of text from elsewhere, made harmless for a terminal.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    // Ten thousand names are looked at before anything is printed.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    visible(text)
}

/// Columns of harmless text, the last one as long as it likes.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[Cow<'_, str>; N]]) -> String {
    let mut widths = head.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(letters(cell));
        }
    }
    let mut text = String::with_capacity((rows.len() + 1) * (widths.iter().sum::<usize>() + 2 * N));
    let head = head.map(Cow::Borrowed);
    for row in std::iter::once(&head).chain(rows) {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width + 2 - letters(cell)));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

fn letters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
