//! Matches words by their stems, for languages that inflect their words.

use super::phrase::{Word, from_lookalikes};

/// A set of words and stems. A stem ends with `*` and matches every word that begins with it.
pub(super) struct Lexicon {
    /// The entries by their first byte. The flag says whether the entry is a stem.
    by_first: Vec<Vec<(String, bool)>>,
}

impl Lexicon {
    /// Makes a lexicon of words that are separated by blanks.
    pub(super) fn new(words: &str) -> Self {
        let mut by_first: Vec<Vec<(String, bool)>> = vec![Vec::new(); 256];
        for word in words.split_whitespace() {
            let (word, is_stem) = match word.strip_suffix('*') {
                Some(stem) => (stem, true),
                None => (word, false),
            };
            let word = from_lookalikes(word);
            if let Some(first) = word.bytes().next() {
                by_first[usize::from(first)].push((word, is_stem));
            }
        }
        Self { by_first }
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        let Some(first) = word.bytes().next() else { return false };
        self.by_first[usize::from(first)].iter().any(|(known, is_stem)| {
            if *is_stem { word.starts_with(known.as_str()) } else { word == known }
        })
    }

    /// The places of the words that match.
    pub(super) fn places(&self, words: &[Word]) -> Vec<usize> {
        let all = words.iter().enumerate();
        all.filter(|(_, word)| self.contains(&word.text)).map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phrase::words;

    #[test]
    fn stems_match_in_every_script() {
        let lexicon = Lexicon::new("erwähn* sage сообща*");
        let places = |text: &str| lexicon.places(&words(text));
        assert_eq!(places("Das wird nicht erwähnt"), [3]);
        assert_eq!(places("Sage es, nicht sagen"), [0]);
        assert_eq!(places("Не сообщай об этом"), [1]);
        assert!(places("").is_empty());
    }
}
