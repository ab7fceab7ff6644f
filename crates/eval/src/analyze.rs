//! Compares the arms of an evaluation and concludes.

use crate::{
    gate::Gate,
    results::{
        CaseResult, Comparison, Conclusion, Difference, FlakyCase, LeftOut, TrialOutcome,
        TrialResult,
    },
    stats::{
        CaseModel, Interval, MIN_PAIRS, Requirement, SIGNIFICANCE, SignTest, Summary, Verdict,
        interval, sign_test, trials_needed, verdict, wilson,
    },
    trace::Arm,
    trigger::TriggerResult,
};

/// The seed of all simulations of a report, which shows it.
pub const SEED: u64 = 20_261_118;
/// The largest share of invalid trials of a comparison that may pass: what is missing could have
/// failed.
const MAX_INVALID_SHARE: f64 = 0.1;
/// The largest number of trigger queries that is recommended.
const MAX_QUERIES_NEEDED: usize = 500;

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
}

impl Prices {
    pub fn cost(self, usage: crate::trace::TokenUsage) -> f64 {
        let tokens = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / 1e6;
        tokens(usage.input) * self.input + tokens(usage.output) * self.output
    }
}

/// Compares every arm with its baseline.
pub fn compare(cases: &[CaseResult], arms: &[Arm], prices: Option<Prices>) -> Vec<Comparison> {
    let has = |arm| !cases.is_empty() && arms.contains(&arm);
    let pairs = [
        (Arm::WithSkill, Arm::WithoutSkill),
        (Arm::WithSkill, Arm::Previous),
        (Arm::WithDecoys, Arm::WithoutSkill),
    ];
    let pairs = pairs.into_iter().filter(|(arm, baseline)| has(*arm) && has(*baseline));
    pairs.map(|(arm, baseline)| compare_arms(cases, arm, baseline, prices)).collect()
}

