//! Decodes files in other encodings than UTF-8, as the programs that execute them do.

use base64::engine::GeneralPurpose;
use base64::{Engine as _, alphabet, engine::general_purpose::NO_PAD};

use super::decode;

/// Decodes UTF-16 with a mark or with mostly Latin letters.
pub(super) fn decode_utf16_text(bytes: &[u8]) -> Option<String> {
    Some(match bytes {
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        _ if has_zeros_at(bytes, 1) => decode_utf16(bytes, u16::from_le_bytes),
        _ if has_zeros_at(bytes, 0) => decode_utf16(bytes, u16::from_be_bytes),
        _ => return None,
    })
}

fn decode_utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// Whether nearly every second byte is zero, as in English text in UTF-16.
fn has_zeros_at(bytes: &[u8], offset: usize) -> bool {
    let sample = &bytes[..bytes.len().min(4096)];
    let zeros = sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let others = sample.iter().skip(1 - offset).step_by(2).filter(|byte| **byte == 0).count();
    sample.len() >= 8 && zeros * 10 >= sample.len() / 2 * 9 && others == 0
}

/// Decodes Python code in the encoding that it declares in its first two lines; `None` if that is
/// one in which ASCII is ASCII. Returns the text and the name of the encoding.
pub(super) fn decode_python(text: &str) -> Option<(String, &'static str)> {
    let name = declared_encoding(text)?;
    Some(match name.as_str() {
        "utf7" | "u7" | "unicode11utf7" => (decode_utf7(text), "UTF-7"),
        "rot13" => (decode::rot13(text), "ROT13"),
        "unicodeescape" | "rawunicodeescape" => (decode::decode_escapes(text), "escapes"),
        name if is_superset_of_ascii(name) => return None,
        _ => (text.to_owned(), "an unusual encoding"),
    })
}

/// Returns the name in `# coding: …` (PEP 263), in lower case and without punctuation.
fn declared_encoding(text: &str) -> Option<String> {
    let mut lines = text.trim_start_matches('\u{feff}').split(['\n', '\r']).take(2);
    lines.find_map(|line| {
        let comment = line.trim_start_matches([' ', '\t', '\u{c}']).strip_prefix('#')?;
        let rest = comment
            .match_indices("coding")
            .find_map(|(at, word)| comment[at + word.len()..].strip_prefix([':', '=']))?;
        let name = rest.trim_start_matches([' ', '\t']);
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
        let name = &name[..end.unwrap_or(name.len())];
        let plain = name.to_ascii_lowercase().replace(['-', '_', '.'], "");
        (!plain.is_empty()).then_some(plain)
    })
}

/// Whether every byte below 128 is the same character as in ASCII, alone and after other bytes.
fn is_superset_of_ascii(name: &str) -> bool {
    matches!(
        name,
        "utf8" | "utf8sig" | "u8" | "utf" | "ascii" | "usascii" | "646" | "cp1252" | "macroman"
    ) || [
        "latin", "iso8859", "iso885915", "windows125", "cp125", "koi8", "utf8unix", "utf8dos",
        "utf8mac",
    ]
    .iter()
    .any(|family| name.starts_with(family))
        || matches!(name, "l1" | "8859" | "cp819" | "eucjp" | "euckr" | "gb2312" | "euccn")
}

/// Decodes UTF-7: `+` starts Base64 of UTF-16, `-` ends it.
fn decode_utf7(text: &str) -> String {
    let base64 =
        GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('+') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let is_digit = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after.strip_prefix('-').unwrap_or(after);
        match base64.decode(run) {
            _ if run.is_empty() => out.push('+'),
            Ok(bytes) => out.push_str(&decode_utf16(&bytes, u16::from_be_bytes)),
            Err(_) => out.push_str(run),
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_encodings_of_python_are_decoded() {
        let decoded = decode_python;
        for plain in [
            "print(1)",
            "# -*- coding: utf-8 -*-",
            "#!/bin/x\n# vim: set fileencoding=latin-1 :",
            "\n\n# coding: rot13",
        ] {
            assert_eq!(decoded(plain), None, "{plain}");
        }
        let (text, what) = decoded("# coding: utf-7\n+AGkAbQBwAG8AcgB0- os # 1 +- 1").unwrap();
        assert_eq!((text.as_str(), what), ("# coding: utf-7\nimport os # 1 + 1", "UTF-7"));
        assert!(decoded("#coding=ROT_13\nvzcbeg bf").unwrap().0.contains("import os"));
        assert!(decoded("# coding: cp037").is_some());
    }

    #[test]
    fn utf16_is_decoded_with_and_without_mark() {
        let little: Vec<u8> = "iex (irm x)".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode_utf16_text(&little).unwrap(), "iex (irm x)");
        let marked = [&[0xff, 0xfe], &little[..]].concat();
        assert_eq!(decode_utf16_text(&marked).unwrap(), "iex (irm x)");
        assert!(decode_utf16_text(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").is_none());
    }
}
