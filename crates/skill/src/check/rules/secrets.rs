//! Finds keys and tokens in the text.

use memchr::memmem;
use savoir_lint::{Diagnostic, Span};

use crate::check::{Context, rule::rule};

rule! {
    /// The text contains what looks like a key or a token.
    ///
    /// ## Why
    ///
    /// Everyone who gets the skill gets the secret, and so does every model that reads it.
    /// Examples and placeholders such as `ghp_xxxx` are not reported.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Send the header `Authorization: token ghp_A9dKq2Lm5Xw8Rt3Zb7Vn1Yc4Hs6Jf0PgTuEo`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Send the header `Authorization: token $GITHUB_TOKEN`.
    /// ````
    POSSIBLE_SECRET = "possible-secret", Warning, run possible_secret
}

/// Shortest run of token characters that can be a secret.
const MIN_SECRET_BYTES: usize = 20;

/// How a kind of secret is recognised.
struct SecretFormat {
    prefix: &'static str,
    what: &'static str,
    /// Fewest and most characters after the prefix.
    tail: (usize, usize),
    letters: Letters,
}

/// The characters of a secret after its prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// Capitals and digits.
    Upper,
    /// Letters and digits.
    Alphanumeric,
    /// Letters, digits, hyphens and underscores.
    Any,
}

const fn format(
    prefix: &'static str,
    what: &'static str,
    tail: (usize, usize),
    letters: Letters,
) -> SecretFormat {
    SecretFormat { prefix, what, tail, letters }
}

/// Longer prefixes before their own beginnings.
const SECRET_FORMATS: [SecretFormat; 22] = [
    format("AKIA", "an AWS access key", (16, 16), Letters::Upper),
    format("ASIA", "an AWS access key", (16, 16), Letters::Upper),
    format("ghp_", "a GitHub token", (36, 255), Letters::Alphanumeric),
    format("gho_", "a GitHub token", (36, 255), Letters::Alphanumeric),
    format("ghu_", "a GitHub token", (36, 255), Letters::Alphanumeric),
    format("ghs_", "a GitHub token", (36, 255), Letters::Alphanumeric),
    format("ghr_", "a GitHub token", (36, 255), Letters::Alphanumeric),
    format("github_pat_", "a GitHub token", (50, 255), Letters::Any),
    format("glpat-", "a GitLab token", (20, 255), Letters::Any),
    format("xoxa-", "a Slack token", (20, 255), Letters::Any),
    format("xoxb-", "a Slack token", (20, 255), Letters::Any),
    format("xoxp-", "a Slack token", (20, 255), Letters::Any),
    format("xoxr-", "a Slack token", (20, 255), Letters::Any),
    format("xoxs-", "a Slack token", (20, 255), Letters::Any),
    format("sk-ant-", "an Anthropic key", (40, 255), Letters::Any),
    format("sk-proj-", "an OpenAI key", (40, 255), Letters::Any),
    format("sk-", "an OpenAI key", (32, 255), Letters::Alphanumeric),
    format("sk_live_", "a Stripe key", (20, 255), Letters::Alphanumeric),
    format("rk_live_", "a Stripe key", (20, 255), Letters::Alphanumeric),
    format("AIza", "a Google key", (35, 35), Letters::Any),
    format("hf_", "a Hugging Face token", (30, 40), Letters::Alphanumeric),
    format("npm_", "an npm token", (36, 36), Letters::Alphanumeric),
];

/// Words of examples.
const PLACEHOLDERS: [&str; 14] = [
    "example", "xxxx", "your", "placeholder", "dummy", "fake", "sample", "redacted", "changeme",
    "12345", "abcde", "token", "secret", "replace",
];

fn possible_secret(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let text = context.text();
    let bytes = text.as_bytes();
    let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
    let mut done = 0;
    for (index, block) in blocks.iter().enumerate() {
        // The shortest run fills at least one block ...
        if separator_bits(*block) != 0 || index * BLOCK_BYTES < done {
            continue;
        }
        // ... and most of its neighbours.
        let before =
            index.checked_sub(1).map_or(0, |index| separator_bits(blocks[index]).leading_zeros());
        let after =
            blocks.get(index + 1).map_or(64, |block| separator_bits(*block).trailing_zeros());
        if (before / 8 + after / 8) as usize + BLOCK_BYTES < MIN_SECRET_BYTES {
            continue;
        }
        let at = index * BLOCK_BYTES;
        let start =
            bytes[..at].iter().rposition(|byte| is_separator(*byte)).map_or(0, |gap| gap + 1);
        let rest = bytes[at..].iter().position(|byte| is_separator(*byte));
        done = rest.map_or(bytes.len(), |length| at + length);
        check_runs(text, Span::new(start, done), found);
    }
    for key in memmem::find_iter(bytes, b"PRIVATE KEY-----") {
        private_key(text, key, found);
    }
}

