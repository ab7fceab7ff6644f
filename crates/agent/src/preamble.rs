//! Builds the list of available skills for a model's system prompt, within a size budget.
//!
//! Pinned skills come first, then the most recently used. If the lines exceed the budget, long lines
//! are first shortened to one common length; only then are skills left out. The result is called a
//! preamble.

pub mod hosts;

use std::{cmp::Reverse, fmt::Write as _};

use savoir_knowledge::chunk::estimate_tokens;
use savoir_lint::harmless;
use savoir_skill::{Skill, dialect::personal_agent::preamble_line};
use serde::Serialize;

/// Minimum number of tokens of a line, besides the name, that are worth showing.
const MIN_LINE_TOKENS: usize = 12;
/// Maximum length of a description, in every dialect.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Tokens of the sentence that says how many more skills there are.
const REMAINDER_TOKENS: usize = 24;
/// The mark where a line was cut.
const ELLIPSIS: &str = "…";

/// A skill that may be listed for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The name by which the model loads the skill.
    pub name: String,
    /// The complete line.
    pub line: String,
    /// Whether the user pinned the skill.
    pub pinned: bool,
    /// The time of the last use, in any unit that grows.
    pub last_used: Option<i64>,
    /// The modes in which the skill is offered; empty for all.
    pub modes: Vec<String>,
    /// The estimated number of tokens of the line, if it is known.
    pub(crate) tokens: Option<usize>,
}

impl Candidate {
    /// Creates a candidate that was never used.
    pub fn new(skill: &Skill) -> Self {
        let description = skill.truncated_description();
        let cut = description.char_indices().nth(MAX_DESCRIPTION_CHARS);
        let description = cut.map_or(description, |(end, _)| &description[..end]);
        let line = preamble_line(&skill.name, description, skill.when_to_use.as_deref());
        // Escapes invisible characters, so that the user can see what a model reads.
        let line = harmless(&line).into_owned();
        let modes = skill.policy.modes.clone();
        let tokens = Some(estimate_tokens(&line));
        Self { name: skill.name.clone(), line, pinned: false, last_used: None, modes, tokens }
    }

    /// Creates a candidate from the line of an earlier run.
    pub(crate) fn cached(name: String, line: String, tokens: usize) -> Self {
        Self { name, line, tokens: Some(tokens), ..Self::default() }
    }

    /// The estimated number of tokens of the line.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens.unwrap_or_else(|| estimate_tokens(&self.line))
    }

    /// Whether the line does not say what the skill does.
    pub fn has_no_description(&self) -> bool {
        self.line.trim_end().strip_suffix(':').is_some_and(|line| line.ends_with(&self.name))
    }

    /// The minimum number of tokens that the line needs to be shown.
    fn min_tokens(&self, full: usize) -> usize {
        (estimate_tokens(&self.name) + 2 + MIN_LINE_TOKENS).min(full)
    }
}

/// The list of skills for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preamble {
    /// The listed skills, in order.
    pub shown: Vec<PreambleLine>,
    /// The names of skills that did not fit, in order.
    #[serde(rename = "left_out")]
    pub omitted: Vec<String>,
    /// Skills that cannot be used at all, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<UnusableSkill>,
    /// The estimated number of tokens of the text.
    pub tokens: usize,
    /// The maximum number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnusableSkill {
    pub name: String,
    pub reason: String,
}

