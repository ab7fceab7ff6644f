//! From words to a tree. Operators bind as in Python; what stands in a row stays in one list, so
//! that only parentheses and prefixes make a tree deep.

use std::{iter::Peekable, vec::IntoIter};

use super::{
    Flaw,
    operand::{Arithmetic, Operand},
    token::{Comparison, Token},
};
use crate::workflow::limits;

/// A condition that can be judged.
#[derive(Debug, PartialEq)]
pub(super) enum Tree<'a> {
    Value(Operand<'a>),
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    /// `1 < 2 < 3` is both.
    Compared(Box<Self>, Vec<(Relation, Self)>),
    Combined(Box<Self>, Vec<(Arithmetic, Self)>),
    Negative(Box<Self>),
    Positive(Box<Self>),
}

/// What is asked about two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Compare(Comparison),
    /// The left one is in the right one.
    In,
    NotIn,
    /// The right one is in the left one.
    Contains,
}

/// Reads a whole condition.
pub(super) fn parse(tokens: Vec<Token<'_>>) -> Result<Tree<'_>, Flaw> {
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let tree = parser.any()?;
    if parser.tokens.next().is_some() { Err(Flaw::Syntax) } else { Ok(tree) }
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<Token<'a>>>,
    depth: usize,
}

type Read<'a> = Result<Tree<'a>, Flaw>;

impl<'a> Parser<'a> {
    /// `a or b or c`
    fn any(&mut self) -> Read<'a> {
        self.row(&Token::Or, Self::all, Tree::Any)
    }

    /// `a and b and c`
    fn all(&mut self) -> Read<'a> {
        self.row(&Token::And, Self::negation, Tree::All)
    }

    fn row(
        &mut self,
        between: &Token<'a>,
        part: fn(&mut Self) -> Read<'a>,
        join: fn(Vec<Tree<'a>>) -> Tree<'a>,
    ) -> Read<'a> {
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
    fn negation(&mut self) -> Read<'a> {
        if self.tokens.next_if_eq(&Token::Not).is_none() {
            return self.comparison();
        }
        let inner = self.deeper(Self::negation)?;
        Ok(Tree::Not(Box::new(inner)))
    }

    /// `a < b`
    fn comparison(&mut self) -> Read<'a> {
        let first = self.sum()?;
        let mut others = Vec::new();
        while let Some(relation) = self.relation()? {
            others.push((relation, self.sum()?));
        }
        Ok(if others.is_empty() { first } else { Tree::Compared(Box::new(first), others) })
    }

    fn relation(&mut self) -> Result<Option<Relation>, Flaw> {
        let relation = match self.tokens.peek() {
            Some(Token::Compare(comparison)) => Relation::Compare(*comparison),
            Some(Token::In) => Relation::In,
            Some(Token::Contains) => Relation::Contains,
            Some(Token::Not) => Relation::NotIn,
            _ => return Ok(None),
        };
        self.tokens.next();
        if relation == Relation::NotIn && self.tokens.next_if_eq(&Token::In).is_none() {
            return Err(Flaw::Syntax);
        }
        Ok(Some(relation))
    }

    /// `a + b - c`
    fn sum(&mut self) -> Read<'a> {
        use Arithmetic::{Minus, Plus};
        self.combination(Self::product, |operator| matches!(operator, Plus | Minus))
    }

    /// `a * b / c`
    fn product(&mut self) -> Read<'a> {
        use Arithmetic::{Minus, Plus};
        self.combination(Self::prefix, |operator| !matches!(operator, Plus | Minus))
    }

    fn combination(
        &mut self,
        part: fn(&mut Self) -> Read<'a>,
        belongs: fn(Arithmetic) -> bool,
    ) -> Read<'a> {
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
    fn prefix(&mut self) -> Read<'a> {
        let sign: fn(Box<Tree<'a>>) -> Tree<'a> = match self.tokens.peek() {
            Some(Token::Arithmetic(Arithmetic::Minus)) => Tree::Negative,
            Some(Token::Arithmetic(Arithmetic::Plus)) => Tree::Positive,
            _ => return self.suffix(),
        };
        self.tokens.next();
        let inner = self.deeper(Self::prefix)?;
        Ok(sign(Box::new(inner)))
    }

    /// `a.includes(b)`
    fn suffix(&mut self) -> Read<'a> {
        let whole = self.primary()?;
        if self.tokens.next_if_eq(&Token::Includes).is_none() {
            return Ok(whole);
        }
        let part = self.closed()?;
        Ok(Tree::Compared(Box::new(whole), vec![(Relation::Contains, part)]))
    }

    fn primary(&mut self) -> Read<'a> {
        match self.tokens.next() {
            Some(Token::Value(value)) => Ok(Tree::Value(value)),
            Some(Token::Open) => self.closed(),
            _ => Err(Flaw::Syntax),
        }
    }

    /// What stands before a closing parenthesis, and the parenthesis.
    fn closed(&mut self) -> Read<'a> {
        let inner = self.deeper(Self::any)?;
        self.tokens.next_if_eq(&Token::Close).ok_or(Flaw::Syntax)?;
        Ok(inner)
    }

    fn deeper(&mut self, inner: fn(&mut Self) -> Read<'a>) -> Read<'a> {
        self.depth += 1;
        if self.depth > limits::EXPRESSION_DEPTH {
            return Err(Flaw::TooLarge);
        }
        let tree = inner(self)?;
        self.depth -= 1;
        Ok(tree)
    }
}
