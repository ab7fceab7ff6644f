//! Makes the signed statement about who measured a skill, and what came out.
//!
//! [`savoir_package::trust::evaluation`] describes the statement and reads it.

use savoir_package::trust::evaluation::{OWN_FIELDS, PREDICATE_TYPE, STATEMENT_TYPE, hex_digest};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    analyze::SEED,
    gate::Gate,
    results::{JudgeRecord, Results, SandboxRecord, TrialOutcome},
    stats::{Interval, SignTest, Verdict},
    trace::{Arm, HostRecord},
    trigger::TriggerResult,
};

/// The measured facts of a statement.
#[derive(Debug, Serialize)]
struct AttestedEval {
    harness: String,
    host: HostRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge: Option<JudgeRecord>,
    sandbox: SandboxRecord,
    /// The SHA-256 over the cases and trigger queries.
    eval_set: String,
    trials: u32,
    all_trials: usize,
    invalid_trials: usize,
    verdict: Verdict,
    gate: Gate,
    /// In percentage points.
    uplift: Option<Interval>,
    sign_test: SignTest,
    /// When the skill is used, for each size of the catalog.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<AttestedTriggers>,
    /// The digest of the version that it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// Cases that the skill makes worse.
    regressions: Vec<String>,
    /// The seed of the simulations.
    seed: u64,
    finished: String,
}

/// Precision and recall among some skills.
#[derive(Debug, Serialize)]
struct AttestedTriggers {
    catalogue: usize,
    queries: usize,
    precision: Option<Interval>,
    recall: Option<Interval>,
}

/// The statement about the results of an evaluation; `None` if they name no digest.
pub fn statement(results: &Results) -> Option<Value> {
    let skill = &results.skill;
    let name = match &skill.version {
        Some(version) => format!("{}@{version}", skill.name),
        None => skill.name.clone(),
    };
    let main = results.main();
    let conclusion = &results.conclusion;
    let (mut passed, mut warned, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for case in &results.cases {
        let trials = case.arms.get(&Arm::WithSkill).map_or(&[][..], Vec::as_slice);
        let all = |outcome| trials.iter().all(|trial| trial.outcome == outcome);
        let list = if all(TrialOutcome::Passed) {
            &mut passed
        } else if all(TrialOutcome::Failed) {
            &mut failed
        } else {
            &mut warned
        };
        list.push(case.id.clone());
    }
    let own = AttestedEval {
        harness: results.harness.clone(),
        host: results.host.clone(),
        judge: results.judge.clone(),
        sandbox: results.sandbox.clone(),
        eval_set: results.eval_set.digest.clone(),
        trials: results.trials,
        all_trials: conclusion.all_trials,
        invalid_trials: conclusion.invalid_trials,
        verdict: conclusion.verdict,
        gate: conclusion.gate,
        uplift: main.and_then(|main| main.uplift),
        sign_test: main.map(|main| main.sign_test).unwrap_or_default(),
        triggers: results.triggers.iter().map(attested_triggers).collect(),
        previous: results.previous.as_ref().map(|previous| previous.integrity.clone()),
        regressions: main.map(|main| main.regressions.clone()).unwrap_or_default(),
        seed: SEED,
        finished: results.finished.clone(),
    };
    let result = match conclusion.verdict {
        Verdict::Pass => "PASSED",
        Verdict::Underpowered => "WARNED",
        Verdict::Fail => "FAILED",
    };
    Some(json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": hex_digest(&skill.integrity)?}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": result,
            "configuration": [
                {"name": "evaluations", "digest": {"sha256": results.eval_set.digest}},
            ],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
            OWN_FIELDS: own,
        },
    }))
}

fn attested_triggers(one: &TriggerResult) -> AttestedTriggers {
    AttestedTriggers {
        catalogue: one.catalogue,
        queries: one.queries.len(),
        precision: one.precision,
        recall: one.recall,
    }
}
