//! Shows hints in the text: what a skill costs in tokens, and where agents cut its description.

use lsp_types::{InlayHint, InlayHintKind, Label, Tooltip};
use savoir_lint::{Span, visible, words};
use savoir_skill::{check::CheckedSkill, tokens::estimate_tokens};

use crate::{ListedSkill, Listing, open_file::OpenFile, state::State};

pub(crate) fn of(state: &State, file: &OpenFile, shown: Span) -> Vec<InlayHint> {
    let Some(checked) = state.checked(file) else { return Vec::new() };
    let mut hints: Vec<(usize, InlayHint)> = description(file, &checked).into_iter().collect();
    hints.extend(body(file, &checked));
    hints.extend(cuts(state, file, &checked));
    let is_shown = |offset: usize| shown.start <= offset && offset <= shown.end;
    hints.retain(|(offset, _)| is_shown(*offset));
    hints.sort_by_key(|(offset, _)| *offset);
    hints.into_iter().map(|(_, hint)| hint).collect()
}

fn hint(file: &OpenFile, offset: usize, label: String, tooltip: &str) -> (usize, InlayHint) {
    let hint = InlayHint {
        position: file.position(offset),
        label: Label::String(label),
        kind: None::<InlayHintKind>,
        text_edits: None,
        tooltip: Some(Tooltip::String(tooltip.to_owned())),
        padding_left: Some(true),
        padding_right: Some(true),
        data: None,
    };
    (offset, hint)
}

/// The hint with the tokens of the description, which are part of every session.
fn description(file: &OpenFile, checked: &CheckedSkill) -> Option<(usize, InlayHint)> {
    let entries = checked.reading.document.entries();
    let entry = entries.iter().find(|entry| entry.key == "description")?;
    let tokens = estimate_tokens(entry.value.text()?);
    let label = format!("about {tokens} tokens in every session");
    let tooltip = "Agents show the description of every installed skill to their model.";
    // After the key, because the end of a long value may be out of sight.
    let after_colon = entry.key_span.end + 1;
    let at =
        if file.text().is_char_boundary(after_colon) { after_colon } else { entry.key_span.end };
    Some(hint(file, at, label, tooltip))
}

/// The hint with the tokens of the body, which a session uses when it loads the skill.
fn body(file: &OpenFile, checked: &CheckedSkill) -> Option<(usize, InlayHint)> {
    let document = &checked.reading.document;
    let close = document.layout().closed_block()?.close?;
    let tokens = estimate_tokens(document.body());
    let label = format!("about {tokens} tokens when used");
    Some(hint(file, close.end, label, "The model reads the text below when it uses the skill."))
}

/// Where agents cut the description. Agents that cut at the same place share a hint.
fn cuts(state: &State, file: &OpenFile, checked: &CheckedSkill) -> Vec<(usize, InlayHint)> {
    let Some(path) = file.path.as_deref() else { return Vec::new() };
    let Some(folder) = path.parent() else { return Vec::new() };
    let Some(node) = checked.reading.document.field("description") else { return Vec::new() };
    let Some(text) = node.text() else { return Vec::new() };
    let listed = ListedSkill { folder, path, text: file.text() };
    let mut places: Vec<(usize, Vec<String>)> = Vec::new();
    for listing in state.environment.listings(&listed) {
        let Some(offset) = cut_at(&listing, text, node.span, file.text()) else { continue };
        match places.iter_mut().find(|(known, _)| *known == offset) {
            Some((_, agents)) => agents.push(listing.agent),
            None => places.push((offset, vec![listing.agent])),
        }
    }
    let hints = places.into_iter().map(|(offset, agents)| {
        let agents = visible(&words::and(&agents)).into_owned();
        let tooltip = "The model of this agent does not see the rest of the description.";
        hint(file, offset, format!("⟨{agents} cuts here⟩"), tooltip)
    });
    hints.collect()
}

/// The offset in the file of the first character that an agent does not show.
fn cut_at(listing: &Listing, text: &str, span: Span, source: &str) -> Option<usize> {
    if !listing.is_cut || listing.hidden.is_some() {
        return None;
    }
    let shown = listing.description.trim_end_matches(['…', '.']).trim_end();
    // Agents escape and trim the description, so only the common prefix is counted.
    let same = shown.chars().zip(text.trim_start().chars()).take_while(|(a, b)| a == b).count();
    (same > 0).then(|| offset_of_character(span.slice(source), same) + span.start)
}

/// Converts an index in the text of a value to an offset in its source, which also contains quotes,
/// escapes and the indentation of folded lines.
fn offset_of_character(written: &str, count: usize) -> usize {
    let mut seen = 0;
    let mut in_blank = true;
    let is_quoted = written.starts_with(['"', '\'']);
    let skip = if written.starts_with(['|', '>']) {
        written.find('\n').map_or(written.len(), |end| end + 1)
    } else {
        usize::from(is_quoted)
    };
    let mut characters = written[skip..].char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        // The indentation of a folded line belongs to the blank before it.
        if seen >= count && !(in_blank && character.is_whitespace()) {
            return skip + at;
        }
        if character == '\\' && written.starts_with('"') {
            characters.next();
            seen += 1;
            in_blank = false;
        } else if character.is_whitespace() {
            // A line end and the indentation after it are one blank.
            seen += usize::from(!in_blank);
            in_blank = true;
        } else {
            seen += 1;
            in_blank = false;
        }
    }
    written.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_found_in_every_style() {
        for (written, rest) in [
            ("one two three", "three"),
            ("\"one two three\"", "three\""),
            ("'one two three'", "three'"),
            (">\n  one\n  two\n  three", "three"),
            ("\"one \\u0074wo three\"", ""),
        ] {
            let at = offset_of_character(written, "one two ".chars().count());
            assert!(rest.is_empty() || written[at..].starts_with(rest), "{written:?}: {at}");
        }
    }

    #[test]
    fn a_listing_that_is_whole_has_no_cut() {
        let whole =
            Listing { agent: "A".into(), description: "one".into(), is_cut: false, hidden: None };
        assert_eq!(cut_at(&whole, "one", Span::new(0, 3), "one"), None);
        let cut = Listing { description: "one t…".into(), is_cut: true, ..whole };
        assert_eq!(cut_at(&cut, "one two", Span::new(0, 7), "one two"), Some(5));
    }
}
