//! Decodes the bytes of a file and converts byte offsets into lines and columns.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Size limit of SKILL.md. The largest of 183,655 real files has 145 KB; a file of more than a
/// mebibyte is data, not instructions, and no agent loads it.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// A half-open range of byte offsets into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the span from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Creates the empty span before `at`.
    pub const fn at(at: usize) -> Self {
        Self { start: at, end: at }
    }

    /// Returns the number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the span contains no bytes.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns whether `at` is inside the span.
    pub const fn contains(self, at: usize) -> bool {
        self.start <= at && at < self.end
    }

    /// Returns the span moved by `by` bytes towards the end of the file.
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }

    /// Returns the text of the span; empty if the span does not fit the text.
    pub fn slice(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// A line and column as users count them: both start at one, and columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line number, starting at one.
    pub line: usize,
    /// The column in characters, starting at one.
    pub column: usize,
}

/// Why the bytes of a file are not accepted as text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The file has more bytes than [`MAX_FILE_BYTES`].
    #[error("the file has {size} bytes, the limit is {limit}", limit = MAX_FILE_BYTES)]
    TooLarge {
        /// Size of the file in bytes.
        size: u64,
    },
    /// The file is not valid UTF-8.
    #[error("byte {offset} is not valid UTF-8{hint}", hint = utf16_hint(*.utf16))]
    NotUtf8 { offset: usize, utf16: bool },
}

impl SourceError {
    /// Returns the code of the rule that explains the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "file-too-large",
            Self::NotUtf8 { .. } => "not-utf8",
        }
    }

    /// Returns a hint how to solve the error.
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "move data and reference text into files of the skill",
            Self::NotUtf8 { .. } => "save the file as UTF-8",
        }
    }
}

fn utf16_hint(utf16: bool) -> &'static str {
    if utf16 { "; the file looks like UTF-16" } else { "" }
}

/// The text of one file, with line starts that are computed on first use.
#[derive(Debug, Clone)]
pub struct Source {
    text: String,
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    /// Decodes the bytes of a file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SourceError> {
        if bytes.len() > MAX_FILE_BYTES {
            return Err(SourceError::TooLarge { size: bytes.len() as u64 });
        }
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            Err(error) => {
                Err(SourceError::NotUtf8 { offset: error.utf8_error().valid_up_to(), utf16 })
            }
        }
    }

    /// Wraps a text without checking its size.
    pub fn new(text: String) -> Self {
        Self { text, lines: OnceLock::new() }
    }

    /// Returns the whole text, including a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line and column of a byte offset; an offset past the end counts as the end.
    pub fn position(&self, offset: usize) -> Position {
        let lines = self.line_starts();
        let offset = floor_char_boundary(&self.text, offset.min(self.text.len()));
        let line = lines.partition_point(|start| *start <= offset).max(1);
        let start = lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        let column = before.trim_start_matches('\u{feff}').chars().count() + 1;
        Position { line, column }
    }

    fn line_starts(&self) -> &[usize] {
        self.lines.get_or_init(|| {
            let newlines = memchr::memchr_iter(b'\n', self.text.as_bytes());
            std::iter::once(0).chain(newlines.map(|at| at + 1)).collect()
        })
    }
}

/// Returns the nearest character boundary at or before `at`.
pub fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("aé\nb\n".into());
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(3), Position { line: 1, column: 3 });
        assert_eq!(source.position(4), Position { line: 2, column: 1 });
        assert_eq!(source.position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn an_offset_inside_a_character_is_that_character() {
        assert_eq!(Source::new("é".into()).position(1), Position { line: 1, column: 1 });
    }

    #[test]
    fn invalid_utf8_is_rejected_with_its_position() {
        let error = Source::from_bytes(b"ab\xffc".to_vec()).unwrap_err();
        assert_eq!(error, SourceError::NotUtf8 { offset: 2, utf16: false });
        let error = Source::from_bytes(b"\xff\xfea\0".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "byte 0 is not valid UTF-8; the file looks like UTF-16");
    }

    #[test]
    fn too_large_files_are_rejected() {
        let error = Source::from_bytes(vec![b'a'; MAX_FILE_BYTES + 1]).unwrap_err();
        assert!(matches!(error, SourceError::TooLarge { .. }));
    }
}
