//! Renders results as one HTML file that needs no other file, no network and no script.
//!
//! Everything from a skill, a model or a tool is text: hidden characters are made visible, and
//! markup is escaped. The policy in the head forbids scripts, forms and every request, in case of
//! a mistake.

use std::fmt::Write as _;

use savoir_lint::{harmless, words::shorten};

use super::{dollars, markdown::passed_of, points, share};
use crate::{
    grade::Outcome,
    results::{CaseResult, Comparison, Results, TrialOutcome, TrialResult},
    trace::{Arm, Trace},
    trigger::TriggerResult,
};

/// Characters of one message of a transcript.
const MAX_MESSAGE_CHARS: usize = 20_000;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--good:#1a7f37;--bad:#cf222e;--grey:#6e7781}\
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;padding:.5rem;border:1px solid var(--line);font-size:13px}\
.pass{color:var(--good)}.fail{color:var(--bad)}.underpowered,.invalid{color:var(--grey)}\
.arms{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}\
details{margin:.4rem 0}summary{cursor:pointer}svg{max-width:100%}svg text{font:12px system-ui,sans-serif;fill:currentColor}";

/// The whole page.
pub fn render(results: &Results, traces: &[Trace]) -> String {
    let name = escape(&results.skill.name);
    let conclusion = &results.conclusion;
    let verdict = conclusion.verdict.as_str();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Evaluation of {name}</title>\
         <style>{STYLE}</style></head><body>\n<h1>Evaluation of {name}</h1>\n\
         <p><strong class=\"{verdict}\">{verdict}</strong>: {}</p>\n",
        escape(&conclusion.reasons.join("; "))
    );
    // Writing to a string cannot fail.
    if let Some(needed) = &conclusion.needed {
        let _ = writeln!(
            page,
            "<p>{} trials per case would decide with a probability of {:.0} % if the measured rates \
             are the true ones ({} simulated studies, seed {}).</p>",
            needed.trials,
            100.0 * needed.power,
            needed.studies,
            needed.seed
        );
    }
    page.push_str(&facts(results));
    if !results.cases.is_empty() {
        page.push_str(&chart(results));
        page.push_str(&comparisons(results));
    }
    page.push_str(&triggers(results));
    page.push_str(&flaky(results));
    if !results.cases.is_empty() {
        page.push_str("<h2>Cases</h2>\n");
    }
    let arms = results.arms();
    for case in &results.cases {
        page.push_str(&case_section(case, &arms, traces));
    }
    if let Some(judge) = &results.judge {
        let _ = writeln!(
            page,
            "<h2>Judge</h2><p>{}</p><details><summary>Instructions</summary><pre>{}</pre></details>",
            escape(&judge.model),
            escape(&judge.prompt)
        );
    }
    page.push_str("</body></html>\n");
    page
}

fn facts(results: &Results) -> String {
    let rows = [
        (
            "Skill",
            format!(
                "{} {}",
                results.skill.name,
                results.skill.version.as_deref().unwrap_or("without a version")
            ),
        ),
        ("Files", results.skill.integrity.clone()),
        ("Agent", format!("{} {}", results.host.name, results.host.version)),
        ("Model", results.host.model.clone()),
        ("Trials", format!("{} per case and arm", results.trials)),
        (
            "Invalid",
            format!(
                "{} of {} trials",
                results.conclusion.invalid_trials, results.conclusion.all_trials
            ),
        ),
        ("Evaluations", results.eval_set.digest.clone()),
        ("Measured", format!("{} by {}", results.finished, results.harness)),
    ];
    table(&["", ""], rows.into_iter().map(|(name, value)| vec![name.to_owned(), escape(&value)]))
}

