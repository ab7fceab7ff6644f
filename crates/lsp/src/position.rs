//! Converts byte offsets into the positions of the protocol and back.

use lsp_types::{Position, PositionEncodingKind, Range};
use savoir_lint::{Span, floor_char_boundary};

/// The unit in which the client counts columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Chooses from the encodings that a client offers: bytes need no conversion.
    pub(crate) fn choose(offered: &[PositionEncodingKind]) -> Self {
        if offered.contains(&PositionEncodingKind::UTF8) {
            Self::Utf8
        } else if offered == [PositionEncodingKind::UTF32] {
            Self::Utf32
        } else {
            Self::Utf16
        }
    }

    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// The line starts of one version of a text. A line ends with `\n`, `\r\n` or `\r`, as in the
/// protocol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'));
        Self { starts: std::iter::once(0).chain(ends.map(|at| at + 1)).collect() }
    }

    /// The position of a byte offset. An offset past the end counts as the end.
    pub(crate) fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = floor_char_boundary(text, offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1) - 1;
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = text.get(start..offset).unwrap_or_default();
        let character = match encoding {
            Encoding::Utf8 => before.len(),
            _ if before.is_ascii() => before.len(),
            _ => before.chars().map(|character| encoding.width(character)).sum(),
        };
        Position { line: line as u32, character: character as u32 }
    }

    pub(crate) fn range(&self, text: &str, span: Span, encoding: Encoding) -> Range {
        Range {
            start: self.position(text, span.start, encoding),
            end: self.position(text, span.end.max(span.start), encoding),
        }
    }

    /// The byte offset of a position. A column past the end of its line counts as the end of the
    /// line, and a line past the end as the end of the text, as the protocol says.
    pub(crate) fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let next = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text.get(start..next).unwrap_or_default().trim_end_matches(['\n', '\r']);
        let wanted = position.character as usize;
        if encoding == Encoding::Utf8 {
            return floor_char_boundary(text, start + wanted.min(content.len()));
        }
        let mut columns = 0;
        for (at, character) in content.char_indices() {
            // A position between the halves of a surrogate pair is the start of the character.
            if columns + encoding.width(character) > wanted {
                return start + at;
            }
            columns += encoding.width(character);
        }
        start + content.len()
    }

    pub(crate) fn span(&self, text: &str, range: Range, encoding: Encoding) -> Span {
        let start = self.offset(text, range.start, encoding);
        Span::new(start, self.offset(text, range.end, encoding).max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "aé😀b\r\nc\rd\n";

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_use_client_encoding() {
        let lines = Lines::new(TEXT);
        assert_eq!(lines.position(TEXT, 7, Encoding::Utf16), at(0, 4));
        assert_eq!(lines.position(TEXT, 7, Encoding::Utf8), at(0, 7));
        assert_eq!(lines.position(TEXT, 7, Encoding::Utf32), at(0, 3));
        assert_eq!(lines.offset(TEXT, at(0, 4), Encoding::Utf16), 7);
        assert_eq!(lines.offset(TEXT, at(0, 3), Encoding::Utf16), 3, "inside of a pair");
    }

    #[test]
    fn all_line_ends_of_the_protocol_count() {
        let lines = Lines::new(TEXT);
        assert_eq!(lines.position(TEXT, 10, Encoding::Utf16), at(1, 0));
        assert_eq!(lines.position(TEXT, 12, Encoding::Utf16), at(2, 0));
        assert_eq!(lines.position(TEXT, TEXT.len(), Encoding::Utf16), at(3, 0));
    }

    #[test]
    fn positions_outside_of_the_text_are_clamped() {
        let lines = Lines::new(TEXT);
        assert_eq!(lines.offset(TEXT, at(0, 99), Encoding::Utf16), 8);
        assert_eq!(lines.offset(TEXT, at(99, 0), Encoding::Utf8), TEXT.len());
        assert_eq!(lines.position(TEXT, 999, Encoding::Utf8), at(3, 0));
    }

    #[test]
    fn offsets_survive_a_round_trip() {
        let lines = Lines::new(TEXT);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (offset, character) in TEXT.char_indices() {
                // The middle of a line end is not a position.
                if character != '\n' || TEXT.as_bytes()[offset - 1] != b'\r' {
                    let position = lines.position(TEXT, offset, encoding);
                    assert_eq!(lines.offset(TEXT, position, encoding), offset);
                }
            }
        }
    }
}
