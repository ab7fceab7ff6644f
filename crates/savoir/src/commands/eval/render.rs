//! Renders the results of an evaluation for a terminal.

use std::{borrow::Cow, fmt::Write as _};

use savoir_eval::{
    report::{dollars, points, share},
    results::{CaseResult, Results, TrialOutcome},
    trace::Arm,
};

use crate::output;

/// Maximum number of reasons of invalid trials that are listed.
const MAX_REASONS: usize = 5;

/// Renders all results as text.
pub(super) fn summary(results: &Results) -> String {
    let mut text = String::new();
    let conclusion = &results.conclusion;
    let host = &results.host;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} with {} {}, model {}, {} per case and arm\n",
        output::cell(&results.skill.name),
        host.name,
        host.version,
        output::cell(&host.model),
        output::plural(results.trials as usize, "trial")
    );
    if !results.cases.is_empty() {
        text.push_str(&cases(results));
        text.push('\n');
        text.push_str(&comparisons(results));
    }
    for one in &conclusion.flaky {
        let _ = writeln!(
            text,
            "flaky          {} {}: {} of {} trials passed",
            output::cell(&one.case),
            one.arm.title(),
            one.passed,
            one.trials
        );
    }
    invalid(results, &mut text);
    triggers(results, &mut text);
    let _ = writeln!(text, "\nverdict        {}", conclusion.verdict.as_str());
    for reason in &conclusion.reasons {
        let _ = writeln!(text, "               {reason}");
    }
    if let Some(needed) = &conclusion.needed {
        let _ = writeln!(
            text,
            "               {} trials per case would decide with a probability of {:.0} % (seed {})",
            needed.trials,
            100.0 * needed.power,
            needed.seed
        );
    }
    let spent = &results.spent;
    let cost = spent.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    let _ = writeln!(
        text,
        "paid           {} tokens{cost} in {:.1} s",
        spent.paid.total(),
        spent.seconds
    );
    text
}

fn cases(results: &Results) -> String {
    let rows: Vec<[Cow<'_, str>; 4]> = results
        .cases
        .iter()
        .map(|case| {
            let used = case.arms.get(&Arm::WithSkill).map_or(&[][..], Vec::as_slice);
            let used_count = used.iter().filter(|trial| trial.used_skill).count();
            [
                output::cell(&case.id),
                passed(case, Arm::WithSkill).into(),
                passed(case, Arm::WithoutSkill).into(),
                format!("{used_count} of {}", used.len()).into(),
            ]
        })
        .collect();
    output::table(["CASE", "WITH", "WITHOUT", "SKILL USED"], &rows)
}

fn passed(case: &CaseResult, arm: Arm) -> String {
    let trials = case.arms.get(&arm).map_or(&[][..], Vec::as_slice);
    let count = |outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
    let (passed, invalid) = (count(TrialOutcome::Passed), count(TrialOutcome::Invalid));
    match invalid {
        0 => format!("{passed} of {}", trials.len()),
        _ => format!("{passed} of {}, {invalid} invalid", trials.len() - invalid),
    }
}

fn comparisons(results: &Results) -> String {
    let rows: Vec<[Cow<'_, str>; 7]> = results
        .comparisons
        .iter()
        .map(|one| {
            let test = one.sign_test;
            [
                format!("{} vs {}", one.arm.title(), one.baseline.title()).into(),
                points(one.uplift).into(),
                format!("{}/{}/{}", test.better, test.worse, test.equal).into(),
                format!("{:+.0}", one.tokens.delta).into(),
                format!("{:+.1}", one.seconds.delta).into(),
                format!("{:+.1}", one.steps.delta).into(),
                dollars(one.cost).into(),
            ]
        })
        .collect();
    let head =
        ["ARMS", "UPLIFT (95 %)", "BETTER/WORSE/EQUAL", "TOKENS", "SECONDS", "STEPS", "DOLLARS"];
    output::table(head, &rows)
}

/// Invalid trials, each reason once.
fn invalid(results: &Results, text: &mut String) {
    let conclusion = &results.conclusion;
    if conclusion.invalid_trials == 0 {
        return;
    }
    let (count, all) = (conclusion.invalid_trials, conclusion.all_trials);
    let _ = writeln!(text, "invalid        {count} of {all} trials");
    let trials = results.cases.iter().flat_map(|case| case.arms.values().flatten());
    let queries = results.triggers.iter().flat_map(|one| &one.queries);
    let all_reasons = trials
        .map(|trial| trial.reason.as_deref())
        .chain(queries.map(|query| query.reason.as_deref()));
    let mut reasons: Vec<&str> = Vec::new();
    for reason in all_reasons.flatten() {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    for reason in reasons.iter().take(MAX_REASONS) {
        let _ = writeln!(text, "               {}", output::cell(reason));
    }
    if reasons.len() > MAX_REASONS {
        let _ = writeln!(text, "               and {} more reasons", reasons.len() - MAX_REASONS);
    }
}

fn triggers(results: &Results, text: &mut String) {
    if results.triggers.is_empty() {
        return;
    }
    let rows: Vec<[Cow<'_, str>; 4]> = results
        .triggers
        .iter()
        .map(|one| {
            [
                one.catalogue.to_string().into(),
                one.shown.as_str().into(),
                share(one.precision).into(),
                share(one.recall).into(),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&output::table(["CATALOGUE", "SHOWN", "PRECISION", "RECALL"], &rows));
}
