//! Parses simple frontmatter line by line: `key: value` lines, a list, a small map.
//!
//! This takes a tenth of the time of the full scanner. Everything else is left to the scanner; a
//! property test checks that both give the same result, including spans.

use memchr::memchr;
use savoir_lint::Span;

use super::{
    node::{Entry, Node, NodeData, Style},
    tree::Tree,
};

/// Most lines that are read this way; longer frontmatter meets the limits of the scanner.
const MAX_LINES: usize = 400;

/// Reads `text`, or `None` when it is not plain enough.
pub(super) fn parse(text: &str) -> Option<Tree> {
    if !is_plain_text(text.as_bytes()) {
        return None;
    }
    let mut reader = Reader { text, at: 0, lines: 0 };
    let entries = reader.entries(0, &mut |reader, line| reader.below(line))?;
    if reader.at < text.len() || entries.is_empty() {
        return None;
    }
    let start = entries.first()?.key_span.start;
    let root = mapping(start, entries);
    Some(Tree { root: Some(root), notes: Vec::new() })
}

/// No tabs, comments, carriage returns or control characters, nor characters that YAML refuses.
fn is_plain_text(bytes: &[u8]) -> bool {
    let odd =
        |byte: &u8| *byte < b' ' && *byte != b'\n' || matches!(*byte, b'#' | 0x7f | 0xc2 | 0xef);
    !bytes.iter().any(odd)
        && memchr::memmem::find(bytes, "\u{2028}".as_bytes()).is_none()
        && memchr::memmem::find(bytes, "\u{2029}".as_bytes()).is_none()
}

fn mapping(start: usize, entries: Vec<Entry>) -> Node {
    let end = entries.last().map_or(start, |last| last.value.span.end.max(last.key_span.end));
    Node {
        span: Span::new(start, end),
        data: NodeData::Mapping { entries, flow: false },
        tag: None,
    }
}

/// One line with text on it.
#[derive(Clone, Copy)]
struct Line {
    indent: usize,
    start: usize,
    end: usize,
}

struct Reader<'a> {
    text: &'a str,
    /// Start of the next line.
    at: usize,
    lines: usize,
}

type Below<'r, 'a> = &'r mut dyn FnMut(&mut Reader<'a>, Line) -> Option<Node>;

impl<'a> Reader<'a> {
    /// The next line with text, without moving on.
    fn peek(&mut self) -> Option<Line> {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let indent = rest[..length].iter().take_while(|byte| **byte == b' ').count();
            if indent < length {
                let end =
                    self.at + self.text[self.at..self.at + length].trim_end_matches(' ').len();
                return Some(Line { indent, start: self.at + indent, end });
            }
            self.at += (length + 1).min(rest.len());
        }
        None
    }

    fn advance(&mut self, line: Line) -> Option<()> {
        self.lines += 1;
        let rest = &self.text.as_bytes()[line.end..];
        self.at = line.end + memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        (self.lines <= MAX_LINES).then_some(())
    }

    /// `key: value` lines of one indentation; `below` reads the lines under a bare `key:`.
    fn entries(&mut self, indent: usize, below: Below<'_, 'a>) -> Option<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent >= indent) {
            if line.indent != indent {
                return None;
            }
            let content = &self.text[line.start..line.end];
            let length = content.find(|c: char| !is_key_char(c))?;
            let key = &content[..length];
            let rest = content[length..].strip_prefix(':')?;
            let twice = entries.iter().any(|entry| entry.key == key);
            if !is_key(key) || twice || !(rest.is_empty() || rest.starts_with(' ')) {
                return None;
            }
            self.advance(line)?;
            let key_span = Span::new(line.start, line.start + length);
            let value = rest.trim_start_matches(' ');
            let value = if value.is_empty() {
                below(self, line)?
            } else {
                let value = self.inline(line.end - value.len(), value)?;
                self.ends(indent)?;
                value
            };
            entries.push(Entry { key: key.to_owned(), key_span, value });
        }
        Some(entries)
    }

    /// A value on one line may not go on below.
    fn ends(&mut self, indent: usize) -> Option<()> {
        self.peek().is_none_or(|next| next.indent <= indent).then_some(())
    }

    /// Reads the value under a bare `key:` of the top level: nothing, a list, or a small map.
    fn below(&mut self, key: Line) -> Option<Node> {
        let Some(next) = self.peek() else { return Some(nothing(key.end)) };
        if self.text[next.start..next.end].starts_with("- ") {
            return self.list(next.indent);
        }
        if next.indent == 0 {
            return Some(nothing(key.end));
        }
        let mut scalars_only = |reader: &mut Reader<'a>, line: Line| {
            let bare = reader.peek().is_none_or(|next| {
                next.indent < line.indent
                    || next.indent == line.indent && !reader.text[next.start..].starts_with('-')
            });
            bare.then(|| nothing(line.end))
        };
        let entries = self.entries(next.indent, &mut scalars_only)?;
        Some(mapping(next.start, entries))
    }

    /// `- item` lines of one indentation.
    fn list(&mut self, indent: usize) -> Option<Node> {
        let mut items: Vec<Node> = Vec::new();
        let mut start = 0;
        while let Some(line) = self.peek().filter(|line| line.indent >= indent) {
            let content = &self.text[line.start..line.end];
            let Some(item) = content.strip_prefix("- ") else {
                // A list may start at the column of its key; then the next key ends it.
                if line.indent == indent && indent == 0 && !content.starts_with('-') {
                    break;
                }
                return None;
            };
            if line.indent != indent {
                return None;
            }
            self.advance(line)?;
            let item = item.trim_start_matches(' ');
            if items.is_empty() {
                // The scanner lets a list at the column of its key begin with its first item.
                start = if indent == 0 { line.end - item.len() } else { line.start };
            }
            items.push(self.inline(line.end - item.len(), item)?);
            self.ends(indent)?;
        }
        let end = items.last()?.span.end;
        let span = Span::new(start, end);
        Some(Node { span, data: NodeData::Sequence { items, flow: false }, tag: None })
    }

    /// A scalar or a flow list that begins and ends on its line.
    fn inline(&self, start: usize, value: &str) -> Option<Node> {
        let span = Span::new(start, start + value.len());
        let quoted = |quote: char, style: Style| {
            let inner = value.strip_prefix(quote)?.strip_suffix(quote)?;
            let simple = value.len() > 1 && !inner.contains([quote, '\\']);
            simple.then(|| scalar(inner, style, span))
        };
        match value.as_bytes().first()? {
            b'"' => quoted('"', Style::DoubleQuoted),
            b'\'' => quoted('\'', Style::SingleQuoted),
            b'[' => self.flow_list(span),
            _ => is_plain(value).then(|| scalar(value, Style::Plain, span)),
        }
    }

    /// `[a, b c, d]` of plain words.
    fn flow_list(&self, span: Span) -> Option<Node> {
        let inner = span.slice(self.text).strip_prefix('[')?.strip_suffix(']')?;
        if inner.trim_matches(' ').is_empty()
            || inner.contains(['[', ']', '{', '}', '"', '\'', ':'])
        {
            return None;
        }
        let mut at = span.start + 1;
        let mut items = Vec::new();
        for part in inner.split(',') {
            let word = part.trim_matches(' ');
            let start = at + (part.len() - part.trim_start_matches(' ').len());
            at += part.len() + 1;
            if !is_plain(word) {
                return None;
            }
            items.push(scalar(word, Style::Plain, Span::new(start, start + word.len())));
        }
        Some(Node { span, data: NodeData::Sequence { items, flow: true }, tag: None })
    }
}

