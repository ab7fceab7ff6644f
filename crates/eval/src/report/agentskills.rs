//! Writes `grading.json`, `timing.json` and `benchmark.json` as agentskills.io defines them.

use serde_json::{Map, Value, json};

use crate::{
    grade::Outcome,
    results::{Results, TrialOutcome, TrialResult},
    stats::Summary,
    trace::Arm,
};

/// The grading of one trial. An invalid trial has a reason and no summary.
pub fn grading(trial: &TrialResult) -> Value {
    let results = &trial.grading.results;
    let list: Vec<Value> = results
        .iter()
        .map(|one| {
            let passed = match one.outcome {
                Outcome::Passed => Value::Bool(true),
                Outcome::Failed => Value::Bool(false),
                Outcome::Invalid => Value::Null,
            };
            json!({"text": one.text, "passed": passed, "evidence": one.evidence})
        })
        .collect();
    if trial.outcome == TrialOutcome::Invalid {
        return json!({"assertion_results": list, "summary": null, "invalid": trial.reason});
    }
    let passed = results.iter().filter(|one| one.outcome == Outcome::Passed).count();
    json!({
        "assertion_results": list,
        "summary": {
            "passed": passed,
            "failed": results.len() - passed,
            "total": results.len(),
            "pass_rate": trial.score,
        },
    })
}

/// The tokens and the time of one trial.
pub fn timing(trial: &TrialResult) -> Value {
    json!({"total_tokens": trial.usage.total(), "duration_ms": trial.duration_ms})
}

/// All trials of each arm, and the differences of the main comparison.
pub fn benchmark(results: &Results) -> Value {
    let mut summary = Map::new();
    for arm in results.arms() {
        summary.insert(arm.as_str().to_owned(), of_arm(results, arm));
    }
    if let Some(main) = results.main() {
        let delta = json!({
            "pass_rate": main.uplift.map(|uplift| uplift.mean / 100.0),
            "time_seconds": main.seconds.delta,
            "tokens": main.tokens.delta,
            "steps": main.steps.delta,
            "cost": main.cost.map(|cost| cost.delta),
        });
        summary.insert("delta".to_owned(), delta);
    }
    json!({
        "skill_name": results.skill.name,
        "run_summary": summary,
        "savoir": {
            "verdict": results.conclusion.verdict,
            "uplift_points": results.main().map(|main| main.uplift),
            "triggers": results.triggers.iter().map(|one| json!({
                "catalogue": one.catalogue, "precision": one.precision, "recall": one.recall,
            })).collect::<Vec<_>>(),
            "trials": results.trials,
            "invalid_trials": results.conclusion.invalid_trials,
        },
    })
}

fn of_arm(results: &Results, arm: Arm) -> Value {
    let trials = results.cases.iter().filter_map(|case| case.arms.get(&arm)).flatten();
    let valid: Vec<&TrialResult> = trials.filter(|trial| trial.score.is_some()).collect();
    let summary = |number: &dyn Fn(&TrialResult) -> f64| {
        let values: Vec<f64> = valid.iter().map(|trial| number(trial)).collect();
        Summary::of(&values)
    };
    let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    json!({
        "pass_rate": summary(&|trial| trial.score.unwrap_or_default()),
        "time_seconds": summary(&|trial| number(trial.duration_ms) / 1e3),
        "tokens": summary(&|trial| number(trial.usage.total())),
    })
}
