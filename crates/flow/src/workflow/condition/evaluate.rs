//! Evaluates the tree of a condition, with short-circuit evaluation as in Python.

use std::cmp::Ordering;

use super::{
    ConditionError, NUMBER_HINT, TextBudget,
    operand::Operand,
    parse::{Relation, Tree},
    token::Comparison,
};
use crate::workflow::limits;

/// Evaluates one condition.
pub(super) struct Evaluator {
    pub(super) budget: TextBudget,
    /// Comparisons that the author may have meant in another way.
    pub(super) notes: Vec<String>,
}

impl Evaluator {
    pub(super) fn new() -> Self {
        Self { budget: TextBudget(limits::MAX_TEXT_BYTES), notes: Vec::new() }
    }

    /// Returns the value of a condition.
    pub(super) fn evaluate<'a>(&mut self, tree: Tree<'a>) -> Result<Operand<'a>, ConditionError> {
        match tree {
            Tree::Value(value) => Ok(value),
            Tree::Any(parts) => self.first_matching(parts, true),
            Tree::All(parts) => self.first_matching(parts, false),
            Tree::Not(inner) => Ok(Operand::Bool(!self.evaluate(*inner)?.is_true())),
            Tree::Negative(inner) => self.evaluate(*inner)?.negated(),
            Tree::Positive(inner) => self.evaluate(*inner)?.positive(),
            Tree::Combined(first, others) => {
                let mut value = self.evaluate(*first)?;
                for (operator, other) in others {
                    let other = self.evaluate(other)?;
                    value = value.apply_operator(operator, &other, &mut self.budget)?;
                }
                Ok(value)
            }
            Tree::Compared(first, others) => {
                let mut one = self.evaluate(*first)?;
                for (relation, other) in others {
                    let other = self.evaluate(other)?;
                    if !self.relates(&one, relation, &other)? {
                        return Ok(Operand::Bool(false));
                    }
                    one = other;
                }
                Ok(Operand::Bool(true))
            }
        }
    }

    /// Returns the first operand that is true (for `or`) or false (for `and`), else the last one.
    fn first_matching<'a>(
        &mut self,
        parts: Vec<Tree<'a>>,
        wanted: bool,
    ) -> Result<Operand<'a>, ConditionError> {
        let mut value = Operand::None;
        for part in parts {
            value = self.evaluate(part)?;
            if value.is_true() == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn relates(
        &mut self,
        one: &Operand<'_>,
        relation: Relation,
        other: &Operand<'_>,
    ) -> Result<bool, ConditionError> {
        match relation {
            Relation::Compare(comparison) => {
                self.note_text_number(one, comparison, other);
                compares(one, comparison, other)
            }
            Relation::In => other.contains(one),
            Relation::NotIn => other.contains(one).map(|contains| !contains),
            Relation::Contains => one.contains(other),
        }
    }

    /// Notes a comparison that has a result, but not that of the numbers in its texts.
    fn note_text_number(&mut self, one: &Operand<'_>, comparison: Comparison, other: &Operand<'_>) {
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let differs = match (one.is_text(), other.is_text()) {
            // Equal texts are also equal numbers, but `'10' < '9'`.
            (true, true) => !is_equality,
            (true, false) | (false, true) => is_equality,
            (false, false) => false,
        };
        if differs && one.is_numeric() && other.is_numeric() {
            let (one, other) = (one.describe(), other.describe());
            let how = if is_equality { "are never equal" } else { "are compared as texts" };
            self.notes.push(format!("{one} and {other} {how}; {NUMBER_HINT}"));
        }
    }
}

fn compares(
    one: &Operand<'_>,
    comparison: Comparison,
    other: &Operand<'_>,
) -> Result<bool, ConditionError> {
    let order = || one.order(comparison, other);
    Ok(match comparison {
        Comparison::Equal => one.equals(other),
        Comparison::NotEqual => !one.equals(other),
        Comparison::Less => order()? == Some(Ordering::Less),
        Comparison::LessOrEqual => order()?.is_some_and(Ordering::is_le),
        Comparison::Greater => order()? == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order()?.is_some_and(Ordering::is_ge),
    })
}
