//! Words for people: lists, and the word that was probably meant.

use savoir_skill::name::MAX_COMPARED;

/// The word that `text` may have meant.
pub(crate) fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > MAX_COMPARED {
        return None;
    }
    let lower = text.to_lowercase();
    words
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&lower, &word.to_lowercase()), word))
        // Of a word of one letter nothing would be left.
        .filter(|(distance, word)| *distance <= (word.len() / 3).max(1) && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn and(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// A text on one line, with single blanks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_like_sentences() {
        assert_eq!(and(&[""; 0]), "");
        assert_eq!(and(&["a"]), "a");
        assert_eq!(and(&["a", "b"]), "a and b");
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn only_near_words_are_near() {
        assert_eq!(nearest("qeury", ["limit", "query"]), Some("query"));
        assert_eq!(nearest("x", ["n"]), None);
        assert_eq!(nearest("else", ["limit", "query"]), None);
    }

    #[test]
    fn what_is_longer_than_any_name_is_near_to_none() {
        let words = vec!["limit-of-the-query"; 200];
        let clock = std::time::Instant::now();
        assert_eq!(nearest(&"x".repeat(1_000_000), words), None);
        assert!(clock.elapsed().as_secs() < 2, "{:?}", clock.elapsed());
    }
}
