//! A frontmatter cut into whole lines, one piece per top-level field, and put together again.

use std::fmt::Write as _;

use savoir_lint::Source;

use crate::{
    document::{Document, State},
    yaml::{
        Data, Node, Style, YamlVersion,
        write::{write_entry, write_scalar, write_value},
    },
};

/// One field with its lines: comments before it, key and value.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) value: Node,
}

/// A frontmatter in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// Comments and blank lines before the first field.
    pub(super) preamble: String,
    pub(super) fields: Vec<Piece>,
    /// Comments after the last field.
    pub(super) tail: String,
}

impl Pieces {
    /// Cuts YAML where its fields begin. `None` when a field cannot stand alone, as with aliases
    /// or a map in braces.
    pub(super) fn cut(yaml: &str) -> Option<Self> {
        let document = fenced(yaml);
        let block = document.layout().closed_block()?.yaml;
        if document.state() != State::Clean || document.fields()?.is_flow() {
            return None;
        }
        let mut at = block.start;
        let mut pieces = Self::default();
        for (index, entry) in document.entries().iter().enumerate() {
            let lines = document.entry_lines(&entry.key)?;
            if index == 0 {
                document.text().get(at..lines.start)?.clone_into(&mut pieces.preamble);
                at = lines.start;
            }
            if lines.start != at {
                return None;
            }
            at = lines.end;
            let piece = Piece::read(lines.slice(document.text()))?;
            if piece.key != entry.key || !same(&piece.value, &entry.value) {
                return None;
            }
            pieces.fields.push(piece);
        }
        let last = pieces.fields.last_mut()?;
        let end = tail_start(&last.text);
        pieces.tail = last.text.split_off(end);
        (at == block.end).then_some(pieces)
    }

    /// The fields of a document, written anew.
    pub(super) fn rewritten(document: &Document) -> Self {
        let entries = document.entries().iter();
        let write = |key: &str, value: &Node| entry_text(key, value, 0);
        let fields = entries
            .map(|entry| Piece {
                key: entry.key.clone(),
                text: write(&entry.key, &entry.value),
                value: entry.value.clone(),
            })
            .collect();
        Self { fields, ..Self::default() }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Piece> {
        self.fields.iter().find(|piece| piece.key == key)
    }
}

impl Piece {
    /// Reads the lines of one field.
    pub(super) fn read(text: &str) -> Option<Self> {
        let document = fenced(text);
        match document.entries() {
            [entry] if document.state() == State::Clean => Some(Self {
                key: entry.key.clone(),
                text: text.to_owned(),
                value: entry.value.clone(),
            }),
            _ => None,
        }
    }
}

/// YAML between fences, which is four bytes further on.
pub(super) fn fenced(yaml: &str) -> Document {
    Document::parse(Source::new(format!("---\n{yaml}---\n")))
}

/// Whether all readers see the same value in two nodes.
pub(super) fn same(a: &Node, b: &Node) -> bool {
    [YamlVersion::V1_1, YamlVersion::V1_2]
        .into_iter()
        .all(|version| a.to_value(version) == b.to_value(version))
}

/// Where the comment lines at the end of a piece begin.
fn tail_start(text: &str) -> usize {
    let mut start = text.len();
    while let Some(line) = text.get(..start).and_then(|text| text.split_inclusive('\n').next_back())
    {
        if !line.starts_with('#') {
            break;
        }
        start -= line.len();
    }
    start
}

/// A field written anew. Plain scalars keep their spelling, so that `1.10` and dates survive.
pub(super) fn entry_text(key: &str, value: &Node, indent: usize) -> String {
    let head = format!("{:indent$}{}:", "", write_scalar(key, YamlVersion::V1_1));
    match &value.data {
        Data::Scalar { text, style: Style::Plain } if is_spelled(text, value) => {
            let blank = if text.is_empty() { "" } else { " " };
            format!("{head}{blank}{text}\n")
        }
        Data::Mapping { entries, .. } if !entries.is_empty() => {
            let lines =
                entries.iter().map(|entry| entry_text(&entry.key, &entry.value, indent + 2));
            format!("{head}\n{}", lines.collect::<String>())
        }
        Data::Sequence { items, .. } if !items.is_empty() => {
            let lines = items.iter().map(|item| item_text(item, indent + 2));
            format!("{head}\n{}", lines.collect::<String>())
        }
        _ => write_entry(key, &value.to_value(YamlVersion::V1_2), indent),
    }
}

fn item_text(item: &Node, indent: usize) -> String {
    match &item.data {
        Data::Scalar { text, style: Style::Plain } if is_spelled(text, item) => {
            let blank = if text.is_empty() { "" } else { " " };
            format!("{:indent$}-{blank}{text}\n", "")
        }
        Data::Mapping { entries, .. } if !entries.is_empty() => {
            let lines =
                entries.iter().map(|entry| entry_text(&entry.key, &entry.value, indent + 2));
            dashed(&lines.collect::<String>(), indent)
        }
        Data::Sequence { items, .. } if !items.is_empty() => {
            let lines = items.iter().map(|item| item_text(item, indent + 2));
            dashed(&lines.collect::<String>(), indent)
        }
        _ => write_value(&serde_json::Value::Array(vec![item.to_value(YamlVersion::V1_2)]), indent),
    }
}

/// Puts a dash into the indentation of the first line.
fn dashed(lines: &str, indent: usize) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{:indent$}- {}", "", lines.trim_start_matches(' '));
    text
}

/// Whether a plain scalar may be written as its author did.
fn is_spelled(text: &str, node: &Node) -> bool {
    node.tag.is_none() && !text.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines() {
        let yaml = "# top\n\nname: a\n# about b\nb:\n  - x\n\nc: |\n  # text\n# end\n";
        let pieces = Pieces::cut(yaml).unwrap();
        let texts: Vec<&str> = pieces.fields.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(pieces.preamble, "# top\n\n");
        assert_eq!(texts, ["name: a\n", "# about b\nb:\n  - x\n\n", "c: |\n  # text\n"]);
        assert_eq!(pieces.tail, "# end\n");
    }

    #[test]
    fn what_hangs_together_is_not_cut() {
        for yaml in ["{a: 1}\n", "a: &x 1\nb: *x\n", "a: 1\na: 2\n"] {
            assert!(Pieces::cut(yaml).is_none(), "{yaml}");
        }
    }

    #[test]
    fn plain_scalars_keep_their_spelling() {
        let yaml = "a: {b: 1.10, c: [2024-01-31, 'x: y', {d: }], e: }\n";
        let piece = Piece::read(yaml).unwrap();
        let text = entry_text(&piece.key, &piece.value, 0);
        let expected = "a:\n  b: 1.10\n  c:\n    - 2024-01-31\n    - 'x: y'\n    - d:\n  e:\n";
        assert_eq!(text, expected);
        assert!(same(&Piece::read(&text).unwrap().value, &piece.value));
    }
}