/// The pass rate of each case as bars, one per arm.
fn chart(results: &Results) -> String {
    let arms = results.arms();
    let rows = results.cases.len() * (arms.len() * 18 + 26);
    let mut svg = format!(
        "<h2>Pass rate</h2>\n<svg viewBox=\"0 0 640 {rows}\" width=\"640\" role=\"img\" aria-label=\"pass rate of each case\">"
    );
    let mut y = 14;
    for case in &results.cases {
        let _ = write!(svg, "<text x=\"0\" y=\"{y}\">{}</text>", escape(&shorten(&case.id, 60)));
        y += 6;
        for arm in &arms {
            let trials = case.arms.get(arm).map_or(&[][..], Vec::as_slice);
            let scores: Vec<f64> = trials.iter().filter_map(|trial| trial.score).collect();
            let mean = crate::stats::Summary::of(&scores).mean;
            let colour = if *arm == Arm::WithoutSkill { "#6e7781" } else { "#0969da" };
            let label = if scores.is_empty() {
                "invalid".to_owned()
            } else {
                format!("{:.0} %", 100.0 * mean)
            };
            let _ = write!(
                svg,
                "<text x=\"8\" y=\"{}\">{}</text><rect x=\"110\" y=\"{y}\" width=\"{:.0}\" height=\"13\" fill=\"{colour}\"/>\
                 <text x=\"{:.0}\" y=\"{}\">{label}</text>",
                y + 11,
                arm.title(),
                400.0 * mean,
                116.0 + 400.0 * mean,
                y + 11
            );
            y += 18;
        }
        y += 20;
    }
    svg + "</svg>\n"
}

fn comparisons(results: &Results) -> String {
    let row = |one: &Comparison| {
        let test = one.sign_test;
        vec![
            format!("{} vs {}", one.arm.title(), one.baseline.title()),
            points(one.uplift),
            format!("{} / {} / {}", test.better, test.worse, test.equal),
            format!("{:.4}", test.p_better),
            format!("{:+.0}", one.tokens.delta),
            format!("{:+.1}", one.seconds.delta),
            format!("{:+.1}", one.steps.delta),
            dollars(one.cost),
            escape(&one.regressions.join(", ")),
            escape(&one.suspected_regressions.join(", ")),
        ]
    };
    let head = [
        "Comparison", "Uplift in points (95 %)", "better / worse / equal", "p (sign test)",
        "tokens", "seconds", "steps", "dollars", "worse cases", "suspected",
    ];
    let mut text =
        "<h2>Comparison</h2>\n".to_owned() + &table(&head, results.comparisons.iter().map(row));
    text.push_str(
        "<p>The interval is about these cases: with other trials, the mean would lie in it. Trials \
         that are invalid count in no number.</p>\n",
    );
    for comparison in &results.comparisons {
        for left_out in &comparison.left_out {
            let _ = writeln!(
                text,
                "<p class=\"invalid\">{} does not count ({} vs {}): {}</p>",
                escape(&left_out.case),
                comparison.arm.title(),
                comparison.baseline.title(),
                escape(&left_out.reason)
            );
        }
    }
    text
}

fn triggers(results: &Results) -> String {
    if results.triggers.is_empty() {
        return String::new();
    }
    let rows = results.triggers.iter().map(|one| {
        let queries = one.queries.iter().map(|query| {
            let wanted = if query.should_trigger { "should be used" } else { "should not be used" };
            format!(
                "{} ({wanted}): used in {} of {}",
                escape(&query.query),
                query.used,
                query.trials
            )
        });
        vec![
            one.catalogue.to_string(),
            one.shown.as_str().to_owned(),
            share(one.precision),
            share(one.recall),
            format!(
                "<details><summary>{} queries</summary>{}</details>",
                one.queries.len(),
                queries.collect::<Vec<_>>().join("<br>")
            ),
        ]
    });
    "<h2>When is it used?</h2>\n".to_owned()
        + &trigger_chart(&results.triggers)
        + &table(&["Skills in the catalog", "shown", "precision", "recall", "queries"], rows)
}

/// Precision and recall as bars with their intervals.
fn trigger_chart(triggers: &[TriggerResult]) -> String {
    let rows = triggers.len() * 62;
    let mut svg = format!(
        "<svg viewBox=\"0 0 640 {rows}\" width=\"640\" role=\"img\" aria-label=\"precision and recall\">"
    );
    let mut y = 14;
    for one in triggers {
        let _ = write!(svg, "<text x=\"0\" y=\"{y}\">{} skills</text>", one.catalogue);
        y += 6;
        for (name, found) in [("precision", one.precision), ("recall", one.recall)] {
            let _ = write!(svg, "<text x=\"8\" y=\"{}\">{name}</text>", y + 11);
            if let Some(found) = found {
                let _ = write!(
                    svg,
                    "<rect x=\"110\" y=\"{y}\" width=\"{:.0}\" height=\"13\" fill=\"#0969da\"/>\
                     <path d=\"M{:.0} {}H{:.0}\" stroke=\"#6e7781\" stroke-width=\"3\"/>",
                    400.0 * found.mean,
                    110.0 + 400.0 * found.lower,
                    y + 7,
                    110.0 + 400.0 * found.upper
                );
            }
            let _ = write!(svg, "<text x=\"516\" y=\"{}\">{}</text>", y + 11, share(found));
            y += 18;
        }
        y += 20;
    }
    svg + "</svg>\n"
}