/// Bytes that are looked at together, as one number.
const BLOCK_BYTES: usize = 8;

/// Whether a byte separates tokens: spaces, punctuation before the hyphen, and non-ASCII bytes.
fn is_separator(byte: u8) -> bool {
    !(b'-'..0x80).contains(&byte)
}

/// The highest bit of each byte that is a gap, the first byte lowest.
fn separator_bits(block: [u8; BLOCK_BYTES]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; BLOCK_BYTES]);
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(block);
    // The high bits keep the subtraction from borrowing from the next byte.
    let reaches = (word | HIGHS) - ONES * 0x2D;
    (!reaches | word) & HIGHS
}

/// Looks at each run of token characters in a stretch without gaps.
fn check_runs(text: &str, stretch: Span, found: &mut Vec<Diagnostic>) {
    let bytes = text.as_bytes();
    let mut start = stretch.start;
    while start + MIN_SECRET_BYTES <= stretch.end {
        let rest = bytes[start..stretch.end].iter().position(|byte| !is_token(*byte));
        let end = rest.map_or(stretch.end, |length| start + length);
        if end - start >= MIN_SECRET_BYTES
            && let Some((what, prefix)) = secret(bytes, start, end)
        {
            report(text, Span::new(start, end), what, prefix, found);
        }
        start = end + 1;
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns the kind of secret, and the length of the prefix that may be shown.
fn secret(bytes: &[u8], start: usize, end: usize) -> Option<(&'static str, usize)> {
    let run = &bytes[start..end];
    if run.starts_with(b"eyJ") {
        return is_web_token(bytes, start, end).then_some(("a JSON Web Token", 3));
    }
    let format = SECRET_FORMATS.iter().find(|format| run.starts_with(format.prefix.as_bytes()))?;
    let tail = &run[format.prefix.len()..];
    let fits = (format.tail.0..=format.tail.1).contains(&tail.len())
        && tail.iter().all(|byte| match format.letters {
            Letters::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Letters::Alphanumeric => byte.is_ascii_alphanumeric(),
            Letters::Any => true,
        });
    (fits && is_random(tail)).then_some((format.what, format.prefix.len()))
}

/// Three parts with points between them, the second again an object.
fn is_web_token(bytes: &[u8], start: usize, end: usize) -> bool {
    let part = |from: usize| bytes[from..].iter().take_while(|byte| is_token(**byte)).count();
    if bytes.get(end) != Some(&b'.') || !bytes[end + 1..].starts_with(b"eyJ") {
        return false;
    }
    let second = end + 1 + part(end + 1);
    if bytes.get(second) != Some(&b'.') {
        return false;
    }
    let signature = &bytes[second + 1..second + 1 + part(second + 1)];
    end - start >= MIN_SECRET_BYTES && signature.len() >= MIN_SECRET_BYTES && is_random(signature)
}

/// Whether the characters look drawn by lot: no words, no rows, no repetition.
fn is_random(tail: &[u8]) -> bool {
    let tail = &tail[..tail.len().min(128)];
    let has = |test: fn(&u8) -> bool| tail.iter().any(test);
    let mut counts = [0u16; 128];
    for byte in tail {
        counts[usize::from(byte & 0x7F)] += 1;
    }
    let length = f32::from(u8::try_from(tail.len()).unwrap_or(u8::MAX));
    let entropy: f32 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f32::from(*count) / length)
        .map(|share| -share * share.log2())
        .sum();
    let rows = tail.windows(2).filter(|pair| pair[0] == pair[1] || pair[0] + 1 == pair[1]).count();
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && entropy >= 3.0
        && rows * 4 <= tail.len()
        && !is_placeholder(tail)
}

fn is_placeholder(tail: &[u8]) -> bool {
    let lower = tail.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| memmem::find(&lower, word.as_bytes()).is_some())
}

fn report(text: &str, run: Span, what: &str, prefix: usize, found: &mut Vec<Diagnostic>) {
    // The place ends before the secret part, so that no report repeats it.
    let shown = Span::new(run.start, run.start + prefix);
    let message = format!("`{}…` looks like {what}", shown.slice(text));
    found.push(
        Diagnostic::warning(POSSIBLE_SECRET.code, shown, message)
            .help("revoke it, and read it from an environment variable instead"),
    );
}

