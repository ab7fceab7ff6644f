//! Reads single fields of a frontmatter as other agents do.

use savoir_skill::yaml::{Node, NodeData, Tree, YamlNoteKind, YamlVersion};
use serde_json::{Number, Value};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

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

/// The lines between the first line and the next one, if both are fences and differ.
pub(super) fn between_fences(text: &str, is_fence: impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = text.lines();
    lines.next().filter(|line| is_fence(line))?;
    let lines: Vec<&str> = lines.collect();
    let end = lines.iter().position(|line| is_fence(line)).filter(|end| *end > 0)?;
    Some(lines[..end].join("\n"))
}

/// The fields of valid YAML without notes that an agent refuses.
pub(super) fn strict(yaml: &str, refused: impl Fn(YamlNoteKind) -> bool) -> Option<Node> {
    let tree = Tree::parse(yaml).ok()?;
    if tree.notes.iter().any(|note| refused(note.kind)) {
        return None;
    }
    tree.root.filter(|root| root.entries().is_some())
}

/// Whether a name has only letters, digits and a few other characters.
pub(super) fn is_label(name: &str) -> bool {
    use GeneralCategoryGroup::{Letter, Mark, Number};
    let allowed = |c: char| {
        "_.:-".contains(c) || matches!(c.general_category_group(), Letter | Mark | Number)
    };
    !name.is_empty() && name.chars().all(allowed)
}
