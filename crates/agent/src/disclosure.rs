//! Builds the list of available skills for a model's system prompt, within a size budget.
//!
//! Pinned skills come first, then the most recently used. If not all fit, long lines are shortened
//! before any skill is left out, all to the same maximum length, so that no description is cut in
//! favor of another. The result is called a preamble.

pub mod hosts;

use std::{cmp::Reverse, fmt::Write as _};

use savoir_knowledge::chunk::estimate_tokens;
use savoir_lint::harmless;
use savoir_skill::{Skill, dialect::personal_agent::preamble_line};
use serde::Serialize;

/// Minimum number of tokens of a line, besides the name, that are worth showing.
const MIN_LINE_TOKENS: usize = 12;
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
    fn least(&self, whole: usize) -> usize {
        (estimate_tokens(&self.name) + 2 + MIN_LINE_TOKENS).min(whole)
    }
}

/// The list of skills for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preamble {
    /// The listed skills, in order.
    pub shown: Vec<PreambleLine>,
    /// The names of skills that did not fit, in order.
    pub left_out: Vec<String>,
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
        let whole: Vec<usize> = skills.iter().map(Candidate::tokens).collect();
        let budget_or_all = budget.unwrap_or(usize::MAX);
        // The estimate of lines together is the sum of theirs.
        let tokens = whole.iter().sum::<usize>();
        if tokens <= budget_or_all {
            let shown = skills.into_iter().map(PreambleLine::whole).collect();
            return Self { shown, tokens, budget, ..Self::default() };
        }
        let least: Vec<usize> =
            skills.iter().zip(&whole).map(|(skill, whole)| skill.least(*whole)).collect();
        let (count, room) = count_that_fit(&least, budget_or_all);
        let most = max_line_tokens(&whole[..count], &least[..count], room);
        let left_out = skills.split_off(count).into_iter().map(|skill| skill.name).collect();
        let lengths = whole.iter().zip(&least).map(|(whole, least)| (*whole).min(most.max(*least)));
        let shown =
            skills.into_iter().zip(lengths).map(|(skill, most)| PreambleLine::within(skill, most));
        Self::of(shown.collect(), left_out, budget)
    }

    fn of(shown: Vec<PreambleLine>, left_out: Vec<String>, budget: Option<usize>) -> Self {
        let mut preamble = Self { shown, left_out, budget, ..Self::default() };
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
        let whole = text.len();
        if !self.left_out.is_empty() {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "({} more: find them with search_skills)", self.left_out.len());
        }
        if self.budget.is_some_and(|budget| estimate_tokens(&text) > budget) {
            text.truncate(whole);
        }
        text
    }
}

impl PreambleLine {
    fn whole(skill: Candidate) -> Self {
        Self { name: skill.name, line: skill.line, truncated: false }
    }

    fn within(skill: Candidate, most: usize) -> Self {
        match shorten_line(&skill.line, most) {
            Some(line) => Self { name: skill.name, line, truncated: true },
            None => Self::whole(skill),
        }
    }
}

/// The number of skills that can be shown, and the number of tokens for them.
fn count_that_fit(least: &[usize], budget: usize) -> (usize, usize) {
    let all: usize = least.iter().sum();
    let room = if all <= budget { budget } else { budget.saturating_sub(REMAINDER_TOKENS) };
    let mut used = 0;
    let fit = least.iter().take_while(|least| {
        used += **least;
        used <= room
    });
    (fit.count(), room)
}

/// The maximum number of tokens per line with which all lines fit.
fn max_line_tokens(whole: &[usize], least: &[usize], room: usize) -> usize {
    let needed = |most: usize| -> usize {
        whole.iter().zip(least).map(|(whole, least)| (*whole).min(most.max(*least))).sum()
    };
    let (mut fits, mut too_much) = (0, whole.iter().copied().max().unwrap_or_default() + 1);
    while too_much - fits > 1 {
        let middle = usize::midpoint(fits, too_much);
        if needed(middle) <= room { fits = middle } else { too_much = middle }
    }
    fits
}

/// The beginning of a line, cut between words; `None` if all of it fits.
fn shorten_line(line: &str, most: usize) -> Option<String> {
    if estimate_tokens(line) <= most {
        return None;
    }
    let room = most.saturating_sub(estimate_tokens(ELLIPSIS));
    let (mut end, mut used) = (0, 0);
    for word in line.split_inclusive(char::is_whitespace) {
        used += estimate_tokens(word);
        if used > room {
            break;
        }
        end += word.len();
    }
    Some(format!("{}{ELLIPSIS}", line[..end].trim_end()))
}

#[cfg(test)]
mod tests {
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
        assert!(preamble.left_out.is_empty() && preamble.shown.iter().all(|one| !one.truncated));
        assert_eq!(Preamble::new(Vec::new(), Some(0)).text(), "");
    }

    #[test]
    fn tokens_of_all_lines_are_those_of_the_text() {
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
        assert!(preamble.left_out.is_empty());
        assert!(preamble.tokens <= 200, "{}", preamble.tokens);
        let lengths: Vec<_> = preamble.shown.iter().map(|one| estimate_tokens(&one.line)).collect();
        assert!(lengths[0].abs_diff(lengths[1]) <= 1, "{lengths:?}");
        assert!(preamble.shown[0].line.ends_with(ELLIPSIS) && preamble.shown[0].truncated);
        assert!(!preamble.shown[2].truncated);
        assert!(preamble.tokens > 190, "room is used: {}", preamble.tokens);
    }

    #[test]
    fn skills_that_do_not_fit_are_counted() {
        let mut skills: Vec<_> =
            (0..100).map(|n| candidate(&format!("skill-{n:03}"), 50)).collect();
        skills[99].pinned = true;
        let preamble = Preamble::new(skills, Some(300));
        assert!(preamble.tokens <= 300, "{}", preamble.tokens);
        assert_eq!(preamble.shown[0].name, "skill-099");
        assert_eq!(preamble.shown.len() + preamble.left_out.len(), 100);
        assert!(preamble.shown.len() >= 10, "{}", preamble.shown.len());
        assert!(preamble.text().contains(&format!("({} more", preamble.left_out.len())));
    }

    #[test]
    fn tiny_budgets_are_respected() {
        for budget in 0..80 {
            let skills = vec![candidate("a", 50), candidate("a-rather-long-name", 50)];
            let preamble = Preamble::new(skills, Some(budget));
            assert!(preamble.tokens <= budget, "{budget}: {}", preamble.text());
            assert_eq!(preamble.shown.len() + preamble.left_out.len(), 2);
        }
    }
}
