//! Finds unresolved merge conflicts.

use savoir_lint::{Diagnostic, Span};

use crate::check::{Context, rule::rule};

rule! {
    /// The file has an unresolved merge conflict.
    ///
    /// ## Why
    ///
    /// Git and `savoir update` mark the lines that two sides changed. A model reads the markers and
    /// both versions as one text, and gets instructions that contradict each other.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// <<<<<<< HEAD
    /// Say hello.
    /// =======
    /// Say good morning.
    /// >>>>>>> main
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say good morning.
    /// ````
    CONFLICT_MARKERS = "conflict-markers", Error, run conflict_markers
}

/// How the lines begin that mark a conflict, in order.
const OPENING_MARKER: &str = "<<<<<<< ";
const MIDDLE_MARKER: &str = "=======";
const CLOSING_MARKER: &str = ">>>>>>> ";

fn conflict_markers(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let fences = &document.outline().fences;
    let is_fenced = |at: usize| {
        let before = fences.partition_point(|fence| fence.whole.start <= at);
        before > 0 && fences[before - 1].whole.contains(at)
    };
    // The first line of a conflict, and whether its middle was seen.
    let mut open: Option<(Span, bool)> = None;
    let mut at = 0;
    for line in document.text().split_inclusive('\n') {
        let text = line.trim_end();
        let span = Span::new(at, at + text.len());
        at += line.len();
        if !is_marker(line) || is_fenced(span.start) {
            continue;
        }
        open = match open {
            _ if line.starts_with(OPENING_MARKER) => Some((span, false)),
            Some((first, _)) if text == MIDDLE_MARKER => Some((first, true)),
            Some((first, true)) if line.starts_with(CLOSING_MARKER) => {
                let message = "a merge conflict is not resolved";
                found.push(
                    Diagnostic::error(CONFLICT_MARKERS.code, first, message)
                        .help("keep one of the two versions, and remove the three marker lines"),
                );
                None
            }
            open => open,
        };
    }
}

fn is_marker(line: &str) -> bool {
    [OPENING_MARKER, MIDDLE_MARKER, CLOSING_MARKER].iter().any(|marker| line.starts_with(marker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, skill};

    fn count(body: &str) -> usize {
        find(CONFLICT_MARKERS.code, &skill(body)).len()
    }

    #[test]
    fn each_conflict_is_found_once() {
        let conflict = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n";
        assert_eq!(count(conflict), 1);
        assert_eq!(count(&conflict.replace('\n', "\r\n")), 1);
        assert_eq!(count(&format!("{conflict}text\n{conflict}")), 2);
        assert_eq!(count("<<<<<<< a\na\n||||||| base\nx\n=======\nb\n>>>>>>> b\n"), 1);
        let text = format!("---\nname: demo\n{conflict}---\nbody\n");
        assert_eq!(find(CONFLICT_MARKERS.code, &text).len(), 1, "in the frontmatter, too");
    }

    #[test]
    fn similar_text_is_not_reported() {
        assert_eq!(count("Title\n=======\n\ntext\n"), 0);
        assert_eq!(count("<<<<<<< HEAD\na\n>>>>>>> main\n=======\n"), 0, "not in order");
        assert_eq!(count("a\n=======\nb\n>>>>>>> main\n"), 0);
        assert_eq!(count("text <<<<<<< HEAD\n=======\n>>>>>>> main\n"), 0);
        assert_eq!(count("```text\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n```\n"), 0);
    }
}
