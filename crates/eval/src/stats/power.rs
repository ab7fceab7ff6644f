//! Predicts by simulation how often a study with more trials would decide.

use serde::{Deserialize, Serialize};

use super::{Random, Requirement, Verdict, as_f64, verdict};

/// The scores that trials of a case can have. Each is equally likely.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseModel {
    pub with: Vec<f64>,
    pub without: Vec<f64>,
}

/// The promise that a report makes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerPrediction {
    /// Trials of each case and arm.
    pub trials: u32,
    /// The share of simulated studies with this number of trials that decided.
    pub power: f64,
    /// The seed of the simulation.
    pub seed: u64,
    /// The number of simulated studies.
    pub studies: u32,
}

/// The share of studies that should decide before a number of trials is recommended.
const TARGET_POWER: f64 = 0.8;
/// Studies per number of trials while the smallest number is searched.
const SEARCH_STUDIES: u32 = 400;
/// Studies for the number that is reported: the standard error is below one point.
const REPORTED_STUDIES: u32 = 2_000;
/// The largest number of trials that is recommended. More is rarely worth the money.
const MAX_NEEDED: u32 = 300;

/// Simulates one study.
pub(super) fn simulate(models: &[CaseModel], trials: u32, random: &mut Random) -> Vec<Vec<f64>> {
    let mut draw = |scores: &[f64]| scores.get(random.below(scores.len())).copied().unwrap_or(0.0);
    models
        .iter()
        .map(|model| (0..trials).map(|_| draw(&model.with) - draw(&model.without)).collect())
        .collect()
}

/// The share of simulated studies with one of these verdicts.
fn share(
    models: &[CaseModel],
    trials: u32,
    requirement: Requirement,
    seed: u64,
    studies: u32,
    counts: &dyn Fn(Verdict) -> bool,
) -> f64 {
    let mut random = Random::new(seed);
    let mut decided: usize = 0;
    for _ in 0..studies {
        let cases = simulate(models, trials, &mut random);
        decided += usize::from(counts(verdict(&cases, requirement).verdict));
    }
    as_f64(decided) / f64::from(studies.max(1))
}

/// Predicts how often a study decides, if the models are right.
pub fn predict_power(
    models: &[CaseModel],
    trials: u32,
    requirement: Requirement,
    seed: u64,
) -> PowerPrediction {
    let decides = |verdict: Verdict| verdict != Verdict::Underpowered;
    let power = share(models, trials, requirement, seed, REPORTED_STUDIES, &decides);
    PowerPrediction { trials, power, seed, studies: REPORTED_STUDIES }
}

/// The smallest number of trials with which a study decides in at least four of five cases, if the
/// models are right; `None` if 300 trials would not be enough.
pub fn trials_needed(
    models: &[CaseModel],
    requirement: Requirement,
    seed: u64,
) -> Option<PowerPrediction> {
    if models.is_empty() || models.iter().any(|one| one.with.is_empty() || one.without.is_empty()) {
        return None;
    }
    let decides = |verdict: Verdict| verdict != Verdict::Underpowered;
    let is_enough = |trials: u32| {
        share(models, trials, requirement, seed, SEARCH_STUDIES, &decides) >= TARGET_POWER
    };
    let mut enough = 2;
    while !is_enough(enough) {
        enough *= 2;
        if enough > 2 * MAX_NEEDED {
            return None;
        }
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = u32::midpoint(too_few, enough);
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    (enough <= MAX_NEEDED).then(|| predict_power(models, enough, requirement, seed))
}