/// `-----BEGIN … PRIVATE KEY-----` with lines of the key below it.
fn private_key(text: &str, key: usize, found: &mut Vec<Diagnostic>) {
    let line = memchr::memrchr(b'\n', &text.as_bytes()[..key]).map_or(0, |newline| newline + 1);
    let Some(begin) = text[line..key].rfind("-----BEGIN ").map(|at| line + at) else { return };
    let after = &text.as_bytes()[(key + "PRIVATE KEY-----".len()).min(text.len())..];
    let coded = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // Line ends may be written as `\n` inside a string.
    let body = after
        .iter()
        .skip_while(|byte| matches!(byte, b'\\' | b'n' | b'r') || byte.is_ascii_whitespace());
    let body: Vec<u8> = body.take_while(|byte| coded(byte)).copied().take(64).collect();
    if body.len() >= 40 && is_random(&body) {
        let span = Span::new(begin, key + "PRIVATE KEY-----".len());
        found.push(
            Diagnostic::warning(POSSIBLE_SECRET.code, span, "a private key starts here")
                .help("revoke it, and keep keys out of the skill"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, skill};

    fn count(body: &str) -> usize {
        find(POSSIBLE_SECRET.code, &skill(body)).len()
    }

    /// Returns random letters and digits, so that the source contains no real key.
    fn random(length: usize) -> String {
        let letters = b"q7Rw2Kd9Zx4Lm6Tb8Vn3Yc5Hs1Jf0PgUeAo";
        (0..length).map(|at| char::from(letters[(at * 11 + at / 7) % letters.len()])).collect()
    }

    #[test]
    fn keys_of_each_kind() {
        let upper = random(16).to_uppercase();
        for (body, expected) in [
            (format!("key=AKIA{upper}\n"), 1),
            (format!("ghp_{}", random(36)), 1),
            (format!("github_pat_{}", random(60)), 1),
            (format!("xoxb-{}", random(30)), 1),
            (format!("sk-ant-api03-{}", random(60)), 1),
            (format!("sk-proj-{}", random(60)), 1),
            (format!("sk-{}", random(48)), 1),
            (format!("AIza{}", random(35)), 1),
            (format!("sk_live_{}", random(24)), 1),
            (format!("eyJ{}.eyJ{}.{}", random(30), random(40), random(43)), 1),
            (format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n", random(64)), 1),
            (format!("AIza{}", random(30)), 0),
            (format!("ghp_{}", random(20)), 0),
            (format!("x{}", random(60)), 0),
        ] {
            assert_eq!(count(&body), expected, "{body}");
        }
    }

    #[test]
    fn examples_are_not_reported() {
        for body in [
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-1234567890abcdef1234567890abcdef",
            "sk-your-api-key-goes-here-and-is-long-enough",
            "sk_live_51234567890abcdefghijk",
            "sk-learn-has-a-rather-long-name-of-a-page",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
            "------------------------------------------",
        ] {
            assert_eq!(count(body), 0, "{body}");
        }
    }

    #[test]
    fn the_secret_is_not_repeated() {
        let text = skill(&format!("x ghp_{} y", random(36)));
        let found = find(POSSIBLE_SECRET.code, &text);
        assert_eq!(found[0].message, "`ghp_…` looks like a GitHub token");
        assert_eq!(found[0].span.slice(&text), "ghp_");
    }

    #[test]
    fn every_position_is_checked() {
        for pad in 0..45 {
            for filler in [" ", "a ", "é", ".", "a/"] {
                let key = random(16).to_uppercase();
                let body = format!("{} AKIA{key}.", filler.repeat(pad));
                assert_eq!(count(&body), 1, "{body}");
                assert_eq!(count(&format!("{}/AKIA{key}", filler.repeat(pad))), 1, "{body}");
            }
        }
    }

    #[test]
    fn block_gap_bits_match_byte_gaps() {
        for text in
            ["ab cd,ef", " bcdefgh", "abcdef\u{e9}", "a-_.:/zZ", ",-,-,---", "\0\n\t,-.~\x7f"]
        {
            let block = *text.as_bytes().first_chunk().unwrap();
            let bits = separator_bits(block);
            for (at, byte) in block.iter().enumerate() {
                assert_eq!(bits >> (at * 8 + 7) & 1 == 1, is_separator(*byte), "{text:?} {at}");
            }
        }
    }
}