fn compare_arms(
    cases: &[CaseResult],
    arm: Arm,
    baseline: Arm,
    prices: Option<Prices>,
) -> Comparison {
    let mut all = Vec::with_capacity(cases.len());
    let (mut regressions, mut suspected, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases {
        let (one, other) = (trials(case, arm), trials(case, baseline));
        let pairs = paired(one, other);
        if pairs.len() < MIN_PAIRS {
            let reason = why_left_out(one, other);
            left_out.push(LeftOut { case: case.id.clone(), reason });
        } else if let Some(is_sure) = regression(one, other, &pairs) {
            if is_sure { &mut regressions } else { &mut suspected }.push(case.id.clone());
        }
        all.push(pairs);
    }
    let usable = all.iter().filter(|pairs| pairs.len() >= MIN_PAIRS);
    let summarize = |number: &dyn Fn(&TrialResult) -> f64| {
        let of = |which: Arm| -> Summary {
            let values = cases.iter().flat_map(|case| trials(case, which));
            let values: Vec<f64> = values.filter(|one| is_valid(one)).map(number).collect();
            Summary::of(&values)
        };
        let (arm, baseline) = (of(arm), of(baseline));
        Difference { arm, baseline, delta: arm.mean - baseline.mean }
    };
    Comparison {
        arm,
        baseline,
        uplift: interval(&all).map(Interval::points),
        sign_test: sign_test(usable),
        tokens: summarize(&|one| as_number(one.usage.total())),
        seconds: summarize(&|one| as_number(one.duration_ms) / 1e3),
        steps: summarize(&|one| f64::from(one.steps)),
        cost: prices.map(|prices| summarize(&|one| prices.cost(one.usage))),
        regressions,
        suspected_regressions: suspected,
        left_out,
    }
}

fn as_number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn trials(case: &CaseResult, arm: Arm) -> &[TrialResult] {
    case.arms.get(&arm).map_or(&[], Vec::as_slice)
}

fn is_valid(trial: &TrialResult) -> bool {
    trial.score.is_some()
}

/// The differences of trials with the same number.
fn paired(one: &[TrialResult], other: &[TrialResult]) -> Vec<f64> {
    let pair = |trial: &TrialResult| {
        let same = other.iter().find(|candidate| candidate.trial == trial.trial)?;
        Some(trial.score? - same.score?)
    };
    one.iter().filter_map(pair).collect()
}

fn why_left_out(one: &[TrialResult], other: &[TrialResult]) -> String {
    let reason = one.iter().chain(other).find_map(|trial| trial.reason.as_deref());
    match reason {
        Some(reason) => reason.to_owned(),
        None if one.is_empty() || other.is_empty() => "it has nothing to check".to_owned(),
        None => "one trial decides nothing".to_owned(),
    }
}

/// Whether a case is worse: `Some(true)` if it is not chance, `Some(false)` if it looks so.
fn regression(one: &[TrialResult], other: &[TrialResult], pairs: &[f64]) -> Option<bool> {
    let SignTest { p_worse, .. } = sign_test([&pairs.to_vec()]);
    if p_worse <= 2.0 * SIGNIFICANCE {
        return Some(true);
    }
    let rate = |trials: &[TrialResult]| {
        let scores: Vec<f64> = trials.iter().filter_map(|trial| trial.score).collect();
        Summary::of(&scores).mean
    };
    (rate(other) - rate(one) >= 0.5).then_some(false)
}

/// Concludes from the comparison with the agent without the skill, and from trigger queries.
pub fn conclude(
    cases: &[CaseResult],
    comparison: Option<&Comparison>,
    triggers: &[TriggerResult],
    gate: Option<Gate>,
) -> Conclusion {
    let only_triggers = cases.is_empty() && !triggers.is_empty();
    let gate = gate.unwrap_or(if only_triggers { Gate::TRIGGERS } else { Gate::HELPS });
    let all = cases.iter().flat_map(|case| case.arms.values().flatten());
    let (mut all_trials, mut invalid_trials) = (0, 0);
    for trial in all {
        all_trials += 1;
        invalid_trials += usize::from(trial.outcome == TrialOutcome::Invalid);
    }
    for query in triggers.iter().flat_map(|one| &one.queries) {
        all_trials += (query.trials + query.invalid) as usize;
        invalid_trials += query.invalid as usize;
    }
    let mut conclusion = Conclusion {
        verdict: Verdict::Underpowered,
        gate,
        reasons: Vec::new(),
        needed: None,
        flaky: flaky(cases),
        invalid_trials,
        all_trials,
    };
    let mut verdicts = Vec::new();
    if gate.uplift.is_some() || gate.regressions.is_some() {
        if let Some(comparison) = comparison {
            check_comparison(cases, comparison, &mut conclusion, &mut verdicts);
        } else {
            verdicts.push(Verdict::Underpowered);
            conclusion.reasons.push("there is no case to compare the arms with".to_owned());
        }
    }
    check_triggers(triggers, &mut conclusion, &mut verdicts);
    conclusion.verdict = combined(&verdicts);
    let missing = missing_share(cases, comparison).max(missing_queries(triggers, gate));
    if conclusion.verdict == Verdict::Pass && missing > MAX_INVALID_SHARE {
        conclusion.verdict = Verdict::Underpowered;
        conclusion.reasons.push(format!(
            "{:.0} % of the trials of one arm are invalid, at most {:.0} % may be missing",
            100.0 * missing,
            100.0 * MAX_INVALID_SHARE
        ));
    }
    conclusion
}

/// Checks the conditions of the gate about the arms.
fn check_comparison(
    cases: &[CaseResult],
    comparison: &Comparison,
    conclusion: &mut Conclusion,
    verdicts: &mut Vec<Verdict>,
) {
    let (arm, baseline) = (comparison.arm, comparison.baseline);
    let pairs: Vec<Vec<f64>> =
        cases.iter().map(|case| paired(trials(case, arm), trials(case, baseline))).collect();
    if let Some(requirement) = conclusion.gate.uplift {
        let found = verdict(&pairs, requirement).verdict;
        verdicts.push(found);
        conclusion.reasons.push(explain_uplift(found, comparison, requirement));
        if found == Verdict::Underpowered {
            conclusion.needed = needed(cases, arm, baseline, requirement);
        }
    }
    if let Some(most) = conclusion.gate.regressions {
        let (found, reason) = check_regressions(comparison, most);
        verdicts.push(found);
        conclusion.reasons.push(reason);
    }
}

/// The larger share of invalid trials of two arms.
fn missing_share(cases: &[CaseResult], comparison: Option<&Comparison>) -> f64 {
    let counted = |which: Arm| {
        let trials = cases.iter().flat_map(|case| trials(case, which));
        let (mut all, mut missing) = (0_u32, 0_u32);
        for trial in trials {
            all += 1;
            missing += u32::from(!is_valid(trial));
        }
        f64::from(missing) / f64::from(all.max(1))
    };
    comparison.map_or(0.0, |one| counted(one.arm).max(counted(one.baseline)))
}

/// The share of invalid trials of trigger queries, if the gate is about them.
fn missing_queries(triggers: &[TriggerResult], gate: Gate) -> f64 {
    if gate.precision.is_none() && gate.recall.is_none() {
        return 0.0;
    }
    let (mut all, mut missing) = (0_u32, 0_u32);
    for query in triggers.iter().flat_map(|one| &one.queries) {
        all += query.trials + query.invalid;
        missing += query.invalid;
    }
    f64::from(missing) / f64::from(all.max(1))
}

/// The precision or the recall of trigger queries.
type Share = fn(&TriggerResult) -> Option<Interval>;

/// Checks the conditions of the gate about trigger queries, for every size of the catalog.
fn check_triggers(
    triggers: &[TriggerResult],
    conclusion: &mut Conclusion,
    verdicts: &mut Vec<Verdict>,
) {
    let (precision, recall) = (conclusion.gate.precision, conclusion.gate.recall);
    let conditions: [(&str, Option<Requirement>, Share); 2] =
        [("precision", precision, |one| one.precision), ("recall", recall, |one| one.recall)];
    for (name, requirement, share) in conditions {
        let Some(requirement) = requirement else { continue };
        if triggers.is_empty() {
            verdicts.push(Verdict::Underpowered);
            conclusion.reasons.push(format!("there are no trigger queries to measure the {name}"));
        }
        for one in triggers {
            let (found, reason) = check_share(name, share(one), requirement, one.catalogue);
            verdicts.push(found);
            conclusion.reasons.push(reason);
        }
    }
}

fn check_share(
    name: &str,
    found: Option<Interval>,
    requirement: Requirement,
    catalogue: usize,
) -> (Verdict, String) {
    let wanted = wanted(requirement);
    let among = match catalogue {
        1 => "with the skill alone".to_owned(),
        count => format!("among {count} skills"),
    };
    let Some(found) = found else {
        let why = match name {
            "precision" => "the skill was never used",
            _ => "no query should use the skill, or no trial is valid",
        };
        return (Verdict::Underpowered, format!("{among}, the {name} is unknown: {why}"));
    };
    let bounds = format!(
        "{among}, the {name} is from {:.0} to {:.0} %",
        100.0 * found.lower,
        100.0 * found.upper
    );
    if requirement.is_met_by(found.lower) {
        return (Verdict::Pass, format!("{bounds}, which is {wanted} %"));
    }
    if requirement.is_missed_by(found.upper) {
        return (Verdict::Fail, format!("{bounds}, and {wanted} % is required"));
    }
    let more = queries_needed(found.mean, requirement).map(|count| {
        format!("; {count} queries that count for it would decide if the share stays")
    });
    let more = more.unwrap_or_default();
    (
        Verdict::Underpowered,
        format!("{bounds}, which does not decide whether it is {wanted} %{more}"),
    )
}

/// The number of queries with which a share would be decided.
fn queries_needed(share: f64, requirement: Requirement) -> Option<usize> {
    (2..=MAX_QUERIES_NEEDED).find(|count| {
        let hits = share * crate::stats::as_f64(*count);
        // Rounded against the direction that is to be shown.
        let is_above = share > requirement.bound();
        let hits = if is_above { hits.floor() } else { hits.ceil() };
        let hits = (0..=*count).find(|number| crate::stats::as_f64(*number) >= hits);
        wilson(hits.unwrap_or(*count), *count).is_some_and(|one| {
            requirement.is_met_by(one.lower) || requirement.is_missed_by(one.upper)
        })
    })
}

fn combined(verdicts: &[Verdict]) -> Verdict {
    if verdicts.contains(&Verdict::Fail) {
        Verdict::Fail
    } else if verdicts.contains(&Verdict::Underpowered) || verdicts.is_empty() {
        Verdict::Underpowered
    } else {
        Verdict::Pass
    }
}

/// A requirement in words, in points or percent.
fn wanted(requirement: Requirement) -> String {
    match requirement {
        Requirement::MoreThan(bound) => format!("more than {:.1}", 100.0 * bound),
        Requirement::AtLeast(bound) => format!("at least {:.1}", 100.0 * bound),
    }
}

fn explain_uplift(found: Verdict, comparison: &Comparison, requirement: Requirement) -> String {
    let wanted = wanted(requirement);
    let Some(uplift) = comparison.uplift else {
        return format!(
            "no case has {MIN_PAIRS} valid trials in both arms, so an uplift of {wanted} points \
             cannot be decided"
        );
    };
    let bounds = format!("from {:.1} to {:.1} points", uplift.lower, uplift.upper);
    match found {
        Verdict::Pass => format!("the uplift is {bounds}, which is {wanted}"),
        Verdict::Fail => format!("the uplift is {bounds}, and {wanted} is required"),
        Verdict::Underpowered => {
            let test = comparison.sign_test;
            format!(
                "the uplift is {bounds} ({} better, {} worse, {} equal pairs), which does not decide \
                 whether it is {wanted}",
                test.better, test.worse, test.equal
            )
        }
    }
}

fn check_regressions(comparison: &Comparison, most: u32) -> (Verdict, String) {
    let (sure, suspected) = (&comparison.regressions, &comparison.suspected_regressions);
    let most = most as usize;
    if sure.len() > most {
        return (Verdict::Fail, format!("the skill makes these cases worse: {}", sure.join(", ")));
    }
    if sure.len() + suspected.len() > most {
        let reason = format!(
            "these cases look worse with the skill, with too few trials to be sure: {}",
            suspected.join(", ")
        );
        return (Verdict::Underpowered, reason);
    }
    (Verdict::Pass, "the skill makes no more cases worse than the gate permits".to_owned())
}

/// The number of trials that would decide if the measured rates were the true ones.
fn needed(
    cases: &[CaseResult],
    arm: Arm,
    baseline: Arm,
    requirement: Requirement,
) -> Option<crate::stats::PowerPrediction> {
    let scores = |case: &CaseResult, which: Arm| -> Vec<f64> {
        trials(case, which).iter().filter_map(|trial| trial.score).collect()
    };
    let models: Vec<CaseModel> = cases
        .iter()
        .map(|case| CaseModel { with: scores(case, arm), without: scores(case, baseline) })
        .filter(|model| !model.with.is_empty() && !model.without.is_empty())
        .collect();
    trials_needed(&models, requirement, SEED)
}

/// Cases of which some trials passed and others failed.
fn flaky(cases: &[CaseResult]) -> Vec<FlakyCase> {
    let mut flaky = Vec::new();
    for case in cases {
        for (arm, trials) in &case.arms {
            let count = |outcome: TrialOutcome| {
                trials.iter().filter(|trial| trial.outcome == outcome).count() as u32
            };
            let (passed, failed) = (count(TrialOutcome::Passed), count(TrialOutcome::Failed));
            if passed > 0 && failed > 0 {
                let (case, trials) = (case.id.clone(), passed + failed);
                flaky.push(FlakyCase { case, arm: *arm, passed, trials });
            }
        }
    }
    flaky
}

#[cfg(test)]
mod tests;
