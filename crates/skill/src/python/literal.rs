//! Converts Python literals to JSON values.

use ruff_python_ast::{Expr, Number, UnaryOp};
use serde_json::{Map, Value};

/// Deepest literal that is read; defaults of functions are flat.
const MAX_DEPTH: usize = 16;

/// The value of a literal; `None` for everything that would have to be computed.
pub(super) fn value(expression: &Expr) -> Option<Value> {
    read(expression, 0)
}

fn read(expression: &Expr, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let list = |items: &[Expr]| -> Option<Value> {
        items.iter().map(|item| read(item, depth + 1)).collect::<Option<Vec<_>>>().map(Value::Array)
    };
    match expression {
        Expr::NoneLiteral(_) => Some(Value::Null),
        Expr::BooleanLiteral(literal) => Some(literal.value.into()),
        Expr::StringLiteral(literal) => Some(literal.value.to_str().into()),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(number) => number.as_u64().map(Value::from),
            Number::Float(number) => serde_json::Number::from_f64(*number).map(Value::Number),
            Number::Complex { .. } => None,
        },
        Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => {
            match read(&unary.operand, depth + 1)? {
                Value::Number(number) => match number.as_i64() {
                    Some(number) => number.checked_neg().map(Value::from),
                    None if number.is_f64() => number.as_f64().map(|number| (-number).into()),
                    None => None,
                },
                _ => None,
            }
        }
        Expr::List(items) => list(&items.elts),
        Expr::Tuple(items) => list(&items.elts),
        Expr::Dict(dict) => {
            let mut map = Map::new();
            for item in &dict.items {
                let Value::String(key) = read(item.key.as_ref()?, depth + 1)? else { return None };
                map.insert(key, read(&item.value, depth + 1)?);
            }
            Some(map.into())
        }
        _ => None,
    }
}
