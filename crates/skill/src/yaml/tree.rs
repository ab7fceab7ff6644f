//! Builds a size-limited tree from the events of the YAML scanner.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, Tag};
use savoir_lint::Span;
use thiserror::Error;

use super::{
    YamlVersion,
    node::{Entry, Node, NodeData, Style},
    plain,
};
use crate::limits;

/// Why YAML could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct YamlError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// What the scanner says about it.
    pub message: String,
    /// Where, as a byte offset into the text that was parsed.
    pub at: usize,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not YAML.
    Syntax,
    /// Nested deeper than [`limits::MAX_YAML_DEPTH`].
    TooDeep,
    /// More nodes than [`limits::MAX_YAML_NODES`] once aliases are expanded.
    TooManyNodes,
    /// A key that is a list, a map or nothing.
    BadKey,
    /// An alias without its anchor, or inside it.
    BadAlias,
}

/// Something legal that other readers treat differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlNote {
    /// What it is.
    pub kind: YamlNoteKind,
    /// Where.
    pub span: Span,
    /// The name at this position; for a key, its dotted path.
    pub name: String,
}

/// Kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlNoteKind {
    /// `&name`
    Anchor,
    /// `*name`
    Alias,
    /// `<<: …`
    MergeKey,
    /// `!tag`
    Tag,
    /// The same key twice in one map.
    DuplicateKey {
        /// Whether both values are the same.
        same: bool,
    },
    /// A second YAML document.
    SecondDocument,
}

/// A parsed frontmatter.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The value, or nothing when the text holds only comments and blanks.
    pub root: Option<Node>,
    /// What other readers treat differently.
    pub notes: Vec<YamlNote>,
}

impl Tree {
    /// Parses `text`. Time and memory are bounded by the length of the text and by [`limits`].
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        plain::parse(text).map_or_else(|| Self::scan(text), Ok)
    }

    /// Parses with the full scanner.
    pub(super) fn scan(text: &str) -> Result<Self, YamlError> {
        let options = granit_parser::options! {
            emit_unresolved_aliases: true,
            flow_nesting_limit: limits::MAX_YAML_DEPTH,
            block_nesting_limit: limits::MAX_YAML_DEPTH,
        };
        let mut builder = Builder::new(text);
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(|error| scan_error(text, &error))?;
            let range = span.byte_range().unwrap_or(0..0);
            let span = Span::new(range.start, range.end.max(range.start));
            if !builder.event(event, span)? {
                break;
            }
        }
        Ok(builder.finish())
    }
}

fn scan_error(text: &str, error: &granit_parser::ScanError) -> YamlError {
    use granit_parser::ErrorKind as Scan;
    let kind = match error.kind() {
        Scan::RecursionLimitExceeded => ErrorKind::TooDeep,
        _ => ErrorKind::Syntax,
    };
    let message = match kind {
        ErrorKind::TooDeep => format!("nested deeper than {} levels", limits::MAX_YAML_DEPTH),
        _ => error.info(),
    };
    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    YamlError { kind, message, at }
}

/// A collection that is not closed yet.
struct OpenCollection {
    span: Span,
    anchor: usize,
    tag: Option<String>,
    data: NodeData,
    /// The key that waits for its value.
    key: Option<(String, Span)>,
    /// What `<<` brings; it is taken in last, because a map's own keys count more.
    merges: Vec<Node>,
    /// Whether the waiting key is `<<`.
    merging: bool,
}

