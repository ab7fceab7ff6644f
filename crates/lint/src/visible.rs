//! Escapes characters that move the cursor, reverse the text or are invisible.

use std::{borrow::Cow, fmt::Write};

/// Returns whether a terminal would interpret, drop or hide the character instead of printing it.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' // soft hyphen
            | '\u{34f}' // grapheme joiner
            | '\u{61c}' // Arabic letter mark
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
            | '\u{17b4}' | '\u{17b5}' // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}' // Mongolian selectors
            | '\u{200b}'..='\u{200f}' // zero width spaces and joiners, direction marks
            | '\u{2028}'..='\u{202e}' // separators, embeddings and overrides of direction
            | '\u{2060}'..='\u{206f}' // invisible operators, isolates of direction
            | '\u{fe00}'..='\u{fe0e}' // variation selectors, but for the one that makes emoji
            | '\u{feff}' // byte order mark
            | '\u{fff0}'..='\u{fffb}' // annotation marks
            | '\u{1d173}'..='\u{1d17a}' // musical beams
            | '\u{e0000}'..='\u{e0fff}' // tags and more variation selectors
        )
}

/// Appends a character and escapes it if it is hidden, for example as `\r` or `\u{1b}`.
pub(crate) fn push_visible(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_hidden(character) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        }
        _ => out.push(character),
    }
}

/// Escapes all hidden characters, including line ends and tabs, so that the result is one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        push_visible(&mut result, character);
    }
    Cow::Owned(result)
}

/// Escapes all hidden characters except line ends and tabs.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| is_hidden(character) && !matches!(character, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            push_visible(&mut result, character);
        } else {
            result.push(character);
        }
    }
    Cow::Owned(result)
}

/// Escapes the hidden characters in the strings of a JSON document, which keeps its meaning.
///
/// ```
/// assert_eq!(savoir_lint::visible_json("[\n\"a\u{202e}b\"]"), "[\n\"a\\u202eb\"]");
/// ```
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // Outside of strings there are only line ends and blanks.
    let is_hidden = |character: char| is_hidden(character) && character != '\n';
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut result = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(result, "\\u{unit:04x}");
            }
        } else {
            result.push(character);
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning() {
        let value =
            serde_json::json!({"a\u{9b}": ["x\u{202e}y", "\u{e0041}", "line\nend", "plain"]});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let escaped = visible_json(&text);
        assert!(!escaped.contains(|character| is_hidden(character) && character != '\n'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn visible_characters_are_unchanged() {
        for text in ["", "plain", "Grüße, 世界 ☂\u{fe0f}", "e\u{301}"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\u{1b}[31mb\u{7}"), "a\\u{1b}[31mb\\u{7}");
        assert_eq!(visible("a\r\n\tb\u{9b}\u{85}"), "a\\r\\n\\tb\\u{9b}\\u{85}");
    }

    #[test]
    fn line_breaks_can_be_kept() {
        assert_eq!(harmless("a\n\tb"), "a\n\tb");
        assert_eq!(harmless("a\n\u{202e}b\r\u{200b}"), "a\n\\u{202e}b\\r\\u{200b}");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(visible("\u{202e}evil\u{2069}"), "\\u{202e}evil\\u{2069}");
        assert_eq!(visible("a\u{200b}b\u{feff}\u{e0041}"), "a\\u{200b}b\\u{feff}\\u{e0041}");
    }
}
