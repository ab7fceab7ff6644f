//! Cuts out the part of a source line that is shown around a diagnostic.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::{
    Span, floor_char_boundary,
    visible::{is_hidden, push_visible},
};

const ELLIPSIS: &str = "...";
const TAB: &str = "    ";
/// The minimum width; a narrower window would show nothing useful.
const MIN_COLUMNS: usize = 24;

/// One line of a file, with hidden characters escaped, cut to the available columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) text: String,
    /// The diagnostic's span, in bytes of `text`.
    pub(super) span: Range<usize>,
    /// The number of following lines that the diagnostic also covers.
    pub(super) more_lines: usize,
}

impl Window {
    /// Returns the first line that `span` touches, in at most `max_columns` columns. Spans that do
    /// not fit the text are moved into it.
    pub(super) fn new(text: &str, span: Span, max_columns: usize) -> Self {
        let max_columns = max_columns.max(MIN_COLUMNS);
        let start = floor_char_boundary(text, span.start);
        let end = floor_char_boundary(text, span.end).max(start);
        let bytes = text.as_bytes();

        let mut line_start = memrchr(b'\n', &bytes[..start]).map_or(0, |at| at + 1);
        let mut line_end = memchr(b'\n', &bytes[start..]).map_or(text.len(), |at| start + at);
        // A byte order mark or carriage return is shown only if the diagnostic is about it.
        if line_start == 0 && start > 0 && text.starts_with('\u{feff}') {
            line_start = '\u{feff}'.len_utf8();
        }
        if line_end < text.len() && line_end > start + 1 && bytes[line_end - 1] == b'\r' {
            line_end -= 1;
        }
        let more_lines = match end.checked_sub(1) {
            Some(last) if last > line_end => memchr_iter(b'\n', &bytes[line_end..last]).count(),
            _ => 0,
        };

        let line = &text[line_start..line_end];
        let highlight = start - line_start..end.min(line_end) - line_start;
        Self::cut_line(line, &highlight, max_columns, more_lines)
    }

    fn cut_line(
        line: &str,
        highlight: &Range<usize>,
        max_columns: usize,
        more_lines: usize,
    ) -> Self {
        let (_, whole) = measure_prefix(line.chars(), max_columns);
        let visible = if whole == line.len() {
            0..line.len()
        } else {
            let max_columns = max_columns - 2 * ELLIPSIS.len();
            // Three quarters of the columns are for the highlighted text, the rest for the text
            // before it.
            let (after, _) = measure_prefix(line[highlight.start..].chars(), max_columns * 3 / 4);
            let (_, back) =
                measure_prefix(line[..highlight.start].chars().rev(), max_columns - after);
            let from = highlight.start - back;
            let (_, length) = measure_prefix(line[from..].chars(), max_columns);
            from..from + length
        };

        let mut text = String::with_capacity(visible.len() + 2 * ELLIPSIS.len());
        if visible.start > 0 {
            text.push_str(ELLIPSIS);
        }
        let mut span = text.len()..text.len();
        for (at, character) in line[visible.clone()].char_indices() {
            let at = visible.start + at;
            if at == highlight.start {
                span = text.len()..text.len();
            }
            match character {
                '\t' => text.push_str(TAB),
                _ => push_visible(&mut text, character),
            }
            if at < highlight.end && at >= highlight.start {
                span.end = text.len();
            }
        }
        if highlight.start >= visible.end {
            span = text.len()..text.len();
        }
        if visible.end < line.len() {
            text.push_str(ELLIPSIS);
        }
        Self { text, span, more_lines }
    }
}

/// Returns the columns and bytes of the longest prefix that fits into `max_columns` columns.
fn measure_prefix(characters: impl Iterator<Item = char>, max_columns: usize) -> (usize, usize) {
    let (mut columns, mut bytes) = (0, 0);
    for character in characters {
        let next = columns + column_width(character);
        if next > max_columns {
            break;
        }
        columns = next;
        bytes += character.len_utf8();
    }
    (columns, bytes)
}

/// Returns an upper bound of the columns that a character takes.
fn column_width(character: char) -> usize {
    match character {
        '\t' => TAB.len(),
        '\r' => 2,
        _ if is_hidden(character) => match u32::from(character) {
            0..0x10 => 5,
            0x10..0x100 => 6,
            0x100..0x1000 => 7,
            0x1000..0x1_0000 => 8,
            _ => 9,
        },
        '\0'..='\u{10ff}' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str, start: usize, end: usize) -> (String, String, usize) {
        let window = Window::new(text, Span::new(start, end), 40);
        let highlight = window.text[window.span].to_owned();
        (window.text, highlight, window.more_lines)
    }

    #[test]
    fn shows_the_first_line_of_the_span() {
        assert_eq!(window("one\ntwo\nthree", 5, 6), ("two".into(), "w".into(), 0));
        assert_eq!(window("one\ntwo\nthree", 5, 8), ("two".into(), "wo".into(), 0));
        assert_eq!(window("one\ntwo\nthree", 1, 12), ("one".into(), "ne".into(), 2));
    }

    #[test]
    fn moves_spans_into_the_text() {
        assert_eq!(window("", 0, 0), (String::new(), String::new(), 0));
        assert_eq!(window("", 7, 9), (String::new(), String::new(), 0));
        assert_eq!(window("one\n", 4, 9), (String::new(), String::new(), 0));
        assert_eq!(window("é", 1, 1), ("é".into(), String::new(), 0));
        assert_eq!(window("ab", 2, 1), ("ab".into(), String::new(), 0));
    }

    #[test]
    fn shows_line_endings_and_marks_only_when_asked() {
        assert_eq!(window("ab\r\nc", 0, 2), ("ab".into(), "ab".into(), 0));
        assert_eq!(window("ab\r\nc", 0, 4), ("ab".into(), "ab".into(), 0));
        assert_eq!(window("ab\r\nc", 2, 3), ("ab\\r".into(), "\\r".into(), 0));
        assert_eq!(window("\u{feff}ab", 3, 4), ("ab".into(), "a".into(), 0));
        assert_eq!(window("\u{feff}ab", 0, 3), ("\\u{feff}ab".into(), "\\u{feff}".into(), 0));
    }

    #[test]
    fn shows_tabs_and_invisible_characters() {
        assert_eq!(window("a\tb", 1, 2), ("a    b".into(), "    ".into(), 0));
        let esc = ("a\\u{1b}[0m".into(), "\\u{1b}[0m".into(), 0);
        assert_eq!(window("a\u{1b}[0m", 1, 5), esc);
    }

    #[test]
    fn cuts_long_lines_around_the_span() {
        let line = format!("{}needle{}", "a".repeat(30_000), "b".repeat(30_000));
        let (text, highlight, _) = window(&line, 30_000, 30_006);
        assert_eq!(text, "...aaaaaaaaaneedlebbbbbbbbbbbbbbbbbbb...");
        assert_eq!(highlight, "needle");

        let (text, highlight, _) = window(&line, 0, line.len());
        assert_eq!(text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...");
        assert_eq!(highlight, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");

        let (text, highlight, _) = window(&line, line.len(), line.len());
        assert_eq!(text, "...bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        assert_eq!(highlight, "");
    }

    #[test]
    fn wide_characters_fit_as_well() {
        let line = "世".repeat(60_000);
        let (text, highlight, _) = window(&line, 0, 3);
        assert_eq!(text, format!("{}...", "世".repeat(17)));
        assert_eq!(highlight, "世");
    }
}