fn flaky(results: &Results) -> String {
    if results.conclusion.flaky.is_empty() {
        return String::new();
    }
    let rows = results.conclusion.flaky.iter().map(|one| {
        let passed = format!("{} of {}", one.passed, one.trials);
        vec![escape(&one.case), one.arm.title().to_owned(), passed]
    });
    "<h2>Flaky cases</h2>\n".to_owned() + &table(&["Case", "Arm", "Passed trials"], rows)
}

fn case_section(case: &CaseResult, arms: &[Arm], traces: &[Trace]) -> String {
    let mut text = format!("<h3>{}</h3>\n<pre>{}</pre>\n", escape(&case.id), message(&case.prompt));
    if let Some(expected) = &case.expected {
        let _ = writeln!(text, "<p>Expected: {}</p>", escape(expected));
    }
    text.push_str("<div class=\"arms\">");
    for arm in arms {
        let _ = write!(text, "<div><h4>{}: {} passed</h4>", arm.title(), passed_of(case, *arm));
        for trial in case.arms.get(arm).map_or(&[][..], Vec::as_slice) {
            let is_it = |trace: &&Trace| {
                trace.case == case.id && trace.arm == *arm && trace.trial == trial.trial
            };
            text.push_str(&trial_section(trial, traces.iter().find(is_it)));
        }
        text.push_str("</div>");
    }
    text + "</div>\n"
}

fn trial_section(trial: &TrialResult, trace: Option<&Trace>) -> String {
    let (class, word) = match trial.outcome {
        TrialOutcome::Passed => ("pass", "passed"),
        TrialOutcome::Failed => ("fail", "failed"),
        TrialOutcome::Invalid => ("invalid", "invalid"),
    };
    let used = if trial.used_skill { ", used the skill" } else { "" };
    let mut text = format!(
        "<details><summary>Trial {}: <span class=\"{class}\">{word}</span>{used}, {} tokens, {} ms</summary>",
        trial.trial + 1,
        trial.usage.total(),
        trial.duration_ms
    );
    if let Some(reason) = &trial.reason {
        let _ = write!(text, "<p class=\"invalid\">{}</p>", escape(reason));
    }
    text.push_str("<ul>");
    for one in &trial.grading.results {
        let (class, word) = match one.outcome {
            Outcome::Passed => ("pass", "passed"),
            Outcome::Failed => ("fail", "failed"),
            Outcome::Invalid => ("invalid", "invalid"),
        };
        let by = if one.judged { " by the judge" } else { "" };
        let _ = write!(
            text,
            "<li><span class=\"{class}\">{word}</span>{by}: {}<br><small>{}</small></li>",
            escape(&one.text),
            escape(&one.evidence)
        );
    }
    text.push_str("</ul>");
    for one in trace.map_or(&[][..], |trace| trace.messages.as_slice()) {
        let _ = write!(
            text,
            "<div><small>{}</small><pre>{}</pre></div>",
            one.role.as_str(),
            message(&one.text)
        );
    }
    text + "</details>"
}

/// A table; its cells are HTML.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = String::from("<table>");
    if head.iter().any(|cell| !cell.is_empty()) {
        text.push_str("<tr>");
        for cell in head {
            let _ = write!(text, "<th>{cell}</th>");
        }
        text.push_str("</tr>");
    }
    for row in rows {
        text.push_str("<tr>");
        for cell in row {
            let _ = write!(text, "<td>{cell}</td>");
        }
        text.push_str("</tr>");
    }
    text + "</table>\n"
}

fn message(text: &str) -> String {
    escape(&shorten(text, MAX_MESSAGE_CHARS))
}

/// Escapes text for the content and the attributes of HTML.
fn escape(text: &str) -> String {
    let visible = harmless(text);
    let mut escaped = String::with_capacity(visible.len());
    for c in visible.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
