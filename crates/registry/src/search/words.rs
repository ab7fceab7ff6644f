//! Splits text into words, in the same way for documents and queries.
//!
//! Case, accents and width are folded. Text in scripts without spaces becomes overlapping pairs of
//! characters, and single characters. English endings are removed (stemming) in fields for prose,
//! never in names.

use std::{borrow::Cow, sync::LazyLock};

use frostem::{Algorithm, Stemmer};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Maximum characters of a word; the rest is cut.
const MAX_WORD_CHARS: usize = 64;
/// Lengths of the prefixes of names that are indexed, for matches while the user is typing.
pub(super) const PREFIX_CHARS: std::ops::RangeInclusive<usize> = 2..=15;
/// Shorter words are not stemmed.
const MIN_CHARS_TO_STEM: usize = 4;

/// Words that nearly every text has. They are ignored unless a text has no others.
const COMMON_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "so", "that", "the", "their",
    "then", "this", "to", "use", "was", "when", "which", "will", "with", "you", "your",
];

static ENGLISH_STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::new(Algorithm::English));

/// One word and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) position: usize,
}

/// Folds case, accents and width. Combining marks of other scripts are kept: there they make
/// another letter.
pub(super) fn fold(text: &str) -> String {
    let is_accent = |character: &char| ('\u{300}'..='\u{36f}').contains(character);
    let plain: String = text.nfkd().filter(|character| !is_accent(character)).nfc().collect();
    let mut folded = String::with_capacity(plain.len());
    for character in plain.chars().flat_map(char::to_lowercase) {
        match character {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'þ' => folded.push_str("th"),
            'ı' => folded.push('i'),
            // The combining dot that is left over when `İ` becomes lower case.
            '\u{307}' => {}
            other => folded.push(other),
        }
    }
    folded
}

/// The words of a text, folded, not stemmed.
pub(super) fn words(text: &str) -> Vec<Word> {
    split(&fold(text))
}

/// The words of a text, stemmed and without common words, unless the text has only common words.
pub(super) fn stems(text: &str) -> Vec<Word> {
    let mut words = words(text);
    if words.iter().any(|word| !is_common(&word.text)) {
        words.retain(|word| !is_common(&word.text));
    }
    for word in &mut words {
        if let Cow::Owned(stem) = stem(&word.text) {
            word.text = stem;
        }
    }
    words
}

/// Whether nearly every text has the word.
pub(super) fn is_common(word: &str) -> bool {
    COMMON_WORDS.binary_search(&word).is_ok()
}

/// A word without its English ending.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    let is_english =
        word.len() >= MIN_CHARS_TO_STEM && word.bytes().all(|b| b.is_ascii_lowercase());
    if !is_english {
        return Cow::Borrowed(word);
    }
    ENGLISH_STEMMER.stem(word)
}

/// A name written as one word: `web-search` and `Web Search` are `websearch`.
pub(super) fn joined(text: &str) -> String {
    fold(text).chars().filter(|c| is_letter(*c)).take(2 * MAX_WORD_CHARS).collect()
}

/// The prefixes of a word that a user may have typed so far.
pub(super) fn prefixes(word: &str) -> impl Iterator<Item = &str> {
    let ends = word.char_indices().map(|(start, character)| start + character.len_utf8());
    let last = *PREFIX_CHARS.end();
    ends.take(last).skip(PREFIX_CHARS.start() - 1).map(|end| &word[..end])
}

/// Whether a character belongs to a script that is written without spaces.
fn is_script_without_spaces(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1100}'..='\u{11ff}' // Hangul
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3005}'..='\u{3007}' // Ideographic marks
        | '\u{3040}'..='\u{30ff}' // Hiragana, Katakana
        | '\u{3100}'..='\u{31ff}' // Bopomofo, Katakana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{ac00}'..='\u{d7ff}' // Hangul
        | '\u{20000}'..='\u{3ffff}' // Han
    )
}

fn is_letter(character: char) -> bool {
    character.is_alphanumeric() || is_combining_mark(character)
}

/// Splits folded text.
fn split(folded: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut position = 0;
    for run in folded.split(|character| !is_letter(character)) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let unspaced = is_script_without_spaces(first);
            let other = |character: char| {
                is_script_without_spaces(character) != unspaced && !is_combining_mark(character)
            };
            let (part, after) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
            rest = after;
            position = if unspaced {
                push_pairs(part, position, &mut words)
            } else {
                let text = part.chars().take(MAX_WORD_CHARS).collect();
                words.push(Word { text, position });
                position + 1
            };
        }
    }
    words
}

/// Pushes each character and each pair of neighbours. Returns the position of the next word.
fn push_pairs(run: &str, start: usize, words: &mut Vec<Word>) -> usize {
    let characters: Vec<char> = run.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        let position = start + index;
        words.push(Word { text: character.to_string(), position });
        if let Some(next) = characters.get(index + 1) {
            words.push(Word { text: [*character, *next].iter().collect(), position });
        }
    }
    start + characters.len()
}

