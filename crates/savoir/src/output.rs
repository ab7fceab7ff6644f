//! Writes to standard output, with color only on a terminal.

use std::{
    borrow::Cow,
    io::{self, BufWriter, IsTerminal as _, StdoutLock, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use anstream::{AutoStream, ColorChoice};
use savoir_lint::{visible, visible_json};
use serde::Serialize;

use crate::error::CommandError;

static HAS_PRINTED: AtomicBool = AtomicBool::new(false);
static IS_QUIET: AtomicBool = AtomicBool::new(false);
static PRINTS_JSON: AtomicBool = AtomicBool::new(false);

/// Whether something was printed on standard output.
pub(crate) fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// Buffered standard output that strips color when it is not a terminal.
pub(crate) fn stdout() -> BufWriter<AutoStream<StdoutLock<'static>>> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    let stdout = io::stdout().lock();
    BufWriter::new(AutoStream::new(stdout, ColorChoice::Auto))
}

/// Whether standard output supports color.
pub(crate) fn wants_color() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Width of the terminal, if standard output is one.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Prints a value as JSON, one line per field.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CommandError> {
    // Control characters are escaped, because names from skills could otherwise manipulate a
    // terminal or a log.
    let json = serde_json::to_string_pretty(value)?;
    let mut out = stdout();
    writeln!(out, "{}", visible_json(&json))?;
    flush(out)
}

/// Prints text that this program created.
pub(crate) fn text(text: &str) -> Result<(), CommandError> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    flush(out)
}

/// Prints a long text without color in one piece.
pub(crate) fn long_text(text: &str) -> Result<(), CommandError> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    flush(out)
}

/// Prints text from a file: escaped on a terminal, unchanged otherwise.
pub(crate) fn content(content: &str) -> Result<(), CommandError> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(sanitize(content).as_bytes())?;
    } else {
        out.write_all(content.as_bytes())?;
    }
    flush(out)
}

/// Sets the options `--color` and `--quiet`.
pub(crate) fn set_options(color: ColorChoice, quiet: bool) {
    color.write_global();
    IS_QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether notes and progress are left out.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Records that `--json` was given.
pub(crate) fn set_json() {
    PRINTS_JSON.store(true, Ordering::Relaxed);
}

/// Whether a log gets lines of progress: programs that read JSON may read both outputs.
pub(crate) fn shows_progress() -> bool {
    !is_quiet() && !PRINTS_JSON.load(Ordering::Relaxed)
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    if is_quiet() {
        return;
    }
    let grey = anstyle::Style::new().dimmed();
    let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
    // If standard error is closed, the failure cannot be reported anywhere.
    let _ = writeln!(err, "{grey}{}{grey:#}", sanitize(text));
}

/// Prints several lines on standard error. The caller must escape untrusted text.
pub(crate) fn print_to_stderr(text: &str) {
    let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
    // If standard error is closed, the failure cannot be reported anywhere.
    let _ = err.write_all(text.as_bytes());
}

pub(crate) fn flush(mut out: impl Write) -> Result<(), CommandError> {
    Ok(out.flush()?)
}

/// Escapes control characters for a terminal, except line ends and tabs.
pub(crate) fn sanitize(text: &str) -> String {
    savoir_lint::harmless(text).into_owned()
}

/// Escapes one line of untrusted text for a terminal.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    // A table may have ten thousand names, so plain ASCII is not copied.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    visible(text)
}

/// A table of escaped text with aligned columns.
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
