//! Grades trials. Deterministic graders see only the record of a trial, so that it can be graded
//! again offline. Commands and judges are run by `run`.

use savoir_engine::structured::{OutputError, validate_answer};
use savoir_lint::words::shorten;
use savoir_skill::skill::Output;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    set::{Assertion, Case, Grader},
    trace::{Content, Trace},
};

/// Maximum characters of evidence from a trial.
const MAX_EVIDENCE_CHARS: usize = 300;

/// The result of one assertion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionResult {
    pub text: String,
    pub weight: f64,
    pub outcome: Outcome,
    /// What the grader found.
    pub evidence: String,
    /// Whether a model judged it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
}

/// How an assertion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    Failed,
    /// It could not be checked. The trial does not count.
    Invalid,
}

/// The results of all assertions of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grading {
    pub results: Vec<AssertionResult>,
}

impl AssertionResult {
    pub(crate) fn new(
        assertion: &Assertion,
        outcome: Outcome,
        evidence: impl Into<String>,
    ) -> Self {
        let (text, weight) = (assertion.text.clone(), assertion.weight);
        Self {
            text,
            weight,
            outcome,
            evidence: shorten(&evidence.into(), MAX_EVIDENCE_CHARS),
            judged: false,
        }
    }
}

impl Grading {
    /// Why the trial does not count.
    pub fn invalid(&self) -> Option<String> {
        let found = self.results.iter().find(|result| result.outcome == Outcome::Invalid)?;
        Some(format!("`{}` could not be checked: {}", found.text, found.evidence))
    }

    /// The weighted share of assertions that passed, from 0 to 1; `None` if one is invalid.
    pub fn score(&self) -> Option<f64> {
        if self.invalid().is_some() || self.results.is_empty() {
            return None;
        }
        let all: f64 = self.results.iter().map(|result| result.weight).sum();
        let passed = self.results.iter().filter(|result| result.outcome == Outcome::Passed);
        let passed: f64 = passed.map(|result| result.weight).sum();
        // Without weights, an assertion that counts nothing cannot fail.
        // The sum of nothing is a negative zero, which would be shown as such.
        Some(if all > 0.0 { 0.0 + passed / all } else { 1.0 })
    }

    /// Whether every assertion with a weight passed.
    pub fn passed(&self) -> bool {
        self.results.iter().all(|one| one.outcome == Outcome::Passed || one.weight == 0.0)
    }
}

impl Case {
    /// The assertions to grade: those of the case, or its expected result for the judge.
    pub fn graded(&self) -> Vec<Assertion> {
        match &self.expected {
            Some(_) if self.assertions.is_empty() => vec![Assertion {
                text: "The result is what was expected.".to_owned(),
                weight: 1.0,
                grader: Grader::Judge,
                span: self.location.span,
            }],
            _ => self.assertions.clone(),
        }
    }
}

