//! Joins words into lists for messages, and finds the known word closest to a misspelt one.

/// Longer texts are not compared, because the time grows with the square of the length.
const MAX_COMPARED_BYTES: usize = 128;

/// Returns the word closest to `text`, if it is close enough to be a misspelling.
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    misspellings(text, words).min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// Returns at most `max` words that are close enough to `text`, the closest first.
pub fn nearest_several<'a>(
    text: &str,
    words: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let mut near: Vec<_> = misspellings(text, words).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(max).map(|(_, word)| word).collect()
}

/// Returns the words of which `text` may be a misspelling, with the number of differences.
fn misspellings<'a>(
    text: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let lower = (text.len() <= MAX_COMPARED_BYTES).then(|| text.to_lowercase());
    words
        .into_iter()
        .map_while(move |word| {
            let distance = strsim::damerau_levenshtein(lower.as_deref()?, &word.to_lowercase());
            Some((distance, word))
        })
        // A one-letter word would match any other.
        .filter(|(distance, word)| *distance <= (word.len() / 3).max(1) && *distance < word.len())
}

/// Joins words as `a`, `a and b` or `a, b and c`.
pub fn and(words: &[impl AsRef<str>]) -> String {
    join(words, "and")
}

/// Joins words as `a`, `a or b` or `a, b or c`.
pub fn or(words: &[impl AsRef<str>]) -> String {
    join(words, "or")
}

fn join(words: &[impl AsRef<str>], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {conjunction} {}", first.join(", "), last.as_ref())
        }
    }
}

/// Returns the text on one line, with single blanks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Shortens a text to a number of characters, and marks the cut with an ellipsis.
pub fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_like_sentences() {
        assert_eq!(and(&[""; 0]), "");
        assert_eq!(and(&["a"]), "a");
        assert_eq!(or(&["a", "b"]), "a or b");
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn long_texts_are_shortened() {
        assert_eq!(shorten("häuser", 6), "häuser");
        assert_eq!(shorten("häuser", 2), "hä…");
        assert_eq!(shorten("a house", 2), "a…");
        assert_eq!(shorten("", 0), "");
    }

    #[test]
    fn only_similar_words_are_suggested() {
        assert_eq!(nearest("web-serch", ["limit", "web-search"]), Some("web-search"));
        assert_eq!(nearest("x", ["n"]), None);
        assert_eq!(nearest("else", ["limit", "query"]), None);
    }

    #[test]
    fn several_words_are_sorted_by_similarity() {
        let tags = ["v1.9.0", "v2.0.1", "v2.0.0", "main", "v2.1.0-rc"];
        assert_eq!(nearest_several("v2.0.0x", tags, 2), ["v2.0.0", "v2.0.1"]);
        assert!(nearest_several("feature", tags, 5).is_empty());
    }

    #[test]
    fn long_texts_get_no_suggestion() {
        assert_eq!(nearest(&"x".repeat(1_000_000), vec!["limit-of-the-query"; 200]), None);
    }
}
