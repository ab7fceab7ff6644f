//! Defines the values of conditions, which compare and add like values of Python.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::{Number, Value};

use super::{ConditionError, NUMBER_HINT, TextBudget, token::Comparison};
use crate::workflow::scope::PlaceholderValue;

/// A value in a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Cow<'a, str>),
    /// A list or an object.
    Json(&'a Value),
}

/// Arithmetic operators on numbers; `+` also joins texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Arithmetic {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

/// Maximum characters of a text in a message.
const SHOWN_CHARS: usize = 40;

impl<'a> From<PlaceholderValue<'a>> for Operand<'a> {
    fn from(found: PlaceholderValue<'a>) -> Self {
        match found {
            PlaceholderValue::Text(text) => Self::Text(text.into()),
            PlaceholderValue::Value(value) => Self::from(value),
        }
    }
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::from(number),
            Value::String(text) => Self::Text(text.into()),
            Value::Array(_) | Value::Object(_) => Self::Json(value),
        }
    }
}

impl From<&Number> for Operand<'_> {
    fn from(number: &Number) -> Self {
        match number.as_i128() {
            Some(number) => Self::Int(number),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

impl Operand<'_> {
    /// Truth as in Python: null, zero and empty values are false.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Json(Value::Array(list)) => !list.is_empty(),
            Self::Json(Value::Object(map)) => !map.is_empty(),
            Self::Json(_) => true,
        }
    }

    /// Equality never fails: values of different types are unequal, but booleans are numbers.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Json(Value::Array(one)), Self::Json(Value::Array(other))) => {
                let equal = |(one, other)| Operand::from(one).equals(&Operand::from(other));
                one.len() == other.len() && one.iter().zip(other).all(equal)
            }
            (Self::Json(Value::Object(one)), Self::Json(Value::Object(other))) => {
                let equal = |(key, one)| {
                    let other = other.get(key);
                    other.is_some_and(|other| Operand::from(one).equals(&Operand::from(other)))
                };
                one.len() == other.len() && one.iter().all(equal)
            }
            _ => match (self.number(), other.number()) {
                (Some(one), Some(other)) => one.compare(other) == Some(Ordering::Equal),
                _ => false,
            },
        }
    }

    /// Compares numbers or texts; `None` if a number is NaN.
    pub(super) fn order(
        &self,
        comparison: Comparison,
        other: &Self,
    ) -> Result<Option<Ordering>, ConditionError> {
        if let (Self::Text(one), Self::Text(other)) = (self, other) {
            return Ok(Some(one.cmp(other)));
        }
        let numbers = self.number().zip(other.number());
        let compared = numbers.map(|(one, other)| one.compare(other));
        compared.ok_or_else(|| self.misfit(comparison.symbol(), other))
    }

    /// Whether it contains a value: a text in a text, an element in a list, a key in an object.
    pub(super) fn contains(&self, part: &Self) -> Result<bool, ConditionError> {
        match (self, part) {
            (Self::Text(whole), Self::Text(part)) => Ok(whole.contains(&**part)),
            (Self::Json(Value::Array(list)), part) => {
                Ok(list.iter().any(|element| Operand::from(element).equals(part)))
            }
            (Self::Json(Value::Object(map)), Self::Text(key)) => Ok(map.contains_key(&**key)),
            (Self::Json(Value::Object(_)), _) => Ok(false),
            (whole, part) => {
                let (whole, part) = (whole.describe(), part.describe());
                Err(ConditionError::Type(format!(
                    "{whole} cannot contain {part}; write the part as a text, such as '5'"
                )))
            }
        }
    }

    pub(super) fn negated(&self) -> Result<Self, ConditionError> {
        let negated = self
            .number()
            .map(|number| Numeric::Int(0).apply_operator(Arithmetic::Subtract, number));
        negated.unwrap_or_else(|| {
            let what = self.describe();
            Err(ConditionError::Type(format!("`-` does not fit {what}; {NUMBER_HINT}")))
        })
    }

    /// The value as a number. This is how a condition reads a number from a text.
    pub(super) fn positive(&self) -> Result<Self, ConditionError> {
        let number = self.number().or_else(|| self.number_in_text());
        number.map(Self::from).ok_or_else(|| {
            ConditionError::Type(format!(
                "`+` does not fit {}: it is not a number",
                self.describe()
            ))
        })
    }

    pub(super) fn apply_operator<'b>(
        &self,
        operator: Arithmetic,
        other: &Self,
        budget: &mut TextBudget,
    ) -> Result<Operand<'b>, ConditionError> {
        if let (Self::Text(one), Arithmetic::Add, Self::Text(other)) = (self, operator, other) {
            budget.take(one.len() + other.len())?;
            return Ok(Operand::Text(format!("{one}{other}").into()));
        }
        let numbers = self.number().zip(other.number());
        let (one, other) = numbers.ok_or_else(|| self.misfit(operator.symbol(), other))?;
        one.apply_operator(operator, other)
    }

    /// The error of an operator that does not fit its operands.
    fn misfit(&self, symbol: &str, other: &Self) -> ConditionError {
        let hint = if self.is_text() || other.is_text() {
            format!("; {NUMBER_HINT}")
        } else {
            String::new()
        };
        let (one, other) = (self.describe(), other.describe());
        ConditionError::Type(format!("`{symbol}` does not fit {one} and {other}{hint}"))
    }

    /// The value for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(number) => format!("the number {number}"),
            Self::Float(number) => format!("the number {number}"),
            Self::Text(text) => match text.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => format!("the text '{}…'", &text[..end]),
                None => format!("the text '{text}'"),
            },
            Self::Json(Value::Array(_)) => "a list".to_owned(),
            Self::Json(_) => "an object".to_owned(),
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Whether it is a number, or a text with one.
    pub(super) fn is_numeric(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Float(_)) || self.number_in_text().is_some()
    }

    fn number_in_text(&self) -> Option<Numeric> {
        let Self::Text(text) = self else { return None };
        let text = text.trim();
        if let Ok(number) = text.parse() {
            return Some(Numeric::Int(number));
        }
        // The names of infinity and NaN are not numbers.
        let is_number = text.contains(|c: char| c.is_ascii_digit());
        let number = text.parse().ok().filter(|number: &f64| is_number && number.is_finite());
        number.map(Numeric::Float)
    }

    fn number(&self) -> Option<Numeric> {
        match self {
            Self::Bool(value) => Some(Numeric::Int((*value).into())),
            Self::Int(number) => Some(Numeric::Int(*number)),
            Self::Float(number) => Some(Numeric::Float(*number)),
            Self::None | Self::Text(_) | Self::Json(_) => None,
        }
    }
}

