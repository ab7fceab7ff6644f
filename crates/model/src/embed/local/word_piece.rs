//! Splits texts into the tokens of BERT models, as their `tokenizer.json` describes.
//!
//! BERT models share one scheme (`WordPiece`), which is small. The general tokenizer library supports
//! every scheme and took a minute to compile.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// The tokenizer of a BERT model.
#[derive(Debug)]
pub struct WordPiece {
    normalizer: Normalizer,
    model: Vocabulary,
    /// The ids that go before and after the tokens of a text.
    first: u32,
    last: u32,
    unknown: u32,
}

#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<Normalizer>,
    model: Vocabulary,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    /// Follows `lowercase` when it is not set.
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl Default for Normalizer {
    fn default() -> Self {
        Self { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true }
    }
}

#[derive(Debug, Deserialize)]
struct Vocabulary {
    #[serde(rename = "type", default = "default_scheme")]
    scheme: String,
    vocab: HashMap<String, u32>,
    #[serde(default = "default_unknown_token")]
    unk_token: String,
    #[serde(default = "default_prefix")]
    continuing_subword_prefix: String,
    #[serde(default = "default_word_length")]
    max_input_chars_per_word: usize,
}

fn default_scheme() -> String {
    "WordPiece".to_owned()
}

fn default_unknown_token() -> String {
    "[UNK]".to_owned()
}

fn default_prefix() -> String {
    "##".to_owned()
}

fn default_word_length() -> usize {
    100
}

impl WordPiece {
    /// Reads a `tokenizer.json`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let file: TokenizerFile =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let model = file.model;
        if model.scheme != "WordPiece" {
            return Err(format!("tokens of the type `{}`, only `WordPiece` works", model.scheme));
        }
        let id = |token: &str| {
            model.vocab.get(token).copied().ok_or_else(|| format!("it has no token `{token}`"))
        };
        Ok(Self {
            first: id("[CLS]")?,
            last: id("[SEP]")?,
            unknown: id(&model.unk_token)?,
            normalizer: file.normalizer.unwrap_or_default(),
            model,
        })
    }

    /// The tokens of a text for the model, at most `limit` with those that mark its ends.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut ids = vec![self.first];
        ids.extend(self.tokens(text).into_iter().take(limit.saturating_sub(2)));
        ids.push(self.last);
        ids
    }

    /// The number of tokens of a text.
    pub fn count(&self, text: &str) -> usize {
        self.tokens(text).len()
    }

    fn tokens(&self, text: &str) -> Vec<u32> {
        let text = self.normalizer.normalize(text);
        let mut ids = Vec::new();
        for word in text.split_whitespace().flat_map(split_punctuation) {
            self.push_word(word, &mut ids);
        }
        ids
    }

    /// Adds the longest known pieces of a word, or the unknown token if it cannot be split.
    fn push_word(&self, word: &str, ids: &mut Vec<u32>) {
        let begin = ids.len();
        if word.chars().count() > self.model.max_input_chars_per_word {
            return ids.push(self.unknown);
        }
        let mut rest = word;
        while !rest.is_empty() {
            let prefix =
                if rest.len() == word.len() { "" } else { &*self.model.continuing_subword_prefix };
            let Some((id, length)) = self.longest_piece(prefix, rest) else {
                ids.truncate(begin);
                return ids.push(self.unknown);
            };
            ids.push(id);
            rest = &rest[length..];
        }
    }

    fn longest_piece(&self, prefix: &str, rest: &str) -> Option<(u32, usize)> {
        let mut piece = format!("{prefix}{rest}");
        while piece.len() > prefix.len() {
            if let Some(id) = self.model.vocab.get(&piece) {
                return Some((*id, piece.len() - prefix.len()));
            }
            piece.pop();
        }
        None
    }
}

impl Normalizer {
    fn normalize(&self, text: &str) -> String {
        let mut text: String = if self.clean_text {
            text.chars().filter(|c| !is_removed(*c)).map(space_or_same).collect()
        } else {
            text.to_owned()
        };
        if self.handle_chinese_chars {
            text = text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
                if is_chinese(c) {
                    out.extend([' ', c, ' ']);
                } else {
                    out.push(c);
                }
                out
            });
        }
        if self.strip_accents.unwrap_or(self.lowercase) {
            let is_accent = |c: &char| c.general_category() == GeneralCategory::NonspacingMark;
            text = text.nfd().filter(|c| !is_accent(c)).collect();
        }
        if self.lowercase { text.chars().flat_map(char::to_lowercase).collect() } else { text }
    }
}

fn is_removed(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    match c {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ => matches!(c.general_category(), Control | Format | PrivateUse),
    }
}

fn space_or_same(c: char) -> char {
    if c.is_whitespace() { ' ' } else { c }
}

fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_B73F
        | 0x2_B740..=0x2_B81F | 0x2_B920..=0x2_CEAF | 0xF900..=0xFAFF | 0x2_F800..=0x2_FA1F)
}

/// Makes every punctuation mark a word of its own.
fn split_punctuation(word: &str) -> impl Iterator<Item = &str> {
    word.split_inclusive(is_punctuation).flat_map(|part| {
        let mark = part.char_indices().next_back().filter(|(_, c)| is_punctuation(*c));
        let (before, mark) = part.split_at(mark.map_or(part.len(), |(at, _)| at));
        [before, mark].into_iter().filter(|part| !part.is_empty())
    })
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn small() -> WordPiece {
        let words =
            ["[CLS]", "[SEP]", "[UNK]", "un", "##aff", "##able", "cafe", "!", "中", "x", "##x"];
        let vocab: serde_json::Map<_, _> =
            words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
        let file = json!({ "model": { "type": "WordPiece", "vocab": vocab } });
        WordPiece::from_json(file.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn words_are_split_into_the_longest_known_pieces() {
        assert_eq!(small().encode("Unaffable", 9), [0, 3, 4, 5, 1]);
        assert_eq!(small().tokens("unaffordable x"), [2, 9], "no part of an unknown word stays");
    }

    #[test]
    fn accents_case_punctuation_and_chinese_are_normalized() {
        assert_eq!(small().tokens("CAFÉ!中x\u{200b}x!!"), [6, 7, 8, 9, 10, 7, 7]);
    }

    #[test]
    fn long_texts_and_long_words_are_cut() {
        assert_eq!(small().encode("x x x x", 4), [0, 9, 9, 1]);
        assert_eq!(small().tokens(&"x".repeat(101)), [2]);
        assert_eq!(small().tokens(&"x".repeat(100)).len(), 100);
    }

    #[test]
    fn other_schemes_and_missing_tokens_are_errors() {
        let read = |json: serde_json::Value| WordPiece::from_json(json.to_string().as_bytes());
        let error = read(json!({ "model": { "type": "BPE", "vocab": {} } })).unwrap_err();
        assert_eq!(error, "tokens of the type `BPE`, only `WordPiece` works");
        let error = read(json!({ "model": { "vocab": { "[CLS]": 0 } } })).unwrap_err();
        assert_eq!(error, "it has no token `[SEP]`");
        assert!(WordPiece::from_json(b"{}").is_err());
    }
}
