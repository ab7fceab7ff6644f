//! Splits a text into words and rates how well the text can be cut before each word.

use std::ops::Range;

/// Maximum length of a word that is not split.
const MAX_WORD_BYTES: usize = 64;

/// Rates how well a text can be cut at a position. Between the words of a table row or a code block it can
/// be cut only if nothing else helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CutPoint {
    /// Inside a long word.
    Within,
    /// Inside a table row or a line of code.
    Inside,
    /// Between two lines of code.
    CodeLine,
    /// Between two words; also between a heading and the text after it.
    Word,
    /// Between two sentences.
    Sentence,
    /// Before a list item or a table row.
    Line,
    /// Before a paragraph, a list, a table or a code block.
    Block,
    /// Before a heading: 6 for the first level, 1 for the lowest.
    Heading(u8),
}

impl CutPoint {
    /// The end of a text.
    pub(super) const END: Self = Self::Heading(u8::MAX);

    /// Before a heading of a level from 1 to 6.
    pub(super) fn heading(level: u8) -> Self {
        Self::Heading(7 - level)
    }
}

/// A word and the whitespace after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) range: Range<usize>,
    /// The cut point before the word.
    pub(super) cut_point_before: CutPoint,
}

/// Whether a character is a word by itself, because its script has no spaces.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{9FFF}' | '\u{A000}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Blank,
    Heading(u8),
    /// The first or last line of a code block.
    Fence,
    Code,
    Item,
    Row,
    /// The line of dashes below the header row of a table.
    Rule,
    Text,
}

impl Line {
    /// Whether the line should not be split if possible.
    fn stays_together(self) -> bool {
        matches!(self, Self::Fence | Self::Code | Self::Row | Self::Rule)
    }
}

/// An open code block: the fence character, and how many there are.
#[derive(Clone, Copy)]
struct Fence(u8, usize);

/// Splits a text into words without gaps.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut fence = None;
    let (mut before, mut blank) = (Line::Blank, true);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let kind = classify(line, &mut fence);
        if kind == Line::Blank {
            if let Some(Word { range, .. }) = words.last_mut() {
                range.end += line.len();
            }
            blank = true;
        } else {
            let sentence =
                words.last().is_some_and(|word: &Word| ends_sentence(&text[word.range.clone()]));
            let cut_point_before = cut_point_between(before, kind, blank, sentence);
            // Empty lines at the start belong to the first word.
            let start = if words.is_empty() { 0 } else { at };
            push_line(&mut words, text, start..at + line.len(), kind, cut_point_before);
            (before, blank) = (kind, false);
        }
        at += line.len();
    }
    words
}

/// Returns the rating of the cut point between two lines.
fn cut_point_between(before: Line, line: Line, blank: bool, sentence: bool) -> CutPoint {
    match (before, line) {
        (_, Line::Heading(level)) => CutPoint::heading(level),
        (Line::Heading(_), _) => CutPoint::Word,
        (Line::Fence | Line::Code, Line::Code) => CutPoint::CodeLine,
        // A fence after code closes the block.
        (Line::Code, Line::Fence) | (_, Line::Rule) => CutPoint::Inside,
        (_, Line::Fence) | (Line::Fence, _) => CutPoint::Block,
        _ if blank => CutPoint::Block,
        (Line::Row | Line::Rule, Line::Row) | (_, Line::Item) => CutPoint::Line,
        (_, Line::Row) | (Line::Row | Line::Rule, _) => CutPoint::Block,
        _ if sentence => CutPoint::Sentence,
        _ => CutPoint::Word,
    }
}

/// Returns the kind of a line, and tracks whether a code block is open.
fn classify(line: &str, fence: &mut Option<Fence>) -> Line {
    let trimmed = line.trim();
    let heading_level_marks = heading_level_marks(trimmed);
    match *fence {
        Some(Fence(sign, count)) => {
            let closes = heading_level_marks
                .is_some_and(|Fence(s, c)| s == sign && c >= count && c == trimmed.len());
            if closes {
                *fence = None;
                return Line::Fence;
            }
            // A blank line of code has no words, so it cannot be distinguished from others.
            if trimmed.is_empty() { Line::Blank } else { Line::Code }
        }
        None if heading_level_marks.is_some() => {
            *fence = heading_level_marks;
            Line::Fence
        }
        None => plain(trimmed),
    }
}

/// Parses the fence of a code block at the start of a line.
fn heading_level_marks(line: &str) -> Option<Fence> {
    let sign = *line.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let count = line.bytes().take_while(|byte| *byte == sign).count();
    // A code span at the start of a line is closed on the same line.
    let span = sign == b'`' && line[count..].contains('`');
    (count >= 3 && !span).then_some(Fence(sign, count))
}

/// Returns the kind of a line outside a code block.
fn plain(line: &str) -> Line {
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[hashes..];
    if line.is_empty() {
        Line::Blank
    } else if (1..=6).contains(&hashes) && (rest.is_empty() || rest.starts_with([' ', '\t'])) {
        Line::Heading(hashes as u8)
    } else if line.starts_with('|') {
        let rule = line.contains('-') && line.bytes().all(|byte| b"|-: \t".contains(&byte));
        if rule { Line::Rule } else { Line::Row }
    } else if is_item(line) {
        Line::Item
    } else {
        Line::Text
    }
}

fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        1..=9 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    rest.is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// Whether a word ends a sentence.
fn ends_sentence(word: &str) -> bool {
    let word =
        word.trim_end().trim_end_matches(['"', '\'', ')', ']', '*', '_', '”', '’', '»', '」']);
    word.ends_with(['.', '!', '?', '…', '。', '！', '？', '．'])
}

/// Adds the words of a line.
fn push_line(words: &mut Vec<Word>, text: &str, line: Range<usize>, kind: Line, first: CutPoint) {
    let mut cut_point_before = first;
    let mut start = line.start;
    // Indentation belongs to the first word of the line.
    let (mut length, mut seen) = (0, false);
    let mut blank = false;
    let mut last = None;
    for (offset, c) in text[line.clone()].char_indices() {
        let at = line.start + offset;
        let ideograph = is_ideograph(c) || last.is_some_and(is_ideograph);
        // Punctuation after an ideograph stays with it.
        let new_word = blank || (ideograph && !is_closing(c));
        let cut = seen && !c.is_whitespace() && (new_word || length >= MAX_WORD_BYTES);
        if cut {
            words.push(Word { range: start..at, cut_point_before });
            cut_point_before = match kind {
                _ if kind.stays_together() => CutPoint::Inside,
                _ if !new_word => CutPoint::Within,
                _ if ends_sentence(&text[start..at]) => CutPoint::Sentence,
                _ => CutPoint::Word,
            };
            (start, length) = (at, 0);
        }
        seen |= !c.is_whitespace();
        blank = seen && c.is_whitespace();
        length += 1;
        last = Some(c);
    }
    words.push(Word { range: start..line.end, cut_point_before });
}

/// Whether a character is punctuation that cannot start a word.
fn is_closing(c: char) -> bool {
    matches!(c, '。' | '，' | '、' | '！' | '？' | '；' | '：' | '）' | '」' | '』' | '》' | '．')
        || c.is_ascii_punctuation()
}
