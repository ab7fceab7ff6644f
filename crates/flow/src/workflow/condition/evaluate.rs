//! Evaluates the tree of a condition, with short-circuit evaluation as in Python.

use std::cmp::Ordering;

use super::{
    ConditionError, TextBudget,
    operand::Operand,
    parse::{Relation, Tree},
    token::Comparison,
};

/// Returns the value of a condition.
pub(super) fn evaluate<'a>(
    tree: Tree<'a>,
    budget: &mut TextBudget,
) -> Result<Operand<'a>, ConditionError> {
    match tree {
        Tree::Value(value) => Ok(value),
        Tree::Any(parts) => first_matching(parts, true, budget),
        Tree::All(parts) => first_matching(parts, false, budget),
        Tree::Not(inner) => Ok(Operand::Bool(!evaluate(*inner, budget)?.is_true())),
        Tree::Negative(inner) => evaluate(*inner, budget)?.negated(),
        Tree::Positive(inner) => evaluate(*inner, budget)?.positive(),
        Tree::Combined(first, others) => {
            let mut value = evaluate(*first, budget)?;
            for (operator, other) in others {
                let other = evaluate(other, budget)?;
                value = value.apply_operator(operator, &other, budget)?;
            }
            Ok(value)
        }
        Tree::Compared(first, others) => {
            let mut one = evaluate(*first, budget)?;
            for (relation, other) in others {
                let other = evaluate(other, budget)?;
                if !relates(&one, relation, &other)? {
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
    parts: Vec<Tree<'a>>,
    wanted: bool,
    budget: &mut TextBudget,
) -> Result<Operand<'a>, ConditionError> {
    let mut value = Operand::None;
    for part in parts {
        value = evaluate(part, budget)?;
        if value.is_true() == wanted {
            break;
        }
    }
    Ok(value)
}

fn relates(
    one: &Operand<'_>,
    relation: Relation,
    other: &Operand<'_>,
) -> Result<bool, ConditionError> {
    match relation {
        Relation::Compare(comparison) => compares(one, comparison, other),
        Relation::In => other.contains(one),
        Relation::NotIn => other.contains(one).map(|contains| !contains),
        Relation::Contains => one.contains(other),
    }
}

fn compares(
    one: &Operand<'_>,
    comparison: Comparison,
    other: &Operand<'_>,
) -> Result<bool, ConditionError> {
    Ok(match comparison {
        Comparison::Equal => one.equals(other),
        Comparison::NotEqual => !one.equals(other),
        Comparison::Less => one.order(other)? == Some(Ordering::Less),
        Comparison::LessOrEqual => one.order(other)?.is_some_and(Ordering::is_le),
        Comparison::Greater => one.order(other)? == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => one.order(other)?.is_some_and(Ordering::is_ge),
    })
}
