//! Replaces placeholders by secrets in requests and secrets by placeholders in responses.
//!
//! The program only ever has a placeholder. On the way to a granted host the placeholder is
//! replaced by the value, and a value that the host repeats is replaced by the placeholder on the
//! way back. The second replacement only protects against accidents: a malicious host can repeat
//! the value in another encoding.

use std::fmt::{self, Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{ProxyError, tls};
use crate::policy::Secret;

/// A secret value and the placeholder that the program sees instead.
#[derive(Clone, Debug)]
pub(crate) struct MaskedSecret {
    /// The text inside the sandbox, created by [`placeholder`].
    pub(crate) placeholder: String,
    /// The value that the host receives.
    pub(crate) value: Secret,
}

/// Creates a new placeholder with 128 random bits, so that it does not occur by chance.
pub(crate) fn new_placeholder() -> Result<String, ProxyError> {
    let mut random = [0; 16];
    tls::fill_random(&mut random)?;
    let mut text = String::from("savoir-masked-");
    for byte in random {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Shorter values can occur by chance, and replacing them would corrupt responses.
const MIN_HIDDEN_BYTES: usize = 8;

/// How many bytes a text may grow: a text full of placeholders must not fill the memory.
const MAX_GROWTH_BYTES: usize = 256 << 10;

/// How a value must be escaped at the position of its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    Raw,
    /// For URLs and forms.
    Percent,
    /// For JSON strings.
    Json,
}

impl Escaping {
    /// Returns the escaping that a body of this content type needs.
    pub(super) fn of_body(content_type: &[u8]) -> Self {
        let content_type = content_type.to_ascii_lowercase();
        let essence =
            content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if essence == b"application/x-www-form-urlencoded" {
            Self::Percent
        } else if essence == b"application/json" || essence.ends_with(b"+json") {
            Self::Json
        } else {
            Self::Raw
        }
    }

    fn escape(self, value: &str) -> Vec<u8> {
        match self {
            Self::Raw => value.as_bytes().to_vec(),
            Self::Percent => value.bytes().flat_map(percent_encode).collect(),
            Self::Json => value.chars().flat_map(json_escape).collect(),
        }
    }
}

fn percent_encode(byte: u8) -> Vec<u8> {
    match byte {
        b'-' | b'.' | b'_' | b'~' => vec![byte],
        _ if byte.is_ascii_alphanumeric() => vec![byte],
        _ => format!("%{byte:02X}").into_bytes(),
    }
}

fn json_escape(char: char) -> Vec<u8> {
    match char {
        '"' | '\\' => format!("\\{char}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\0'..='\x1f' => format!("\\u{:04x}", u32::from(char)),
        _ => char.to_string(),
    }
    .into_bytes()
}

/// Pairs of a text to find and its replacement, longest first.
type Table = Vec<(Vec<u8>, Vec<u8>)>;

/// The secrets of a run.
#[derive(Default)]
pub(super) struct Secrets {
    list: Vec<MaskedSecret>,
    /// Maps values in all escapings to placeholders.
    value_to_placeholder: Table,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl Secrets {
    pub(super) fn new(mut list: Vec<MaskedSecret>) -> Self {
        list.retain(|secret| !secret.placeholder.is_empty() && !secret.value.expose().is_empty());
        let mut value_to_placeholder = Table::new();
        for secret in &list {
            let value = secret.value.expose();
            if value.len() >= MIN_HIDDEN_BYTES {
                for escaping in [Escaping::Raw, Escaping::Percent, Escaping::Json] {
                    let placeholder = secret.placeholder.clone().into_bytes();
                    value_to_placeholder.push((escaping.escape(value), placeholder));
                }
            }
        }
        Self { list, value_to_placeholder: longest_first(value_to_placeholder) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Replaces placeholders by values.
    pub(super) fn reveal(&self, text: &[u8], escaping: Escaping) -> Vec<u8> {
        let entry = |secret: &MaskedSecret| {
            (secret.placeholder.clone().into_bytes(), escaping.escape(secret.value.expose()))
        };
        let table = longest_first(self.list.iter().map(entry).collect());
        let mut out = Vec::with_capacity(text.len());
        let max_bytes = text.len() + MAX_GROWTH_BYTES;
        replace_all(&table, text, &mut out, |out| out.len() < max_bytes, |_, _| false);
        out
    }

    /// Replaces placeholders by values in a header, also inside base64 of `Basic` authorization. A
    /// value with control characters is not inserted, because it could end the header and start
    /// another one.
    pub(super) fn reveal_header(&self, name: &str, text: &[u8]) -> Vec<u8> {
        let revealed = match decode_basic_auth(name, text) {
            Some(decoded) => {
                let encoded = STANDARD.encode(self.reveal(&decoded, Escaping::Raw));
                [b"Basic ", encoded.as_bytes()].concat()
            }
            None => self.reveal(text, Escaping::Raw),
        };
        let splits = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        if revealed.iter().any(splits) { text.to_vec() } else { revealed }
    }

    /// Replaces values by placeholders.
    pub(super) fn hide(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        replace_all(&self.value_to_placeholder, text, &mut out, |_| true, |_, _| false);
        out
    }

    /// Returns a replacer of values by placeholders for text that arrives in pieces.
    pub(super) fn response_replacer(&self) -> Replacer<'_> {
        Replacer { table: &self.value_to_placeholder, pending: Vec::new() }
    }
}

fn longest_first(mut table: Table) -> Table {
    table.sort_by(|one, other| other.0.len().cmp(&one.0.len()).then_with(|| one.cmp(other)));
    table.dedup();
    table
}

fn decode_basic_auth(name: &str, text: &[u8]) -> Option<Vec<u8>> {
    if !name.eq_ignore_ascii_case("authorization") {
        return None;
    }
    let (scheme, encoded) = text.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    STANDARD.decode(encoded.trim_ascii()).ok()
}

/// Replaces text in a stream. Bytes that may be the start of a match are held back until more
/// arrive.
pub(super) struct Replacer<'a> {
    table: &'a Table,
    pending: Vec<u8>,
}

impl Replacer<'_> {
    /// Adds a piece and writes everything that is certain to `out`.
    pub(super) fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.pending.extend_from_slice(piece);
        let unfinished = replace_all(self.table, &self.pending, out, |_| true, <[u8]>::starts_with);
        self.pending.drain(..self.pending.len() - unfinished);
    }

    /// Writes the remaining bytes at the end of the stream.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        replace_all(self.table, &self.pending, out, |_| true, |_, _| false);
        self.pending.clear();
    }
}

/// Copies the text with its replacements while `may_grow` allows it, and stops at a possible start of a
/// match. Returns the number of bytes from there on.
fn replace_all(
    table: &Table,
    text: &[u8],
    out: &mut Vec<u8>,
    may_grow: impl Fn(&Vec<u8>) -> bool,
    may_become_match: impl Fn(&[u8], &[u8]) -> bool,
) -> usize {
    let mut rest = text;
    'text: while let Some((first, tail)) = rest.split_first() {
        for (needle, replacement) in
            table.iter().filter(|(needle, _)| needle.first() == Some(first))
        {
            if let Some(after) = rest.strip_prefix(needle.as_slice())
                && may_grow(out)
            {
                out.extend_from_slice(replacement);
                rest = after;
                continue 'text;
            }
            if may_become_match(needle, rest) {
                return rest.len();
            }
        }
        out.push(*first);
        rest = tail;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "savoir-masked-00112233445566778899aabbccddeeff";

    fn secrets(value: &str) -> Secrets {
        Secrets::new(vec![MaskedSecret { placeholder: MARK.to_owned(), value: Secret::new(value) }])
    }

    #[test]
    fn placeholders_are_fresh() {
        let one = crate::proxy::new_placeholder().unwrap();
        assert_eq!(one.len(), MARK.len());
        assert!(one.starts_with("savoir-masked-"));
        assert_ne!(one, new_placeholder().unwrap());
    }

    #[test]
    fn values_are_encoded_for_their_position() {
        let secrets = secrets("k/\"ey\n 1");
        let reveal = |escaping| {
            String::from_utf8(secrets.reveal(format!("<{MARK}>").as_bytes(), escaping)).unwrap()
        };
        assert_eq!(reveal(Escaping::Raw), "<k/\"ey\n 1>");
        assert_eq!(reveal(Escaping::Percent), "<k%2F%22ey%0A%201>");
        assert_eq!(reveal(Escaping::Json), "<k/\\\"ey\\n 1>");
        assert_eq!(Escaping::of_body(b"application/JSON; charset=utf-8"), Escaping::Json);
        assert_eq!(Escaping::of_body(b"application/x-www-form-urlencoded"), Escaping::Percent);
        assert_eq!(Escaping::of_body(b"text/plain"), Escaping::Raw);
    }

    #[test]
    fn headers() {
        let good = secrets("real-value");
        let header = |secrets: &Secrets, name: &str, value: &str| {
            String::from_utf8(secrets.reveal_header(name, value.as_bytes())).unwrap()
        };
        assert_eq!(header(&good, "X-Key", &format!("a {MARK} b")), "a real-value b");
        let decode_basic_auth = format!("basic {}", STANDARD.encode(format!("user:{MARK}")));
        let expected = format!("Basic {}", STANDARD.encode("user:real-value"));
        assert_eq!(header(&good, "authorization", &decode_basic_auth), expected);
        assert_eq!(header(&good, "X-Other", &decode_basic_auth), decode_basic_auth);
        let splitting = secrets("a\r\nEvil: b");
        assert_eq!(header(&splitting, "X-Key", MARK), MARK);
    }

    #[test]
    fn values_are_hidden_across_pieces() {
        let secrets = secrets("real-value");
        let text = b"real-val real-value real-valureal-value real-value";
        let expected = format!("real-val {MARK} real-valu{MARK} {MARK}");
        for size in 1..text.len() {
            let mut out = Vec::new();
            let mut response_replacer = secrets.response_replacer();
            for piece in text.chunks(size) {
                response_replacer.push(piece, &mut out);
            }
            response_replacer.finish(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "in pieces of {size}");
        }
        assert_eq!(secrets.hide(text), expected.as_bytes());
    }

    #[test]
    fn growth_of_texts_is_limited() {
        let secrets = secrets(&"v".repeat(10_000));
        let text = MARK.repeat(10_000);
        let revealed = secrets.reveal(text.as_bytes(), Escaping::Raw);
        assert!(revealed.starts_with(b"vvv") && revealed.ends_with(MARK.as_bytes()));
        assert!(revealed.len() < 2 * (text.len() + MAX_GROWTH_BYTES));
    }

    #[test]
    fn short_and_nested_values() {
        assert_eq!(secrets("1").hide(b"1 + 1"), b"1 + 1");
        assert_eq!(secrets("").reveal(MARK.as_bytes(), Escaping::Raw), MARK.as_bytes());
        let nested = Secrets::new(vec![
            MaskedSecret { placeholder: "<short>".into(), value: Secret::new("12345678") },
            MaskedSecret { placeholder: "<long>".into(), value: Secret::new("1234567890") },
        ]);
        assert_eq!(nested.hide(b"12345678 1234567890 12345678"), b"<short> <long> <short>");
        assert_eq!(nested.hide(b"123456789"), b"<short>9");
    }
}
