//! The order in which JavaScript sorts texts with `localeCompare`.
//!
//! It is the root collation of Unicode: first the letters count, then their accents, then their
//! case. The table holds what names of files are made of; whether that suffices for a name,
//! [`is_order_known`] tells.

use unicode_normalization::UnicodeNormalization as _;

/// Characters other than letters and digits, in their order.
const PUNCTUATION: &str = "\t\n\u{b}\u{c}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Accents, in their order.
const ACCENTS: &str = "\u{301}\u{300}\u{306}\u{302}\u{30c}\u{30a}\u{308}\u{30b}\u{303}\u{307}\u{338}\
                       \u{327}\u{328}\u{304}\u{309}\u{30f}\u{311}\u{31b}\u{323}\u{326}\u{331}";

/// The accent that ties two letters to one, after all others.
const TIE: u8 = 0x7f;

const LOWER: u8 = 2;
const LOWER_VARIANT: u8 = 4;
const UPPER: u8 = 8;
const UPPER_VARIANT: u8 = 10;

/// What a text is sorted by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollationKey {
    letters: Vec<u32>,
    accents: Vec<u8>,
    cases: Vec<u8>,
}

impl CollationKey {
    fn push_letter(&mut self, letter: u32, case: u8) {
        self.letters.push(letter);
        self.accents.push(1);
        self.cases.push(case);
    }

    fn push_accent(&mut self, accent: u8, case: u8) {
        self.accents.push(accent);
        self.cases.push(case);
    }

    fn push(&mut self, c: char) {
        if let Some(at) = index(PUNCTUATION, c) {
            return self.push_letter(at, LOWER);
        }
        if let Some(at) = index(ACCENTS, c) {
            return self.push_accent(2 + at as u8, LOWER);
        }
        match c {
            '0'..='9' => self.push_letter(100 + c as u32, LOWER),
            'a'..='z' => self.push_letter(200 + c as u32, LOWER),
            'A'..='Z' => self.push_letter(200 + c.to_ascii_lowercase() as u32, UPPER),
            'ø' | 'đ' | 'ł' | 'ħ' => self.push_struck_letter(c, LOWER),
            'Ø' | 'Đ' | 'Ł' | 'Ħ' => self.push_struck_letter(c, UPPER),
            'æ' | 'œ' | 'ß' => self.push_tied_letter(c, LOWER_VARIANT),
            'Æ' | 'Œ' => self.push_tied_letter(c, UPPER_VARIANT),
            // The order of scripts is mostly that of their numbers, all after the Latin one.
            _ => self.push_letter(0x1_0000 + c as u32, LOWER),
        }
    }

    /// A letter with a stroke through it.
    fn push_struck_letter(&mut self, c: char, case: u8) {
        let letter = match c {
            'ø' | 'Ø' => b'o',
            'đ' | 'Đ' => b'd',
            'ł' | 'Ł' => b'l',
            _ => b'h',
        };
        self.push_letter(200 + u32::from(letter), case);
        self.push('\u{338}');
    }

    /// Two letters that are one.
    fn push_tied_letter(&mut self, c: char, case: u8) {
        let (first, second) = match c {
            'æ' | 'Æ' => (b'a', b'e'),
            'œ' | 'Œ' => (b'o', b'e'),
            _ => (b's', b's'),
        };
        self.push_letter(200 + u32::from(first), case);
        self.push_accent(TIE, case);
        self.push_letter(200 + u32::from(second), case);
    }
}

/// What a text is sorted by.
pub fn key(text: &str) -> CollationKey {
    let mut key = CollationKey::default();
    text.nfd().for_each(|c| key.push(c));
    key
}

/// Whether the table holds everything that a text is made of.
pub fn is_order_known(text: &str) -> bool {
    text.nfd().all(|c| {
        c.is_ascii_graphic()
            || c == ' '
            || index(ACCENTS, c).is_some()
            || "øđłħØĐŁĦæœÆŒß".contains(c)
    })
}

