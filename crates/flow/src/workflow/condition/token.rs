//! Splits a condition into tokens and replaces placeholders by their values.

use std::borrow::Cow;

use super::{
    ConditionError, TextBudget,
    operand::{Arithmetic, Operand},
};
use crate::workflow::{
    scope::Scope,
    template::{TemplatePart, parts, placeholder},
};

/// A token of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Value(Operand<'a>),
    Or,
    And,
    Not,
    In,
    Contains,
    /// `.includes(`
    Includes,
    Open,
    Close,
    Compare(Comparison),
    Arithmetic(Arithmetic),
}

/// Comparison operators that are symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Symbols; a longer one comes before its prefixes.
const SYMBOLS: [(&str, Token<'static>); 18] = [
    ("===", Token::Compare(Comparison::Equal)),
    ("!==", Token::Compare(Comparison::NotEqual)),
    ("==", Token::Compare(Comparison::Equal)),
    ("!=", Token::Compare(Comparison::NotEqual)),
    ("<=", Token::Compare(Comparison::LessOrEqual)),
    (">=", Token::Compare(Comparison::GreaterOrEqual)),
    ("&&", Token::And),
    ("||", Token::Or),
    ("<", Token::Compare(Comparison::Less)),
    (">", Token::Compare(Comparison::Greater)),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    ("+", Token::Arithmetic(Arithmetic::Add)),
    ("-", Token::Arithmetic(Arithmetic::Subtract)),
    ("*", Token::Arithmetic(Arithmetic::Multiply)),
    ("/", Token::Arithmetic(Arithmetic::Divide)),
    ("%", Token::Arithmetic(Arithmetic::Modulo)),
];

/// Splits a condition into tokens.
pub(super) fn tokens<'a>(
    text: &'a str,
    scope: &Scope<'a>,
    budget: &mut TextBudget,
) -> Result<Vec<Token<'a>>, ConditionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '{' => read_placeholder(rest, scope)?,
            '\'' | '"' => quoted(rest, first, scope, budget)?,
            '.' if !starts_with_digit(&rest[1..]) => includes(rest)?,
            '0'..='9' | '.' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => word(rest)?,
            _ => symbol(rest)?,
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

type ParseResult<'a> = Result<(Token<'a>, &'a str), ConditionError>;

fn read_placeholder<'a>(text: &'a str, scope: &Scope<'a>) -> ParseResult<'a> {
    let path = placeholder(text).ok_or(ConditionError::Syntax)?;
    let found = scope.find(path).ok_or(ConditionError::Unresolved)?;
    Ok((Token::Value(found.into()), &text[path.len() + 4..]))
}

/// Parses a quoted text. Values of placeholders in it stay text, even if they contain quotes or
/// operators.
fn quoted<'a>(
    text: &'a str,
    quote: char,
    scope: &Scope<'a>,
    budget: &mut TextBudget,
) -> ParseResult<'a> {
    let inner = &text[1..];
    let end = closing(inner, quote).ok_or(ConditionError::Syntax)?;
    let (inner, after) = (&inner[..end], &inner[end + 1..]);
    let mut whole = String::new();
    for part in parts(inner) {
        let part = match part {
            TemplatePart::Text(text) => unescaped(text),
            TemplatePart::Placeholder { path, .. } => {
                scope.find(path).ok_or(ConditionError::Unresolved)?.text()
            }
        };
        budget.take(part.len())?;
        whole.push_str(&part);
    }
    Ok((Token::Value(Operand::Text(whole.into())), after))
}

/// Returns the position of the next quote that is not escaped.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// Replaces Python's most common escapes; other backslashes stay.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut whole = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            whole.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => whole.push('\n'),
            Some('t') => whole.push('\t'),
            Some('r') => whole.push('\r'),
            Some(c @ ('\\' | '\'' | '"')) => whole.push(c),
            Some(other) => whole.extend(['\\', other]),
            None => whole.push('\\'),
        }
    }
    whole.into()
}

/// Parses `.includes(`, the only thing that can follow a dot.
fn includes(text: &str) -> ParseResult<'_> {
    let after = text.strip_prefix(".includes").ok_or(ConditionError::Syntax)?;
    let after = after.trim_start().strip_prefix('(').ok_or(ConditionError::Syntax)?;
    Ok((Token::Includes, after))
}

fn number(text: &str) -> ParseResult<'_> {
    let (mut end, mut whole) = (digits(text), true);
    if text[end..].starts_with('.') && starts_with_digit(&text[end + 1..]) {
        end += 1 + digits(&text[end + 1..]);
        whole = false;
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[end + 1 + sign..]);
        if exponent == 0 {
            return Err(ConditionError::Syntax);
        }
        end += 1 + sign + exponent;
        whole = false;
    }
    let (number, after) = text.split_at(end);
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err(ConditionError::Syntax);
    }
    let value = match number.parse() {
        Ok(number) if whole => Operand::Int(number),
        _ => Operand::Float(number.parse().map_err(|_| ConditionError::Syntax)?),
    };
    Ok((Token::Value(value), after))
}

fn word(text: &str) -> ParseResult<'_> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    let token = match word {
        "or" => Token::Or,
        "and" => Token::And,
        "not" => Token::Not,
        "in" => Token::In,
        "contains" => Token::Contains,
        "None" => Token::Value(Operand::None),
        _ if word.eq_ignore_ascii_case("true") => Token::Value(Operand::Bool(true)),
        _ if word.eq_ignore_ascii_case("false") => Token::Value(Operand::Bool(false)),
        _ => return Err(ConditionError::Syntax),
    };
    Ok((token, after))
}

fn symbol(text: &str) -> ParseResult<'_> {
    let known = SYMBOLS
        .iter()
        .find_map(|(symbol, token)| text.strip_prefix(symbol).map(|after| (token.clone(), after)));
    known.ok_or(ConditionError::Syntax)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}
