//! Trigger sets: queries, and whether the skill should be used for them.

use savoir_lint::Diagnostic;

use super::{Format, case_reader::Reader};
use crate::json::{Node, Value};

/// A list of `{query, should_trigger}`.
pub(super) const FORMAT: Format = Format {
    id: "triggers",
    detect: |root| {
        let is_trigger = |item: &Node| item.get("should_trigger").is_some();
        list(root).is_some_and(|items| items.first().is_some_and(is_trigger))
    },
    read,
};

/// An object with two lists of queries.
pub(super) const GROUPED_FORMAT: Format = Format {
    id: "trigger-groups",
    detect: |root| root.get("should_trigger").is_some() && root.get("should_not_trigger").is_some(),
    read: |root, reader| {
        for (key, should) in [("should_trigger", true), ("should_not_trigger", false)] {
            if let Some(group) = root.get(key) {
                read_group(group, should, reader);
            }
        }
    },
};

fn list(root: &Node) -> Option<&[Node]> {
    let inner = ["queries", "triggers", "items"].iter().find_map(|key| root.get(key));
    inner.unwrap_or(root).items()
}

fn read(root: &Node, reader: &mut Reader<'_>) {
    for item in list(root).unwrap_or_default() {
        let query = ["query", "prompt"].iter().find_map(|key| item.get(key));
        let should = item.get("should_trigger");
        match (query.map(|node| (node, node.text())), should.map(|node| (node, &node.value))) {
            (Some((_, Some(query))), Some((_, Value::Bool(should)))) => {
                reader.trigger(query, *should, item.span);
            }
            (Some((node, None)), _) => reader.wrong_type(node, "query", "a string"),
            (None, _) => reader.missing(item, "query"),
            (_, Some((node, _))) => reader.wrong_type(node, "should_trigger", "true or false"),
            (_, None) => reader.missing(item, "should_trigger"),
        }
    }
}

/// A list of queries, or several lists with names, such as a part for training and one for tests.
fn read_group(group: &Node, should: bool, reader: &mut Reader<'_>) {
    match &group.value {
        Value::List(items) => {
            for item in items {
                match item.text().or_else(|| item.get("query").and_then(Node::text)) {
                    Some(query) => reader.trigger(query, should, item.span),
                    None => reader.wrong_type(item, "query", "a string"),
                }
            }
        }
        Value::Object(members) => {
            for member in members {
                read_group(&member.value, should, reader);
            }
        }
        _ => reader.add(
            Diagnostic::error("eval-wrong-type", group.span, "it is not a list of queries")
                .help("write a list of strings"),
        ),
    }
}
