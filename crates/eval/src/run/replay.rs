//! Grades recorded trials again, without a model.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    budget::{Budget, Spending},
    grader::Graders,
    study::{Done, collect, graded_result, invalid, now},
};
use crate::{
    analyze::{compare, conclude},
    gate::Gate,
    results::{Results, TrialOutcome},
    set::{Case, EvalSet},
    store,
    trace::{TokenUsage, Trace},
};

/// A recorded evaluation.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub results: Results,
    pub traces: Vec<Trace>,
}

/// Reads the results and the recorded trials in a folder.
pub fn read_recorded(folder: &Path) -> io::Result<Recorded> {
    let results = store::read_results(folder)?;
    let mut traces = Vec::new();
    for case in &results.cases {
        for (arm, trials) in &case.arms {
            for trial in trials {
                let path: PathBuf =
                    store::trial_folder(folder, &results, &case.id, *arm, trial.trial);
                let path = path.join(store::TRACE_FILE);
                if fs::exists(&path)? {
                    traces.push(Trace::read(&path).map_err(|error| {
                        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                    })?);
                }
            }
        }
    }
    Ok(Recorded { results, traces })
}

/// Grades the trials again with the cases as they are now. Verdicts of the judge are kept.
pub async fn replay(
    recorded: &Recorded,
    set: &EvalSet,
    graders: &Graders,
    gate: Option<Gate>,
) -> Results {
    let before = &recorded.results;
    let spending = Spending::new(Budget::default());
    let cases: Vec<&Case> = set.cases.iter().filter(|case| !case.graded().is_empty()).collect();
    let arms = before.arms();
    let mut done = Vec::new();
    for case in &cases {
        let known = before.cases.iter().find(|known| known.id == case.id);
        for arm in &arms {
            let trials = known.and_then(|known| known.arms.get(arm)).map_or(&[][..], Vec::as_slice);
            for trial in trials {
                let is_it = |trace: &&Trace| {
                    trace.case == case.id && trace.arm == *arm && trace.trial == trial.trial
                };
                let result = match recorded.traces.iter().find(is_it) {
                    Some(trace) if trace.prompt != case.prompt => {
                        invalid(trial.trial, "the prompt changed after it was recorded".to_owned())
                    }
                    Some(trace) => {
                        let graded =
                            graders.grade(case, trace, Some(&trial.grading), &spending).await;
                        graded_result(trace, graded.grading, &before.skill.name)
                    }
                    None if trial.outcome == TrialOutcome::Invalid => trial.clone(),
                    None => invalid(trial.trial, "the trial was not recorded".to_owned()),
                };
                let (case, trace) = (case.id.clone(), None);
                done.push(Done { case, arm: *arm, result, trace, judged: TokenUsage::default() });
            }
        }
    }
    let results = collect(&cases, &arms, done);
    let comparisons = compare(&results, &arms, None);
    let conclusion = conclude(
        &results,
        comparisons.first(),
        &before.triggers,
        gate.or(Some(before.conclusion.gate)),
    );
    Results { finished: now(), cases: results, comparisons, conclusion, ..before.clone() }
}
