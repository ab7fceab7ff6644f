//! Reads single fields of a frontmatter as other agents do.

use savoir_skill::yaml::{Node, NodeData, YamlVersion};
use serde_json::{Number, Value};

pub(super) const YAML_VERSION: YamlVersion = YamlVersion::V1_2;

/// The value of a key; the last one if the key appears twice.
pub(super) fn last<'a>(fields: &'a Node, key: &str) -> Option<&'a Node> {
    let entry = fields.entries()?.iter().rfind(|entry| entry.key == key)?;
    Some(&entry.value)
}

/// The text of a scalar as it is written; nothing if it is null.
pub(super) fn written_text(node: &Node) -> Option<&str> {
    node.text().filter(|_| !node.is_null(YAML_VERSION))
}

/// The text of a scalar as JavaScript prints its value; nothing if it is null, a list or a map.
pub(super) fn printed_text(node: &Node) -> Option<String> {
    let NodeData::Scalar { text, .. } = &node.data else { return None };
    match node.to_value(YAML_VERSION) {
        Value::Null => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(printed_number(&number)),
        _ => Some(text.clone()),
    }
}

/// A number as JavaScript prints it: `1` instead of `1.0`.
fn printed_number(number: &Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
