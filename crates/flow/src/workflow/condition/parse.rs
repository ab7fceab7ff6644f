//! Parses the tokens of a condition into a tree. Operators have the precedence of Python. A chain
//! of operators is one list, so that only parentheses and prefixes add to the depth of the tree.

use std::{iter::Peekable, vec::IntoIter};

use super::{
    ConditionError,
    operand::{Arithmetic, Operand},
    token::{Comparison, Token},
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

/// Parses a whole condition.
pub(super) fn parse(tokens: Vec<Token<'_>>) -> Result<Tree<'_>, ConditionError> {
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let tree = parser.parse_or()?;
    if parser.tokens.next().is_some() { Err(ConditionError::Syntax) } else { Ok(tree) }
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<Token<'a>>>,
    depth: usize,
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
        if self.tokens.peek() != Some(between) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.tokens.next_if_eq(between).is_some() {
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    /// `not a`
    fn parse_not(&mut self) -> ParseResult<'a> {
        if self.tokens.next_if_eq(&Token::Not).is_none() {
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
        let relation = match self.tokens.peek() {
            Some(Token::Compare(comparison)) => Relation::Compare(*comparison),
            Some(Token::In) => Relation::In,
            Some(Token::Contains) => Relation::Contains,
            Some(Token::Not) => Relation::NotIn,
            _ => return Ok(None),
        };
        self.tokens.next();
        if relation == Relation::NotIn && self.tokens.next_if_eq(&Token::In).is_none() {
            return Err(ConditionError::Syntax);
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
        while let Some(&Token::Arithmetic(operator)) = self.tokens.peek()
            && belongs(operator)
        {
            self.tokens.next();
            others.push((operator, part(self)?));
        }
        Ok(if others.is_empty() { first } else { Tree::Combined(Box::new(first), others) })
    }

    /// `-a`
    fn parse_sign(&mut self) -> ParseResult<'a> {
        let sign: fn(Box<Tree<'a>>) -> Tree<'a> = match self.tokens.peek() {
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
        if self.tokens.next_if_eq(&Token::Includes).is_none() {
            return Ok(whole);
        }
        let part = self.parse_parenthesized()?;
        Ok(Tree::Compared(Box::new(whole), vec![(Relation::Contains, part)]))
    }

    fn parse_primary(&mut self) -> ParseResult<'a> {
        match self.tokens.next() {
            Some(Token::Value(value)) => Ok(Tree::Value(value)),
            Some(Token::Open) => self.parse_parenthesized(),
            _ => Err(ConditionError::Syntax),
        }
    }

    /// Parses an expression and its closing parenthesis.
    fn parse_parenthesized(&mut self) -> ParseResult<'a> {
        let inner = self.parse_nested(Self::parse_or)?;
        self.tokens.next_if_eq(&Token::Close).ok_or(ConditionError::Syntax)?;
        Ok(inner)
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
