//! Splits a frontmatter into the lines of each top-level field.

use std::fmt::Write as _;

use savoir_lint::Source;

use crate::{
    document::{Document, State},
    yaml::{
        Node, NodeData, Style, YamlVersion,
        write::{write_entry, write_scalar, write_value},
    },
};

/// One field with its lines: the comments before it, its key and its value.
#[derive(Clone, Debug)]
pub(super) struct FieldLines {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) value: Node,
}

/// A frontmatter, split into fields.
#[derive(Clone, Debug, Default)]
pub(super) struct FrontmatterLines {
    /// Comments and blank lines before the first field.
    pub(super) preamble: String,
    pub(super) fields: Vec<FieldLines>,
    /// Comments after the last field.
    pub(super) tail: String,
}

impl FrontmatterLines {
    /// Splits YAML where its fields begin. Returns `None` if a field cannot be separated, as with
    /// aliases or a map in braces.
    pub(super) fn cut(yaml: &str) -> Option<Self> {
        let document = fenced(yaml);
        let block = document.layout().closed_block()?.yaml;
        if document.state() != State::Clean || document.fields()?.is_flow() {
            return None;
        }
        let mut at = block.start;
        let mut frontmatter_lines = Self::default();
        for (index, entry) in document.entries().iter().enumerate() {
            let lines = document.entry_lines(&entry.key)?;
            if index == 0 {
                document.text().get(at..lines.start)?.clone_into(&mut frontmatter_lines.preamble);
                at = lines.start;
            }
            if lines.start != at {
                return None;
            }
            at = lines.end;
            let source_lines = FieldLines::read(lines.slice(document.text()))?;
            if source_lines.key != entry.key || !same(&source_lines.value, &entry.value) {
                return None;
            }
            frontmatter_lines.fields.push(source_lines);
        }
        let last = frontmatter_lines.fields.last_mut()?;
        let end = tail_start(&last.text);
        frontmatter_lines.tail = last.text.split_off(end);
        (at == block.end).then_some(frontmatter_lines)
    }

    /// Returns the fields of a document, formatted again.
    pub(super) fn rewritten(document: &Document) -> Self {
        let entries = document.entries().iter();
        let write = |key: &str, value: &Node| entry_text(key, value, 0);
        let fields = entries
            .map(|entry| FieldLines {
                key: entry.key.clone(),
                text: write(&entry.key, &entry.value),
                value: entry.value.clone(),
            })
            .collect();
        Self { fields, ..Self::default() }
    }

    pub(super) fn get(&self, key: &str) -> Option<&FieldLines> {
        self.fields.iter().find(|source_lines| source_lines.key == key)
    }
}

impl FieldLines {
    /// Parses the lines of one field.
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

/// Parses YAML between fences. The fence shifts all offsets by four bytes.
pub(super) fn fenced(yaml: &str) -> Document {
    Document::parse(Source::new(format!("---\n{yaml}---\n")))
}

/// Whether two nodes have the same value in YAML 1.1 and 1.2.
pub(super) fn same(a: &Node, b: &Node) -> bool {
    [YamlVersion::V1_1, YamlVersion::V1_2]
        .into_iter()
        .all(|version| a.to_value(version) == b.to_value(version))
}

/// Returns the offset of the comment lines at the end of a piece.
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

/// Formats a field. Plain scalars keep their spelling, so that `1.10` and dates survive.
pub(super) fn entry_text(key: &str, value: &Node, indent: usize) -> String {
    let head = format!("{:indent$}{}:", "", write_scalar(key, YamlVersion::V1_1));
    match &value.data {
        NodeData::Scalar { text, style: Style::Plain } if keeps_spelling(text, value) => {
            let blank = if text.is_empty() { "" } else { " " };
            format!("{head}{blank}{text}\n")
        }
        NodeData::Mapping { entries, .. } if !entries.is_empty() => {
            let lines =
                entries.iter().map(|entry| entry_text(&entry.key, &entry.value, indent + 2));
            format!("{head}\n{}", lines.collect::<String>())
        }
        NodeData::Sequence { items, .. } if !items.is_empty() => {
            let lines = items.iter().map(|item| item_text(item, indent + 2));
            format!("{head}\n{}", lines.collect::<String>())
        }
        _ => write_entry(key, &value.to_value(YamlVersion::V1_2), indent),
    }
}

fn item_text(item: &Node, indent: usize) -> String {
    match &item.data {
        NodeData::Scalar { text, style: Style::Plain } if keeps_spelling(text, item) => {
            let blank = if text.is_empty() { "" } else { " " };
            format!("{:indent$}-{blank}{text}\n", "")
        }
        NodeData::Mapping { entries, .. } if !entries.is_empty() => {
            let lines =
                entries.iter().map(|entry| entry_text(&entry.key, &entry.value, indent + 2));
            with_dash(&lines.collect::<String>(), indent)
        }
        NodeData::Sequence { items, .. } if !items.is_empty() => {
            let lines = items.iter().map(|item| item_text(item, indent + 2));
            with_dash(&lines.collect::<String>(), indent)
        }
        _ => write_value(&serde_json::Value::Array(vec![item.to_value(YamlVersion::V1_2)]), indent),
    }
}

/// Replaces the indentation of the first line by a dash.
fn with_dash(lines: &str, indent: usize) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{:indent$}- {}", "", lines.trim_start_matches(' '));
    text
}

/// Whether a plain scalar can be written with the spelling of its author.
fn keeps_spelling(text: &str, node: &Node) -> bool {
    node.tag.is_none() && !text.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines() {
        let yaml = "# top\n\nname: a\n# about b\nb:\n  - x\n\nc: |\n  # text\n# end\n";
        let frontmatter_lines = FrontmatterLines::cut(yaml).unwrap();
        let texts: Vec<&str> = frontmatter_lines
            .fields
            .iter()
            .map(|source_lines| source_lines.text.as_str())
            .collect();
        assert_eq!(frontmatter_lines.preamble, "# top\n\n");
        assert_eq!(texts, ["name: a\n", "# about b\nb:\n  - x\n\n", "c: |\n  # text\n"]);
        assert_eq!(frontmatter_lines.tail, "# end\n");
    }

    #[test]
    fn linked_fields_are_not_split() {
        for yaml in ["{a: 1}\n", "a: &x 1\nb: *x\n", "a: 1\na: 2\n"] {
            assert!(FrontmatterLines::cut(yaml).is_none(), "{yaml}");
        }
    }

    #[test]
    fn plain_scalars_keep_their_spelling() {
        let yaml = "a: {b: 1.10, c: [2024-01-31, 'x: y', {d: }], e: }\n";
        let source_lines = FieldLines::read(yaml).unwrap();
        let text = entry_text(&source_lines.key, &source_lines.value, 0);
        let expected = "a:\n  b: 1.10\n  c:\n    - 2024-01-31\n    - 'x: y'\n    - d:\n  e:\n";
        assert_eq!(text, expected);
        assert!(same(&FieldLines::read(&text).unwrap().value, &source_lines.value));
    }
}
