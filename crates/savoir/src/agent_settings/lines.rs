//! Preserves line ends and byte order marks when an editor supports only one kind of them.

use similar::{ChangeTag, TextDiff};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text without byte order mark, with `\n` line ends.
pub(crate) fn with_plain_line_ends(text: &str) -> String {
    text.trim_start_matches(BYTE_ORDER_MARK).replace("\r\n", "\n")
}

/// The new text with the line ends and byte order mark of the old one. Unchanged lines keep their
/// bytes, and new lines end like the first line.
pub(crate) fn with_line_ends_of(old: &str, new: &str) -> String {
    let (own, lines): (String, Vec<&str>) =
        (with_plain_line_ends(old), old.split_inclusive('\n').collect());
    let is_windows = lines.first().is_some_and(|line| line.ends_with("\r\n"));
    let end = if is_windows { "\r\n" } else { "\n" };
    let mut text = String::with_capacity(new.len());
    if old.starts_with(BYTE_ORDER_MARK) {
        text.push(BYTE_ORDER_MARK);
    }
    for change in TextDiff::from_lines(own.as_str(), new).iter_all_changes() {
        let line = change.value();
        match (change.tag(), change.old_index()) {
            (ChangeTag::Equal, Some(at)) => {
                text.push_str(
                    lines.get(at).map_or(line, |line| line.trim_start_matches(BYTE_ORDER_MARK)),
                );
            }
            (ChangeTag::Insert, _) => text.push_str(&line.replace('\n', end)),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_lines_keep_their_bytes() {
        for (old, new, expected) in [
            ("a\r\nb\r\n", "a\nc\nb\n", "a\r\nc\r\nb\r\n"),
            ("a\nb\r\nc\n", "a\nb\nd\n", "a\nb\r\nd\n"),
            ("\u{feff}a\r\n", "a\nb\n", "\u{feff}a\r\nb\r\n"),
            ("a", "a\nb\n", "a\nb\n"),
            ("", "a\n", "a\n"),
        ] {
            assert_eq!(with_line_ends_of(old, new), expected, "{old:?}");
        }
    }
}
