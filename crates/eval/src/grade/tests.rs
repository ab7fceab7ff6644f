use savoir_lint::Span;
use serde_json::json;

use super::*;
use crate::trace::{RecordedFile, TraceCall, testing::trace};

fn assertion(grader: Grader) -> Assertion {
    Assertion { text: "it".to_owned(), weight: 1.0, grader, span: Span::default() }
}

fn recorded() -> Trace {
    let file = |path: &str, content: Content| RecordedFile {
        path: path.to_owned(),
        size: 5,
        executable: false,
        content,
    };
    Trace {
        answer: "The total is 42.".to_owned(),
        files: vec![
            file("out/data.json", Content::Text(r#"{"total": 42}"#.to_owned())),
            file("raw.bin", Content::Base64("//4=".to_owned())),
            file("huge.txt", Content::Omitted),
        ],
        calls: vec![TraceCall {
            tool: "write_file".to_owned(),
            arguments: json!({}),
            failure: None,
        }],
        ..trace()
    }
}

fn outcome(grader: Grader) -> Outcome {
    grade(&assertion(grader), &recorded()).unwrap().outcome
}

#[test]
fn deterministic_graders_read_the_record() {
    use Outcome::{Failed, Invalid, Passed};
    let exists = |path: &str, exists| Grader::FileExists { path: path.to_owned(), exists };
    assert_eq!(outcome(exists("out/data.json", true)), Passed);
    assert_eq!(outcome(exists("out", true)), Passed);
    assert_eq!(outcome(exists("none", true)), Failed);
    assert_eq!(outcome(exists("none", false)), Passed);
    let contains = |path: Option<&str>, text: &str, contains| Grader::Contains {
        path: path.map(str::to_owned),
        text: text.to_owned(),
        contains,
    };
    assert_eq!(outcome(contains(None, "42", true)), Passed);
    assert_eq!(outcome(contains(None, "43", true)), Failed);
    assert_eq!(outcome(contains(Some("none"), "43", false)), Passed);
    assert_eq!(outcome(contains(Some("none"), "43", true)), Failed);
    assert_eq!(outcome(contains(Some("huge.txt"), "43", false)), Invalid);
    assert_eq!(outcome(contains(Some("raw.bin"), "43", true)), Failed);
    let matches = |pattern: &str, matches| Grader::Matches {
        path: None,
        pattern: pattern.to_owned(),
        matches,
    };
    assert_eq!(outcome(matches(r"^The total is \d+\.$", true)), Passed);
    assert_eq!(outcome(matches("sum", false)), Passed);
    let schema = |schema: Value| Grader::JsonSchema { path: Some("out/data.json".into()), schema };
    let typed = |kind: &str| json!({"properties": {"total": {"type": kind}}});
    assert_eq!(outcome(schema(typed("integer"))), Passed);
    assert_eq!(outcome(schema(typed("string"))), Failed);
    assert_eq!(outcome(schema(json!({"type": 5}))), Invalid);
    let called = |tool: &str, called| Grader::ToolCalled { tool: tool.to_owned(), called };
    assert_eq!(outcome(called("write_file", true)), Passed);
    assert_eq!(outcome(called("run_command", true)), Failed);
    assert_eq!(outcome(called("run_command", false)), Passed);
    assert!(grade(&assertion(Grader::Judge), &recorded()).is_none());
}

#[test]
fn one_invalid_assertion_makes_the_trial_invalid() {
    let result = |outcome, weight| AssertionResult {
        text: "it".to_owned(),
        weight,
        outcome,
        evidence: "because".to_owned(),
        judged: false,
    };
    let grading =
        Grading { results: vec![result(Outcome::Passed, 3.0), result(Outcome::Failed, 1.0)] };
    assert_eq!((grading.score(), grading.passed()), (Some(0.75), false));
    let failed = Grading { results: vec![result(Outcome::Failed, 1.0)] };
    assert_eq!(failed.score().map(|score| score.to_string()).as_deref(), Some("0"));
    let grading =
        Grading { results: vec![result(Outcome::Passed, 3.0), result(Outcome::Invalid, 1.0)] };
    assert_eq!(grading.score(), None);
    assert!(grading.invalid().unwrap().contains("because"));
}

#[test]
fn regrading_a_recorded_trial_is_fast() {
    let mut record = recorded();
    record.answer = "word ".repeat(4_000);
    let graders = [
        Grader::Contains { path: None, text: "42".to_owned(), contains: true },
        Grader::Matches { path: None, pattern: r"\bsum (\d+)$".to_owned(), matches: true },
        Grader::JsonSchema {
            path: Some("out/data.json".into()),
            schema: json!({"type": "object"}),
        },
        Grader::FileExists { path: "out/data.json".to_owned(), exists: true },
    ]
    .map(assertion);
    let regrade = |_| {
        let began = std::time::Instant::now();
        assert!(graders.iter().all(|one| grade(one, &record).is_some()));
        began.elapsed()
    };
    // The best of many, because tests run unoptimised on busy machines.
    let best = (0..20).map(regrade).min().unwrap();
    assert!(best.as_millis() < 50, "{best:?}");
}
