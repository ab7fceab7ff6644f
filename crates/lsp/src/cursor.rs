//! Finds the field or value at the cursor in a frontmatter that is being typed.
//!
//! Such a frontmatter often does not parse, so this reads lines and indentation, not the tree.

use savoir_lint::Span;

use crate::schema::Step;

/// Where the cursor is in the frontmatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The map in which a key is typed, or the value that is typed.
    pub(crate) path: Vec<Step>,
    pub(crate) context: CursorContext,
    /// The word before the cursor.
    pub(crate) typed: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorContext {
    Key,
    Value,
    /// The first word of a list item: a value, or the first key of a map.
    Item,
}

/// A key or a dash on the lines above, with its column.
struct Level {
    column: usize,
    step: Step,
}

/// Reads the lines of `yaml`, a part of `text`, up to `offset`.
pub(crate) fn find(text: &str, yaml: Span, offset: usize) -> Option<Cursor> {
    if offset < yaml.start || offset > yaml.end {
        return None;
    }
    let before = Span::new(yaml.start, offset).slice(text);
    let mut levels: Vec<Level> = Vec::new();
    // The column of the key whose block text is being read.
    let mut block_text: Option<usize> = None;
    let mut start = yaml.start;
    for line in before.split_inclusive('\n') {
        let is_last = start + line.len() == offset && !line.ends_with('\n');
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start_matches(' ').len();
        let is_blank = content.trim().is_empty();
        if let Some(column) = block_text {
            if is_blank || indent > column {
                if is_last {
                    return None;
                }
                start += line.len();
                continue;
            }
            block_text = None;
        }
        if is_last {
            return Some(read_last(content, start, levels));
        }
        if !is_blank && !content.trim_start().starts_with('#') {
            let (column, rest) = read_dashes(content, indent, &mut levels);
            if let Some((key, value)) = split_key(rest) {
                push_key(&mut levels, column, key);
                let value = value.trim_start();
                if value.starts_with(['|', '>']) {
                    block_text = Some(column);
                }
            }
        }
        start += line.len();
    }
    // The cursor is at the start of a line.
    if block_text.is_some() { None } else { Some(read_last("", offset, Vec::new())) }
}

/// Reads the dashes of a line, and returns the column after them and the rest of the line.
fn read_dashes<'a>(content: &'a str, indent: usize, levels: &mut Vec<Level>) -> (usize, &'a str) {
    let mut column = indent;
    let mut rest = &content[indent..];
    while let Some(inner) =
        rest.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' '))
    {
        // A list may start in the same column as its key.
        levels.retain(|level| {
            level.column < column || level.column == column && level.step != Step::Item
        });
        levels.push(Level { column, step: Step::Item });
        let trimmed = inner.trim_start_matches(' ');
        column += rest.len() - trimmed.len();
        rest = trimmed;
    }
    (column, rest)
}

fn push_key(levels: &mut Vec<Level>, column: usize, key: &str) {
    levels.retain(|level| level.column < column);
    let key = key.trim().trim_matches(['"', '\'']).to_owned();
    levels.push(Level { column, step: Step::Key(key) });
}

fn split_key(rest: &str) -> Option<(&str, &str)> {
    if rest.starts_with(['[', '{']) {
        return None;
    }
    let at = rest.find(": ").or_else(|| rest.ends_with(':').then(|| rest.len() - 1))?;
    Some((&rest[..at], &rest[at + 1..]))
}

/// Reads the line of the cursor up to it.
fn read_last(content: &str, start: usize, mut levels: Vec<Level>) -> Cursor {
    let indent = content.len() - content.trim_start_matches(' ').len();
    let has_dash = content[indent..].starts_with('-');
    let (column, rest) = read_dashes(content, indent, &mut levels);
    let end = start + content.len();
    let context = match split_key(rest) {
        Some((key, value)) => {
            push_key(&mut levels, column, key);
            if value.trim_start().starts_with('[') {
                levels.push(Level { column: usize::MAX, step: Step::Item });
            }
            CursorContext::Value
        }
        None if has_dash => CursorContext::Item,
        None => {
            levels.retain(|level| level.column < column);
            CursorContext::Key
        }
    };
    let value = match (context, split_key(rest)) {
        (CursorContext::Value, Some((_, value))) => value,
        _ => rest,
    };
    let is_mark =
        |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '"' | '\'');
    let word = value.rfind(is_mark).map_or(value, |at| {
        let mark = value[at..].chars().next().map_or(1, char::len_utf8);
        &value[at + mark..]
    });
    let path = levels.into_iter().map(|level| level.step).collect();
    Cursor { path, context, typed: Span::new(end - word.len(), end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for the cursor `¦`: the path, the place, and the word before it.
    fn at(yaml: &str) -> Option<(String, CursorContext, String)> {
        let offset = yaml.find('¦')?;
        let text = yaml.replace('¦', "");
        let cursor = find(&text, Span::new(0, text.len()), offset)?;
        let step = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Item => "[]".to_owned(),
        };
        let path: Vec<String> = cursor.path.iter().map(step).collect();
        Some((path.join("."), cursor.context, cursor.typed.slice(&text).to_owned()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with an option")]
    fn found(
        path: &str,
        context: CursorContext,
        word: &str,
    ) -> Option<(String, CursorContext, String)> {
        Some((path.to_owned(), context, word.to_owned()))
    }

    #[test]
    fn keys_and_values_are_distinguished() {
        assert_eq!(at("na¦"), found("", CursorContext::Key, "na"));
        assert_eq!(at("name: x\n¦"), found("", CursorContext::Key, ""));
        assert_eq!(at("name: x\neff¦\nb: c\n"), found("", CursorContext::Key, "eff"));
        assert_eq!(at("effort: hi¦"), found("effort", CursorContext::Value, "hi"));
        assert_eq!(at("effort:¦"), found("effort", CursorContext::Value, ""));
        assert_eq!(
            at("metadata:\n  openclaw:\n    em¦"),
            found("metadata.openclaw", CursorContext::Key, "em")
        );
        assert_eq!(at("metadata:\n  a: 1\nna¦"), found("", CursorContext::Key, "na"));
    }

    #[test]
    fn lists_of_all_styles_are_read() {
        assert_eq!(
            at("allowed-tools: Read, Ba¦"),
            found("allowed-tools", CursorContext::Value, "Ba")
        );
        assert_eq!(at("tools: [Read, \"Ba¦"), found("tools.[]", CursorContext::Value, "Ba"));
        assert_eq!(at("tools:\n- Re¦"), found("tools.[]", CursorContext::Item, "Re"));
        assert_eq!(
            at("inputs:\n  - name: a\n    ty¦"),
            found("inputs.[]", CursorContext::Key, "ty")
        );
        assert_eq!(
            at("inputs:\n  - name: a\n  - ty¦"),
            found("inputs.[]", CursorContext::Item, "ty")
        );
        assert_eq!(
            at("inputs:\n- name: a\n  type: te¦"),
            found("inputs.[].type", CursorContext::Value, "te")
        );
    }

    #[test]
    fn block_texts_and_comments_have_no_keys() {
        assert_eq!(at("description: |\n  some te¦"), None);
        assert_eq!(at("description: >-\n  a: b\nna¦"), found("", CursorContext::Key, "na"));
        assert_eq!(at("# a:\nna¦"), found("", CursorContext::Key, "na"));
    }
}
