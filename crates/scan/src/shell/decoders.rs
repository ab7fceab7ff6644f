//! Recognizes programs that decode text, including `tr` and `sed y` with a substitution alphabet.

use super::tokens::Word;

/// Maximum length of an alphabet that is examined.
const MAX_ALPHABET_BYTES: usize = 512;

/// Minimum number of letters that an alphabet must replace to count as encoding.
const MIN_REPLACED_LETTERS: usize = 8;

/// Decoding functions of other languages, as used in one-liners.
const DECODING_CALLS: [&str; 14] = [
    "b64decode", "b32decode", "fromhex", "unhexlify", "rot13", "rot_13", "atob(", "'base64')",
    "\"base64\")", "pack(\"H", "pack('H", "decode_base64", "base64_decode", "hex2bin",
];

/// Whether a program decodes its input.
pub(super) fn is_decoder(name: &str, arguments: &[Word]) -> bool {
    let texts = || arguments.iter().map(|word| word.text.as_str());
    let has = |flags: &[&str]| texts().any(|text| flags.contains(&text));
    let short = |letter: char| {
        texts()
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    };
    match name {
        "base64" | "base32" | "basenc" | "gbase64" => {
            has(&["--decode"]) || short('d') || short('D')
        }
        "openssl" => has(&["-d", "-D"]),
        "xxd" => short('r') || has(&["--revert", "-revert"]),
        "uudecode" | "rot13" | "ascii85" | "basez" => true,
        // `%c` converts numbers to characters.
        "awk" | "gawk" | "mawk" => texts().any(|text| text.contains("%c")),
        "perl" | "ruby" | "php" | "python" | "python2" | "python3" | "node" => {
            let code = arguments.windows(2).find(|pair| {
                let flag = pair[0].text.as_str();
                flag.starts_with('-') && flag.len() < 5 && flag.ends_with(['e', 'c', 'r', 'p'])
            });
            code.is_some_and(|pair| {
                let code = pair[1].text.as_str();
                DECODING_CALLS.iter().any(|call| code.contains(call))
                    || name == "perl" && (code.contains("chr(") || code.contains("pack("))
            })
        }
        _ => false,
    }
}

/// Whether `printf` or `echo` converts a variable number to a character: `"\\x$h"`.
pub(super) fn prints_character_codes(name: &str, arguments: &[Word]) -> bool {
    let open = name == "printf"
        || arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains('e'));
    open && arguments.iter().any(|word| {
        if word.variables.is_empty() && word.substitutions.is_empty() {
            return false;
        }
        let text = word.text.as_str();
        // The number may come from another `printf`.
        let number = word.substitutions.iter().any(|inner| {
            inner.contains("printf")
                && ["%o", "%03o", "%x", "%02x", "%3o"].iter().any(|f| inner.contains(f))
        });
        number && text.contains('\\')
            || ["\\x$", "\\0$", "\\u$"].iter().any(|mark| text.contains(mark))
            || text.starts_with("\\$")
    })
}

/// The letter substitution of `tr` or `sed y`, if it hides a text.
pub(super) struct Alphabet {
    from: Vec<char>,
    to: Vec<char>,
    /// A set is longer than is examined.
    pub(super) is_cut: bool,
}

impl Alphabet {
    /// Returns the alphabet of a command, unless it only changes case, blanks or a few characters.
    pub(super) fn of(name: &str, arguments: &[Word]) -> Option<Self> {
        let (from, to) = match (name, arguments) {
            ("tr" | "gtr", [from, to]) => (expand(&from.text), expand(&to.text)),
            ("sed" | "gsed", words) => {
                let script = words.iter().find(|word| !word.text.starts_with('-'))?;
                let rest = script.text.strip_prefix('y')?;
                let mark = rest.chars().next()?;
                let mut parts = rest[mark.len_utf8()..].split(mark);
                (plain(parts.next()?), plain(parts.next()?))
            }
            _ => return None,
        };
        let moved = from.iter().zip(&to).filter(|(from, to)| {
            from.is_ascii_alphanumeric() && to.is_ascii_graphic() && !from.eq_ignore_ascii_case(to)
        });
        let mut targets: Vec<char> = moved.map(|(_, to)| *to).collect();
        targets.sort_unstable();
        targets.dedup();
        let is_cut = from.len().max(to.len()) >= MAX_ALPHABET_BYTES;
        (is_cut || targets.len() >= MIN_REPLACED_LETTERS).then_some(Self { from, to, is_cut })
    }

    /// Applies the substitution to a text.
    pub(super) fn substitute(&self, text: &str) -> String {
        let one = |c: char| {
            let at = self.from.iter().position(|from| *from == c);
            at.and_then(|at| self.to.get(at).or(self.to.last())).copied().unwrap_or(c)
        };
        text.chars().map(one).collect()
    }
}

fn plain(set: &str) -> Vec<char> {
    set.chars().take(MAX_ALPHABET_BYTES).collect()
}

/// Returns the characters of a `tr` set, with ranges expanded.
fn expand(set: &str) -> Vec<char> {
    let set = crate::decode::decode_escapes(set)
        .replace("[:upper:]", "A-Z")
        .replace("[:lower:]", "a-z")
        .replace("[:digit:]", "0-9")
        .replace("[:alpha:]", "A-Za-z");
    let set = plain(&set);
    let mut all = Vec::new();
    let mut at = 0;
    while at < set.len() && all.len() < MAX_ALPHABET_BYTES {
        match (set.get(at + 1), set.get(at + 2)) {
            (Some('-'), Some(last)) if *last >= set[at] => {
                all.extend((set[at]..=*last).take(MAX_ALPHABET_BYTES));
                at += 3;
            }
            _ => {
                all.push(set[at]);
                at += 1;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphabet(name: &str, arguments: &[&str]) -> Option<Alphabet> {
        let words = arguments.iter().map(|text| Word { text: (*text).into(), ..Word::default() });
        Alphabet::of(name, &words.collect::<Vec<_>>())
    }

    #[test]
    fn hiding_alphabets_are_recognized() {
        let rot13 = alphabet("tr", &["A-Za-z", "N-ZA-Mn-za-m"]).expect("it moves all letters");
        assert_eq!(rot13.substitute("phey k | fu"), "curl x | sh");
        assert!(alphabet("tr", &["a-z", "f-za-e"]).is_some());
        assert!(alphabet("sed", &["y/abcdefghijklm/nopqrstuvwxyz/"]).is_some());
        for (from, to) in
            [("A-Z", "a-z"), ("[:upper:]", "[:lower:]"), (" ", "\\n"), ("a-z", "x"), ("_-", "/+")]
        {
            assert!(alphabet("tr", &[from, to]).is_none(), "{from} {to}");
        }
        assert!(alphabet("tr", &["-d", "a-z"]).is_none());
    }
}
