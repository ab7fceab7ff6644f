//! Renders results as Markdown, for a comment on a pull request.

use std::fmt::Write as _;

use savoir_lint::visible;

use super::{dollars, points, share};
use crate::{
    results::{CaseResult, Comparison, Results, TrialOutcome},
    trace::Arm,
};

/// Characters of a name or a reason in a table.
const MAX_CELL_CHARS: usize = 100;

pub fn render(results: &Results) -> String {
    let mut text = String::new();
    let conclusion = &results.conclusion;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "## Evaluation of {}\n", cell(&results.skill.name));
    let _ =
        writeln!(text, "**{}**: {}\n", conclusion.verdict.as_str(), cell_all(&conclusion.reasons));
    if let Some(needed) = &conclusion.needed {
        let _ = writeln!(
            text,
            "{} trials per case would decide with a probability of {:.0} % if the measured rates are \
             the true ones (simulated, seed {}).\n",
            needed.trials,
            100.0 * needed.power,
            needed.seed
        );
    }
    if !results.comparisons.is_empty() {
        text.push_str("| Comparison | Uplift in points (95 %) | better / worse / equal | tokens | seconds | steps | dollars |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        for comparison in &results.comparisons {
            comparison_row(&mut text, comparison);
        }
        case_table(&mut text, results);
    }
    for flaky in &conclusion.flaky {
        let _ = writeln!(
            text,
            "\nFlaky: {} ({}): {} of {} trials passed.",
            cell(&flaky.case),
            flaky.arm.title(),
            flaky.passed,
            flaky.trials
        );
    }
    if !results.triggers.is_empty() {
        text.push_str(
            "\n| Skills in the catalog | shown | precision | recall |\n| --- | --- | --- | --- |\n",
        );
        for one in &results.triggers {
            let (precision, recall) = (share(one.precision), share(one.recall));
            let shown = one.shown.as_str();
            let _ = writeln!(text, "| {} | {shown} | {precision} | {recall} |", one.catalogue);
        }
    }
    let _ = writeln!(
        text,
        "\n{} with {}, {} trials per case, {} of {} trials invalid. {}.",
        cell(&format!("{} {}", results.host.name, results.host.version)),
        cell(&results.host.model),
        results.trials,
        conclusion.invalid_trials,
        conclusion.all_trials,
        cell(&results.harness)
    );
    text
}

fn case_table(text: &mut String, results: &Results) {
    let arms = results.arms();
    text.push_str("\n| Case |");
    for arm in &arms {
        let _ = write!(text, " {} |", arm.title());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(arms.len()));
    text.push('\n');
    for case in &results.cases {
        let _ = write!(text, "| {} |", cell(&case.id));
        for arm in &arms {
            let _ = write!(text, " {} |", passed_of(case, *arm));
        }
        text.push('\n');
    }
}

fn comparison_row(text: &mut String, comparison: &Comparison) {
    let test = comparison.sign_test;
    let _ = writeln!(
        text,
        "| {} vs {} | {} | {} / {} / {} | {:+.0} | {:+.1} | {:+.1} | {} |",
        comparison.arm.title(),
        comparison.baseline.title(),
        points(comparison.uplift),
        test.better,
        test.worse,
        test.equal,
        comparison.tokens.delta,
        comparison.seconds.delta,
        comparison.steps.delta,
        dollars(comparison.cost)
    );
}

/// `2 of 3`, with the number of invalid trials.
pub(super) fn passed_of(case: &CaseResult, arm: Arm) -> String {
    let trials = case.arms.get(&arm).map_or(&[][..], Vec::as_slice);
    let count = |outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
    let (passed, invalid) = (count(TrialOutcome::Passed), count(TrialOutcome::Invalid));
    let valid = trials.len() - invalid;
    match invalid {
        0 => format!("{passed} of {valid}"),
        _ => format!("{passed} of {valid}, {invalid} invalid"),
    }
}

fn cell_all(reasons: &[String]) -> String {
    reasons.iter().map(|reason| cell(reason)).collect::<Vec<_>>().join("; ")
}

/// Text from a skill as one cell: no markup, no links, no mentions.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars().take(MAX_CELL_CHARS * 3) {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '#' | '!' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // A zero-width joiner would be hidden, so the sign is written as an entity.
            '@' => escaped.push_str("&#64;"),
            c => escaped.push(c),
        }
    }
    escaped
}
