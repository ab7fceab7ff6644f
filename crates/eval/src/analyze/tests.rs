use std::collections::BTreeMap;

use super::*;
use crate::{
    grade::Grading,
    trace::TokenUsage,
    trigger::{QueryResult, ShownSkill},
};

pub(crate) fn trial(number: u32, score: Option<f64>) -> TrialResult {
    let outcome = match score {
        Some(score) if score >= 1.0 => TrialOutcome::Passed,
        Some(_) => TrialOutcome::Failed,
        None => TrialOutcome::Invalid,
    };
    TrialResult {
        trial: number,
        outcome,
        score,
        reason: score.is_none().then(|| "the model did not answer".to_owned()),
        grading: Grading::default(),
        usage: TokenUsage { input: 100, output: 10, incomplete: false },
        duration_ms: 1_000,
        steps: 2,
        used_skill: false,
        cached: false,
    }
}

fn case(id: &str, with: &[Option<f64>], without: &[Option<f64>]) -> CaseResult {
    let trials = |scores: &[Option<f64>]| -> Vec<TrialResult> {
        (0..).zip(scores).map(|(number, score)| trial(number, *score)).collect()
    };
    let arms =
        BTreeMap::from([(Arm::WithSkill, trials(with)), (Arm::WithoutSkill, trials(without))]);
    CaseResult { id: id.to_owned(), prompt: String::new(), expected: None, arms }
}

const ONE: Option<f64> = Some(1.0);
const ZERO: Option<f64> = Some(0.0);

fn concluded(cases: &[CaseResult], gate: &str) -> (Comparison, Conclusion) {
    let compared = compare(cases, &[Arm::WithSkill, Arm::WithoutSkill], None);
    let conclusion = conclude(cases, compared.first(), &[], Some(gate.parse().unwrap()));
    (compared[0].clone(), conclusion)
}

#[test]
fn a_skill_that_always_helps_passes() {
    let cases = [case("a", &[ONE; 3], &[ZERO; 3]), case("b", &[ONE; 3], &[ZERO; 3])];
    let (compared, conclusion) = concluded(&cases, "uplift>=50 regressions=0");
    assert_eq!(conclusion.verdict, Verdict::Pass, "{conclusion:?}");
    assert!((compared.uplift.unwrap().mean - 100.0).abs() < 1e-9);
    assert!(conclusion.flaky.is_empty() && conclusion.needed.is_none());
    let (_, one_run) = concluded(&[case("a", &[ONE], &[ZERO])], "uplift>0");
    assert_eq!(one_run.verdict, Verdict::Underpowered, "one run decides nothing");
}

#[test]
fn too_few_trials_name_the_number_that_would_decide() {
    let cases = [case("a", &[ONE, ONE, ZERO], &[ZERO, ZERO, ONE]), case("b", &[ONE; 3], &[ONE; 3])];
    let (_, conclusion) = concluded(&cases, "uplift>0");
    assert_eq!(conclusion.verdict, Verdict::Underpowered);
    let needed = conclusion.needed.unwrap();
    assert!(needed.trials > 3 && needed.power > 0.7, "{needed:?}");
    let named: Vec<_> =
        conclusion.flaky.iter().map(|one| (one.case.as_str(), one.arm, one.passed)).collect();
    assert_eq!(named, [("a", Arm::WithSkill, 2), ("a", Arm::WithoutSkill, 1)]);
}

#[test]
fn regressions_fail_a_gate() {
    let worse = case("w", &[ZERO; 6], &[ONE; 6]);
    let better: Vec<_> = (0..5).map(|n| case(&format!("b{n}"), &[ONE; 6], &[ZERO; 6])).collect();
    let cases = [better, vec![worse]].concat();
    let (compared, conclusion) = concluded(&cases, "uplift>5 regressions=0");
    assert_eq!(
        (compared.regressions.as_slice(), conclusion.verdict),
        (&["w".to_owned()][..], Verdict::Fail)
    );
    let (_, conclusion) = concluded(&cases, "uplift>5");
    assert_eq!(conclusion.verdict, Verdict::Pass, "{conclusion:?}");
    let few = [case("w", &[ZERO; 2], &[ONE; 2])];
    let (compared, conclusion) = concluded(&few, "regressions=0");
    assert_eq!(compared.suspected_regressions, ["w"]);
    assert_eq!(conclusion.verdict, Verdict::Underpowered);
}

