//! Reads the parameters of a tool from a table in the Markdown body, and checks values against
//! their types.

use serde_json::{Number, Value};

use crate::skill::ParameterKind;

impl ParameterKind {
    /// Parses the type cell of a table, ignoring case, with the aliases `int`, `float` and `bool`.
    pub fn from_cell(text: &str) -> Option<Self> {
        let name = unwrap_code(text.trim()).to_ascii_lowercase();
        match name.as_str() {
            "int" => Some(Self::Integer),
            "float" => Some(Self::Number),
            "bool" => Some(Self::Boolean),
            name => Self::parse(name),
        }
    }

    /// Whether the value has this type; `1.0` is a number, not an integer.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value
                .as_array()
                .is_some_and(|items| !items.iter().any(|item| item.is_array() || item.is_object())),
            Self::Object => value.is_object(),
        }
    }

    /// Parses a text as a value of this type; `None` if it does not match.
    pub fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::String => Some(Value::from(text)),
            Self::Integer => text.parse::<i64>().ok().map(Value::from),
            Self::Number => read_number(text),
            Self::Boolean => parse_yes_no(text).map(Value::Bool),
            Self::Array => Some(read_array(text)),
            Self::Object => serde_json::from_str(text).ok().filter(Value::is_object),
        }
    }
}

/// Parses the cell that says whether a parameter is required: yes, no, true or false, ignoring
/// case.
pub(crate) fn parse_yes_no(cell: &str) -> Option<bool> {
    match cell.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// Returns the `X` of `(default: X)` in a description, parsed as the type of the parameter.
pub fn default_in_description(description: &str, kind: ParameterKind) -> Option<Value> {
    const DEFAULT_MARK: &str = "(default:";
    let at = description.to_ascii_lowercase().find(DEFAULT_MARK)?;
    let rest = description.get(at + DEFAULT_MARK.len()..)?;
    let text = rest.get(..closing_parenthesis(rest)?)?;
    kind.read(unwrap_code(text.trim()))
}

fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Removes the backticks or quotes that authors write around values.
fn unwrap_code(text: &str) -> &str {
    ['`', '"', '\'']
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark))
        .unwrap_or(text)
}

fn read_number(text: &str) -> Option<Value> {
    let number = text.parse::<i64>().map(Number::from).ok();
    let number = number.or_else(|| text.parse().ok().and_then(Number::from_f64));
    number.map(Value::Number)
}

fn read_array(text: &str) -> Value {
    if let Ok(array @ Value::Array(_)) = serde_json::from_str(text) {
        return array;
    }
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn type_cells() {
        for (cell, kind) in [
            ("string", ParameterKind::String),
            (" Integer ", ParameterKind::Integer),
            ("int", ParameterKind::Integer),
            ("float", ParameterKind::Number),
            ("BOOL", ParameterKind::Boolean),
            ("`array`", ParameterKind::Array),
            ("object", ParameterKind::Object),
        ] {
            assert_eq!(ParameterKind::from_cell(cell), Some(kind), "{cell}");
        }
        assert_eq!(ParameterKind::from_cell("str"), None);
    }

    #[test]
    fn values_of_each_type() {
        use ParameterKind::{Array, Boolean, Integer, Number, Object, String};
        for (kind, good, bad) in [
            (String, json!("5"), json!(5)),
            (Integer, json!(-5), json!(5.5)),
            (Integer, json!(u64::MAX), json!(5.0)),
            (Integer, json!(0), json!("5")),
            (Number, json!(5.5), json!("5.5")),
            (Boolean, json!(false), json!("false")),
            (Array, json!(["a", 1, true]), json!("a")),
            (Array, json!([]), json!([["a"]])),
            (Object, json!({}), json!([])),
        ] {
            assert!(kind.accepts(&good), "{kind:?}: {good}");
            assert!(!kind.accepts(&bad), "{kind:?}: {bad}");
        }
    }

    #[test]
    fn required_cells() {
        assert_eq!(parse_yes_no(" Yes "), Some(true));
        assert_eq!(parse_yes_no("FALSE"), Some(false));
        assert_eq!(parse_yes_no("maybe"), None);
    }

    #[test]
    fn defaults_in_descriptions() {
        let default = default_in_description;
        assert_eq!(default("Max (default: 10).", ParameterKind::Integer), Some(json!(10)));
        assert_eq!(default("Max (Default: `10`)", ParameterKind::String), Some(json!("10")));
        assert_eq!(default("(default: 0.5)", ParameterKind::Number), Some(json!(0.5)));
        assert_eq!(default("(default: 2)", ParameterKind::Number), Some(json!(2)));
        assert_eq!(default("(default: yes)", ParameterKind::Boolean), Some(json!(true)));
        assert_eq!(default("(default: a, b)", ParameterKind::Array), Some(json!(["a", "b"])));
        assert_eq!(default("(default: [1])", ParameterKind::Array), Some(json!([1])));
        assert_eq!(default("(default: f(x))", ParameterKind::String), Some(json!("f(x)")));
        assert_eq!(default("(default: {\"a\":1})", ParameterKind::Object), Some(json!({"a": 1})));
        assert_eq!(default("(default: some)", ParameterKind::Integer), None);
        assert_eq!(default("(default: 10", ParameterKind::Integer), None);
        assert_eq!(default("default: 10", ParameterKind::Integer), None);
        assert_eq!(default("İ (default: 1)", ParameterKind::Integer), Some(json!(1)));
    }
}