/// An integer or a float.
#[derive(Clone, Copy, Debug)]
enum Numeric {
    Int(i128),
    Float(f64),
}

impl From<Numeric> for Operand<'_> {
    fn from(number: Numeric) -> Self {
        match number {
            Numeric::Int(number) => Self::Int(number),
            Numeric::Float(number) => Self::Float(number),
        }
    }
}

impl Numeric {
    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(&other)),
            _ => self.float().partial_cmp(&other.float()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as Python divides large numbers")]
    fn float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    fn apply_operator<'a>(
        self,
        operator: Arithmetic,
        other: Self,
    ) -> Result<Operand<'a>, ConditionError> {
        if let (Self::Int(one), Self::Int(other)) = (self, other)
            && let Some(result) = whole(one, operator, other)
        {
            return Ok(Operand::Int(result));
        }
        let (one, other) = (self.float(), other.float());
        if matches!(operator, Arithmetic::Divide | Arithmetic::Modulo) && other == 0.0 {
            return Err(ConditionError::DivisionByZero);
        }
        Ok(Operand::Float(match operator {
            Arithmetic::Add => one + other,
            Arithmetic::Subtract => one - other,
            Arithmetic::Multiply => one * other,
            Arithmetic::Divide => one / other,
            Arithmetic::Modulo => {
                let rest = one % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }
        }))
    }
}

/// Returns the result as an integer; `None` if it is not an integer or too large.
fn whole(one: i128, operator: Arithmetic, other: i128) -> Option<i128> {
    match operator {
        Arithmetic::Add => one.checked_add(other),
        Arithmetic::Subtract => one.checked_sub(other),
        Arithmetic::Multiply => one.checked_mul(other),
        Arithmetic::Divide => None,
        // The remainder has the sign of the divisor.
        Arithmetic::Modulo => {
            let rest = one.checked_rem(other)?;
            Some(if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
        }
    }
}
