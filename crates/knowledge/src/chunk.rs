//! Splits text into chunks that fit an embedder, at headings, paragraphs or sentences where
//! possible.
//!
//! The text is split into words, each with a rating of the cut point before it. Chunks are then
//! filled as far as possible, and cut at the best cut point of their second half.

mod cut_points;

use savoir_store::ChunkSize;

use self::cut_points::{CutPoint, Word, words};
use crate::limits;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChunk {
    /// The index, from 0.
    pub index: u64,
    pub text: String,
    /// The number of tokens.
    pub tokens: u64,
}

/// The size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Maximum tokens of a chunk.
    pub tokens: usize,
    /// Maximum tokens that a chunk repeats from the previous one.
    pub overlap: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { tokens: limits::CHUNK_TOKENS, overlap: limits::CHUNK_OVERLAP }
    }
}

impl From<ChunkSize> for Size {
    fn from(size: ChunkSize) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self { tokens: number(size.tokens), overlap: number(size.overlap) }
    }
}

/// Estimates the number of tokens of a text for common models, without a tokenizer.
///
/// Five letters of the English alphabet are a token, or three of another alphabet, or three digits;
/// each ideograph and each other sign is a token. Whitespace does not count. The estimate of two
/// words together is the sum of theirs.
///
/// Chunks are cut by this estimate. A model that reads only 256 tokens sees the first half of a
/// chunk of 512 tokens: the vector represents that half, and full-text search finds the rest.
pub fn estimate_tokens(text: &str) -> usize {
    let mut tokens = 0;
    let (mut run, mut length) = (CharRun::Blank, 0_usize);
    for c in text.chars() {
        let next = CharRun::of(c);
        if next == run && !matches!(next, CharRun::Single) {
            length += 1;
        } else {
            tokens += run.tokens(length);
            (run, length) = (next, 1);
        }
    }
    tokens + run.tokens(length)
}

/// Characters that are counted together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharRun {
    Blank,
    English,
    Letters,
    Digits,
    Sign(char),
    Single,
}

impl CharRun {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_whitespace() => Self::Blank,
            'a'..='z' | 'A'..='Z' => Self::English,
            '0'..='9' => Self::Digits,
            _ if cut_points::is_ideograph(c) => Self::Single,
            _ if c.is_alphanumeric() => Self::Letters,
            _ if c.is_ascii() => Self::Sign(c),
            _ => Self::Single,
        }
    }

    fn tokens(self, length: usize) -> usize {
        match self {
            Self::Blank => 0,
            Self::English => length.div_ceil(5),
            Self::Letters | Self::Digits => length.div_ceil(3),
            // A row of dashes is not a token per dash.
            Self::Sign(_) => length.div_ceil(4),
            Self::Single => length,
        }
    }
}

/// Splits a text. `count` returns the tokens of a word and the whitespace after it; the sum limits
/// the size of chunks.
pub fn split(text: &str, size: Size, count: impl Fn(&str) -> usize) -> Vec<TextChunk> {
    let splitter = Splitter::new(text, size, count);
    let pieces = splitter.pieces();
    let texts = pieces.iter().map(|piece| (piece, splitter.text(piece)));
    let whole = texts.filter(|(_, text)| !text.trim().is_empty());
    let part = |(index, (piece, text)): (u64, (&WordRange, &str))| {
        let tokens = (splitter.sums[piece.end] - splitter.sums[piece.start]) as u64;
        TextChunk { index, text: text.to_owned(), tokens }
    };
    (0..).zip(whole).map(part).collect()
}

/// The words of a chunk, from `start` to before `end`; those before `fresh` are repeated from the
/// previous chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WordRange {
    start: usize,
    fresh: usize,
    end: usize,
}

struct Splitter<'a> {
    text: &'a str,
    words: Vec<Word>,
    /// The number of tokens before each word, and the total.
    sums: Vec<usize>,
    size: Size,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str, size: Size, count: impl Fn(&str) -> usize) -> Self {
        let words = words(text);
        let mut sums = Vec::with_capacity(words.len() + 1);
        let mut sum = 0;
        sums.push(sum);
        for word in &words {
            sum += count(&text[word.range.clone()]);
            sums.push(sum);
        }
        Self { text, words, sums, size }
    }

    fn text(&self, piece: &WordRange) -> &'a str {
        let range = self.words[piece.start].range.start..self.words[piece.end - 1].range.end;
        self.text[range].trim_start_matches(['\n', '\r']).trim_end()
    }

    fn pieces(&self) -> Vec<WordRange> {
        let mut pieces = Vec::new();
        let (mut start, mut fresh) = (0, 0);
        while fresh < self.words.len() {
            let mut end = self.cut(start, fresh);
            // The overlap must not force a cut inside a table or a code block.
            if start < fresh && self.cut_point_before(end) < CutPoint::Word {
                let alone = self.cut(fresh, fresh);
                if self.cut_point_before(alone) >= CutPoint::Word {
                    (start, end) = (fresh, alone);
                }
            }
            pieces.push(WordRange { start, fresh, end });
            (start, fresh) = (self.overlap(end, fresh), end);
        }
        pieces
    }

    /// Returns the rating of the cut point before a word; the end has the highest.
    fn cut_point_before(&self, word: usize) -> CutPoint {
        self.words.get(word).map_or(CutPoint::END, |word| word.cut_point_before)
    }

    /// Returns the end of a chunk that starts with the word `start` and must include the word `fresh`.
    fn cut(&self, start: usize, fresh: usize) -> usize {
        let most = self.sums[start] + self.size.tokens;
        // The last word that fits; a single word is taken even if it is too long.
        let fits = self.sums.partition_point(|sum| *sum <= most) - 1;
        let end = fits.max(fresh + 1);
        if end == self.words.len() {
            return end;
        }
        let half = self.sums[start] + self.size.tokens / 2;
        let middle = self.sums.partition_point(|sum| *sum < half).clamp(fresh + 1, end);
        let late = self.strongest(middle, end);
        if self.cut_point_before(late) >= CutPoint::Word || middle == fresh + 1 {
            return late;
        }
        let early = self.strongest(fresh + 1, middle - 1);
        if self.cut_point_before(early) >= CutPoint::Sentence { early } else { late }
    }

    /// Returns the last of the strongest cut points from `first` to `last`.
    fn strongest(&self, first: usize, last: usize) -> usize {
        (first..=last).max_by_key(|word| self.cut_point_before(*word)).unwrap_or(last)
    }

    /// Returns the start of the chunk after a cut: some words before it, at a sentence if there is
    /// one. The overlap does not cross a heading.
    fn overlap(&self, cut: usize, fresh: usize) -> usize {
        if cut >= self.words.len() || self.cut_point_before(cut) >= CutPoint::heading(6) {
            return cut;
        }
        let least = self.sums[cut].saturating_sub(self.size.overlap);
        let first = self.sums.partition_point(|sum| *sum < least).clamp(fresh + 1, cut);
        let at =
            |minimum: CutPoint| (first..cut).find(|word| self.cut_point_before(*word) >= minimum);
        let start = at(CutPoint::Sentence).or_else(|| at(CutPoint::Word)).unwrap_or(cut);
        // At least one new word must fit, too.
        let fits = self.sums[cut + 1] - self.sums[start] <= self.size.tokens;
        if fits { start } else { cut }
    }
}

#[cfg(test)]
mod tests;
