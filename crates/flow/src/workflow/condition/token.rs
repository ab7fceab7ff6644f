//! Splits a condition into tokens and replaces placeholders by their values.

use std::borrow::Cow;

use super::{
    ConditionError, TextBudget,
    operand::{Arithmetic, Operand},
};
use crate::workflow::{
    scope::{PlaceholderValue, Scope},
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

impl Comparison {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// A token with its place.
#[derive(Clone, Debug)]
pub(super) struct Lexeme<'a> {
    pub(super) token: Token<'a>,
    /// The byte of the expression at which it starts.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// Splits a condition into tokens.
pub(super) fn tokens<'a>(
    text: &'a str,
    scope: &Scope<'a>,
    budget: &mut TextBudget,
) -> Result<Vec<Lexeme<'a>>, ConditionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let read = match first {
            '{' => read_placeholder(rest, scope),
            '\'' | '"' => quoted(rest, first, scope, budget),
            '.' if !starts_with_digit(&rest[1..]) => includes(rest),
            '0'..='9' | '.' => number(rest),
            'a'..='z' | 'A'..='Z' | '_' => word(rest),
            _ => symbol(rest),
        };
        let (token, after) = read.map_err(|error| match error {
            TokenError::Syntax(problem) => ConditionError::syntax(at, problem),
            TokenError::Other(error) => error,
        })?;
        tokens.push(Lexeme { token, at, text: &rest[..rest.len() - after.len()] });
        rest = after.trim_start();
    }
    Ok(tokens)
}

/// Why no token can be read.
enum TokenError {
    Syntax(String),
    Other(ConditionError),
}

impl TokenError {
    fn syntax(problem: impl Into<String>) -> Self {
        Self::Syntax(problem.into())
    }
}

impl From<ConditionError> for TokenError {
    fn from(error: ConditionError) -> Self {
        Self::Other(error)
    }
}

type ParseResult<'a> = Result<(Token<'a>, &'a str), TokenError>;

fn read_placeholder<'a>(text: &'a str, scope: &Scope<'a>) -> ParseResult<'a> {
    let path = placeholder(text).ok_or_else(|| {
        TokenError::syntax("write a placeholder like {{input}} or {{NODE.output}}, without spaces")
    })?;
    Ok((Token::Value(value(path, scope)?.into()), &text[path.len() + 4..]))
}

fn value<'a>(path: &str, scope: &Scope<'a>) -> Result<PlaceholderValue<'a>, ConditionError> {
    scope.find(path).ok_or_else(|| ConditionError::Unresolved {
        path: path.to_owned(),
        hint: if scope.output(path).is_some() {
            format!("write {{{{{path}.output}}}} for the output of the node")
        } else {
            format!("values here: {}", scope.placeholders())
        },
    })
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
    let end = closing(inner, quote)
        .ok_or_else(|| TokenError::syntax(format!("the quotation mark {quote} is not closed")))?;
    let (inner, after) = (&inner[..end], &inner[end + 1..]);
    let mut whole = String::new();
    for part in parts(inner) {
        let part = match part {
            TemplatePart::Text(text) => unescaped(text),
            TemplatePart::Placeholder { path, .. } => value(path, scope)?.text(),
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
    let after = text.strip_prefix(".includes").map(str::trim_start);
    let after = after.and_then(|after| after.strip_prefix('('));
    let after = after.ok_or_else(|| TokenError::syntax("only .includes(…) can follow a dot"))?;
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
            return Err(not_a_number(text));
        }
        end += 1 + sign + exponent;
        whole = false;
    }
    let (number, after) = text.split_at(end);
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err(not_a_number(text));
    }
    let value = match number.parse() {
        Ok(number) if whole => Operand::Int(number),
        _ => Operand::Float(number.parse().map_err(|_| not_a_number(text))?),
    };
    Ok((Token::Value(value), after))
}

fn not_a_number(text: &str) -> TokenError {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let number = &text[..end];
    TokenError::syntax(format!("`{number}` is not a number; write a text in quotes: '{number}'"))
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
        _ => {
            let problem = format!("`{word}` has no meaning; write a text in quotes: '{word}'");
            return Err(TokenError::Syntax(problem));
        }
    };
    Ok((token, after))
}

fn symbol(text: &str) -> ParseResult<'_> {
    let known = SYMBOLS
        .iter()
        .find_map(|(symbol, token)| text.strip_prefix(symbol).map(|after| (token.clone(), after)));
    known.ok_or_else(|| {
        let first = text.chars().next().unwrap_or_default();
        let hint = match first {
            '=' => "; compare with ==",
            '“' | '”' | '„' | '‘' | '’' | '‚' | '«' | '»' | '`' | '´' => {
                "; write a text in quotes: 'text'"
            }
            '&' => "; write && or and",
            '|' => "; write || or or",
            _ => "",
        };
        TokenError::Syntax(format!("{first:?} has no meaning{hint}"))
    })
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}
