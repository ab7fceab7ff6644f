//! Searches the available skills by keywords.

use std::{cmp::Ordering, sync::Arc};

use memchr::{memchr_iter, memmem};

use crate::preamble::{Candidate, UnusableSkill};

/// Scores of a word in the name, and in the rest of the description line.
const NAME_SCORE: usize = 8;
const LINE_SCORE: usize = 2;
/// The score of a matching prefix.
const PREFIX_SCORE: usize = 1;

/// Bytes and words of a query that are used, more than a search needs.
const MAX_QUERY_BYTES: usize = 2_000;
const MAX_WORDS: usize = 64;

/// The texts of all skills for searching. Finding a word in one long text takes less time than
/// splitting all texts into words, even once: an agent often searches only once.
#[derive(Debug)]
pub(super) struct SearchIndex {
    skills: Arc<[Candidate]>,
    names: LowercaseLines,
    lines: LowercaseLines,
}

impl SearchIndex {
    pub(super) fn new(skills: Arc<[Candidate]>) -> Self {
        let names = LowercaseLines::new(skills.iter().map(|skill| skill.name.as_str()));
        let lines = LowercaseLines::new(skills.iter().map(|skill| skill.line.as_str()));
        Self { skills, names, lines }
    }

    /// Whether this is the index of these skills.
    pub(super) fn is_of(&self, skills: &Arc<[Candidate]>) -> bool {
        Arc::ptr_eq(&self.skills, skills)
    }

    /// Returns the best matches, without skills that match no word. For a query without words,
    /// returns the first skills.
    pub(super) fn search(&self, query: &str, max_results: usize) -> Vec<&Candidate> {
        let query_words = query_words(query);
        let scores = self.scores(&query_words).into_iter().zip(&*self.skills);
        let mut found: Vec<(usize, &Candidate)> =
            scores.filter(|(score, _)| *score > 0 || query_words.is_empty()).collect();
        if max_results < found.len() {
            found.select_nth_unstable_by(max_results, compare);
            found.truncate(max_results);
        }
        found.sort_by(compare);
        found.into_iter().map(|(_, skill)| skill).collect()
    }

    /// The score of each skill, by its position.
    fn scores(&self, query_words: &[String]) -> Vec<usize> {
        let mut scores = vec![0; self.skills.len()];
        let mut best = vec![0; self.skills.len()];
        let mut rated = Vec::new();
        for word in query_words {
            let mut rate = |position: usize, score: usize| {
                let Some(best) = best.get_mut(position) else { return };
                if *best == 0 {
                    rated.push(position);
                }
                *best = score.max(*best);
            };
            self.names.find(word, |position, is_whole| {
                if is_whole {
                    rate(position, NAME_SCORE);
                }
            });
            self.lines.find(word, |position, is_whole| match is_whole {
                true => rate(position, LINE_SCORE),
                false if word.len() > 2 => rate(position, PREFIX_SCORE),
                false => {}
            });
            for position in rated.drain(..) {
                scores[position] += std::mem::take(&mut best[position]);
            }
        }
        scores
    }
}

/// Texts in small letters, one per line.
#[derive(Debug)]
struct LowercaseLines {
    text: String,
    /// The end of each line.
    ends: Vec<usize>,
}

impl LowercaseLines {
    fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut text = String::new();
        for one in texts {
            if one.contains('\n') {
                text.push_str(&one.replace('\n', " "));
            } else {
                text.push_str(one);
            }
            text.push('\n');
        }
        let text = text.to_lowercase();
        let ends = memchr_iter(b'\n', text.as_bytes()).collect();
        Self { text, ends }
    }

    /// Calls `found` for each word that begins with `word`, with the position of its line and
    /// whether it is the whole word.
    fn find(&self, word: &str, mut found: impl FnMut(usize, bool)) {
        for start in memmem::find_iter(self.text.as_bytes(), word) {
            let end = start + word.len();
            let (Some(before), Some(after)) = (self.text.get(..start), self.text.get(end..)) else {
                continue;
            };
            if before.chars().next_back().is_some_and(char::is_alphanumeric) {
                continue;
            }
            let is_whole = !after.chars().next().is_some_and(char::is_alphanumeric);
            found(self.ends.partition_point(|line_end| *line_end < start), is_whole);
        }
    }
}

