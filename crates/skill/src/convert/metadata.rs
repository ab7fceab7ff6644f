//! Adds entries to `metadata`, the field that every format allows to extend.

use serde_json::Value;

use super::{
    field_lines::{FieldLines, entry_text, fenced, same},
    field_mapper::put,
    stash::{Stash, is_own},
};
use crate::yaml::{Entry, Node, YamlVersion, write::write_entry};

/// Paths below `metadata` and their values.
pub(super) type Additions<'a> = [(&'a str, &'a Value)];

/// Returns the lines of `metadata` with more entries appended. Returns `None` if it is not in block
/// style or already has an entry of the same name.
pub(super) fn append_entries(
    source_lines: &FieldLines,
    additions: &Additions<'_>,
    stash: Option<&Stash>,
    newline: &str,
) -> Option<String> {
    let document = fenced(&source_lines.text);
    let text = document.text();
    let metadata =
        document.field("metadata").filter(|node| !node.is_flow() && node.tag.is_none())?;
    let entries = metadata.entries()?;
    let (first, last) = (entries.first()?, entries.last()?);
    let line = text.get(..first.key_span.start)?.rfind('\n')? + 1;
    let indent = first.key_span.start - line;
    let added = group_by_first_key(additions);
    let clash =
        |entry: &Entry| is_own(&entry.key) || added.iter().any(|(key, _)| *key == entry.key);
    if !text.get(line..first.key_span.start)?.bytes().all(|byte| byte == b' ')
        || entries.iter().any(clash)
    {
        return None;
    }
    let mut lines: String =
        added.iter().map(|(key, value)| write_entry(key, value, indent)).collect();
    lines.extend(stash.map(|stash| stash.lines(indent)));
    let at = end_of_entry(last, text)?;
    let block = document.layout().closed_block()?.yaml;
    let result = format!(
        "{}{}{}",
        text.get(block.start..at)?,
        lines.replace('\n', newline),
        text.get(at..block.end)?
    );
    let read = FieldLines::read(&result)?;
    let now = read.value.entries()?;
    let is_unchanged =
        entries.iter().zip(now).all(|(a, b)| a.key == b.key && same(&a.value, &b.value));
    (is_unchanged && now.len() > entries.len()).then_some(result)
}

/// Returns the start of the line after an entry.
fn end_of_entry(entry: &Entry, text: &str) -> Option<usize> {
    let end = leaf_end(&entry.value).unwrap_or(entry.key_span.end);
    if text.get(..end)?.ends_with('\n') {
        return Some(end);
    }
    Some(end + text.get(end..)?.find('\n')? + 1)
}

/// Returns the end of the last scalar of a value; `None` if the value has no bytes.
fn leaf_end(node: &Node) -> Option<usize> {
    if !node.is_flow()
        && let Some(last) = node.entries().and_then(<[Entry]>::last)
    {
        return Some(leaf_end(&last.value).unwrap_or(last.key_span.end));
    }
    if !node.is_flow()
        && let Some(last) = node.items().and_then(<[Node]>::last)
    {
        return leaf_end(last).or(Some(node.span.end));
    }
    (!node.span.is_empty()).then_some(node.span.end)
}

/// Formats `metadata` again, with its values and the additions.
pub(super) fn rewrite(
    source_lines: Option<&FieldLines>,
    additions: &Additions<'_>,
    stash: Option<&Stash>,
) -> String {
    let mut added = group_by_first_key(additions);
    let mut lines = String::new();
    for entry in
        source_lines.and_then(|source_lines| source_lines.value.entries()).unwrap_or_default()
    {
        if is_own(&entry.key) {
            continue;
        }
        let Some(index) = added.iter().position(|(key, _)| *key == entry.key) else {
            lines.push_str(&entry_text(&entry.key, &entry.value, 2));
            continue;
        };
        let mut value = entry.value.to_value(YamlVersion::V1_2);
        for (path, new) in additions {
            match path.split_once('.') {
                Some((key, rest)) if key == entry.key => put(&mut value, rest, (*new).clone()),
                None if *path == entry.key => value = (*new).clone(),
                _ => {}
            }
        }
        lines.push_str(&write_entry(&entry.key, &value, 2));
        added.remove(index);
    }
    lines.extend(added.iter().map(|(key, value)| write_entry(key, value, 2)));
    lines.extend(stash.map(|stash| stash.lines(2)));
    if lines.is_empty() { lines } else { format!("metadata:\n{lines}") }
}

/// Groups the additions by their first key.
fn group_by_first_key<'a>(additions: &Additions<'a>) -> Vec<(&'a str, Value)> {
    let mut groups: Vec<(&str, Value)> = Vec::new();
    for (path, value) in additions {
        let (key, rest) = path.split_once('.').unwrap_or((path, ""));
        let index = groups.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            groups.push((key, Value::Null));
            groups.len() - 1
        });
        if let Some((_, group)) = groups.get_mut(index) {
            match rest {
                "" => *group = (*value).clone(),
                rest => put(group, rest, (*value).clone()),
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{convert::stash::StashedHead, dialect::Dialect};

    fn stash() -> Stash {
        let head = StashedHead::Lines { keep: String::new(), order: vec!["metadata".into()] };
        Stash { from: Dialect::GAIA, body: None, head }
    }

    #[test]
    fn entries_go_after_the_last_one() {
        let text = "metadata:\n    a:\n        b: \"# c\"\n    # end\n\n";
        let source_lines = FieldLines::read(text).unwrap();
        let version = json!("1.0");
        let appended =
            append_entries(&source_lines, &[("x.version", &version)], Some(&stash()), "\n")
                .unwrap();
        assert_eq!(
            appended,
            "metadata:\n    a:\n        b: \"# c\"\n    x:\n      version: '1.0'\n    \
             savoir-from: gaia\n    savoir-order: metadata\n    # end\n\n"
        );
    }

    #[test]
    fn a_block_is_needed_to_append() {
        for text in ["metadata: {a: 1}\n", "metadata: x\n", "metadata:\n", "metadata: {}\n"] {
            let source_lines = FieldLines::read(text).unwrap();
            assert_eq!(append_entries(&source_lines, &[], Some(&stash()), "\n"), None, "{text}");
        }
        let source_lines = FieldLines::read("metadata:\n  a: 1\n").unwrap();
        assert_eq!(append_entries(&source_lines, &[("a", &json!(2))], Some(&stash()), "\n"), None);
        assert_eq!(rewrite(Some(&source_lines), &[("a", &json!(2))], None), "metadata:\n  a: 2\n");
        assert_eq!(rewrite(None, &[], None), "");
    }
}