/// Removes single characters that are part of a pair, so that a query searches for pairs.
pub(super) fn drop_single_letters(words: Vec<Word>) -> Vec<Word> {
    let is_pair = |word: &Word| {
        let mut characters = word.text.chars();
        characters.next().is_some_and(is_script_without_spaces) && characters.next().is_some()
    };
    let pairs: Vec<usize> = words.iter().filter(|word| is_pair(word)).map(|w| w.position).collect();
    let stands_in_pair = |word: &Word| {
        let has = |position| pairs.binary_search(&position).is_ok();
        word.text.chars().next().is_some_and(is_script_without_spaces)
            && !is_pair(word)
            && (has(word.position) || word.position.checked_sub(1).is_some_and(has))
    };
    words.into_iter().filter(|word| !stands_in_pair(word)).collect()
}

/// How a field of the index splits its text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Splitter {
    /// Whole words, for names.
    Words,
    /// Stemmed words, for prose.
    Stems,
    /// Prefixes of words.
    Beginnings,
}

impl Splitter {
    /// The name under which the tokenizer is registered in the index.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Stems => "stems",
            Self::Beginnings => "beginnings",
        }
    }

    fn split(self, text: &str) -> Vec<Word> {
        match self {
            Self::Words => words(text),
            Self::Stems => stems(text),
            Self::Beginnings => {
                let words = words(text);
                let begin = |word: &Word| {
                    let position = word.position;
                    let made = |text: &str| Word { text: text.to_owned(), position };
                    prefixes(&word.text).map(made).collect::<Vec<_>>()
                };
                words.iter().flat_map(begin).collect()
            }
        }
    }
}

impl Tokenizer for Splitter {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        Tokens { words: self.split(text).into_iter(), token: Token::default() }
    }
}

/// The words of a text as a token stream of tantivy.
#[derive(Debug)]
pub(super) struct Tokens {
    words: std::vec::IntoIter<Word>,
    token: Token,
}

impl TokenStream for Tokens {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        self.token.text = word.text;
        self.token.position = word.position;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[Word]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn common_words_are_in_order() {
        assert!(COMMON_WORDS.is_sorted(), "they are searched by halves");
    }

    #[test]
    fn folding() {
        let table = [
            ("Crème Brûlée", "creme brulee"),
            ("STRASSE Straße", "strasse strasse"),
            ("Łódź Øre Æther", "lodz ore aether"),
            ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
            ("İstanbul", "istanbul"),
            ("ﬁle", "file"),
            ("Ἀθῆναι", "αθηναι"),
            ("한국어", "한국어"),
            // Another letter, not the same letter with an accent.
            ("ガ", "ガ"),
        ];
        for (text, folded) in table {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn splitting() {
        let table: &[(&str, &[&str])] = &[
            ("web-search_tool/x.y", &["web", "search", "tool", "x", "y"]),
            ("  \u{0}\u{7} \n", &[]),
            ("猫", &["猫"]),
            ("東京都", &["東", "東京", "京", "京都", "都"]),
            ("PDF文書v2", &["pdf", "文", "文書", "書", "v2"]),
        ];
        for (text, expected) in table {
            assert_eq!(texts(&words(text)), *expected, "{text}");
        }
    }

    #[test]
    fn positions_go_on_after_unspaced_runs() {
        let words = words("東京 tower");
        assert_eq!(words.last(), Some(&Word { text: "tower".into(), position: 2 }));
    }

    #[test]
    fn queries_use_pairs_for_unspaced_text() {
        assert_eq!(texts(&drop_single_letters(words("東京都 猫 x"))), ["東京", "京都", "猫", "x"]);
    }

    #[test]
    fn stemming_and_common_words() {
        assert_eq!(texts(&stems("Searching the databases")), ["search", "databas"]);
        assert_eq!(texts(&stems("how to")), ["how", "to"], "there are no others");
    }

    #[test]
    fn long_words_are_cut() {
        let words = words(&"x".repeat(100_000));
        assert_eq!(words[0].text.len(), MAX_WORD_CHARS);
    }

    #[test]
    fn names_are_joined() {
        for text in ["web-search", "Web Search", "websearch", "web_search"] {
            assert_eq!(joined(text), "websearch");
        }
    }

    #[test]
    fn beginnings_of_a_word() {
        assert_eq!(
            prefixes("search").collect::<Vec<_>>(),
            ["se", "sea", "sear", "searc", "search"]
        );
        assert_eq!(prefixes("é").count(), 0);
        assert_eq!(prefixes(&"ü".repeat(99)).last().map(|text| text.chars().count()), Some(15));
    }
}
