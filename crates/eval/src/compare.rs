//! Compares two evaluations, for example before and after a change of the skill.

use serde::Serialize;

use crate::{
    results::Results,
    stats::{Interval, Summary},
    trace::Arm,
    trigger::{ShownSkill, TriggerResult},
};

/// The differences of two evaluations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalDiff {
    /// Facts that differ, so that the numbers are not directly comparable.
    pub differs: Vec<String>,
    /// The description of the skill before and after, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<(String, String)>,
    /// The uplift in points, before and after.
    pub uplift: (Option<Interval>, Option<Interval>),
    /// Cases whose pass rate with the skill changed, the largest loss first.
    pub cases: Vec<CaseChange>,
    /// Precision and recall for each size of the catalog.
    pub triggers: Vec<TriggerChange>,
    /// What follows from the numbers.
    pub hints: Vec<String>,
}

/// The pass rate of a case with the skill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseChange {
    pub case: String,
    pub before: Option<f64>,
    pub after: Option<f64>,
}

/// Precision and recall before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriggerChange {
    pub catalogue: usize,
    pub precision: (Option<Interval>, Option<Interval>),
    pub recall: (Option<Interval>, Option<Interval>),
}

/// Compares two evaluations.
pub fn diff(before: &Results, after: &Results) -> EvalDiff {
    let mut differs = Vec::new();
    let mut fact = |name: &str, one: &str, other: &str| {
        if one != other {
            differs.push(format!("{name}: {one} before, {other} after"));
        }
    };
    let host = |results: &Results| format!("{} {}", results.host.name, results.host.version);
    fact("agent", &host(before), &host(after));
    fact("model", &before.host.model, &after.host.model);
    fact("evaluations", &before.eval_set.digest, &after.eval_set.digest);
    fact("skill", &before.skill.integrity, &after.skill.integrity);
    let uplift = |results: &Results| results.main().and_then(|main| main.uplift);
    let (old, new) = (&before.skill.description, &after.skill.description);
    let mut diff = EvalDiff {
        differs,
        description: (old != new).then(|| (old.clone(), new.clone())),
        uplift: (uplift(before), uplift(after)),
        cases: case_changes(before, after),
        triggers: trigger_changes(before, after),
        hints: Vec::new(),
    };
    diff.hints = hints(&diff, after);
    diff
}

fn rate(results: &Results, case: &str) -> Option<f64> {
    let case = results.cases.iter().find(|known| known.id == case)?;
    let trials = case.arms.get(&Arm::WithSkill)?;
    let scores: Vec<f64> = trials.iter().filter_map(|trial| trial.score).collect();
    (!scores.is_empty()).then(|| Summary::of(&scores).mean)
}

fn case_changes(before: &Results, after: &Results) -> Vec<CaseChange> {
    let mut names: Vec<&str> = before.cases.iter().map(|case| case.id.as_str()).collect();
    for case in &after.cases {
        if !names.contains(&case.id.as_str()) {
            names.push(&case.id);
        }
    }
    let change = |case: &str| CaseChange {
        case: case.to_owned(),
        before: rate(before, case),
        after: rate(after, case),
    };
    let mut changes: Vec<CaseChange> = names.into_iter().map(change).collect();
    changes.retain(|change| change.before != change.after);
    let delta =
        |change: &CaseChange| change.after.unwrap_or_default() - change.before.unwrap_or_default();
    changes.sort_by(|a, b| delta(a).total_cmp(&delta(b)));
    changes
}

fn trigger_changes(before: &Results, after: &Results) -> Vec<TriggerChange> {
    let of = |results: &Results, size: usize| {
        let found = results.triggers.iter().find(|one| one.catalogue == size);
        (found.and_then(|one| one.precision), found.and_then(|one| one.recall))
    };
    let mut sizes: Vec<usize> =
        before.triggers.iter().chain(&after.triggers).map(|one| one.catalogue).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let change = |catalogue: usize| {
        let (old, new) = (of(before, catalogue), of(after, catalogue));
        TriggerChange { catalogue, precision: (old.0, new.0), recall: (old.1, new.1) }
    };
    sizes.into_iter().map(change).collect()
}

/// Sentences that follow from the numbers alone.
fn hints(diff: &EvalDiff, after: &Results) -> Vec<String> {
    let mut hints = Vec::new();
    for change in &diff.triggers {
        let (Some(before), Some(now)) = change.recall else { continue };
        let words = if now.lower > before.upper {
            "higher"
        } else if now.upper < before.lower {
            "lower"
        } else {
            continue;
        };
        let cause = match diff.description {
            Some(_) => "with the new description",
            None => "with the same description",
        };
        hints.push(format!(
            "with {} skills in the catalog, recall is {words} {cause}: {:.0} % before, {:.0} % after",
            change.catalogue,
            100.0 * before.mean,
            100.0 * now.mean
        ));
    }
    let is_shortened =
        |one: &&TriggerResult| matches!(one.shown, ShownSkill::Cut | ShownSkill::Hidden);
    let hidden = after.triggers.iter().find(is_shortened);
    if let Some(hidden) = hidden {
        hints.push(format!(
            "with {} skills, the model does not see the whole description: shorten it",
            hidden.catalogue
        ));
    }
    if let (Some(before), Some(now)) = diff.uplift
        && before.lower <= now.upper
        && now.lower <= before.upper
    {
        hints.push("the intervals of the uplift overlap: the change may be chance".to_owned());
    }
    hints
}