/// A line of a preamble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreambleLine {
    /// The name of the skill.
    pub name: String,
    pub line: String,
    /// Whether the line was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl Preamble {
    /// Builds the list for some skills. Without a budget, all lines are complete.
    pub fn new(mut skills: Vec<Candidate>, budget: Option<usize>) -> Self {
        skills.sort_by(|a, b| {
            let rank = |skill: &Candidate| (Reverse(skill.pinned), Reverse(skill.last_used));
            rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
        });
        let full_lengths: Vec<usize> = skills.iter().map(Candidate::tokens).collect();
        let max_total = budget.unwrap_or(usize::MAX);
        // Estimates of single lines add up to the estimate of the text.
        let tokens = full_lengths.iter().sum::<usize>();
        if tokens <= max_total {
            let shown = skills.into_iter().map(PreambleLine::full).collect();
            return Self { shown, tokens, budget, ..Self::default() };
        }
        let min_lengths: Vec<usize> =
            skills.iter().zip(&full_lengths).map(|(skill, full)| skill.min_tokens(*full)).collect();
        let (count, available) = count_that_fit(&min_lengths, max_total);
        let max_tokens = max_line_tokens(&full_lengths[..count], &min_lengths[..count], available);
        let omitted = skills.split_off(count).into_iter().map(|skill| skill.name).collect();
        let lengths = full_lengths
            .iter()
            .zip(&min_lengths)
            .map(|(full, min)| (*full).min(max_tokens.max(*min)));
        let shown = skills
            .into_iter()
            .zip(lengths)
            .map(|(skill, max_tokens)| PreambleLine::within(skill, max_tokens));
        Self::from_lines(shown.collect(), omitted, budget)
    }

    fn from_lines(shown: Vec<PreambleLine>, omitted: Vec<String>, budget: Option<usize>) -> Self {
        let mut preamble = Self { shown, omitted, budget, ..Self::default() };
        preamble.tokens = estimate_tokens(&preamble.text());
        preamble
    }

    /// The lines, and a sentence about the number of other skills, if there is room for it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for shown in &self.shown {
            text.push_str(&shown.line);
            text.push('\n');
        }
        let lines_end = text.len();
        if !self.omitted.is_empty() {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "({} more: find them with search_skills)", self.omitted.len());
        }
        if self.budget.is_some_and(|budget| estimate_tokens(&text) > budget) {
            text.truncate(lines_end);
        }
        text
    }
}

impl PreambleLine {
    fn full(skill: Candidate) -> Self {
        Self { name: skill.name, line: skill.line, truncated: false }
    }

    fn within(skill: Candidate, max_tokens: usize) -> Self {
        match shorten_line(&skill.line, max_tokens) {
            Some(line) => Self { name: skill.name, line, truncated: true },
            None => Self::full(skill),
        }
    }
}

/// The number of skills that can be shown, and the number of tokens for them.
fn count_that_fit(min_lengths: &[usize], budget: usize) -> (usize, usize) {
    let all: usize = min_lengths.iter().sum();
    let available = if all <= budget { budget } else { budget.saturating_sub(REMAINDER_TOKENS) };
    let mut used = 0;
    let fit = min_lengths.iter().take_while(|length| {
        used += **length;
        used <= available
    });
    (fit.count(), available)
}

/// The maximum number of tokens per line with which all lines fit.
fn max_line_tokens(full_lengths: &[usize], min_lengths: &[usize], available: usize) -> usize {
    let needed = |max_tokens: usize| -> usize {
        full_lengths
            .iter()
            .zip(min_lengths)
            .map(|(full, min)| (*full).min(max_tokens.max(*min)))
            .sum()
    };
    let (mut fits, mut too_much) = (0, full_lengths.iter().copied().max().unwrap_or_default() + 1);
    while too_much - fits > 1 {
        let middle = usize::midpoint(fits, too_much);
        if needed(middle) <= available { fits = middle } else { too_much = middle }
    }
    fits
}

