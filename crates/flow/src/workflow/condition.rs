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
//! assert!(condition::holds("{{rating.output.stars}} >= 4 && {{input}} contains 'long'", &scope));
//! assert!(!condition::holds("{{nothing.output}} == 1", &scope));
//! ```

mod evaluate;
mod operand;
mod parse;
mod token;

use super::{limits, scope::Scope};

/// Whether a condition is true. A condition that cannot be parsed or evaluated is false.
pub fn holds(expression: &str, scope: &Scope<'_>) -> bool {
    if expression.chars().count() > limits::EXPRESSION_CHARS {
        return false;
    }
    let mut room = Room(limits::TEXT_BYTES);
    let judged = token::tokens(expression, scope, &mut room)
        .and_then(parse::parse)
        .and_then(|tree| evaluate::evaluate(tree, &mut room));
    judged.is_ok_and(|value| value.is_true())
}

/// Why a condition cannot be evaluated, and so is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The expression cannot be parsed.
    Syntax,
    /// A placeholder has no value.
    Unresolved,
    /// An operator does not fit its operands.
    Type,
    /// The expression is nested too deeply, or its texts become too long.
    TooLarge,
}

/// The number of bytes that texts may still take.
struct Room(usize);

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.0 = self.0.checked_sub(bytes).ok_or(Flaw::TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
