//! Turns the text of a document into what its readers see: without character references, markup
//! between letters, and characters that only change how letters look.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// Returns the text as readers see it, with the same lines; `None` if its words are the same.
pub(super) fn visible_words(text: &str) -> Option<String> {
    if text.is_ascii() && !text.contains("&#") && !has_markup_in_word(text) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        is_code ^= is_fence;
        if is_code || is_fence {
            out.push_str(line);
        } else {
            out.push_str(&plain_letters(&without_markup(&decode_references(line))));
        }
    }
    (out != text && out.lines().count() == text.lines().count()).then_some(out)
}

/// Whether a text may have markup between two letters.
fn has_markup_in_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr3_iter(b'*', b'<', b'~', bytes).any(|at| {
        at > 0
            && bytes[at - 1].is_ascii_alphabetic()
            && (bytes[at] != b'<'
                || bytes
                    .get(at + 1)
                    .is_some_and(|next| b"/!".contains(next) || next.is_ascii_alphabetic()))
    })
}

/// Decodes `&#105;` and `&#x69;`, and references to characters without width.
fn decode_references(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let body = &rest[at + 1..];
        let end = body.bytes().take(32).position(|byte| byte == b';');
        if let Some((decoded, end)) =
            end.and_then(|end| Some((decode_reference(&body[..end])?, end)))
        {
            out.push_str(&decoded);
            rest = &body[end + 1..];
        } else {
            out.push('&');
            rest = body;
        }
    }
    out + rest
}

fn decode_reference(name: &str) -> Option<String> {
    if matches!(name, "shy" | "zwj" | "zwnj" | "ZeroWidthSpace" | "NoBreak") {
        return Some(String::new());
    }
    let digits = name.strip_prefix('#')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    };
    let c = char::from_u32(code.ok()?)?;
    // Lines stay as they are, so that findings have the right position.
    Some(if c.is_control() { " ".to_owned() } else { c.to_string() })
}

/// Removes emphasis, tags and comments that stand between two letters.
fn without_markup(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['*', '<', '~']) {
        let (before, markup) = rest.split_at(at);
        out.push_str(before);
        let length = markup_length(markup);
        let after = &markup[length..];
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        if !(is_letter(out.chars().next_back()) && is_letter(after.chars().next())) {
            out.push_str(&markup[..length]);
        }
        rest = after;
    }
    out + rest
}

/// The length of a run of markup; at least the first character.
fn markup_length(markup: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &markup[length..];
        length += match rest.bytes().next() {
            Some(b'*' | b'~') => 1,
            Some(b'<') => {
                let close = if rest.starts_with("<!--") { "-->" } else { ">" };
                let is_tag =
                    rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!".contains(c));
                match rest.find(close).filter(|_| is_tag) {
                    Some(end) => end + close.len(),
                    None if length == 0 => 1,
                    None => return length,
                }
            }
            _ => return length,
        };
    }
}

/// Replaces letters in other styles by plain ones, and removes marks on Latin letters that form no
/// letter of any language, and characters without width.
fn plain_letters(line: &str) -> String {
    if line.is_ascii() {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    for c in line.nfc() {
        let follows_latin = out.chars().next_back().is_some_and(|last| last.is_ascii_alphabetic());
        if is_combining_mark(c) && follows_latin || is_without_width(c) {
            continue;
        }
        match u32::from(c) {
            // Mathematical, enclosed and full-width letters.
            0x1d400..=0x1d7ff | 0x24b6..=0x24e9 | 0xff21..=0xff5a | 0x2100..=0x214f => {
                out.extend(std::iter::once(c).nfkd());
            }
            0x1f130..=0x1f149 => out.extend(char::from_u32(u32::from(c) - 0x1f130 + 0x41)),
            0x1f150..=0x1f169 => out.extend(char::from_u32(u32::from(c) - 0x1f150 + 0x41)),
            0x1f170..=0x1f189 => out.extend(char::from_u32(u32::from(c) - 0x1f170 + 0x41)),
            _ => out.push(c),
        }
    }
    out
}

fn is_without_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_plain_words() {
        for hidden in [
            "&#105;gnore",
            "&#x69;gn&#111;re",
            "ig<b></b>nore",
            "ig**no**re",
            "i<!-- x -->gno<span style=\"a\">re",
            "i\u{336}g\u{336}n\u{336}o\u{336}r\u{336}e",
            "\u{1d422}\u{1d420}\u{1d427}\u{1d428}\u{1d42b}\u{1d41e}",
            "ig\u{200b}n&shy;ore",
            "\u{24d8}\u{24d6}\u{24dd}\u{24de}\u{24e1}\u{24d4}",
        ] {
            assert_eq!(visible_words(hidden).as_deref(), Some("ignore"), "{hidden}");
        }
        for plain in
            ["a **bold** word", "x < y * z", "für é", "a &amp; b", "```\na*b*c\n```\n", "हिन्दी"]
        {
            assert_eq!(visible_words(plain), None, "{plain}");
        }
    }
}