/// Orders found skills: the best score, then pinned skills, then the name.
fn compare(a: &(usize, &Candidate), b: &(usize, &Candidate)) -> Ordering {
    let pinned = b.1.pinned.cmp(&a.1.pinned);
    b.0.cmp(&a.0).then(pinned).then_with(|| a.1.name.cmp(&b.1.name))
}

/// Returns the unusable skills whose names contain one of the words.
pub(super) fn named<'a>(
    unusable: &'a [UnusableSkill],
    query: &str,
) -> impl Iterator<Item = &'a UnusableSkill> {
    let query_words = query_words(query);
    let fits = move |name: &str| words(name).iter().any(|word| query_words.contains(word));
    unusable.iter().filter(move |skill| fits(&skill.name))
}

/// Splits a query into words.
fn query_words(query: &str) -> Vec<String> {
    let mut words = words(&query[..query.floor_char_boundary(MAX_QUERY_BYTES)]);
    words.truncate(MAX_WORDS);
    words
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_most() {
        let skills: Vec<Candidate> = [
            ("pdf-tools", "- pdf-tools: Fill forms."),
            ("mail", "- mail: Send a PDF by mail."),
            ("weather", "- weather: Tell the weather."),
        ]
        .map(|(name, line)| Candidate {
            name: name.to_owned(),
            line: line.to_owned(),
            ..Candidate::default()
        })
        .into();
        let index = SearchIndex::new(skills.into());
        let names = |query| -> Vec<_> {
            index.search(query, 10).iter().map(|skill| skill.name.as_str()).collect()
        };
        assert_eq!(names("PDF"), ["pdf-tools", "mail"]);
        assert_eq!(names("weath"), ["weather"]);
        assert_eq!(names("nothing at all").len(), 0);
        assert_eq!(names("").len(), 3);
        assert_eq!(names("forms weather"), ["weather", "pdf-tools"]);
        assert_eq!(index.search("", 1).len(), 1);
        assert_eq!(index.search("pdf", 1)[0].name, "pdf-tools");
    }

    #[test]
    fn words_are_found_where_they_begin() {
        let skills: Vec<Candidate> = [
            ("a", "- a: Repdf pdf-x."),
            ("b", "- b: PDFs and ÄRGER."),
            ("c", "- c: Repdf only,\nwith two lines."),
            ("d", "- d: İstanbul."),
        ]
        .map(|(name, line)| Candidate {
            name: name.to_owned(),
            line: line.to_owned(),
            ..Candidate::default()
        })
        .into();
        let index = SearchIndex::new(skills.into());
        let names = |query| -> Vec<_> {
            index.search(query, 10).iter().map(|skill| skill.name.as_str()).collect()
        };
        assert_eq!(names("pdf"), ["a", "b"]);
        assert_eq!(names("pd"), [""; 0], "two letters are no prefix");
        assert_eq!(names("ärger"), ["b"]);
        assert_eq!(names("lines"), ["c"]);
        assert_eq!(names("İstanbul"), ["d"]);
    }

    #[test]
    fn long_queries_are_cut() {
        let line = "- pdf-tools: Fill forms of all kinds, and read them.".to_owned();
        let skill = Candidate { name: "pdf-tools".to_owned(), line, ..Candidate::default() };
        let index = SearchIndex::new(vec![skill; 100].into());
        let clock = std::time::Instant::now();
        let query = format!("pdf {}", "xq ".repeat(330_000));
        assert_eq!(index.search(&query, 10).len(), 10);
        assert!(index.search(&"é".repeat(500_000), 10).is_empty());
        assert!(clock.elapsed().as_secs() < 2, "{:?}", clock.elapsed());
    }
}
