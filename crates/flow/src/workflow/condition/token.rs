//! From characters to words, with placeholders bound to what they stand for.

use std::borrow::Cow;

use super::{
    Flaw, Room,
    operand::{Arithmetic, Operand},
};
use crate::workflow::{
    scope::Scope,
    template::{Part, parts, placeholder},
};

/// A word of a condition.
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

/// Comparisons that are symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Symbols; a longer one stands before its beginning.
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
    ("+", Token::Arithmetic(Arithmetic::Plus)),
    ("-", Token::Arithmetic(Arithmetic::Minus)),
    ("*", Token::Arithmetic(Arithmetic::Times)),
    ("/", Token::Arithmetic(Arithmetic::Over)),
    ("%", Token::Arithmetic(Arithmetic::Modulo)),
];

/// The words of a condition.
pub(super) fn tokens<'a>(
    text: &'a str,
    scope: &Scope<'a>,
    room: &mut Room,
) -> Result<Vec<Token<'a>>, Flaw> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '{' => bound(rest, scope)?,
            '\'' | '"' => quoted(rest, first, scope, room)?,
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

type Read<'a> = Result<(Token<'a>, &'a str), Flaw>;

fn bound<'a>(text: &'a str, scope: &Scope<'a>) -> Read<'a> {
    let path = placeholder(text).ok_or(Flaw::Syntax)?;
    let found = scope.find(path).ok_or(Flaw::Unresolved)?;
    Ok((Token::Value(found.into()), &text[path.len() + 4..]))
}

/// A text between quotes. Placeholders in it become text, and stay text whatever they contain.
fn quoted<'a>(text: &'a str, quote: char, scope: &Scope<'a>, room: &mut Room) -> Read<'a> {
    let inner = &text[1..];
    let end = closing(inner, quote).ok_or(Flaw::Syntax)?;
    let (inner, after) = (&inner[..end], &inner[end + 1..]);
    let mut whole = String::new();
    for part in parts(inner) {
        let part = match part {
            Part::Text(text) => unescaped(text),
            Part::Placeholder { path, .. } => scope.find(path).ok_or(Flaw::Unresolved)?.text(),
        };
        room.take(part.len())?;
        whole.push_str(&part);
    }
    Ok((Token::Value(Operand::Text(whole.into())), after))
}

/// Where the quote that is not escaped stands.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// Python's most common escapes; any other backslash stays.
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

/// `.includes(` is the only thing that can follow a dot.
fn includes(text: &str) -> Read<'_> {
    let after = text.strip_prefix(".includes").ok_or(Flaw::Syntax)?;
    let after = after.trim_start().strip_prefix('(').ok_or(Flaw::Syntax)?;
    Ok((Token::Includes, after))
}

fn number(text: &str) -> Read<'_> {
    let (mut end, mut whole) = (digits(text), true);
    if text[end..].starts_with('.') && starts_with_digit(&text[end + 1..]) {
        end += 1 + digits(&text[end + 1..]);
        whole = false;
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[end + 1 + sign..]);
        if exponent == 0 {
            return Err(Flaw::Syntax);
        }
        end += 1 + sign + exponent;
        whole = false;
    }
    let (number, after) = text.split_at(end);
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err(Flaw::Syntax);
    }
    let value = match number.parse() {
        Ok(number) if whole => Operand::Int(number),
        _ => Operand::Float(number.parse().map_err(|_| Flaw::Syntax)?),
    };
    Ok((Token::Value(value), after))
}

fn word(text: &str) -> Read<'_> {
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
        _ => return Err(Flaw::Syntax),
    };
    Ok((token, after))
}

fn symbol(text: &str) -> Read<'_> {
    let known = SYMBOLS
        .iter()
        .find_map(|(symbol, token)| text.strip_prefix(symbol).map(|after| (token.clone(), after)));
    known.ok_or(Flaw::Syntax)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}
