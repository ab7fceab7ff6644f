//! Searches the available skills by keywords.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::disclosure::{Candidate, UnusableSkill};

/// Scores of a word in the name, and in the rest of the description line.
const NAME_SCORE: usize = 8;
const LINE_SCORE: usize = 2;
/// The score of a matching prefix.
const PREFIX_SCORE: usize = 1;

/// Bytes and words of a query that are used, more than a search needs.
const MAX_QUERY_BYTES: usize = 2_000;
const MAX_WORDS: usize = 64;

/// The words of skills, with the positions of the skills that have them. A search looks only at
/// skills that have a word of the query, so that it stays fast with many skills.
#[derive(Debug)]
pub(super) struct SearchIndex {
    skills: Arc<[Candidate]>,
    names: HashMap<String, Vec<usize>>,
    lines: BTreeMap<String, Vec<usize>>,
}

impl SearchIndex {
    pub(super) fn new(skills: Arc<[Candidate]>) -> Self {
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, skill) in skills.iter().enumerate() {
            for word in words(&skill.name) {
                names.entry(word).or_default().push(position);
            }
            for word in words(&skill.line) {
                lines.entry(word).or_default().push(position);
            }
        }
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
            let mut rate = |positions: &[usize], score: usize| {
                for position in positions {
                    if best[*position] == 0 {
                        rated.push(*position);
                    }
                    best[*position] = score.max(best[*position]);
                }
            };
            if let Some(positions) = self.names.get(word) {
                rate(positions, NAME_SCORE);
            }
            if let Some(positions) = self.lines.get(word) {
                rate(positions, LINE_SCORE);
            }
            if word.len() > 2 {
                let known = self.lines.range(word.clone()..);
                for (_, positions) in known.take_while(|(known, _)| known.starts_with(word)) {
                    rate(positions, PREFIX_SCORE);
                }
            }
            for position in rated.drain(..) {
                scores[position] += std::mem::take(&mut best[position]);
            }
        }
        scores
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
