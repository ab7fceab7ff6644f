//! Parses the tokens of a condition into a tree. Operators have the precedence of Python. A chain
//! of operators is one list, so that only parentheses and prefixes add to the depth of the tree.

use std::{iter::Peekable, vec::IntoIter};

use super::{
    ConditionError,
    operand::{Arithmetic, Operand},
    token::{Comparison, Lexeme, Token},
};
use crate::workflow::limits;

/// A parsed condition.
#[derive(Debug, PartialEq)]
pub(super) enum Tree<'a> {
    Value(Operand<'a>),
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    /// A chain of comparisons, such as `1 < 2 < 3`.
    Compared(Box<Self>, Vec<(Relation, Self)>),
    Combined(Box<Self>, Vec<(Arithmetic, Self)>),
    Negative(Box<Self>),
    Positive(Box<Self>),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Compare(Comparison),
    /// The right operand contains the left one.
    In,
    NotIn,
    /// The left operand contains the right one.
    Contains,
}

/// Parses a whole condition, which has this number of bytes.
pub(super) fn parse(tokens: Vec<Lexeme<'_>>, length: usize) -> Result<Tree<'_>, ConditionError> {
    if tokens.is_empty() {
        let problem = "the condition is empty; write for example {{input}} contains 'yes'";
        return Err(ConditionError::syntax(0, problem));
    }
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0, length };
    let tree = parser.parse_or()?;
    match parser.tokens.next() {
        None => Ok(tree),
        Some(Lexeme { at, text, .. }) => {
            Err(ConditionError::syntax(at, format!("an operator is missing before `{text}`")))
        }
    }
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<Lexeme<'a>>>,
    depth: usize,
    /// The bytes of the condition.
    length: usize,
}

type ParseResult<'a> = Result<Tree<'a>, ConditionError>;

impl<'a> Parser<'a> {
    /// `a or b or c`
    fn parse_or(&mut self) -> ParseResult<'a> {
        self.chain(&Token::Or, Self::parse_and, Tree::Any)
    }

    /// `a and b and c`
    fn parse_and(&mut self) -> ParseResult<'a> {
        self.chain(&Token::And, Self::parse_not, Tree::All)
    }

    fn chain(
        &mut self,
        between: &Token<'a>,
        part: fn(&mut Self) -> ParseResult<'a>,
        join: fn(Vec<Tree<'a>>) -> Tree<'a>,
    ) -> ParseResult<'a> {
        let first = part(self)?;
        if self.peek() != Some(between) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(between) {
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    /// `not a`
    fn parse_not(&mut self) -> ParseResult<'a> {
        if !self.take(&Token::Not) {
            return self.comparison();
        }
        let inner = self.parse_nested(Self::parse_not)?;
        Ok(Tree::Not(Box::new(inner)))
    }

    /// `a < b`
    fn comparison(&mut self) -> ParseResult<'a> {
        let first = self.parse_sum()?;
        let mut others = Vec::new();
        while let Some(relation) = self.relation()? {
            others.push((relation, self.parse_sum()?));
        }
        Ok(if others.is_empty() { first } else { Tree::Compared(Box::new(first), others) })
    }

    fn relation(&mut self) -> Result<Option<Relation>, ConditionError> {
        let relation = match self.peek() {
            Some(Token::Compare(comparison)) => Relation::Compare(*comparison),
            Some(Token::In) => Relation::In,
            Some(Token::Contains) => Relation::Contains,
            Some(Token::Not) => Relation::NotIn,
            _ => return Ok(None),
        };
        self.tokens.next();
        if relation == Relation::NotIn && !self.take(&Token::In) {
            return Err(self.unexpected("`in` is missing after `not`"));
        }
        Ok(Some(relation))
    }

    /// `a + b - c`
    fn parse_sum(&mut self) -> ParseResult<'a> {
        use Arithmetic::{Add, Subtract};
        self.binary_chain(Self::parse_product, |operator| matches!(operator, Add | Subtract))
    }

    /// `a * b / c`
    fn parse_product(&mut self) -> ParseResult<'a> {
        use Arithmetic::{Add, Subtract};
        self.binary_chain(Self::parse_sign, |operator| !matches!(operator, Add | Subtract))
    }

    fn binary_chain(
        &mut self,
        part: fn(&mut Self) -> ParseResult<'a>,
        belongs: fn(Arithmetic) -> bool,
    ) -> ParseResult<'a> {
        let first = part(self)?;
        let mut others = Vec::new();
        while let Some(&Token::Arithmetic(operator)) = self.peek()
            && belongs(operator)
        {
            self.tokens.next();
            others.push((operator, part(self)?));
        }
        Ok(if others.is_empty() { first } else { Tree::Combined(Box::new(first), others) })
    }

    /// `-a`
    fn parse_sign(&mut self) -> ParseResult<'a> {
        let sign: fn(Box<Tree<'a>>) -> Tree<'a> = match self.peek() {
            Some(Token::Arithmetic(Arithmetic::Subtract)) => Tree::Negative,
            Some(Token::Arithmetic(Arithmetic::Add)) => Tree::Positive,
            _ => return self.parse_suffix(),
        };
        self.tokens.next();
        let inner = self.parse_nested(Self::parse_sign)?;
        Ok(sign(Box::new(inner)))
    }

    /// `a.includes(b)`
    fn parse_suffix(&mut self) -> ParseResult<'a> {
        let whole = self.parse_primary()?;
        if !self.take(&Token::Includes) {
            return Ok(whole);
        }
        let part = self.parse_parenthesized()?;
        Ok(Tree::Compared(Box::new(whole), vec![(Relation::Contains, part)]))
    }

    fn parse_primary(&mut self) -> ParseResult<'a> {
        match self.tokens.next_if(|next| matches!(next.token, Token::Value(_) | Token::Open)) {
            Some(Lexeme { token: Token::Value(value), .. }) => Ok(Tree::Value(value)),
            Some(_) => self.parse_parenthesized(),
            None => Err(self.unexpected("a value is missing")),
        }
    }

    /// Parses an expression and its closing parenthesis.
    fn parse_parenthesized(&mut self) -> ParseResult<'a> {
        let inner = self.parse_nested(Self::parse_or)?;
        if self.take(&Token::Close) {
            Ok(inner)
        } else {
            Err(self.unexpected("a closing parenthesis is missing"))
        }
    }

    fn peek(&mut self) -> Option<&Token<'a>> {
        self.tokens.peek().map(|next| &next.token)
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, wanted: &Token<'a>) -> bool {
        self.tokens.next_if(|next| next.token == *wanted).is_some()
    }

    /// The error if the next token cannot stand where it is.
    fn unexpected(&mut self, problem: &str) -> ConditionError {
        match self.tokens.peek() {
            Some(next) => {
                ConditionError::syntax(next.at, format!("{problem} before `{}`", next.text))
            }
            None => ConditionError::syntax(self.length, format!("{problem} at the end")),
        }
    }

    fn parse_nested(&mut self, inner: fn(&mut Self) -> ParseResult<'a>) -> ParseResult<'a> {
        self.depth += 1;
        if self.depth > limits::MAX_EXPRESSION_DEPTH {
            return Err(ConditionError::TooLarge);
        }
        let tree = inner(self)?;
        self.depth -= 1;
        Ok(tree)
    }
}
