//! From a tree to a value. As in Python, what does not matter any more is not looked at.

use std::cmp::Ordering;

use super::{
    Flaw, Room,
    operand::Operand,
    parse::{Relation, Tree},
    token::Comparison,
};

/// The value of a condition.
pub(super) fn evaluate<'a>(tree: Tree<'a>, room: &mut Room) -> Result<Operand<'a>, Flaw> {
    match tree {
        Tree::Value(value) => Ok(value),
        Tree::Any(parts) => first(parts, true, room),
        Tree::All(parts) => first(parts, false, room),
        Tree::Not(inner) => Ok(Operand::Bool(!evaluate(*inner, room)?.is_true())),
        Tree::Negative(inner) => evaluate(*inner, room)?.negated(),
        Tree::Positive(inner) => evaluate(*inner, room)?.positive(),
        Tree::Combined(first, others) => {
            let mut value = evaluate(*first, room)?;
            for (operator, other) in others {
                let other = evaluate(other, room)?;
                value = value.combined(operator, &other, room)?;
            }
            Ok(value)
        }
        Tree::Compared(first, others) => {
            let mut one = evaluate(*first, room)?;
            for (relation, other) in others {
                let other = evaluate(other, room)?;
                if !relates(&one, relation, &other)? {
                    return Ok(Operand::Bool(false));
                }
                one = other;
            }
            Ok(Operand::Bool(true))
        }
    }
}

/// The first part that is true, or that is not; else the last one.
fn first<'a>(parts: Vec<Tree<'a>>, wanted: bool, room: &mut Room) -> Result<Operand<'a>, Flaw> {
    let mut value = Operand::None;
    for part in parts {
        value = evaluate(part, room)?;
        if value.is_true() == wanted {
            break;
        }
    }
    Ok(value)
}

fn relates(one: &Operand<'_>, relation: Relation, other: &Operand<'_>) -> Result<bool, Flaw> {
    match relation {
        Relation::Compare(comparison) => compares(one, comparison, other),
        Relation::In => other.contains(one),
        Relation::NotIn => other.contains(one).map(|contains| !contains),
        Relation::Contains => one.contains(other),
    }
}

fn compares(one: &Operand<'_>, comparison: Comparison, other: &Operand<'_>) -> Result<bool, Flaw> {
    Ok(match comparison {
        Comparison::Equal => one.equals(other),
        Comparison::NotEqual => !one.equals(other),
        Comparison::Less => one.order(other)? == Some(Ordering::Less),
        Comparison::LessOrEqual => one.order(other)?.is_some_and(Ordering::is_le),
        Comparison::Greater => one.order(other)? == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => one.order(other)?.is_some_and(Ordering::is_ge),
    })
}
