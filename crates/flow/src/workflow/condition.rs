//! Evaluates conditions: a small expression language with Python's values and without function
//! calls.
//!
//! ```
//! use savoir_flow::workflow::{Scope, condition};
//! use serde_json::{Map, json};
//!
//! let outputs = json!({"rating": {"stars": 4}}).as_object().cloned().unwrap_or_default();
//! let variables = Map::new();
//! let scope = Scope::new("a long text", &outputs, &variables);
//! assert!(condition::is_true("{{rating.output.stars}} >= 4 && {{input}} contains 'long'", &scope));
//! assert!(!condition::is_true("{{nothing.output}} == 1", &scope));
//! ```

mod evaluate;
mod operand;
mod parse;
mod token;

use thiserror::Error;

use self::evaluate::Evaluator;
use super::{limits, scope::Scope};

/// Whether a condition is true. A condition that cannot be parsed or evaluated is false.
pub fn is_true(expression: &str, scope: &Scope<'_>) -> bool {
    evaluate(expression, scope).is_ok_and(|evaluation| evaluation.is_true)
}

/// The value of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    pub is_true: bool,
    /// Comparisons that its author may have meant in another way.
    pub notes: Vec<String>,
}

/// Evaluates a condition, or returns why it cannot be evaluated.
pub fn evaluate(expression: &str, scope: &Scope<'_>) -> Result<Evaluation, ConditionError> {
    if expression.chars().count() > limits::MAX_EXPRESSION_CHARS {
        return Err(ConditionError::TooLarge);
    }
    let mut evaluator = Evaluator::new();
    let value = token::tokens(expression, scope, &mut evaluator.budget)
        .and_then(|tokens| parse::parse(tokens, expression.len()))
        .and_then(|tree| evaluator.evaluate(tree))
        .map_err(|error| error.with_position(expression))?;
    Ok(Evaluation { is_true: value.is_true(), notes: evaluator.notes })
}

/// Why a condition cannot be evaluated, and so is false.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// The expression cannot be parsed.
    #[error("at character {at}, {problem}")]
    Syntax {
        /// The number of the character, from 1.
        at: usize,
        problem: String,
    },
    /// A placeholder has no value.
    #[error("`{{{{{path}}}}}` has no value; {hint}")]
    Unresolved {
        path: String,
        /// Which placeholder to write instead.
        hint: String,
    },
    /// An operator does not fit its operands.
    #[error("{0}")]
    Type(String),
    #[error("it divides by zero")]
    DivisionByZero,
    /// The expression is nested too deeply, or its texts become too long.
    #[error("it is too long, or nested too deeply")]
    TooLarge,
}

impl ConditionError {
    /// A syntax error at a byte of the expression.
    fn syntax(at: usize, problem: impl Into<String>) -> Self {
        Self::Syntax { at, problem: problem.into() }
    }

    /// Replaces the number of the byte by that of the character.
    fn with_position(self, expression: &str) -> Self {
        match self {
            Self::Syntax { at, problem } => {
                let before = expression.get(..at).unwrap_or(expression);
                Self::Syntax { at: before.chars().count() + 1, problem }
            }
            other => other,
        }
    }
}

/// What to write so that a text is compared as a number.
const NUMBER_HINT: &str =
    "to use a text as a number, write + before it, for example +{{input}} > 3";

/// The number of bytes that texts may still take.
struct TextBudget(usize);

impl TextBudget {
    fn take(&mut self, bytes: usize) -> Result<(), ConditionError> {
        self.0 = self.0.checked_sub(bytes).ok_or(ConditionError::TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
