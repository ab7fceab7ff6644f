//! Formats a file by applying the safe fixes as small edits, so that other text does not move.

use lsp_types::TextEdit;
use savoir_lint::{Edit, Safety, Span};
use savoir_skill::{check, limits::MAX_FILE_BYTES};
use similar::{DiffOp, TextDiff};

use crate::{open_file::OpenFile, state::State};

/// The edits of all safe fixes.
pub(crate) fn edits(state: &State, file: &OpenFile) -> Vec<TextEdit> {
    let Some(fixed) = fixed(state, file) else { return Vec::new() };
    differences(file.text(), &fixed).iter().map(|edit| file.text_edit(edit)).collect()
}

/// The text after all safe fixes, if they change it.
fn fixed(state: &State, file: &OpenFile) -> Option<String> {
    if !file.is_skill() || file.text().len() > MAX_FILE_BYTES {
        return None;
    }
    let settings = state.settings(file.path.as_deref());
    let folder = file.folder();
    let fixed = check::fix(file.text(), folder.as_deref(), &settings.options, Safety::Safe);
    (fixed.text != file.text()).then_some(fixed.text)
}

/// Edits of whole lines, each shortened to the characters that differ.
pub(crate) fn differences(old: &str, new: &str) -> Vec<Edit> {
    let start_of = |lines: &[&str]| {
        let mut starts = vec![0];
        for line in lines {
            starts.push(starts.last().copied().unwrap_or(0) + line.len());
        }
        starts
    };
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::from_slices(&old_lines, &new_lines);
    let (old_starts, new_starts) = (start_of(&old_lines), start_of(&new_lines));
    let offset = |starts: &[usize], line: usize| starts.get(line).copied();
    let mut edits = Vec::new();
    for op in diff.ops() {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old_range, new_range) = (op.old_range(), op.new_range());
        let ends = (
            offset(&old_starts, old_range.start),
            offset(&old_starts, old_range.end),
            offset(&new_starts, new_range.start),
            offset(&new_starts, new_range.end),
        );
        let (Some(a), Some(b), Some(c), Some(d)) = ends else {
            return vec![shortened(old, Span::new(0, old.len()), new)];
        };
        edits.push(shortened(old, Span::new(a, b), &new[c..d]));
    }
    let result = savoir_lint::edit::apply(old, &edits);
    if result == new { edits } else { vec![shortened(old, Span::new(0, old.len()), new)] }
}

/// Shortens an edit to the characters that change.
fn shortened(text: &str, span: Span, new: &str) -> Edit {
    let old = span.slice(text);
    let same = |mut pairs: Box<dyn Iterator<Item = (char, char)> + '_>| {
        let mut bytes = 0;
        while let Some((a, b)) = pairs.next()
            && a == b
        {
            bytes += a.len_utf8();
        }
        bytes
    };
    let start = same(Box::new(old.chars().zip(new.chars())));
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = same(Box::new(old_rest.chars().rev().zip(new_rest.chars().rev())));
    let mut change = Span::new(span.start + start, span.end - end);
    let mut replacement = &new_rest[..new_rest.len() - end];
    // A position between the two bytes of a line end does not exist in the protocol.
    if splits_line_end(text, change.start) || splits_line_end(text, change.end) {
        change = span;
        replacement = new;
    }
    Edit::replace(change, replacement)
}

fn splits_line_end(text: &str, at: usize) -> bool {
    text[..at].ends_with('\r') && text[at..].starts_with('\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_differs_is_replaced() {
        let edits = differences("a\nb x: y\nc\n", "a\nb \"x: y\"\nc\n");
        let texts: Vec<_> =
            edits.iter().map(|edit| (edit.span.start, edit.text.as_str())).collect();
        assert_eq!(texts, [(4, "\"x: y\"")]);
    }

    proptest! {
        #[test]
        fn edits_give_the_new_text(
            old in "[ab\n\ré ]{0,40}",
            new in "[ab\n\ré ]{0,40}",
        ) {
            prop_assert_eq!(savoir_lint::edit::apply(&old, &differences(&old, &new)), new);
        }
    }
}