fn index(table: &str, c: char) -> Option<u32> {
    table.chars().zip(0..).find(|(known, _)| *known == c).map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&'static str]) -> Vec<&'static str> {
        let mut names = names.to_vec();
        names.sort_by_key(|name| key(name));
        names
    }

    #[test]
    fn collation_order_is_letters_accents_case() {
        let names = ["SKILL.md", "scripts/a.py", "Z", "a", "Ä", "A", "_x", "ab", "ä", "9"];
        let expected = ["_x", "9", "a", "A", "ä", "Ä", "ab", "scripts/a.py", "SKILL.md", "Z"];
        assert_eq!(sorted(&names), expected);
        assert_eq!(
            sorted(&["a/b", "a.b", "a-b", "a b", "a_b"]),
            ["a b", "a_b", "a-b", "a.b", "a/b"]
        );
        assert!(is_order_known("references/größe œuvre (1).md"));
        assert!(!is_order_known("名前.md") && !is_order_known("a\u{7}b"));
    }

    /// Sorts with node what is on its standard input, and tells whether each is the same as the
    /// next.
    const SORT: &str = "const names = JSON.parse(require('fs').readFileSync(0, 'utf8'));
        names.sort((a, b) => a.localeCompare(b, 'en'));
        console.log(JSON.stringify(names.map((a, i) => [a, i + 1 < names.length
            && a.localeCompare(names[i + 1], 'en') === 0])));";

    fn sorted_by_node(names: &[String]) -> Option<Vec<(String, bool)>> {
        use std::{
            io::Write as _,
            process::{Command, Stdio},
        };

        let mut node = Command::new("node");
        node.args(["-e", SORT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut node) = node.spawn() else {
            #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
            {
                eprintln!("=== SKIPPED: the order of JavaScript: node is not installed ===");
            }
            return None;
        };
        let mut input = node.stdin.take().unwrap();
        input.write_all(serde_json::to_string(names).unwrap().as_bytes()).unwrap();
        drop(input);
        let output = node.wait_with_output().unwrap();
        Some(serde_json::from_slice(&output.stdout).unwrap())
    }

    /// Names of one to six letters; few letters, so that many begin alike.
    fn random_names(letters: &str, count: usize, seed: u64) -> Vec<String> {
        let letters: Vec<char> = letters.chars().collect();
        let mut state = seed;
        let mut next = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut name = || (0..=next(6)).map(|_| letters[next(letters.len())]).collect();
        (0..count).map(|_| name()).collect()
    }

    #[test]
    fn collation_order_matches_node() {
        let ascii: String = (' '..='~').collect();
        let umlauts = "aAäÄåÅáàâãăāąæÆeéèêëěęėoöÖøØőœŒuüÜůűsßSšśşzžżŻcçčćCnñňńdđĐlłŁtțrřyýiíîïgğhħ";
        let vietnamese = "aạảấầẩẫậăắeẹẻẽếềoơớờởỡợuưứừ";
        let mut names = Vec::new();
        for (letters, seed) in
            [(ascii.as_str(), 1), ("aAbB_-. /", 2), ("aAäÄbB1.", 3), (umlauts, 4), (vietnamese, 5)]
        {
            names.extend(random_names(letters, 4_000, seed));
        }
        for c in umlauts.chars().chain(vietnamese.chars()) {
            names.extend([c.to_string(), format!("a{c}b"), format!("{c}/SKILL.md")]);
        }
        names.extend(
            ["ss", "sS", "SS", "ß", "ssa", "ae", "Ae", "AE", "æ", "ad", "af"].map(Into::into),
        );
        assert!(names.iter().all(|name| is_order_known(name)));
        let Some(sorted) = sorted_by_node(&names) else { return };
        for pair in sorted.windows(2) {
            let [(a, same), (b, _)] = pair else { unreachable!() };
            let order = key(a).cmp(&key(b));
            assert_eq!(order.is_eq(), *same, "{a:?} {b:?}");
            assert!(order.is_le(), "{a:?} stands before {b:?}");
        }
    }
}