/// The beginning of a line, cut between words; `None` if all of it fits.
fn shorten_line(line: &str, max_tokens: usize) -> Option<String> {
    if estimate_tokens(line) <= max_tokens {
        return None;
    }
    let available = max_tokens.saturating_sub(estimate_tokens(ELLIPSIS));
    let (mut end, mut used) = (0, 0);
    for word in line.split_inclusive(char::is_whitespace) {
        used += estimate_tokens(word);
        if used > available {
            break;
        }
        end += word.len();
    }
    Some(format!("{}{ELLIPSIS}", line[..end].trim_end()))
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Dialect, Source, read_as};

    use super::*;

    fn candidate(name: &str, words: usize) -> Candidate {
        let description = vec!["word"; words].join(" ");
        let line = preamble_line(name, &description, None);
        Candidate { name: name.to_owned(), line, ..Candidate::default() }
    }

    #[test]
    fn all_skills_are_listed_if_they_fit() {
        let preamble = Preamble::new(vec![candidate("b", 3), candidate("a", 3)], None);
        assert_eq!(preamble.text(), "- a: word word word\n- b: word word word\n");
        assert!(preamble.omitted.is_empty() && preamble.shown.iter().all(|one| !one.truncated));
        assert_eq!(Preamble::new(Vec::new(), Some(0)).text(), "");
    }

    #[test]
    fn descriptions_have_at_most_1024_characters() {
        for dialect in [Dialect::AGENTSKILLS, Dialect::CLAUDE_CODE, Dialect::PERSONAL_AGENT] {
            let text = format!("---\nname: a\ndescription: {}\n---\nGo.\n", "ä".repeat(1100));
            let source = Source::from_bytes(text.into()).unwrap();
            let skill = read_as(source, dialect, None).skill;
            assert_eq!(Candidate::new(&skill).line, format!("- a: {}", "ä".repeat(1024)));
        }
    }

    #[test]
    fn preamble_tokens_match_text_estimate() {
        let preamble = Preamble::new(vec![candidate("b-2", 30), candidate("a", 3)], None);
        assert_eq!(preamble.tokens, estimate_tokens(&preamble.text()));
    }

    #[test]
    fn candidates_without_a_description_are_recognized() {
        assert!(candidate("a", 0).has_no_description());
        assert!(!candidate("a", 1).has_no_description());
    }

    #[test]
    fn pinned_and_recently_used_skills_come_first() {
        let mut skills: Vec<_> = ["a", "b", "c", "d"].map(|name| candidate(name, 1)).into();
        skills[3].pinned = true;
        skills[1].last_used = Some(5);
        skills[2].last_used = Some(9);
        let preamble = Preamble::new(skills, None);
        let names: Vec<_> = preamble.shown.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["d", "c", "b", "a"]);
    }

    #[test]
    fn long_lines_are_cut_to_the_same_length_first() {
        let skills = vec![candidate("long", 400), candidate("longer", 900), candidate("short", 5)];
        let preamble = Preamble::new(skills, Some(200));
        assert!(preamble.omitted.is_empty());
        assert!(preamble.tokens <= 200, "{}", preamble.tokens);
        let lengths: Vec<_> = preamble.shown.iter().map(|one| estimate_tokens(&one.line)).collect();
        assert!(lengths[0].abs_diff(lengths[1]) <= 1, "{lengths:?}");
        assert!(preamble.shown[0].line.ends_with(ELLIPSIS) && preamble.shown[0].truncated);
        assert!(!preamble.shown[2].truncated);
        assert!(preamble.tokens > 190, "the budget is used: {}", preamble.tokens);
    }

    #[test]
    fn skills_that_do_not_fit_are_counted() {
        let mut skills: Vec<_> =
            (0..100).map(|n| candidate(&format!("skill-{n:03}"), 50)).collect();
        skills[99].pinned = true;
        let preamble = Preamble::new(skills, Some(300));
        assert!(preamble.tokens <= 300, "{}", preamble.tokens);
        assert_eq!(preamble.shown[0].name, "skill-099");
        assert_eq!(preamble.shown.len() + preamble.omitted.len(), 100);
        assert!(preamble.shown.len() >= 10, "{}", preamble.shown.len());
        assert!(preamble.text().contains(&format!("({} more", preamble.omitted.len())));
    }

    #[test]
    fn tiny_budgets_are_respected() {
        for budget in 0..80 {
            let skills = vec![candidate("a", 50), candidate("a-rather-long-name", 50)];
            let preamble = Preamble::new(skills, Some(budget));
            assert!(preamble.tokens <= budget, "{budget}: {}", preamble.text());
            assert_eq!(preamble.shown.len() + preamble.omitted.len(), 2);
        }
    }
}
