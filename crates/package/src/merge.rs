//! Three-way merge of texts: the installed version, the version edited by the user, and the new
//! version.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The merged text, with conflict markers.
    pub text: String,
    /// The number of conflicts.
    pub conflicts: usize,
}

/// Merges line by line. `installed` is the common base of `mine` and `new`; `title` names the new
/// version in conflict markers.
pub fn merge(installed: &str, mine: &str, new: &str, title: &str) -> Merged {
    let base = lines(installed);
    let (mut mine, mut new) = (ChangedSide::new(&base, mine), ChangedSide::new(&base, new));
    let mut merged = Merged { text: String::new(), conflicts: 0 };
    let mut at = 0;
    while let Some(start) = mine.start().into_iter().chain(new.start()).min() {
        push(&mut merged.text, &base[at..start]);
        let mut end = start;
        loop {
            let reached = new.take(mine.take(end));
            if reached == end {
                break;
            }
            end = reached;
        }
        let was = &base[start..end];
        let (mine, new) = (mine.text(start, end), new.text(start, end));
        if mine == new || new == was {
            push(&mut merged.text, mine);
        } else if mine == was {
            push(&mut merged.text, new);
        } else {
            merged.conflicts += 1;
            push_conflict(&mut merged.text, mine, new, title);
        }
        at = end;
    }
    push(&mut merged.text, &base[at..]);
    merged
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn push(text: &mut String, lines: &[&str]) {
    text.extend(lines.iter().copied());
}

/// Writes both versions of a conflict with the markers that git uses.
fn push_conflict(text: &mut String, mine: &[&str], new: &[&str], title: &str) {
    for (head, lines) in [("<<<<<<< yours".to_owned(), mine), ("=======".to_owned(), new)] {
        end_line(text);
        text.push_str(&head);
        text.push('\n');
        push(text, lines);
    }
    end_line(text);
    text.extend([">>>>>>> ", title, "\n"]);
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// One side of the merge: the changes from the base.
struct ChangedSide<'a> {
    lines: Vec<&'a str>,
    /// Ranges of base lines, and of the lines that replace them.
    changes: Vec<(Range<usize>, Range<usize>)>,
    /// The number of changes that were taken, and how many of them were already returned by `text`.
    taken: usize,
    merged: usize,
}

impl<'a> ChangedSide<'a> {
    fn new(base: &[&str], text: &'a str) -> Self {
        let lines = lines(text);
        let ops = capture_diff_slices(Algorithm::Myers, base, &lines);
        let others = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
        let changes = others.map(|op| (op.old_range(), op.new_range())).collect();
        Self { lines, changes, taken: 0, merged: 0 }
    }

    /// Returns where the next change starts in the base.
    fn start(&self) -> Option<usize> {
        self.changes.get(self.taken).map(|(base, _)| base.start)
    }

    /// Takes the changes that overlap or touch the base lines up to `end`; returns where they end.
    fn take(&mut self, mut end: usize) -> usize {
        while let Some((base, _)) =
            self.changes.get(self.taken).filter(|(base, _)| base.start <= end)
        {
            end = end.max(base.end);
            self.taken += 1;
        }
        end
    }

    /// Returns the lines that replace those base lines, and drops the taken changes.
    fn text(&mut self, start: usize, end: usize) -> &[&'a str] {
        let before = self.changes[..self.merged].last();
        let from =
            start + before.map_or(0, |(_, side)| side.end) - before.map_or(0, |(base, _)| base.end);
        let last = self.changes[..self.taken].last();
        let to = end + last.map_or(0, |(_, side)| side.end) - last.map_or(0, |(base, _)| base.end);
        self.merged = self.taken;
        &self.lines[from..to]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(installed: &str, mine: &str, new: &str) -> (String, usize) {
        let Merged { text, conflicts } = merge(installed, mine, new, "1.1.0");
        (text, conflicts)
    }

    #[test]
    fn separate_changes_are_merged() {
        let (text, conflicts) = merged("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\nf\n");
        assert_eq!((text.as_str(), conflicts), ("A\nb\nc\nd\nE\nf\n", 0));
        let (text, conflicts) = merged("a\nb\nc\n", "a\nc\n", "x\na\nb\nc\n");
        assert_eq!((text.as_str(), conflicts), ("x\na\nc\n", 0));
        assert_eq!(merged("a\n", "b\n", "b\n"), ("b\n".to_owned(), 0), "the same change");
    }

    #[test]
    fn overlapping_changes_conflict() {
        let (text, conflicts) = merged("a\nb\nc\n", "a\nmine\nc\n", "a\nnew\nc\n");
        let marked = "a\n<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> 1.1.0\nc\n";
        assert_eq!((text.as_str(), conflicts), (marked, 1));
        let (text, conflicts) = merged("a", "b", "c");
        assert_eq!(
            (text.as_str(), conflicts),
            ("<<<<<<< yours\nb\n=======\nc\n>>>>>>> 1.1.0\n", 1)
        );
        assert_eq!(merged("", "a\n", "b\n").1, 1);
    }

    fn texts() -> impl Strategy<Value = String> {
        proptest::collection::vec("[abc]\n?", 0..12).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn single_sided_change_is_taken(base in texts(), side in texts()) {
            prop_assert_eq!(merged(&base, &side, &base), (side.clone(), 0));
            prop_assert_eq!(merged(&base, &base, &side), (side.clone(), 0));
            prop_assert_eq!(merged(&base, &side, &side), (side, 0));
        }

        #[test]
        fn no_line_is_lost(base in texts(), mine in texts(), new in texts()) {
            let (text, _) = merged(&base, &mine, &new);
            // Lines that both sides have and lines that one side added must be in the result.
            for line in mine.lines().filter(|line| !base.lines().any(|other| other == *line)) {
                prop_assert!(text.lines().any(|kept| kept == line), "{line:?} is gone from {text:?}");
            }
        }
    }
}