fn scalar(text: &str, style: Style, span: Span) -> Node {
    Node { span, data: NodeData::Scalar { text: text.to_owned(), style }, tag: None }
}

/// A missing value has the position after its colon.
fn nothing(line_end: usize) -> Node {
    scalar("", Style::Plain, Span::at(line_end - 1))
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A word that every reader takes for a string.
fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic()) && !matches!(key, "null" | "Null" | "NULL")
}

/// A plain scalar: begins with a letter or digit, and holds no colon that YAML would see.
fn is_plain(value: &str) -> bool {
    value.starts_with(|c: char| {
        c.is_alphanumeric()
            || matches!(c, '(' | '/' | '<' | '.' | '_' | '~' | '$' | '+' | '^' | '=')
    }) && !value.ends_with(':')
        && memchr::memmem::find(value.as_bytes(), b": ").is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where the line reader gives an answer, it is the scanner's.
    fn agrees(text: &str) {
        if let Some(tree) = parse(text) {
            let scanned = Tree::scan(text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
            assert_eq!(tree.root, scanned.root, "{text:?}");
            assert_eq!(scanned.notes, [], "{text:?}");
        }
    }

    #[test]
    fn reads_simple_frontmatter() {
        for text in [
            "name: a\ndescription: Some text, with commas (and more).\n",
            "name: a\nlicense: \"MIT\"\nempty:\nmetadata:\n  version: '1.0'\n  author: x y\n",
            "tags:\n  - a b\n  - \"c\"\nmore:\n- d\n- e\nlast: [a, b c, 1.0]\n",
            "a: 1\n\n\nb: 2  \n",
            "version: 1.0.0\nurl: http://x.org/y?z\nt: 12:30\n",
            "a: ä – ö\nb: 中文",
        ] {
            assert!(parse(text).is_some(), "{text:?}");
            agrees(text);
        }
    }

    #[test]
    fn leaves_the_rest_to_the_scanner() {
        for text in [
            "", "a", "a: b: c\n", "a: >\n  x\n", "a: x\n  y\n", "a: {b: c}\n", "a: &x y\n",
            "a: 1\na: 2\n", "a: [b\n", "a: # c\n", "a: \"b\\n\"\n", " a: 1\n",
            "a:\n  b:\n    c: 1\n", "- a\n", "a:\tb\n", "a: @x\n", "a: - b\n", "a: 'it''s'\n",
            "? a\n", "a: b:\n", "null: 1\n", "a: \u{85}x\n",
        ] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn never_disagrees_on_real_skills() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
        let mut folders = vec![std::path::PathBuf::from(corpus)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    text.split("---\n").nth(1).into_iter().for_each(agrees);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn never_disagrees_on_made_up_lines(
            lines in prop::collection::vec(
                "( {0,4}(- )?)?([a-c]{1,2}|null|-)?(:|: | )?( ?([a-z0-9.:~/'\"\\[\\], {}>|&*!%@=^$-]|ä|1\\.0|yes|null){0,6})?",
                0..6,
            )
        ) {
            agrees(&lines.join("\n"));
        }
    }
}
