use std::collections::BTreeMap;

use super::*;
use crate::{
    analyze::{compare, conclude},
    grade::{AssertionResult, Grading, Outcome},
    results::{CaseResult, RESULTS_FORMAT, Results, TrialOutcome, TrialResult},
    trace::{Arm, Role, TokenUsage, Trace, TraceMessage, testing::trace},
    trigger::{QueryResult, ShownSkill, TriggerResult},
};

/// Text that breaks out of every format if it is not escaped.
const EVIL: &str =
    "</pre><script>alert(1)</script>\" onload='x' ]]> &amp; [x](y) | @all \u{202e}\u{1b}[2J";

fn results() -> Results {
    let trial = |number: u32, passed: bool| TrialResult {
        trial: number,
        outcome: if passed { TrialOutcome::Passed } else { TrialOutcome::Failed },
        score: Some(f64::from(u8::from(passed))),
        reason: None,
        grading: Grading {
            results: vec![AssertionResult {
                text: EVIL.to_owned(),
                weight: 1.0,
                outcome: if passed { Outcome::Passed } else { Outcome::Failed },
                evidence: EVIL.to_owned(),
                judged: true,
            }],
        },
        usage: TokenUsage { input: 100, output: 20, incomplete: false },
        duration_ms: 1_500,
        steps: 2,
        used_skill: passed,
        cached: false,
    };
    let case = CaseResult {
        id: EVIL.to_owned(),
        prompt: EVIL.to_owned(),
        expected: Some(EVIL.to_owned()),
        arms: BTreeMap::from([
            (Arm::WithSkill, vec![trial(0, true), trial(1, true)]),
            (Arm::WithoutSkill, vec![trial(0, false), trial(1, true)]),
        ]),
    };
    let cases = vec![case];
    let comparisons = compare(&cases, &[Arm::WithSkill, Arm::WithoutSkill], None);
    let conclusion = conclude(&cases, comparisons.first(), &[], None);
    let query = QueryResult {
        query: EVIL.to_owned(),
        should_trigger: true,
        used: 1,
        trials: 2,
        invalid: 0,
        reason: None,
    };
    let mut results = Results {
        format: RESULTS_FORMAT,
        harness: "savoir".to_owned(),
        finished: "2026-01-01T00:00:00Z".to_owned(),
        skill: crate::results::SkillRecord::default(),
        previous: None,
        decoys: Vec::new(),
        eval_set: crate::results::EvalSetRecord::default(),
        host: crate::trace::HostRecord::default(),
        judge: Some(crate::results::JudgeRecord {
            model: EVIL.to_owned(),
            prompt: EVIL.to_owned(),
        }),
        sandbox: crate::results::SandboxRecord::default(),
        trials: 2,
        cases,
        comparisons,
        conclusion,
        triggers: vec![TriggerResult::new(20, ShownSkill::Whole, vec![query])],
        spent: crate::results::Spent::default(),
    };
    results.skill.name = EVIL.to_owned();
    results
}

fn evil_trace() -> Trace {
    let messages = vec![TraceMessage { role: Role::Assistant, text: EVIL.to_owned() }];
    Trace { case: EVIL.to_owned(), messages, ..trace() }
}

#[test]
fn no_text_of_a_skill_becomes_markup() {
    let (results, traces) = (results(), [evil_trace()]);
    let page = html::render(&results, &traces);
    assert!(!page.contains("<script") && !page.contains("onload='"), "{page}");
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
    assert!(page.contains("default-src 'none'") && page.contains("&lt;script&gt;"));
    for forbidden in ["http://", "https://", "src=", "href="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let xml = junit::render(&results);
    assert!(!xml.contains("<script") && !xml.contains('\u{1b}'), "{xml}");
    assert!(xml.contains("&lt;script&gt;"));
    let text = markdown::render(&results);
    assert!(!text.contains("<script") && !text.contains("@all"), "{text}");
    assert!(text.contains("\\[x\\]\\(y\\)"), "{text}");
}

#[test]
fn files_have_the_form_of_agentskills() {
    let results = results();
    let benchmark = agentskills::benchmark(&results);
    let summary = &benchmark["run_summary"];
    assert!((summary["with_skill"]["pass_rate"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!((summary["without_skill"]["pass_rate"]["mean"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    assert!((summary["delta"]["pass_rate"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    let trial = &results.cases[0].arms[&Arm::WithoutSkill][0];
    let grading = agentskills::grading(trial);
    assert_eq!(grading["summary"]["failed"], 1);
    assert_eq!(grading["assertion_results"][0]["passed"], false);
    assert_eq!(agentskills::timing(trial)["total_tokens"], 120);
}

#[test]
fn stored_results_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (results, trace) = (results(), evil_trace());
    crate::store::write_results(dir.path(), &results, std::slice::from_ref(&trace)).unwrap();
    assert_eq!(crate::store::read_results(dir.path()).unwrap(), results);
    let folder =
        crate::store::trial_folder(dir.path(), &results, &trace.case, trace.arm, trace.trial);
    assert_eq!(Trace::read(&folder.join(crate::store::TRACE_FILE)).unwrap(), trace);
    assert!(folder.join("grading.json").is_file() && folder.join("timing.json").is_file());
}