#[test]
fn invalid_trials_count_neither_way_and_prevent_a_pass() {
    let cases = [
        case("a", &[ONE, ONE, ONE, ONE, None], &[ZERO; 5]),
        case("b", &[ONE, ONE, ONE, None, ONE], &[ZERO; 5]),
    ];
    let (compared, conclusion) = concluded(&cases, "uplift>5");
    assert!((compared.uplift.unwrap().mean - 100.0).abs() < 1e-9);
    assert_eq!((conclusion.invalid_trials, conclusion.all_trials), (2, 20));
    assert_eq!(conclusion.verdict, Verdict::Underpowered);
    assert!(conclusion.reasons.last().unwrap().contains("20 %"), "{:?}", conclusion.reasons);
    let (compared, _) = concluded(&[case("a", &[None; 3], &[ONE; 3])], "uplift>5");
    assert_eq!(compared.left_out[0].reason, "the model did not answer");
}

/// Trigger results in which the skill was used for some of the queries that should use it.
fn triggered(used: u32, missed: u32, wrong: u32) -> TriggerResult {
    let query = |should_trigger: bool, is_used: bool| QueryResult {
        query: String::new(),
        should_trigger,
        used: if is_used { 3 } else { 0 },
        trials: 3,
        invalid: 0,
        reason: None,
    };
    let mut queries = Vec::new();
    queries.extend((0..used).map(|_| query(true, true)));
    queries.extend((0..missed).map(|_| query(true, false)));
    queries.extend((0..wrong).map(|_| query(false, true)));
    TriggerResult::new(20, ShownSkill::Whole, queries)
}

#[test]
fn trigger_queries_alone_get_a_verdict_from_the_end_of_their_interval() {
    let decide = |one: TriggerResult, gate: Option<&str>| {
        conclude(&[], None, &[one], gate.map(|gate| gate.parse().unwrap()))
    };
    let good = decide(triggered(10, 0, 0), None);
    assert_eq!((good.verdict, good.gate), (Verdict::Pass, Gate::TRIGGERS), "{good:?}");
    assert_eq!((good.all_trials, good.invalid_trials), (30, 0));
    // Ten of ten is at least 72 %, no more.
    assert_eq!(decide(triggered(10, 0, 0), Some("recall>=72")).verdict, Verdict::Pass);
    let few = decide(triggered(10, 0, 0), Some("recall>=80"));
    assert_eq!(few.verdict, Verdict::Underpowered);
    assert!(few.reasons[0].contains("16 queries"), "{:?}", few.reasons);
    let missed = decide(triggered(1, 19, 0), None);
    assert_eq!(missed.verdict, Verdict::Fail, "{:?}", missed.reasons);
    let wrong = decide(triggered(20, 0, 60), Some("precision>50"));
    assert_eq!(wrong.verdict, Verdict::Fail, "{:?}", wrong.reasons);
    let never = decide(triggered(0, 3, 0), Some("precision>50"));
    assert!(never.verdict == Verdict::Underpowered && never.reasons[0].contains("never used"));
    assert_eq!(decide(triggered(9, 0, 0), Some("uplift>0")).verdict, Verdict::Underpowered);
    let mut lost = triggered(20, 0, 0);
    for query in &mut lost.queries[..5] {
        (query.trials, query.invalid) = (2, 1);
    }
    assert_eq!(decide(lost.clone(), None).verdict, Verdict::Pass, "8 % are invalid");
    for query in &mut lost.queries {
        (query.trials, query.invalid) = (2, 1);
    }
    assert_eq!(decide(lost, None).verdict, Verdict::Underpowered);
}
