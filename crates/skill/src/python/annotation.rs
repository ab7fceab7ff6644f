//! Maps Python type annotations to JSON types.

use ruff_python_ast::{Expr, Operator};
use ruff_python_parser::parse_expression;

use super::depth;
use crate::skill::ParameterKind;

/// Deepest wrapping that is looked through, as in `Annotated[Optional["str"], …]`.
const MAX_WRAPPING: usize = 8;

/// The type that an annotation names; `None` for every one that is not checked.
pub(super) fn kind(annotation: &Expr) -> Option<ParameterKind> {
    match read(annotation, 0) {
        Meaning::Kind(kind) => Some(kind),
        Meaning::Nothing | Meaning::Other => None,
    }
}

/// Types that JSON cannot represent.
const NO_JSON: [&str; 8] =
    ["set", "frozenset", "bytes", "bytearray", "complex", "Set", "FrozenSet", "memoryview"];

/// The type that an annotation names, when a value of it cannot be sent as JSON.
pub(super) fn no_json(annotation: &Expr) -> Option<&'static str> {
    let name = match annotation {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Subscript(subscript) => return no_json(&subscript.value),
        _ => return None,
    };
    NO_JSON.into_iter().find(|known| *known == name)
}

/// The meaning of a part of an annotation.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    /// One of our types.
    Kind(ParameterKind),
    /// `None`, which a union may have beside a type.
    Nothing,
    /// Anything else.
    Other,
}

fn read(annotation: &Expr, wrapping: usize) -> Meaning {
    if wrapping > MAX_WRAPPING {
        return Meaning::Other;
    }
    let inner = |expression: &Expr| read(expression, wrapping + 1);
    match annotation {
        Expr::NoneLiteral(_) => Meaning::Nothing,
        Expr::Name(name) => base(name.id.as_str()),
        // `typing.List`, `t.List`: the module has many names, its classes have one.
        Expr::Attribute(attribute) => base(attribute.attr.as_str()),
        Expr::StringLiteral(literal) => {
            let text = literal.value.to_str();
            let parsed = depth::check(text).ok().and_then(|()| parse_expression(text.trim()).ok());
            parsed.map_or(Meaning::Other, |parsed| inner(parsed.expr()))
        }
        Expr::BinOp(union) if union.op == Operator::BitOr => {
            union_meaning([inner(&union.left), inner(&union.right)])
        }
        Expr::Subscript(subscript) => {
            let arguments = match &*subscript.slice {
                Expr::Tuple(tuple) => tuple.elts.as_slice(),
                other => std::slice::from_ref(other),
            };
            let name = match &*subscript.value {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => return Meaning::Other,
            };
            match name {
                "Optional" | "Annotated" => arguments.first().map_or(Meaning::Other, inner),
                "Union" => union_meaning(arguments.iter().map(inner)),
                _ => base(name),
            }
        }
        _ => Meaning::Other,
    }
}

fn base(name: &str) -> Meaning {
    Meaning::Kind(match name {
        "str" => ParameterKind::String,
        "int" => ParameterKind::Integer,
        "float" => ParameterKind::Number,
        "bool" => ParameterKind::Boolean,
        "list" | "tuple" | "List" | "Tuple" => ParameterKind::Array,
        "dict" | "Dict" => ParameterKind::Object,
        _ => return Meaning::Other,
    })
}

/// A union is the one type in it that is not `None`.
fn union_meaning(parts: impl IntoIterator<Item = Meaning>) -> Meaning {
    parts.into_iter().fold(Meaning::Nothing, |before, next| match (before, next) {
        (Meaning::Nothing, any) | (any, Meaning::Nothing) => any,
        (one, other) if one == other => one,
        _ => Meaning::Other,
    })
}
