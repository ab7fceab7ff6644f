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

use super::{limits, scope::Scope};

/// Whether a condition is true. A condition that cannot be parsed or evaluated is false.
pub fn is_true(expression: &str, scope: &Scope<'_>) -> bool {
    evaluate(expression, scope).unwrap_or(false)
}

/// Evaluates a condition, or returns why it cannot be evaluated.
pub fn evaluate(expression: &str, scope: &Scope<'_>) -> Result<bool, ConditionError> {
    if expression.chars().count() > limits::MAX_EXPRESSION_CHARS {
        return Err(ConditionError::TooLarge);
    }
    let mut budget = TextBudget(limits::MAX_TEXT_BYTES);
    let value = token::tokens(expression, scope, &mut budget)
        .and_then(parse::parse)
        .and_then(|tree| evaluate::evaluate(tree, &mut budget))?;
    Ok(value.is_true())
}

/// Why a condition cannot be evaluated, and so is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// The expression cannot be parsed.
    #[error("it is not a valid expression; write for example {{{{input}}}} contains 'yes'")]
    Syntax,
    /// A placeholder has no value.
    #[error(
        "a placeholder has no value; use {{{{input}}}} or the output of a node that ran before"
    )]
    Unresolved,
    /// An operator does not fit its operands.
    #[error("an operator does not fit its values; a text such as '5' is not the number 5")]
    Type,
    /// The expression is nested too deeply, or its texts become too long.
    #[error("it is too long, or nested too deeply")]
    TooLarge,
}

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
