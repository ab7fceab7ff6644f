//! Proposals in the text of a skill: placeholders, paths and names of skills.

use lsp_types::CompletionItemKind;
use savoir_lint::Span;
use savoir_skill::check::CheckedSkill;

use super::{Found, Proposal, values};
use crate::{
    lookup::{self, Syntax},
    open_file::OpenFile,
    state::State,
};

/// Variables that Claude Code replaces in the text.
const CLAUDE_VARIABLES: [&str; 2] = ["CLAUDE_SESSION_ID", "CLAUDE_SKILL_DIR"];

pub(super) fn at(state: &State, file: &OpenFile, checked: &CheckedSkill, offset: usize) -> Found {
    let text = file.text();
    let before = text.get(..offset)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    placeholder(checked, line, offset)
        .or_else(|| path(checked, line, offset))
        .or_else(|| skill(state, line, offset))
}

fn placeholder(checked: &CheckedSkill, line: &str, offset: usize) -> Found {
    let reading = &checked.reading;
    let dialect = reading.detection.dialect;
    let names = lookup::declarations(&reading.document, dialect).into_iter().map(|(name, _)| name);
    let is_word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let proposal = |name: String, end: &str| Proposal {
        insert: Some(format!("{name}{end}")),
        ..Proposal::new(name, CompletionItemKind::Variable)
    };
    match lookup::syntax(dialect) {
        Syntax::Arguments => {
            if let Some((_, typed)) = line.rsplit_once("${").filter(|(_, typed)| is_word(typed)) {
                let variables = CLAUDE_VARIABLES.map(|name| proposal(name.to_owned(), "}"));
                return Some((Span::new(offset - typed.len(), offset), variables.to_vec()));
            }
            let (_, typed) = line.rsplit_once('$').filter(|(_, typed)| is_word(typed))?;
            let all = std::iter::once("ARGUMENTS".to_owned()).chain(names);
            let proposals = all.map(|name| proposal(name, "")).collect();
            Some((Span::new(offset - typed.len(), offset), proposals))
        }
        Syntax::Braces(_) => {
            let (_, typed) = line.rsplit_once("{{")?;
            let typed = typed.trim_start();
            let proposals = names.map(|name| proposal(name, "}}")).collect();
            is_word(typed).then(|| (Span::new(offset - typed.len(), offset), proposals))
        }
        Syntax::BaseDir => {
            let (_, typed) = line.rsplit_once('{').filter(|(_, typed)| is_word(typed))?;
            let base = proposal("baseDir".to_owned(), "}").detail("the folder of the skill");
            Some((Span::new(offset - typed.len(), offset), vec![base]))
        }
        Syntax::None => None,
    }
}

/// Paths in links, and in backticks after the first folder.
fn path(checked: &CheckedSkill, line: &str, offset: usize) -> Found {
    let is_path = |text: &str| !text.contains([' ', ')', '`', '(']);
    let in_link = line.rsplit_once("](").map(|(_, typed)| typed).filter(|typed| is_path(typed));
    let in_code = line.rsplit_once('`').map(|(_, typed)| typed);
    let in_code = in_code.filter(|typed| {
        line.matches('`').count() % 2 == 1 && is_path(typed) && typed.contains('/')
    });
    let typed = in_link.or(in_code)?;
    let proposals = values::files(checked);
    (!proposals.is_empty()).then(|| (Span::new(offset - typed.len(), offset), proposals))
}

/// Names of skills after `/` at the start of a word, as users call them.
fn skill(state: &State, line: &str, offset: usize) -> Found {
    let (before, typed) = line.rsplit_once('/')?;
    let starts = before.is_empty() || before.ends_with([' ', '`', '(', '"']);
    let is_name = typed.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (starts && is_name).then(|| (Span::new(offset - typed.len(), offset), values::skills(state)))
}
