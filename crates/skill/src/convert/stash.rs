//! Stores the original of a converted file under `metadata`.
//!
//! This data is called the stash. It contains the dialect of the original, the order of its fields,
//! and the lines that the conversion changed.

use savoir_lint::Span;
use serde_json::Value;

use super::{
    body::{self, PlaceholderStyle},
    field_lines::{FieldLines, FrontmatterLines, fenced},
    prose,
};
use crate::{dialect::Dialect, document::Document, reading::Reading, yaml::write::write_entry};

/// A text that every file with a stash, or with the comment of a prose conversion, contains.
pub(super) const PREFIX: &str = "savoir";

/// Key for the dialect of the original.
const FROM: &str = "savoir-from";
/// Key for the style of the placeholders in the original body, if they were rewritten.
const BODY: &str = "savoir-body";
/// Key for everything before the original body, if its fields could not be separated.
const HEAD: &str = "savoir-head";
/// Key for the lines of fields that are missing or changed in this file.
const KEEP: &str = "savoir-keep";
/// Key for the order of the original fields. It is written last, because its value is one line
/// long.
const ORDER: &str = "savoir-order";

/// Paths that a report shows for stored lines.
pub(super) const KEEP_PATH: &str = "metadata.savoir-keep";
pub(super) const HEAD_PATH: &str = "metadata.savoir-head";

/// Whether a key under `metadata` belongs to the stash.
pub(super) fn is_own(key: &str) -> bool {
    key.starts_with("savoir-")
}

/// The stored data about the original of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stash {
    pub(super) from: Dialect,
    pub(super) body: Option<PlaceholderStyle>,
    pub(super) head: StashedHead,
}

/// The stored text before the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StashedHead {
    /// The original had no frontmatter.
    Absent,
    /// The whole text.
    Whole(String),
    /// The lines that are not in the file, and the order of all fields.
    Lines { keep: String, order: Vec<String> },
}

impl Stash {
    /// Formats the entries of the stash, indented by `indent` blanks.
    pub(super) fn lines(&self, indent: usize) -> String {
        self.entries().iter().map(|(key, value)| write_entry(key, value, indent)).collect()
    }

    fn entries(&self) -> Vec<(&'static str, Value)> {
        let mut entries = vec![(FROM, Value::from(self.from.id()))];
        if let Some(marks) = self.body {
            entries.push((BODY, marks.sample().into()));
        }
        match &self.head {
            StashedHead::Absent => {}
            StashedHead::Whole(head) => entries.push((HEAD, head.as_str().into())),
            StashedHead::Lines { keep, order } => {
                if !keep.is_empty() {
                    entries.push((KEEP, keep.as_str().into()));
                }
                entries.push((ORDER, order_text(order).into()));
            }
        }
        entries
    }

    /// Finds the stash of a file.
    pub(super) fn find(document: &Document) -> Option<Self> {
        let metadata = document.field("metadata")?;
        let text = |key: &str| metadata.get(key).and_then(|node| node.text());
        let from = text(FROM)?.parse().ok()?;
        let head = match (text(HEAD), text(ORDER)) {
            (Some(head), _) => StashedHead::Whole(head.to_owned()),
            (None, Some(order)) => StashedHead::Lines {
                keep: text(KEEP).unwrap_or_default().to_owned(),
                order: order_of(order)?,
            },
            (None, None) => StashedHead::Absent,
        };
        Some(Self { from, body: text(BODY).and_then(PlaceholderStyle::parse), head })
    }
}

fn order_text(order: &[String]) -> String {
    let plain = |key: &String| {
        !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if order.iter().all(plain) { order.join(",") } else { Value::from(order).to_string() }
}

fn order_of(text: &str) -> Option<Vec<String>> {
    if text.starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    Some(text.split(',').map(str::to_owned).collect())
}

/// Returns the line ending of the first line of a file.
pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        _ => "\n",
    }
}

/// Converts line endings to `newline`; text with `\r` stays unchanged.
pub(super) fn with_newlines(text: &str, newline: &str) -> String {
    if newline == "\n" || text.contains('\r') {
        text.to_owned()
    } else {
        text.replace('\n', newline)
    }
}

/// The restored original of a file.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) dialect: Dialect,
    pub(super) text: String,
}

/// Restores the original of a file. Edits of lines that both files share are kept.
pub(super) fn original(reading: &Reading) -> Option<Original> {
    let document = &reading.document;
    if let Some(original) = prose::original(document) {
        return Some(original);
    }
    let stash = Stash::find(document)?;
    let body = match stash.body {
        Some(marks) => body::restore(document.body(), &reading.skill, marks),
        None => document.body().to_owned(),
    };
    let text = match &stash.head {
        StashedHead::Absent => format!("{}{body}", byte_order_mark(document)),
        StashedHead::Whole(head) => format!("{head}{body}"),
        StashedHead::Lines { keep, order } => format!("{}{body}", head(document, keep, order)?),
    };
    Some(Original { dialect: stash.from, text })
}

pub(super) fn byte_order_mark(document: &Document) -> &str {
    document.text().get(..document.layout().bom).unwrap_or_default()
}

fn head(document: &Document, keep: &str, order: &[String]) -> Option<String> {
    let text = document.text();
    let block = document.layout().closed_block()?;
    let here = FrontmatterLines::cut(block.yaml.slice(text))?;
    let stored_lines =
        if keep.is_empty() { FrontmatterLines::default() } else { FrontmatterLines::cut(keep)? };
    let mut head = text.get(..block.yaml.start)?.to_owned();
    head.push_str(&here.preamble);
    for key in order {
        if let Some(source_lines) = stored_lines.get(key) {
            head.push_str(&with_newlines(&source_lines.text, newline(text)));
        } else if let Some(source_lines) = here.get(key) {
            // A field that is in neither the file nor the stash was deleted after the conversion.
            let own = key == "metadata";
            head.push_str(&if own {
                without_own(source_lines)?
            } else {
                source_lines.text.clone()
            });
        }
    }
    head.push_str(&here.tail);
    head.push_str(text.get(block.yaml.end..document.body_span().start)?);
    Some(head)
}

/// Returns the lines of `metadata` without the stash. Its entries are adjacent, with the one-line
/// order last.
pub(super) fn without_own(metadata: &FieldLines) -> Option<String> {
    let document = fenced(&metadata.text);
    let text = document.text();
    let entries = document.field("metadata")?.entries()?;
    let first = entries.iter().find(|entry| is_own(&entry.key))?;
    let last = entries.iter().rfind(|entry| is_own(&entry.key))?;
    let start = text.get(..first.key_span.start)?.rfind('\n')? + 1;
    let end = last.value.span.end + text.get(last.value.span.end..)?.find('\n')? + 1;
    let block = document.layout().closed_block()?.yaml;
    let before = Span::new(block.start, start).slice(text);
    Some(format!("{before}{}", Span::new(end, block.end).slice(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_keys_store_the_order_as_a_list() {
        for keys in [vec!["a", "b-c"], vec!["a,b", "c"], vec!["[a"], vec![""]] {
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            assert_eq!(order_of(&order_text(&keys)), Some(keys));
        }
        assert_eq!(order_text(&["a".into(), "b".into()]), "a,b");
    }

    #[test]
    fn stash_lines_can_be_removed() {
        let text = "metadata:\n  a: 1\n  savoir-from: gaia\n  savoir-order: metadata\n  # end\n";
        let source_lines = FieldLines::read(text).unwrap();
        assert_eq!(without_own(&source_lines).unwrap(), "metadata:\n  a: 1\n  # end\n");
    }
}
