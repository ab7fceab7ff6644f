//! Estimates how deep a script nests, before a recursive parser reads it.
//!
//! The parser has no limit for recursion. This module counts everything that can make the parser
//! recurse: open brackets, and operators since the end of the last statement.

use crate::collect::ReadError;

/// Maximum nesting that is parsed; real programs stay below a hundred.
const MAX_BRACKET_DEPTH: usize = 2_000;

/// Maximum length of a text that is parsed; longer texts are not written by people.
const MAX_SCRIPT_BYTES: usize = 1024 * 1024;

/// Rejects texts that could nest too deeply.
pub(super) fn check(text: &str) -> Result<(), ReadError> {
    if text.len() > MAX_SCRIPT_BYTES {
        return Err(ReadError::limit("the file is too large to be read as a program"));
    }
    let (mut open, mut chain) = (0_usize, 0_usize);
    let mut deepest = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // Strings do not nest, and long ones are data.
            quote @ (b'"' | b'\'') => {
                let line = &bytes[at + 1..];
                let end = line.iter().position(|byte| *byte == quote || *byte == b'\n');
                at += end.map_or(0, |end| if line[end] == quote { end + 1 } else { 0 });
            }
            b'(' | b'[' | b'{' | b'<' => open += 1,
            b')' | b']' | b'}' | b'>' => open = open.saturating_sub(1),
            b';' | b',' => chain = 0,
            b'!' | b'~' | b'+' | b'-' | b'?' | b'=' | b'*' | b'&' | b'|' | b'`' => chain += 1,
            b'a'..=b'z' if is_word(bytes, at) => chain += 1,
            _ => {}
        }
        deepest = deepest.max(open + chain);
        at += 1;
    }
    if deepest > MAX_BRACKET_DEPTH {
        return Err(ReadError::limit("it nests too deeply to be read"));
    }
    Ok(())
}

/// Whether a keyword starts here after which a statement or an expression begins.
fn is_word(bytes: &[u8], at: usize) -> bool {
    const KEYWORDS: [&[u8]; 12] = [
        b"if", b"else", b"for", b"while", b"do", b"new", b"typeof", b"void", b"await", b"delete",
        b"yield", b"with",
    ];
    let begins = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    begins && KEYWORDS.iter().any(|word| bytes[at..].starts_with(word))
}
