//! Measures when a skill is used: precision and recall at several sizes of the catalog.

use serde::{Deserialize, Serialize};

use crate::stats::{Interval, wilson};

/// The sizes of the catalog, including the skill.
pub const CATALOGUE_SIZES: [usize; 3] = [1, 20, 100];

/// The results for one size of the catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerResult {
    /// Number of skills in the catalog.
    pub catalogue: usize,
    /// How the host shows the skill to its model.
    pub shown: ShownSkill,
    pub queries: Vec<QueryResult>,
    /// The share of the queries for which it was used and should be; `None` if it was never used.
    pub precision: Option<Interval>,
    /// The share of the queries for which it should be used and was.
    pub recall: Option<Interval>,
    /// Queries that do not count, because all trials are invalid.
    pub invalid: usize,
}

/// How much of a skill a model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownSkill {
    /// The whole line.
    Whole,
    /// The beginning of its description.
    Cut,
    /// Nothing: the model has to search for it.
    Hidden,
    /// It is not known how the host shows skills.
    Unknown,
}

impl ShownSkill {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Hidden => "not listed",
            Self::Unknown => "unknown",
        }
    }
}

/// The results of one query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryResult {
    pub query: String,
    pub should_trigger: bool,
    /// Valid trials in which the skill was used.
    pub used: u32,
    /// Valid trials.
    pub trials: u32,
    /// Trials that do not count.
    #[serde(default)]
    pub invalid: u32,
    /// Why trials are invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl QueryResult {
    /// Whether the skill counts as used: in at least half of the trials.
    pub fn triggered(&self) -> Option<bool> {
        (self.trials > 0).then(|| 2 * self.used >= self.trials)
    }
}

impl TriggerResult {
    /// Computes the shares from the queries.
    pub fn new(catalogue: usize, shown: ShownSkill, queries: Vec<QueryResult>) -> Self {
        let count = |wanted: bool, found: bool| {
            let is = |query: &&QueryResult| {
                query.should_trigger == wanted && query.triggered() == Some(found)
            };
            queries.iter().filter(is).count()
        };
        let (hit, missed, wrong) = (count(true, true), count(true, false), count(false, true));
        let invalid = queries.iter().filter(|query| query.trials == 0).count();
        let (precision, recall) = (wilson(hit, hit + wrong), wilson(hit, hit + missed));
        Self { catalogue, shown, queries, precision, recall, invalid }
    }
}

/// The catalog of decoys: skills that exist nowhere, with descriptions as authors write them.
const OBJECTS: [(&str, &str); 11] = [
    ("invoice", "invoices"),
    ("calendar", "calendar entries"),
    ("spreadsheet", "spreadsheets"),
    ("contract", "contracts"),
    ("photo", "photos"),
    ("podcast", "podcast episodes"),
    ("database", "database tables"),
    ("newsletter", "newsletters"),
    ("recipe", "recipes"),
    ("server-log", "server logs"),
    ("travel-plan", "travel plans"),
];
const ACTIONS: [(&str, &str, &str); 9] = [
    ("export", "Exports", "convert them into another format or download them"),
    ("review", "Reviews", "check them for mistakes before they are sent"),
    ("summarize", "Summarizes", "know what is in them without reading everything"),
    ("translate", "Translates", "read or publish them in another language"),
    ("archive", "Archives", "store old ones and find them again"),
    ("compare", "Compares", "see what differs between two of them"),
    ("import", "Imports", "load many of them at once from files"),
    ("schedule", "Schedules", "plan when they are due and be reminded"),
    ("anonymize", "Anonymizes", "remove names and addresses from them"),
];

/// A made-up skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoy {
    pub name: String,
    pub description: String,
}

/// Made-up skills whose names differ from `skill`: every third is a near miss, which does something
/// else with the things that the skill is about; the others are about other things.
pub fn decoys(count: usize, skill: &str) -> Vec<Decoy> {
    let mut near = near_misses(skill).into_iter();
    // The actions alternate first, so that a small catalog is mixed, too.
    let mut others = (0..OBJECTS.len() * ACTIONS.len()).map(|index| {
        let turn = index / OBJECTS.len() + index % OBJECTS.len();
        decoy(OBJECTS[index % OBJECTS.len()], ACTIONS[turn % ACTIONS.len()])
    });
    let mut decoys: Vec<Decoy> = Vec::new();
    while decoys.len() < count {
        let next = match decoys.len() % 3 {
            0 => near.next().or_else(|| others.next()),
            _ => others.next(),
        };
        let Some(next) = next else { break };
        if next.name != skill && !decoys.iter().any(|known| known.name == next.name) {
            decoys.push(next);
        }
    }
    decoys
}

/// Skills about the things in the name of a skill.
fn near_misses(skill: &str) -> Vec<Decoy> {
    let is_action = |word: &&str| ACTIONS.iter().any(|(action, ..)| action == word);
    let words: Vec<&str> = skill
        .split(['-', '_', ' ', '.'])
        .filter(|word| !word.is_empty() && !is_action(word))
        .collect();
    let (slug, object) = (words.join("-"), words.join(" "));
    if slug.is_empty() {
        return Vec::new();
    }
    ACTIONS.iter().map(|action| decoy((&slug, &object), *action)).collect()
}

fn decoy((slug, objects): (&str, &str), (action, does, when): (&str, &str, &str)) -> Decoy {
    Decoy {
        name: format!("{slug}-{action}"),
        description: format!("{does} {objects}. Use when the user wants to {when}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(should_trigger: bool, used: u32, trials: u32) -> QueryResult {
        QueryResult { query: String::new(), should_trigger, used, trials, invalid: 0, reason: None }
    }

    #[test]
    fn precision_and_recall_come_from_majorities() {
        let queries = vec![
            query(true, 2, 3),
            query(true, 1, 2),
            query(true, 1, 3),
            query(false, 0, 3),
            query(false, 3, 3),
            query(true, 0, 0),
        ];
        let result = TriggerResult::new(20, ShownSkill::Whole, queries);
        let mean = |interval: Option<Interval>| (interval.unwrap().mean * 1000.0).round();
        assert_eq!((mean(result.precision), mean(result.recall)), (667.0, 667.0));
        assert_eq!(result.invalid, 1);
        let unused = TriggerResult::new(1, ShownSkill::Cut, vec![query(true, 0, 3)]);
        assert!(unused.precision.is_none() && unused.recall.unwrap().upper < 0.99);
    }

    #[test]
    fn ninety_nine_decoys_differ() {
        let mut names: Vec<_> = decoys(99, "pdf").into_iter().map(|decoy| decoy.name).collect();
        assert_eq!(names.len(), 99);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 99);
        assert!(decoys(99, "invoice-export").iter().all(|decoy| decoy.name != "invoice-export"));
        let near = |count, skill: &str| {
            decoys(count, skill)
                .iter()
                .filter(|one| one.description.contains("sales report"))
                .count()
        };
        assert_eq!((near(19, "sales-report"), near(99, "export-sales-report")), (7, 9));
    }
}
