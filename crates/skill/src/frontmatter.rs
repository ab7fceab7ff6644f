//! Finds the beginning and the end of the frontmatter. The rules differ between dialects, so they
//! are a parameter.

use memchr::memchr;
use savoir_lint::Span;

/// The rules of a dialect for fences, the `---` lines around the frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    /// Whether blank lines may precede the opening fence.
    pub skip_blank_lines: bool,
    /// Whether the fence must be `---` and nothing else, not even trailing blanks.
    pub exact: bool,
    /// How a missing closing fence is treated.
    pub unclosed: Unclosed,
    /// Whether a file without frontmatter is a valid skill.
    pub optional: bool,
}

/// How a missing closing fence is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclosed {
    /// The file is invalid.
    Error,
    /// The whole file is body.
    Body,
}

impl Fences {
    /// Accepts everything that any dialect accepts; used before the dialect is known.
    pub const LENIENT: Self =
        Self { skip_blank_lines: true, exact: false, unclosed: Unclosed::Error, optional: false };
}

/// The positions of the parts of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Length of the byte order mark in bytes: zero or three.
    pub bom: usize,
    /// Blank lines before the opening fence.
    pub blank: Span,
    /// The fenced block, if the file begins with one.
    pub block: Option<Block>,
    /// Everything after the closing fence; the whole text (without byte order mark) if there is no
    /// closed frontmatter.
    pub body: Span,
}

/// A fenced block of YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The opening fence without its line end.
    pub open: Span,
    /// The YAML between the fences.
    pub yaml: Span,
    /// The closing fence without its line end.
    pub close: Option<Span>,
}

impl Layout {
    /// Finds the parts of `text` with the rules of a dialect.
    pub fn new(text: &str, fences: Fences) -> Self {
        let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let start = if fences.skip_blank_lines { skip_blank_lines(text, bom) } else { bom };
        let whole = Span::new(bom, text.len());
        let none = Self { bom, blank: Span::at(bom), block: None, body: whole };
        let (open, after) = line_at(text, start);
        let ends = after > open.end;
        if !is_fence(open.slice(text), fences.exact) || (fences.exact && !ends) {
            return none;
        }
        let blank = Span::new(bom, start);
        let mut at = after;
        while at < text.len() {
            let (line, next) = line_at(text, at);
            if is_fence(line.slice(text), fences.exact) {
                let block = Block { open, yaml: Span::new(after, at), close: Some(line) };
                return Self { bom, blank, block: Some(block), body: Span::new(next, text.len()) };
            }
            at = next;
        }
        let block = Block { open, yaml: Span::new(after, text.len()), close: None };
        Self { bom, blank, block: Some(block), body: whole }
    }

    /// Whether every dialect would find the same parts: the file begins with `---`, and a line
    /// `---` ends the block.
    pub(crate) fn is_exact(&self) -> bool {
        let exact = |block: Block| {
            block.open.len() == 3 && block.close.is_some_and(|close| close.len() == 3)
        };
        self.blank.is_empty() && self.block.is_some_and(exact)
    }

    /// The block, if both fences exist.
    pub fn closed_block(&self) -> Option<Block> {
        self.block.filter(|block| block.close.is_some())
    }
}

fn is_fence(line: &str, exact: bool) -> bool {
    match line.strip_prefix("---") {
        Some("") => true,
        Some(rest) => !exact && rest.bytes().all(|byte| matches!(byte, b' ' | b'\t')),
        None => false,
    }
}

/// The line at `start` without its line end, and the start of the next one.
pub(crate) fn line_at(text: &str, start: usize) -> (Span, usize) {
    let bytes = text.as_bytes();
    let next = memchr(b'\n', &bytes[start..]).map_or(text.len(), |at| start + at + 1);
    let mut end = next;
    if end > start && bytes[end - 1] == b'\n' {
        end -= 1;
        if end > start && bytes[end - 1] == b'\r' {
            end -= 1;
        }
    }
    (Span::new(start, end), next)
}

fn skip_blank_lines(text: &str, mut at: usize) -> usize {
    let start = at;
    while at < text.len() {
        let (line, next) = line_at(text, at);
        if !line.slice(text).trim().is_empty() {
            return at;
        }
        at = next;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Fences =
        Fences { skip_blank_lines: true, exact: true, unclosed: Unclosed::Error, optional: true };
    const PLAIN: Fences =
        Fences { skip_blank_lines: false, exact: false, unclosed: Unclosed::Body, optional: true };

    fn parts(text: &str, fences: Fences) -> Option<(&str, bool, &str)> {
        let layout = Layout::new(text, fences);
        let block = layout.block?;
        Some((block.yaml.slice(text), block.close.is_some(), layout.body.slice(text)))
    }

    #[test]
    fn splits_at_whole_lines() {
        let text = "---\na: x --- y\n---\nbody\n---\nmore";
        assert_eq!(parts(text, PLAIN), Some(("a: x --- y\n", true, "body\n---\nmore")));
        assert_eq!(parts(text, EXACT), parts(text, PLAIN));
    }

    #[test]
    fn windows_line_ends_and_byte_order_mark() {
        assert_eq!(parts("\u{feff}---\r\na: 1\r\n---\r\nb", EXACT), Some(("a: 1\r\n", true, "b")));
    }

    #[test]
    fn blank_lines_and_trailing_blanks_depend_on_the_dialect() {
        assert_eq!(parts("\n---\na: 1\n---\n", PLAIN), None);
        assert_eq!(parts("\n \n---\na: 1\n---\n", EXACT), Some(("a: 1\n", true, "")));
        assert_eq!(parts("--- \na: 1\n---\t\nb", PLAIN), Some(("a: 1\n", true, "b")));
        assert_eq!(parts("---\na: 1\n--- \nb", EXACT).map(|parts| parts.1), Some(false));
    }

    #[test]
    fn similar_lines_are_not_fences() {
        for text in ["", "----\na\n----\n", " ---\na: 1\n---\n", "--- a\n---\n", "text"] {
            assert_eq!(parts(text, PLAIN), None, "{text:?}");
        }
        assert_eq!(parts("---", EXACT), None);
        assert_eq!(parts("---", PLAIN), Some(("", false, "---")));
    }
}
