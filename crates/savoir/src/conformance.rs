//! Runs conformance vectors: pairs of an input and its expected result.
//!
//! This module contains no rules of dialects. Each operation calls a library, often a function that
//! the commands call, too, and returns the result as JSON; [`compare`] compares it with the
//! expected one.

mod agent_flow;
mod compare;
mod gaia;
mod gibberish;
mod parse_result;
mod personal_agent;
mod skillrt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A file of vectors.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct VectorFile {
    vectors: Vec<Vector>,
}

#[derive(Clone, Debug, Deserialize)]
struct Vector {
    id: String,
    dialect: String,
    op: String,
    input: Value,
    expected: Value,
}

/// The ids of the vectors, grouped by result.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// The result was as expected.
    pub(crate) passed: Vec<String>,
    /// The result was different.
    pub(crate) failed: Vec<Failure>,
    /// The operation is not implemented.
    pub(crate) unsupported: Vec<String>,
}

/// A vector whose result differs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    /// The id of the vector.
    pub(crate) id: String,
    pub(crate) expected: Value,
    pub(crate) got: Value,
}

/// The result of an operation as JSON.
type OperationResult = Result<Value, OperationError>;

/// Why an operation has no result.
#[derive(Debug)]
enum OperationError {
    /// The operation is not implemented.
    Unsupported,
    /// The input does not have the operation's shape.
    BadInput(String),
}

impl From<serde_json::Error> for OperationError {
    fn from(error: serde_json::Error) -> Self {
        Self::BadInput(error.to_string())
    }
}

impl VectorFile {
    /// Parses a file of vectors.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// Runs every vector, and compares the results.
pub(crate) fn run(file: &VectorFile) -> Outcome {
    let mut outcome = Outcome::default();
    for vector in &file.vectors {
        let got = match run_operation(vector) {
            Ok(got) => got,
            Err(OperationError::Unsupported) => {
                outcome.unsupported.push(vector.id.clone());
                continue;
            }
            Err(OperationError::BadInput(message)) => {
                json!({"ok": false, "error": "bad_input", "message": message})
            }
        };
        if compare::matches(&vector.expected, &got) {
            outcome.passed.push(vector.id.clone());
        } else {
            let (id, expected) = (vector.id.clone(), vector.expected.clone());
            outcome.failed.push(Failure { id, expected, got });
        }
    }
    outcome
}

fn run_operation(vector: &Vector) -> OperationResult {
    let Vector { op, input, .. } = vector;
    match vector.dialect.as_str() {
        "afl" => agent_flow::run_operation(op, input),
        "gibb" => gibberish::run_operation(op, input),
        "gaia" => gaia::run_operation(op, input),
        "skillrt" => skillrt::run_operation(op, input),
        "pa" => personal_agent::run_operation(op, input),
        _ => Err(OperationError::Unsupported),
    }
}

/// Parses an input as the type that an operation expects.
fn parse_input<T: DeserializeOwned>(input: &Value) -> Result<T, OperationError> {
    Ok(T::deserialize(input)?)
}

#[cfg(test)]
mod tests;