/// Grades an assertion from the record alone; `None` if it needs a command or a judge.
pub fn grade(assertion: &Assertion, trace: &Trace) -> Option<AssertionResult> {
    let result = |outcome, evidence: String| AssertionResult::new(assertion, outcome, evidence);
    let check = |passed: bool, evidence: String| {
        result(if passed { Outcome::Passed } else { Outcome::Failed }, evidence)
    };
    Some(match &assertion.grader {
        Grader::FileExists { path, exists } => {
            let prefix = format!("{}/", path.trim_end_matches('/'));
            let is_folder = || trace.files.iter().any(|file| file.path.starts_with(&prefix));
            let found = trace.file(path).is_some() || is_folder();
            if !found && trace.files_left_out > 0 {
                return Some(result(Outcome::Invalid, not_recorded(trace)));
            }
            let words = if found { "the file exists" } else { "the file does not exist" };
            check(found == *exists, words.to_owned())
        }
        Grader::Contains { path, text, contains } => match subject(path.as_deref(), trace) {
            Subject::Text(subject) => {
                let found = subject.find(text.as_str());
                let words = match found {
                    Some(at) => format!("found: {}", around(&subject, at, text.len())),
                    None => format!("not found in: {subject}"),
                };
                check(found.is_some() == *contains, words)
            }
            missing => missing.result(assertion, *contains),
        },
        Grader::Matches { path, pattern, matches } => match subject(path.as_deref(), trace) {
            Subject::Text(subject) => match crate::formats::compile(pattern) {
                Ok(regex) => {
                    let found = regex.find(&subject);
                    let words = match found {
                        Some(found) => format!("matches: {}", found.as_str()),
                        None => format!("no match in: {subject}"),
                    };
                    check(found.is_some() == *matches, words)
                }
                Err(error) => result(Outcome::Invalid, error),
            },
            missing => missing.result(assertion, *matches),
        },
        Grader::JsonSchema { path, schema } => match subject(path.as_deref(), trace) {
            Subject::Text(subject) => match validate(schema, &subject) {
                Ok(()) => check(true, "it satisfies the schema".to_owned()),
                Err(OutputError::BadSchema(reason)) => result(Outcome::Invalid, reason),
                Err(error) => check(false, error.to_string()),
            },
            missing => missing.result(assertion, true),
        },
        Grader::ToolCalled { tool, called } => {
            let calls = trace.calls.iter().filter(|call| call.tool == *tool).count();
            if calls == 0 && !trace.tools.is_empty() && !trace.tools.contains(tool) {
                let words = format!("the agent has no tool `{tool}`");
                return Some(AssertionResult::new(assertion, Outcome::Invalid, words));
            }
            let names: Vec<&str> = trace.calls.iter().map(|call| call.tool.as_str()).collect();
            let words = match calls {
                0 if names.is_empty() => "no tool was called".to_owned(),
                0 => format!("called: {}", names.join(", ")),
                1 => "called once".to_owned(),
                count => format!("called {count} times"),
            };
            check((calls > 0) == *called, words)
        }
        Grader::Command { .. } | Grader::Judge => return None,
    })
}

/// What a text check is about.
enum Subject {
    Text(String),
    Missing(String),
    /// It exists, but what it contains is not known.
    Unknown(String),
}

impl Subject {
    /// A missing file contains nothing; unknown content decides nothing.
    fn result(self, assertion: &Assertion, wanted: bool) -> AssertionResult {
        match self {
            Self::Missing(words) => {
                let outcome = if wanted { Outcome::Failed } else { Outcome::Passed };
                AssertionResult::new(assertion, outcome, words)
            }
            Self::Unknown(words) | Self::Text(words) => {
                AssertionResult::new(assertion, Outcome::Invalid, words)
            }
        }
    }
}

fn subject(path: Option<&str>, trace: &Trace) -> Subject {
    let Some(path) = path else { return Subject::Text(trace.answer.clone()) };
    match trace.file(path) {
        Some(file) => match &file.content {
            Content::Text(text) => Subject::Text(text.clone()),
            Content::Base64(_) => Subject::Missing(format!("{path} is not UTF-8 text")),
            Content::Omitted => Subject::Unknown(format!(
                "{path} has {} bytes, which is too large to be recorded",
                file.size
            )),
        },
        None if trace.files_left_out > 0 => Subject::Unknown(not_recorded(trace)),
        None => Subject::Missing(format!("{path} does not exist")),
    }
}

fn not_recorded(trace: &Trace) -> String {
    format!("{} files of the workspace were not recorded", trace.files_left_out)
}

fn validate(schema: &Value, text: &str) -> Result<(), OutputError> {
    let output = Output { kind: "json".to_owned(), schema: Some(schema.clone()) };
    validate_answer(&output, text).map(|_| ())
}

/// Checks that a JSON Schema can be used.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    match validate(schema, "null") {
        Err(OutputError::BadSchema(reason)) => Err(reason),
        _ => Ok(()),
    }
}

/// A found text with what is around it.
fn around(text: &str, at: usize, length: usize) -> &str {
    let start = text.floor_char_boundary(at.saturating_sub(60));
    let end = text.ceil_char_boundary((at + length + 60).min(text.len()));
    &text[start..end]
}

#[cfg(test)]
mod tests;
