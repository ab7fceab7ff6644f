//! Rules about invisible characters.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    context::{Context, FindingDraft},
    fragment::{Language, TextFragment},
    rule::rule,
};

rule! {
    /// The text contains invisible words.
    ///
    /// ## Why
    ///
    /// Tag characters and long runs of zero-width characters can spell sentences that models read
    /// and people do not see.
    ///
    /// ## Fix
    ///
    /// Remove the characters, and write the text visibly.
    ///
    /// ## Bad
    ///
    /// ````markdown file=references/a.md escaped
    /// Be kind.\u{e0049}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=references/a.md escaped
    /// Be kind to the team \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}.
    /// ````
    HIDDEN_TEXT = "hidden-text", Critical, blocks true, run hidden_text
}

fn hidden_text(context: &mut Context<'_>) {
    context.for_each_fragment(&HIDDEN_TEXT, |fragment| {
        if fragment.text.is_ascii() || fragment.depth > 0 && fragment.hidden_in.is_none() {
            return Vec::new();
        }
        let mut found = find_invisible_runs(fragment);
        found.extend(find_interleaved(fragment));
        found
    });
}

/// Finds a word with zero-width characters between its letters, which a search does not find.
fn find_interleaved(fragment: &TextFragment<'_>) -> Option<(Span, FindingDraft)> {
    const MIN_INTERLEAVED: usize = 12;
    let (mut count, mut start, mut blank_before) = (0, 0, false);
    for (at, c) in fragment.text.char_indices() {
        let blank = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
        match (blank, blank_before) {
            (true, false) => {
                if count == 0 {
                    start = at;
                }
                count += 1;
            }
            (_, true) => {}
            // Two visible characters in a row end it.
            (false, false) => count = 0,
        }
        blank_before = blank;
        if count >= MIN_INTERLEAVED {
            let message = "there are zero-width characters between the letters of a text";
            let draft = FindingDraft::new(Severity::High, Confidence::High, message);
            return Some((Span::new(start, at + c.len_utf8()), draft));
        }
    }
    None
}

/// Finds runs of invisible characters.
fn find_invisible_runs(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let mut found = Vec::new();
    let mut tags = InvisibleRun::default();
    let mut blanks = InvisibleRun::default();
    for (at, c) in fragment.text.char_indices() {
        let tag = matches!(u32::from(c), 0xe0001..=0xe007f | 0xe0100..=0xe01ef);
        let blank = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' | '\u{3164}');
        tags.step(tag, at, c);
        blanks.step(blank, at, c);
        // Flags of regions are a black flag and six tags.
        if let Some((span, text)) = tags
            .ended
            .take()
            .filter(|(_, text)| text.chars().count() > 3 && !is_flag(&fragment.text, text, at))
        {
            let words: String = text
                .chars()
                .filter_map(|c| char::from_u32(u32::from(c).checked_sub(0xe0000)?))
                .filter(char::is_ascii_graphic)
                .take(60)
                .collect();
            let draft = FindingDraft::new(
                Severity::Critical,
                Confidence::High,
                format!("characters that cannot be seen spell `{words}`"),
            );
            found.push((span, draft));
        }
        if let Some((span, text)) = blanks.ended.take() {
            let count = text.chars().count();
            if count >= 16 {
                let message =
                    format!("{count} zero-width characters in a row, enough to hide a message");
                found
                    .push((span, FindingDraft::new(Severity::Critical, Confidence::High, message)));
            } else if count >= 4 {
                let message = format!("{count} zero-width characters in a row");
                found
                    .push((span, FindingDraft::new(Severity::Medium, Confidence::Medium, message)));
            }
        }
    }
    found
}

#[derive(Default)]
struct InvisibleRun {
    start: usize,
    text: String,
    ended: Option<(Span, String)>,
}

impl InvisibleRun {
    fn step(&mut self, inside: bool, at: usize, c: char) {
        if inside {
            if self.text.is_empty() {
                self.start = at;
            }
            self.text.push(c);
        } else if !self.text.is_empty() {
            self.ended = Some((Span::new(self.start, at), std::mem::take(&mut self.text)));
        }
    }
}

fn is_flag(text: &str, tags: &str, at: usize) -> bool {
    let before = text[..at - tags.len()].chars().next_back();
    // Those of England, Scotland, Wales and their like have five or six letters and an end.
    before == Some('\u{1f3f4}') && tags.ends_with('\u{e007f}') && tags.chars().count() <= 7
}

rule! {
    /// The text has characters that change the direction of writing.
    ///
    /// ## Why
    ///
    /// The displayed text differs from the real one: a comment can look like code, and code like a
    /// comment.
    ///
    /// ## Fix
    ///
    /// Remove the characters.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/run.py escaped
    /// level = "user\u{202e} \u{2066}# only admins\u{2069} \u{2066}"
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/run.py
    /// level = "user"  # only admins
    /// ````
    BIDI_OVERRIDE = "bidi-override", High, run bidi_override
}

fn bidi_override(context: &mut Context<'_>) {
    context.for_each_fragment(&BIDI_OVERRIDE, |fragment| {
        if fragment.text.is_ascii() || fragment.depth > 0 && fragment.hidden_in.is_none() {
            return Vec::new();
        }
        let turns = fragment
            .text
            .char_indices()
            .filter(|(_, c)| matches!(c, '\u{202d}' | '\u{202e}' | '\u{2066}'..='\u{2068}'));
        turns
            .take(5)
            .map(|(at, c)| {
                // Isolates keep names of other scripts in order; overrides have no such use.
                let over =
                    matches!(c, '\u{202d}' | '\u{202e}') || fragment.language != Language::Markdown;
                let severity = if over { Severity::High } else { Severity::Medium };
                let message =
                    format!("U+{:04X} turns the direction of the text around", u32::from(c));
                (
                    Span::new(at, at + c.len_utf8()),
                    FindingDraft::new(severity, Confidence::High, message),
                )
            })
            .collect()
    });
}
