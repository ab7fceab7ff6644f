//! Limits the nesting of Python code, based on its tokens, before a recursive parser reads it.
//!
//! Parsing and dropping a tree both walk it recursively, so a short hostile file such as a hundred
//! thousand brackets would end the process. The estimate here never lies below the true depth of a
//! text that lexes cleanly: inside one bracket every operator counts as one level, because chains
//! such as `a + b + c` and `a.b.c` nest as well.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};
use savoir_lint::Span;

use super::PythonError;
use crate::limits;

/// Returns an error if the code nests too deeply to be parsed.
pub(super) fn check(source: &str) -> Result<(), PythonError> {
    let mut lexer = lexer::lex(source, Mode::Module);
    let mut levels = vec![Level::default()];
    let mut broken = false;
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::EndOfFile => break,
            TokenKind::Unknown => broken = true,
            TokenKind::Newline => levels.truncate(1),
            _ => {}
        }
        let (count, depth) = (levels.len(), levels.last().map_or(0, Level::depth));
        let Some(level) = levels.last_mut() else { break };
        match kind {
            TokenKind::Newline => *level = Level::default(),
            TokenKind::Comma | TokenKind::Semi => level.chain = 0,
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                // A bracket that follows an operand, as in `f()()()`, deepens the chain it is in.
                level.chain += 1;
                levels.push(Level { base: depth + 1, ..Level::default() });
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                if count > 1 {
                    levels.pop();
                }
            }
            // The commas of its parameters do not end a lambda, nor those of an unfinished statement
            // the statement.
            TokenKind::Lambda => level.kept += 1,
            kind if kind.is_keyword() && count == 1 => level.kept += 1,
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Indent
            | TokenKind::Dedent => {}
            _ => level.chain += 1,
        }
        if depth > limits::MAX_PYTHON_DEPTH {
            return Err(too_deep());
        }
    }
    // The parser reads a text that does not lex in another way than the lexer alone, so the
    // estimate means nothing there; what could nest at all is counted instead.
    let could_nest = || source.bytes().filter(u8::is_ascii_punctuation).count();
    if broken && could_nest() > limits::MAX_BROKEN_PYTHON_MARKS {
        return Err(PythonError::new("the file is not Python", Span::at(0)));
    }
    Ok(())
}

fn too_deep() -> PythonError {
    let limit = limits::MAX_PYTHON_DEPTH;
    PythonError::limit(format!("an expression nests deeper than {limit} levels"))
}

/// One open bracket, or the statement itself.
#[derive(Default)]
struct Level {
    /// Depth at which it opened.
    base: usize,
    /// Operators since the last comma.
    chain: usize,
    /// What a comma does not end.
    kept: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.base + self.chain + self.kept
    }
}
