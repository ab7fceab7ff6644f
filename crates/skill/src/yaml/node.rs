//! Defines a YAML value with its position in the file.

use savoir_lint::Span;
use serde_json::{Map, Value};

use super::resolve::{YamlVersion, resolve_plain};

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single quotes.
    SingleQuoted,
    /// In double quotes.
    DoubleQuoted,
    /// After `|`.
    Literal,
    /// After `>`.
    Folded,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeData {
    /// A scalar, after escapes and folding.
    Scalar {
        /// The text, before it is resolved to a type.
        text: String,
        /// How it is written.
        style: Style,
    },
    /// A list.
    Sequence {
        /// The elements.
        items: Vec<Node>,
        /// Written as `[a, b]`.
        flow: bool,
    },
    /// A map, in the order of the file.
    Mapping {
        /// The entries.
        entries: Vec<Entry>,
        /// Written as `{a: b}`.
        flow: bool,
    },
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The bytes of the value, without its key.
    pub span: Span,
    /// What it is.
    pub data: NodeData,
    /// Whether a tag such as `!!str` precedes the value.
    pub tag: Option<String>,
}

/// One key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as text.
    pub key: String,
    /// The bytes of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            NodeData::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that is a string for a reader of this YAML version.
    pub fn string(&self, version: YamlVersion) -> Option<&str> {
        match (&self.data, self.scalar_value(version)) {
            (NodeData::Scalar { text, .. }, Some(Value::String(_))) => Some(text),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.data {
            NodeData::Mapping { entries, .. } => Some(entries),
            _ => None,
        }
    }

    /// The elements of a list.
    pub fn items(&self) -> Option<&[Self]> {
        match &self.data {
            NodeData::Sequence { items, .. } => Some(items),
            _ => None,
        }
    }

    /// Whether it is a list or map written with brackets.
    pub fn is_flow(&self) -> bool {
        matches!(
            self.data,
            NodeData::Sequence { flow: true, .. } | NodeData::Mapping { flow: true, .. }
        )
    }

    /// How a scalar is written.
    pub fn style(&self) -> Option<Style> {
        match &self.data {
            NodeData::Scalar { style, .. } => Some(*style),
            _ => None,
        }
    }

    /// The value of `key` in a map; the first one if a key appears twice.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of `key` in a map.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// The value at a dotted path of keys.
    pub fn path(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Whether the value is null for a reader of this YAML version.
    pub fn is_null(&self, version: YamlVersion) -> bool {
        self.scalar_value(version) == Some(Value::Null)
    }

    /// A boolean, as a reader of this YAML version sees it.
    pub fn boolean(&self, version: YamlVersion) -> Option<bool> {
        self.scalar_value(version)?.as_bool()
    }

    /// A whole number; one that is too large for 64 bits is read as the nearest that is not.
    pub fn clamped_integer(&self, version: YamlVersion) -> Option<i64> {
        let NodeData::Scalar { text, style: Style::Plain } = &self.data else { return None };
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_large = digits.len() > 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let nearest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
        self.scalar_value(version)?.as_i64().or(is_large.then_some(nearest))
    }

    /// Word for the type of the value in messages.
    pub fn type_name(&self, version: YamlVersion) -> &'static str {
        match &self.data {
            NodeData::Sequence { .. } => "a list",
            NodeData::Mapping { .. } => "a map",
            NodeData::Scalar { .. } => match self.scalar_value(version) {
                Some(Value::Null) => "nothing",
                Some(Value::Bool(_)) => "a boolean",
                Some(Value::Number(_)) => "a number",
                _ => "a string",
            },
        }
    }

    fn scalar_value(&self, version: YamlVersion) -> Option<Value> {
        let NodeData::Scalar { text, style } = &self.data else { return None };
        let plain = *style == Style::Plain;
        Some(match self.tag.as_deref() {
            Some("str" | "!") => Value::String(text.clone()),
            Some("int" | "float" | "bool" | "null") => resolve_plain(text, version),
            _ if plain => resolve_plain(text, version),
            _ => Value::String(text.clone()),
        })
    }

    /// The value as JSON, as a reader of this YAML version sees it.
    pub fn to_value(&self, version: YamlVersion) -> Value {
        match &self.data {
            NodeData::Scalar { .. } => self.scalar_value(version).unwrap_or_default(),
            NodeData::Sequence { items, .. } => {
                Value::Array(items.iter().map(|item| item.to_value(version)).collect())
            }
            NodeData::Mapping { entries, .. } => {
                let mut map = Map::with_capacity(entries.len());
                for entry in entries {
                    // The first of two equal keys counts; the second is an error elsewhere.
                    if !map.contains_key(&entry.key) {
                        map.insert(entry.key.clone(), entry.value.to_value(version));
                    }
                }
                Value::Object(map)
            }
        }
    }

    /// Moves every span towards the end of the file.
    pub(crate) fn map_spans(&mut self, map: &impl Fn(Span) -> Span) {
        self.span = map(self.span);
        match &mut self.data {
            NodeData::Scalar { .. } => {}
            NodeData::Sequence { items, .. } => {
                for item in items {
                    item.map_spans(map);
                }
            }
            NodeData::Mapping { entries, .. } => {
                for entry in entries {
                    entry.key_span = map(entry.key_span);
                    entry.value.map_spans(map);
                }
            }
        }
    }

    /// Bytes of all texts and keys.
    pub(crate) fn text_bytes(&self) -> usize {
        match &self.data {
            NodeData::Scalar { text, .. } => text.len(),
            NodeData::Sequence { items, .. } => items.iter().map(Self::text_bytes).sum(),
            NodeData::Mapping { entries, .. } => {
                entries.iter().map(|entry| entry.key.len() + entry.value.text_bytes()).sum()
            }
        }
    }

    /// Number of nodes, this one included.
    pub(crate) fn count(&self) -> usize {
        1 + match &self.data {
            NodeData::Scalar { .. } => 0,
            NodeData::Sequence { items, .. } => items.iter().map(Self::count).sum(),
            NodeData::Mapping { entries, .. } => {
                entries.iter().map(|entry| 1 + entry.value.count()).sum()
            }
        }
    }
}
