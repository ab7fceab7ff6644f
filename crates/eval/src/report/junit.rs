//! Renders results as `JUnit` XML: one test suite per arm, one test case per case, an error for
//! invalid trials. The verdict is a test of its own.

use std::fmt::Write as _;

use savoir_lint::visible;

use crate::{
    results::{CaseResult, Results, TrialOutcome, TrialResult},
    stats::Verdict,
    trace::Arm,
    trigger::{QueryResult, TriggerResult},
};

pub fn render(results: &Results) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let failed = results.conclusion.verdict != Verdict::Pass;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" tests=\"1\" failures=\"{}\" errors=\"0\">",
        escape(&results.skill.name),
        u8::from(failed)
    );
    let _ = writeln!(text, "    <testcase classname=\"verdict\" name=\"gate\">");
    if failed {
        let reasons = results.conclusion.reasons.join("; ");
        let _ = writeln!(
            text,
            "      <failure message=\"{}\">{}</failure>",
            results.conclusion.verdict.as_str(),
            escape(&reasons)
        );
    }
    text.push_str("    </testcase>\n  </testsuite>\n");
    for arm in results.arms() {
        suite(&mut text, results, arm);
    }
    for one in &results.triggers {
        trigger_suite(&mut text, &results.skill.name, one);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(text: &mut String, results: &Results, arm: Arm) {
    let trials = |case: &CaseResult| case.arms.get(&arm).cloned().unwrap_or_default();
    let is = |case: &&CaseResult, outcome| worst(&trials(case)) == outcome;
    let count = |outcome| results.cases.iter().filter(|case| is(case, outcome)).count();
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}.{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        escape(&results.skill.name),
        arm.as_str(),
        results.cases.len(),
        count(TrialOutcome::Failed),
        count(TrialOutcome::Invalid)
    );
    for case in &results.cases {
        let trials = trials(case);
        let milliseconds: u64 = trials.iter().map(|trial| trial.duration_ms).sum();
        let _ = writeln!(
            text,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}.{:03}\">",
            arm.as_str(),
            escape(&case.id),
            milliseconds / 1000,
            milliseconds % 1000
        );
        let passed = trials.iter().filter(|one| one.outcome == TrialOutcome::Passed).count();
        let summary = format!("{passed} of {} trials passed", trials.len());
        match worst(&trials) {
            TrialOutcome::Passed => {}
            TrialOutcome::Failed => {
                let _ = writeln!(
                    text,
                    "      <failure message=\"{summary}\">{}</failure>",
                    escape(&why_failed(&trials))
                );
            }
            TrialOutcome::Invalid => {
                let reason = trials.iter().find_map(|trial| trial.reason.clone());
                let _ = writeln!(
                    text,
                    "      <error message=\"{summary}\">{}</error>",
                    escape(&reason.unwrap_or_default())
                );
            }
        }
        text.push_str("    </testcase>\n");
    }
    text.push_str("  </testsuite>\n");
}

/// One test per query: the skill is used if it should be.
fn trigger_suite(text: &mut String, skill: &str, result: &TriggerResult) {
    let is_wrong = |query: &&QueryResult| {
        query.triggered().is_some_and(|triggered| triggered != query.should_trigger)
    };
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}.triggers-{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        escape(skill),
        result.catalogue,
        result.queries.len(),
        result.queries.iter().filter(is_wrong).count(),
        result.invalid
    );
    for query in &result.queries {
        let _ = writeln!(
            text,
            "    <testcase classname=\"triggers-{}\" name=\"{}\">",
            result.catalogue,
            escape(&query.query)
        );
        let summary = format!("used in {} of {} trials", query.used, query.trials);
        if query.trials == 0 {
            let reason = escape(query.reason.as_deref().unwrap_or_default());
            let _ = writeln!(text, "      <error message=\"{summary}\">{reason}</error>");
        } else if is_wrong(&query) {
            let wanted = if query.should_trigger { "it should be" } else { "it should not be" };
            let _ = writeln!(text, "      <failure message=\"{summary}\">{wanted}</failure>");
        }
        text.push_str("    </testcase>\n");
    }
    text.push_str("  </testsuite>\n");
}

/// A case is invalid if no trial counts, and failed if one of them failed.
fn worst(trials: &[TrialResult]) -> TrialOutcome {
    let has = |outcome| trials.iter().any(|trial| trial.outcome == outcome);
    if has(TrialOutcome::Failed) {
        TrialOutcome::Failed
    } else if has(TrialOutcome::Passed) {
        TrialOutcome::Passed
    } else {
        TrialOutcome::Invalid
    }
}

fn why_failed(trials: &[TrialResult]) -> String {
    let results = trials.iter().flat_map(|trial| &trial.grading.results);
    let failed = results.filter(|one| one.outcome == crate::grade::Outcome::Failed);
    let mut lines: Vec<String> =
        failed.map(|one| format!("{}: {}", one.text, one.evidence)).collect();
    lines.dedup();
    lines.join("\n")
}

/// Escapes text for XML. Characters that XML does not permit become visible first.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        for c in visible(line).chars() {
            match c {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '"' => escaped.push_str("&quot;"),
                '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
                c => escaped.push(c),
            }
        }
    }
    escaped
}