struct Builder<'a> {
    text: &'a str,
    stack: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    repeated: usize,
    documents: usize,
    tree: Tree,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            stack: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            repeated: 0,
            documents: 0,
            tree: Tree::default(),
        }
    }

    /// Takes one event; `false` when the rest does not matter.
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<bool, YamlError> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.note(YamlNoteKind::SecondDocument, span, String::new());
                    return Ok(false);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text = if span.is_empty() && style == ScalarStyle::Plain {
                    // An absent value arrives as `~` without a place.
                    String::new()
                } else {
                    text.into_owned()
                };
                let data = NodeData::Scalar { text, style: style_of(style) };
                let tag = self.tag(tag.as_deref(), span);
                self.value(Node { span, data, tag }, anchor)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                let data =
                    NodeData::Sequence { items: Vec::new(), flow: style == StructureStyle::Flow };
                self.open(span, anchor, tag.as_deref(), data)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                let data =
                    NodeData::Mapping { entries: Vec::new(), flow: style == StructureStyle::Flow };
                self.open(span, anchor, tag.as_deref(), data)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::Alias(id) => {
                let name = span.slice(self.text).trim_start_matches('*').to_owned();
                let target = self.anchors.get(&id).cloned().ok_or_else(|| YamlError {
                    kind: ErrorKind::BadAlias,
                    message: format!("the alias `*{name}` is inside its own anchor"),
                    at: span.start,
                })?;
                self.note(YamlNoteKind::Alias, span, name);
                // `value` counts one node; the rest of the copy is counted here, before it is stored.
                self.grow(target.count().saturating_sub(1), span)?;
                self.repeat(target.text_bytes(), span)?;
                self.value(Node { span, ..target }, 0)?;
            }
            Event::UnresolvedAlias(name) => {
                return Err(YamlError {
                    kind: ErrorKind::BadAlias,
                    message: format!("the alias `*{name}` has no anchor `&{name}` before it"),
                    at: span.start,
                });
            }
            _ => {}
        }
        Ok(true)
    }

    fn note(&mut self, kind: YamlNoteKind, span: Span, name: String) {
        self.tree.notes.push(YamlNote { kind, span, name });
    }

    fn grow(&mut self, by: usize, span: Span) -> Result<(), YamlError> {
        self.nodes += by;
        if self.nodes <= limits::MAX_YAML_NODES {
            return Ok(());
        }
        Err(YamlError {
            kind: ErrorKind::TooManyNodes,
            message: format!("more than {} values", limits::MAX_YAML_NODES),
            at: span.start,
        })
    }

    /// Counts the text that aliases repeat: few nodes can be many bytes.
    fn repeat(&mut self, bytes: usize, span: Span) -> Result<(), YamlError> {
        self.repeated += bytes;
        if self.repeated <= limits::MAX_REPEATED_BYTES {
            return Ok(());
        }
        Err(YamlError {
            kind: ErrorKind::TooManyNodes,
            message: format!("aliases repeat more than {} bytes", limits::MAX_REPEATED_BYTES),
            at: span.start,
        })
    }

    fn tag(&mut self, tag: Option<&Tag>, span: Span) -> Option<String> {
        let tag = tag?;
        let core = tag.handle() == "tag:yaml.org,2002:";
        let written = if core { format!("!!{}", tag.suffix()) } else { tag.to_string() };
        self.note(YamlNoteKind::Tag, span, written);
        Some(if core { tag.suffix().to_owned() } else { tag.to_string() })
    }

    fn open(
        &mut self,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        data: NodeData,
    ) -> Result<(), YamlError> {
        if self.stack.len() >= limits::MAX_YAML_DEPTH {
            return Err(YamlError {
                kind: ErrorKind::TooDeep,
                message: format!("nested deeper than {} levels", limits::MAX_YAML_DEPTH),
                at: span.start,
            });
        }
        let tag = self.tag(tag, span);
        self.stack.push(OpenCollection {
            span,
            anchor,
            tag,
            data,
            key: None,
            merges: Vec::new(),
            merging: false,
        });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), YamlError> {
        let Some(mut open) = self.stack.pop() else { return Ok(()) };
        let end = match &open.data {
            NodeData::Sequence { items, flow: false } => items.last().map(|item| item.span.end),
            NodeData::Mapping { entries, flow: false } => {
                entries.last().map(|entry| entry.value.span.end.max(entry.key_span.end))
            }
            _ => Some(span.end),
        };
        let span = Span::new(open.span.start, end.unwrap_or(span.end).max(open.span.start));
        if let NodeData::Mapping { entries, .. } = &mut open.data {
            open.merges.iter().for_each(|node| merge(entries, node));
        }
        self.value(Node { span, data: open.data, tag: open.tag }, open.anchor)
    }

    /// Puts a finished node where it belongs: a key, a value, an element, or the root.
    fn value(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        self.grow(1, node.span)?;
        if anchor != 0 {
            self.note(YamlNoteKind::Anchor, node.span, String::new());
            self.anchors.insert(anchor, node.clone());
            self.grow(node.count(), node.span)?;
        }
        let Some(open) = self.stack.last_mut() else {
            self.tree.root = Some(node);
            return Ok(());
        };
        match &mut open.data {
            NodeData::Sequence { items, .. } => items.push(node),
            NodeData::Mapping { entries, .. } => match open.key.take() {
                None => {
                    let key = key_of(&node)?;
                    open.merging = key == "<<" && node.style() == Some(Style::Plain);
                    open.key = Some((key, node.span));
                }
                Some((key, key_span)) if open.merging => {
                    open.merges.push(node);
                    self.note(YamlNoteKind::MergeKey, key_span, key);
                }
                Some((key, key_span)) => {
                    let twin = entries.iter().find(|entry| entry.key == key);
                    let duplicate = twin.map(|twin| same_value(&twin.value, &node));
                    entries.push(Entry { key: key.clone(), key_span, value: node });
                    if let Some(same) = duplicate {
                        let path = self.path_to(&key);
                        self.note(YamlNoteKind::DuplicateKey { same }, key_span, path);
                    }
                }
            },
            NodeData::Scalar { .. } => {}
        }
        Ok(())
    }

    fn finish(self) -> Tree {
        self.tree
    }

    /// The dotted path of `key` in the map that is open.
    fn path_to(&self, key: &str) -> String {
        let outer = self.stack.len().saturating_sub(1);
        let mut path = String::new();
        for open in self.stack.iter().take(outer) {
            match (&open.data, &open.key) {
                (NodeData::Sequence { items, .. }, _) => {
                    path.extend(["[", &items.len().to_string(), "]"]);
                }
                (_, Some((key, _))) if path.is_empty() => path.push_str(key),
                (_, Some((key, _))) => path.extend([".", key]),
                (_, None) => {}
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path + key
    }
}

fn key_of(node: &Node) -> Result<String, YamlError> {
    let problem = match &node.data {
        // Both versions of YAML agree on the words for nothing.
        NodeData::Scalar { text, .. } if !node.is_null(YamlVersion::V1_2) => {
            return Ok(text.clone());
        }
        NodeData::Scalar { text, .. } if text.is_empty() => "a key is empty",
        NodeData::Scalar { .. } => "nothing cannot be a key",
        NodeData::Sequence { .. } => "a list cannot be a key",
        NodeData::Mapping { .. } => "a map cannot be a key",
    };
    Err(YamlError { kind: ErrorKind::BadKey, message: problem.into(), at: node.span.start })
}

fn same_value(a: &Node, b: &Node) -> bool {
    let versions = [YamlVersion::V1_1, YamlVersion::V1_2];
    versions.into_iter().all(|version| a.to_value(version) == b.to_value(version))
}

/// `<<` brings the keys of a map, or of a list of maps, that are not there yet.
fn merge(entries: &mut Vec<Entry>, node: &Node) {
    let maps = match &node.data {
        NodeData::Sequence { items, .. } => items.iter().collect(),
        _ => vec![node],
    };
    for entry in maps.into_iter().filter_map(Node::entries).flatten() {
        if !entries.iter().any(|own| own.key == entry.key) {
            entries.push(entry.clone());
        }
    }
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::YamlVersion::V1_2;
    use super::*;

    fn value(text: &str) -> serde_json::Value {
        Tree::parse(text).unwrap().root.unwrap().to_value(V1_2)
    }

    #[test]
    fn values_have_byte_spans() {
        let text = "a: plain\n  more\nb: [x, 'y']\nc:\n  d: |\n    lit\n";
        let root = Tree::parse(text).unwrap().root.unwrap();
        assert_eq!(root.get("a").unwrap().span.slice(text), "plain\n  more");
        assert_eq!(root.get("b").unwrap().span.slice(text), "[x, 'y']");
        assert_eq!(root.path("c.d").unwrap().text(), Some("lit\n"));
        assert_eq!(value(text), json!({"a": "plain more", "b": ["x", "y"], "c": {"d": "lit\n"}}));
    }

    #[test]
    fn an_absent_value_is_null() {
        assert_eq!(value("a:\nb: ~\n"), json!({"a": null, "b": null}));
    }

    #[test]
    fn a_billion_laughs_cost_nothing() {
        let mut lines = vec!["a: &a [x,x,x,x,x,x,x,x,x]".to_owned()];
        for (from, to) in "abcdefgh".chars().zip("bcdefghi".chars()) {
            let list = vec![format!("*{from}"); 9].join(",");
            lines.push(format!("{to}: &{to} [{list}]"));
        }
        let error = Tree::parse(&lines.join("\n")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooManyNodes);
    }

    #[test]
    fn a_long_text_repeated_costs_nothing() {
        let text = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(30_000), ["*a"; 900].join(","));
        assert_eq!(Tree::parse(&text).unwrap_err().kind, ErrorKind::TooManyNodes);
    }

    #[test]
    fn own_keys_count_more_than_merged_ones() {
        let text = "x: &p {name: evil, more: 1}\n<<: *p\nname: demo\n\"<<\": 2\n";
        let tree = Tree::parse(text).unwrap();
        let value = tree.root.unwrap().to_value(V1_2);
        assert_eq!(value["name"], "demo");
        assert_eq!(value["more"], 1);
        assert_eq!(value["<<"], 2);
        assert!(
            tree.notes.iter().all(|note| !matches!(note.kind, YamlNoteKind::DuplicateKey { .. }))
        );
    }

    #[test]
    fn deep_nesting_is_refused_without_a_deep_stack() {
        for text in [format!("x: {}", "[".repeat(10_000)), format!("x: {}", "{a: ".repeat(10_000))]
        {
            assert_eq!(Tree::parse(&text).unwrap_err().kind, ErrorKind::TooDeep);
        }
        let blocks: Vec<String> = (0..200).map(|depth| " ".repeat(depth) + "a:").collect();
        assert_eq!(Tree::parse(&blocks.join("\n")).unwrap_err().kind, ErrorKind::TooDeep);
    }

    #[test]
    fn notes_what_other_readers_treat_differently() {
        let tree = Tree::parse("x: &p {k: 1}\n<<: *p\ny: !t z\nx: 2\n").unwrap();
        let kinds: Vec<_> = tree.notes.iter().map(|note| note.kind).collect();
        assert_eq!(
            kinds,
            [
                YamlNoteKind::Anchor,
                YamlNoteKind::Alias,
                YamlNoteKind::MergeKey,
                YamlNoteKind::Tag,
                YamlNoteKind::DuplicateKey { same: false }
            ]
        );
        assert_eq!(tree.root.unwrap().get("k").unwrap().text(), Some("1"));
    }

    #[test]
    fn a_second_key_is_named_by_its_path() {
        let tree = Tree::parse("a:\n  - {x: 1, y: {z: 1, z: 2}}\nb: 1\nb: 1\n").unwrap();
        let names: Vec<_> = tree.notes.iter().map(|note| note.name.as_str()).collect();
        assert_eq!(names, ["a[0].y.z", "b"]);
        assert_eq!(value("'null': 1\n'': 2\n"), json!({"null": 1, "": 2}));
    }

    #[test]
    fn a_key_must_be_a_word() {
        for text in ["? [1]\n: 2\n", "{a: 1}: 2\n", ": 2\n", "~: 2\n", "null: 2\n"] {
            assert_eq!(Tree::parse(text).unwrap_err().kind, ErrorKind::BadKey, "{text}");
        }
    }
}
