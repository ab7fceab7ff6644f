//! The evaluation of a skill, whichever format it was written in.

use savoir_lint::Span;
use serde::{Deserialize, Serialize};

/// All cases and trigger queries of a skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalSet {
    /// The skill that the files name.
    pub skill: Option<String>,
    pub cases: Vec<Case>,
    pub triggers: Vec<Trigger>,
}

/// A task for an agent, and how its result is graded.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique within the set.
    pub id: String,
    pub prompt: String,
    /// A description of a good result, for the judge and for readers.
    pub expected: Option<String>,
    /// Files that are copied into the workspace.
    pub files: Vec<CaseFile>,
    pub assertions: Vec<Assertion>,
    /// What the task needs beside its files, such as a platform with a GPU. A trial has none of it.
    pub requires: Vec<String>,
    pub location: Location,
}

/// A file that a case brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFile {
    /// The path in the workspace.
    pub path: String,
    /// The path in the folder of the skill.
    pub source: String,
    pub span: Span,
}

/// One check of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// The check in words.
    pub text: String,
    /// Its share of the score of the case, relative to the others.
    pub weight: f64,
    pub grader: Grader,
    pub span: Span,
}

/// How an assertion is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Grader {
    /// A file exists in the workspace, or does not.
    FileExists { path: String, exists: bool },
    /// A file or the answer contains a text, or does not.
    Contains { path: Option<String>, text: String, contains: bool },
    /// A file or the answer matches a regular expression, or does not.
    Matches { path: Option<String>, pattern: String, matches: bool },
    /// A file or the answer is JSON that satisfies a schema.
    JsonSchema { path: Option<String>, schema: serde_json::Value },
    /// A command in the workspace exits with a code.
    Command { command: String, exit_code: i32 },
    /// The agent called a tool, or did not.
    ToolCalled { tool: String, called: bool },
    /// A model judges the text of the assertion.
    Judge,
}

impl Grader {
    /// Whether the same trace always gets the same result.
    pub fn is_deterministic(&self) -> bool {
        !matches!(self, Self::Judge)
    }
}

/// A message for which the skill should or should not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub query: String,
    pub should_trigger: bool,
    pub location: Location,
}

/// Where something is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The path in the folder of the skill.
    pub file: String,
    pub span: Span,
}
