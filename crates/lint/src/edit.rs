//! Applies edits to a text, and maps offsets in the edited text back to the original.

use crate::{Edit, Span};

/// Applies edits to a text. An edit that overlaps an earlier one is left out.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    EditedText::new(text, edits).text
}

/// A text after edits, with a map from its offsets to the offsets of the original.
#[derive(Debug, Clone)]
pub struct EditedText {
    pub text: String,
    /// The applied edits in order, each with the offset in the new text where it begins.
    applied_edits: Vec<(usize, Edit)>,
}

impl EditedText {
    pub fn new(text: &str, edits: &[Edit]) -> Self {
        let mut sorted: Vec<&Edit> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut result = String::with_capacity(text.len() + 64);
        let mut applied_edits = Vec::with_capacity(sorted.len());
        let mut at = 0;
        for edit in sorted {
            let fits = edit.span.start >= at
                && edit.span.end >= edit.span.start
                && text.is_char_boundary(edit.span.start)
                && text.is_char_boundary(edit.span.end)
                && edit.span.end <= text.len();
            if !fits {
                continue;
            }
            result.push_str(&text[at..edit.span.start]);
            applied_edits.push((result.len(), edit.clone()));
            result.push_str(&edit.text);
            at = edit.span.end;
        }
        result.push_str(&text[at..]);
        Self { text: result, applied_edits }
    }

    /// Returns the original offset of an offset in the new text. Inserted text maps to the place
    /// where it was inserted.
    pub fn original_offset(&self, at: usize) -> usize {
        let mut removed = 0usize;
        let mut added = 0usize;
        for (start, edit) in &self.applied_edits {
            if at < *start {
                break;
            }
            if at < start + edit.text.len() {
                // Inside of replaced text there is no exact offset, so the nearest one in the old
                // text is returned.
                return (edit.span.start + (at - start)).min(edit.span.end);
            }
            removed += edit.span.len();
            added += edit.text.len();
        }
        (at + removed).saturating_sub(added)
    }

    /// Returns whether a span of the new text overlaps text that an edit inserted.
    pub fn overlaps_edit(&self, span: Span) -> bool {
        self.applied_edits.iter().any(|(start, edit)| {
            let end = start + edit.text.len();
            span.start < end && *start < span.end
        })
    }

    pub fn original_span(&self, span: Span) -> Span {
        let start = self.original_offset(span.start);
        let end = if span.is_empty() { start } else { self.original_end_offset(span.end) };
        Span::new(start, end.max(start))
    }

    /// Returns the original offset of the end of a span, without text that was deleted right after
    /// it.
    fn original_end_offset(&self, at: usize) -> usize {
        let mut removed = 0usize;
        let mut added = 0usize;
        for (start, edit) in &self.applied_edits {
            if at <= *start {
                break;
            }
            if at <= start + edit.text.len() {
                return edit.span.end;
            }
            removed += edit.span.len();
            added += edit.text.len();
        }
        (at + removed).saturating_sub(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_in_order_and_skips_overlapping_edits() {
        let edits = [
            Edit::replace(Span::new(4, 7), "X"),
            Edit::insert(0, "<"),
            Edit::delete(Span::new(5, 6)),
        ];
        assert_eq!(apply("abc def", &edits), "<abc X");
    }

    #[test]
    fn maps_spans_back_to_the_original() {
        let applied =
            EditedText::new("abc def ghi", &[Edit::insert(4, "\""), Edit::insert(7, "\"")]);
        assert_eq!(applied.text, "abc \"def\" ghi");
        assert_eq!(applied.original_offset(5), 4);
        assert_eq!(applied.original_offset(10), 8);
        assert_eq!(applied.original_span(Span::new(5, 8)), Span::new(4, 7));
    }

    #[test]
    fn text_deleted_after_a_span_is_not_part_of_it() {
        let applied = EditedText::new("ab cd", &[Edit::delete(Span::new(2, 5))]);
        assert_eq!(applied.original_span(Span::new(0, 2)), Span::new(0, 2));
        assert_eq!(applied.original_offset(2), 5);
    }

    #[test]
    fn never_splits_a_character() {
        assert_eq!(apply("é", &[Edit::insert(1, "x")]), "é");
    }
}
