//! Splits frontmatter that is not valid YAML into lines and keys.

use savoir_lint::Span;
use serde_json::{Map, Value};

use crate::{frontmatter::line_at, yaml::Tree};

/// One line of YAML.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Without its line end.
    pub(super) span: Span,
    /// Start of the next line.
    pub(super) next: usize,
    /// Number of leading blanks, tabs included.
    pub(super) indent: usize,
    pub(super) is_blank: bool,
}

/// The key and the value of a line `key: value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyValue {
    pub(super) key: Span,
    /// From the first character of the value to the end of the line; empty when nothing follows.
    pub(super) value: Span,
}

pub(super) fn split(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (span, next) = line_at(text, at);
        let content = span.slice(text);
        let indent = content.len() - content.trim_start_matches([' ', '\t']).len();
        lines.push(Line { span, next, indent, is_blank: content.trim().is_empty() });
        at = next;
    }
    lines
}

impl Line {
    pub(super) fn content(self, text: &str) -> &str {
        Span::new(self.span.start + self.indent, self.span.end).slice(text)
    }

    pub(super) fn is_item(self, text: &str) -> bool {
        let content = self.content(text);
        content == "-" || content.starts_with("- ")
    }

    /// Reads `key: value`, after `- ` too.
    pub(super) fn key_value(self, text: &str) -> Option<KeyValue> {
        let mut start = self.span.start + self.indent;
        if self.is_item(text) {
            let after = self.content(text)[1..].trim_start_matches(' ');
            start = self.span.end - after.len();
        }
        key_value_at(text, start, self.span.end)
    }
}

fn key_value_at(text: &str, start: usize, end: usize) -> Option<KeyValue> {
    let content = text.get(start..end)?;
    let length = match content.as_bytes().first()? {
        quote @ (b'"' | b'\'') => 2 + content[1..].find(char::from(*quote))?,
        _ => content.find(':')?,
    };
    let rest = content.get(length..)?.strip_prefix(':')?;
    let key = &content[..length];
    let quoted = key.starts_with(['"', '\'']);
    if !quoted && !is_key(key) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let value = rest.trim_start();
    let value = Span::new(end - value.len(), end - (value.len() - value.trim_end().len()));
    Some(KeyValue { key: Span::new(start, start + length), value })
}

/// Words that people use as keys. A sentence is not one.
pub(super) fn is_key(key: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '$');
    !key.is_empty() && key.chars().all(word)
}

/// Returns the keys of all top-level lines.
pub(super) fn top_level_keys(text: &str) -> Vec<&str> {
    let entries = split(text).into_iter().filter(|line| line.indent == 0 && !line.is_item(text));
    entries
        .filter_map(|line| Some(line.key_value(text)?.key.slice(text).trim_matches(['"', '\''])))
        .collect()
}

/// Whether a repair lost a key of the broken text.
pub(super) fn has_lost_key(original: &str, tree: &Tree) -> bool {
    let Some(root) = &tree.root else { return true };
    top_level_keys(original).into_iter().any(|key| root.get(key).is_none())
}

/// Reads `name` and `description` if each is complete on one line. This is the last resort for a
/// frontmatter that cannot be parsed or repaired; all other keys are skipped.
pub(crate) fn read_name_and_description(text: &str) -> Map<String, Value> {
    let mut found = Map::new();
    let lines = split(text);
    for (index, line) in lines.iter().enumerate() {
        let Some(pair) = line.key_value(text).filter(|_| line.indent == 0 && !line.is_item(text))
        else {
            continue;
        };
        let key = pair.key.slice(text);
        let continued = lines.get(index + 1).is_some_and(|next| next.indent > 0 && !next.is_blank);
        let value = pair.value.slice(text);
        let whole = !value.is_empty() && !continued && !value.starts_with(['|', '>', '[', '{']);
        if matches!(key, "name" | "description") && whole && !found.contains_key(key) {
            found.insert(key.to_owned(), Value::String(unquote(value).to_owned()));
        }
    }
    found
}

fn unquote(value: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: &str) -> Option<(&str, &str)> {
        let pair = split(line).first()?.key_value(line)?;
        Some((pair.key.slice(line), pair.value.slice(line)))
    }

    #[test]
    fn keys_are_words_before_a_colon() {
        assert_eq!(key("name: x \n"), Some(("name", "x")));
        assert_eq!(key("  - a-b:\n"), Some(("a-b", "")));
        assert_eq!(key("\"@x/y\": 1"), Some(("\"@x/y\"", "1")));
        assert_eq!(key("http://x"), None);
        assert_eq!(key("Use this: now"), None);
        assert_eq!(key("no colon"), None);
    }

    #[test]
    fn only_complete_values_are_read_from_lines() {
        let read = read_name_and_description("name: 'a'\ndescription: >\n  folded\nx: @\n");
        assert_eq!(Value::Object(read), serde_json::json!({"name": "a"}));
    }
}
