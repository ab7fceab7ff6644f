//! Defines [`FileDiff`], the lines that a write changes, short enough to review before consenting.

use std::time::Duration;

use savoir_lint::visible;
use similar::{ChangeTag, TextDiff};

/// Maximum number of lines that are shown; users do not read more before they agree.
const MAX_LINES: usize = 60;
/// Maximum length of a shown line. Longer lines are broken here and marked, because a terminal that
/// wraps a line would let the file's author imitate a separate line.
const MAX_CHARACTERS: usize = 72;
/// Unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 1;
/// Timeout for finding the shortest difference.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The added and removed lines, safe to print on a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Each line begins with `+`, `-` or a space, which `…` follows if the line continues the
    /// previous one.
    pub lines: Vec<String>,
    /// The number of lines that are not shown.
    pub more: usize,
}

impl FileDiff {
    /// Compares two texts.
    pub fn between(before: &str, after: &str) -> Self {
        let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
        let mut change = Self::default();
        for (at, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
            if at > 0 {
                change.push("  ⋮".to_owned());
            }
            for one in group.iter().flat_map(|part| diff.iter_changes(part)) {
                let sign = match one.tag() {
                    ChangeTag::Insert => '+',
                    ChangeTag::Delete => '-',
                    ChangeTag::Equal => ' ',
                };
                change.add(sign, one.value());
            }
        }
        change
    }

    fn add(&mut self, sign: char, line: &str) {
        let line = visible(line.strip_suffix('\n').unwrap_or(line)).into_owned();
        let mut rest = line.as_str();
        let mut mark = ' ';
        loop {
            let end = rest.char_indices().nth(MAX_CHARACTERS).map_or(rest.len(), |(at, _)| at);
            self.push(format!("{sign}{mark}{}", &rest[..end]));
            rest = &rest[end..];
            mark = '…';
            if rest.is_empty() {
                return;
            }
        }
    }

    fn push(&mut self, line: String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_shows_added_and_removed_lines() {
        let before = "a\nb\nc\nd\ne\nf\n";
        let change = FileDiff::between(before, "a\nB\nc\nd\ne\nf\ng\u{1b}[2J");
        assert_eq!(
            change.lines,
            ["  a", "- b", "+ B", "  c", "  ⋮", "  f", "+ g\\u{1b}[2J"],
            "{change:?}"
        );
        assert_eq!(change.more, 0);
        assert_eq!(FileDiff::between("", "x\r\n").lines, ["+ x\\r"]);
        assert_eq!(FileDiff::between("x", "x"), FileDiff::default());
    }

    #[test]
    fn long_diff_is_cut_with_a_note() {
        let change = FileDiff::between("", &"x\n".repeat(100));
        assert_eq!((change.lines.len(), change.more), (MAX_LINES, 40));
        let change = FileDiff::between("", &format!("{}- y", "é".repeat(MAX_CHARACTERS)));
        assert_eq!(change.lines[1], "+…- y", "no part of a line begins like another line");
    }
}
