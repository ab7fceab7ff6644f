//! Searches the available skills by keywords.

use std::cmp::Reverse;

use crate::disclosure::{Candidate, UnusableSkill};

/// Scores of a word in the name, and in the rest of the line.
const NAME_SCORE: usize = 8;
const LINE_SCORE: usize = 2;
/// The score of a matching prefix.
const PREFIX_SCORE: usize = 1;

/// Bytes and words of a query that are looked at: more than anybody writes to find something.
const MAX_QUERY_BYTES: usize = 2_000;
const MAX_WORDS: usize = 64;

/// The skills that fit best. One that fits in nothing is not found; without words the first are.
pub fn search<'a>(skills: &'a [Candidate], query: &str, max_results: usize) -> Vec<&'a Candidate> {
    let query_words = query_words(query);
    let mut found: Vec<(usize, &Candidate)> = skills
        .iter()
        .map(|skill| (score(skill, &query_words), skill))
        .filter(|(score, _)| *score > 0 || query_words.is_empty())
        .collect();
    found.sort_by_key(|(score, skill)| (Reverse(*score), Reverse(skill.pinned), &skill.name));
    found.into_iter().take(max_results).map(|(_, skill)| skill).collect()
}

/// Those of some skills that cannot be used whose names have one of the words.
pub(super) fn named<'a>(
    unusable: &'a [UnusableSkill],
    query: &str,
) -> impl Iterator<Item = &'a UnusableSkill> {
    let query_words = query_words(query);
    let fits = move |name: &str| words(name).iter().any(|word| query_words.contains(word));
    unusable.iter().filter(move |skill| fits(&skill.name))
}

fn score(skill: &Candidate, query_words: &[String]) -> usize {
    let (name, line) = (words(&skill.name), words(&skill.line));
    let each = query_words.iter().map(|word| {
        let begins = |known: &String| word.len() > 2 && known.starts_with(word.as_str());
        match () {
            () if name.contains(word) => NAME_SCORE,
            () if line.contains(word) => LINE_SCORE,
            () if line.iter().any(begins) => PREFIX_SCORE,
            () => 0,
        }
    });
    each.sum()
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
        let names = |query| -> Vec<_> {
            search(&skills, query, 10).iter().map(|skill| skill.name.as_str()).collect()
        };
        assert_eq!(names("PDF"), ["pdf-tools", "mail"]);
        assert_eq!(names("weath"), ["weather"]);
        assert_eq!(names("nothing at all").len(), 0);
        assert_eq!(names("").len(), 3);
        assert_eq!(search(&skills, "", 1).len(), 1);
    }

    #[test]
    fn long_queries_are_cut() {
        let line = "- pdf-tools: Fill forms of all kinds, and read them.".to_owned();
        let skill = Candidate { name: "pdf-tools".to_owned(), line, ..Candidate::default() };
        let skills = vec![skill; 100];
        let clock = std::time::Instant::now();
        let query = format!("pdf {}", "xq ".repeat(330_000));
        assert_eq!(search(&skills, &query, 10).len(), 10);
        assert!(search(&skills, &"é".repeat(500_000), 10).is_empty());
        assert!(clock.elapsed().as_secs() < 2, "{:?}", clock.elapsed());
    }
}
