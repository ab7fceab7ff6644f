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

/// How a column of a table is made to fit a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// Cells are cut down to this width.
    pub(crate) min: usize,
    /// Columns with a rank are left out if the table is still too wide, the highest rank first.
    pub(crate) rank: u8,
}

impl Column {
    /// A column whose cells are never cut.
    pub(crate) const fn fixed(head: &'static str) -> Self {
        Self { head, min: usize::MAX, rank: 0 }
    }

    pub(crate) const fn cut_to(head: &'static str, min: usize) -> Self {
        Self { head, min, rank: 0 }
    }

    pub(crate) const fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// A table of escaped text that fits the terminal: wide columns are cut, and unimportant ones are
/// left out. Without a terminal, nothing is cut.
pub(crate) fn fit_table<const N: usize>(
    columns: [Column; N],
    rows: Vec<[Cow<'_, str>; N]>,
) -> String {
    match width() {
        None => table(columns.map(|column| column.head), &rows),
        Some(width) => table_within(columns, rows, width),
    }
}

fn table_within<const N: usize>(
    columns: [Column; N],
    mut rows: Vec<[Cow<'_, str>; N]>,
    max_width: usize,
) -> String {
    let mut widths: [usize; N] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| letters(&row[at]));
        cells.chain([letters(columns[at].head)]).max().unwrap_or_default()
    });
    let mut is_shown = [true; N];
    let excess = |widths: &[usize; N], is_shown: &[bool; N]| {
        let shown = widths.iter().zip(is_shown).filter(|(_, is_shown)| **is_shown);
        let total: usize = shown.map(|(width, _)| width + 2).sum();
        total.saturating_sub(2).saturating_sub(max_width)
    };
    let min = |at: usize| columns[at].min.max(letters(columns[at].head));
    loop {
        let over = excess(&widths, &is_shown);
        if over == 0 {
            break;
        }
        let spare = |at: usize| if is_shown[at] { widths[at].saturating_sub(min(at)) } else { 0 };
        if (0..N).map(spare).sum::<usize>() >= over {
            // The widest of the columns that can be cut loses one letter.
            if let Some(at) = (0..N).filter(|at| spare(*at) > 0).max_by_key(|at| widths[*at]) {
                widths[at] -= 1;
            }
            continue;
        }
        let ranked = (0..N).filter(|at| is_shown[*at] && columns[*at].rank > 0);
        if let Some(at) = ranked.max_by_key(|at| columns[*at].rank) {
            is_shown[at] = false;
            continue;
        }
        // Nothing else can be left out.
        for at in (0..N).filter(|at| is_shown[*at]) {
            widths[at] = widths[at].min(min(at));
        }
        break;
    }
    for row in &mut rows {
        for (at, cell) in row.iter_mut().enumerate() {
            if letters(cell) > widths[at] {
                let start: String = cell.chars().take(widths[at].saturating_sub(1)).collect();
                *cell = Cow::Owned(format!("{}…", start.trim_end()));
            }
        }
    }
    let mut text = String::new();
    let head: [Cow<'_, str>; N] = columns.map(|column| Cow::Borrowed(column.head));
    for row in std::iter::once(&head).chain(&rows) {
        for at in (0..N).filter(|at| is_shown[*at]) {
            text.push_str(&row[at]);
            text.extend(std::iter::repeat_n(
                ' ',
                widths[at] + 2 - letters(&row[at]).min(widths[at]),
            ));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// Breaks a line between words, so that it fits the terminal after an indentation.
pub(crate) fn wrap(line: &str, indent: usize) -> Vec<String> {
    let room = width().map(|width| width.saturating_sub(indent)).filter(|room| *room >= 20);
    match room {
        Some(room) if letters(line) > room => wrap_within(line, room),
        _ => vec![line.to_owned()],
    }
}

fn wrap_within(line: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if letters(last) + 1 + letters(word) <= room => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn letters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::cut_to("NAME", 6),
        Column::fixed("SCOPE"),
        Column::cut_to("SOURCE", 10).ranked(1),
        Column::fixed("DIGEST").ranked(2),
    ];

    fn table_of(width: usize) -> String {
        let row = |name: &'static str, source: &'static str| {
            [name.into(), "project".into(), source.into(), "0123456789ab".into()]
        };
        let rows = vec![row("pdf", "github:acme/skills/skills/pdf"), row("long-name-of-it", "-")];
        table_within(COLUMNS, rows, width)
    }

    #[test]
    fn wide_columns_are_cut_and_others_left_out() {
        assert_eq!(
            table_of(100),
            "NAME             SCOPE    SOURCE                         DIGEST\n\
             pdf              project  github:acme/skills/skills/pdf  0123456789ab\n\
             long-name-of-it  project  -                              0123456789ab\n"
        );
        assert_eq!(
            table_of(50),
            "NAME           SCOPE    SOURCE        DIGEST\n\
             pdf            project  github:acme…  0123456789ab\n\
             long-name-of…  project  -             0123456789ab\n"
        );
        assert_eq!(
            table_of(30),
            "NAME       SCOPE    SOURCE\n\
             pdf        project  github:ac…\n\
             long-nam…  project  -\n"
        );
        assert_eq!(table_of(18), "NAME       SCOPE\npdf        project\nlong-nam…  project\n");
        for width in 16..100 {
            let widest = table_of(width).lines().map(letters).max();
            assert!(widest <= Some(width), "{width}: {widest:?}");
        }
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(
            wrap_within("reads a table and an-endless-word", 8),
            ["reads a", "table", "and", "an-endless-word"]
        );
    }
}
