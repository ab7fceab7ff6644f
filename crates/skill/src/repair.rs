//! Mending frontmatter that does not read.
//!
//! 3.7 % of real skill files were invalid YAML at some time of their life, nearly always in one of
//! a few ways: an unquoted `: `, text after a closing quote, text on the line of `>`, a forgotten
//! closing fence. Each has a [`Repair`]: edits that change as little as possible. A repair is kept
//! only when the YAML then reads beyond the place where it broke, and no top-level key is lost.

mod fences;
mod lines;
mod values;

use savoir_lint::{Edit, Safety, Span};

use crate::{
    edit::{self, Applied},
    limits,
    yaml::{NoteKind, Tree, YamlError},
};

pub(crate) use fences::{close_block, find_block};
pub(crate) use lines::line_reader;

/// One mended breakage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The rule that reports it.
    pub(crate) code: &'static str,
    /// What is wrong.
    pub(crate) message: String,
    /// The way out, for people.
    pub(crate) help: &'static str,
    /// Where the breakage is.
    pub(crate) span: Span,
    /// What mends it.
    pub(crate) edits: Vec<Edit>,
    pub(crate) safety: Safety,
}

/// YAML that was mended.
#[derive(Debug)]
pub(crate) struct Mended {
    pub(crate) repairs: Vec<Repair>,
    pub(crate) applied: Applied,
    pub(crate) tree: Tree,
}

/// Mends `yaml`, which failed with `error`. Spans and edits are offsets into `yaml`.
pub(crate) fn mend(yaml: &str, error: &YamlError) -> Option<Mended> {
    let mut repairs: Vec<Repair> = Vec::new();
    let mut current = Applied::new(yaml, &[]);
    let mut error = error.clone();
    for _ in 0..limits::MAX_REPAIRS {
        let (repair, outcome) = values::candidates(&current.text, &error)
            .into_iter()
            .find_map(|repair| accept(&current.text, &error, repair))?;
        repairs.push(in_original(&current, repair)?);
        let edits: Vec<Edit> = repairs.iter().flat_map(|repair| repair.edits.clone()).collect();
        current = Applied::new(yaml, &edits);
        match outcome {
            Ok(tree) => {
                let lost = lines::lost_key(yaml, &tree);
                if lost {
                    for repair in &mut repairs {
                        repair.safety = Safety::Unsafe;
                    }
                }
                return Some(Mended { repairs, applied: current, tree });
            }
            Err(next) => error = next,
        }
    }
    None
}

/// Mends `yaml` that reads only because `&nbsp;` looks like an anchor.
pub(crate) fn mend_pasted(yaml: &str, tree: &Tree) -> Option<Mended> {
    let anchors =
        |tree: &Tree| tree.notes.iter().filter(|note| note.kind == NoteKind::Anchor).count();
    if anchors(tree) == 0 {
        return None;
    }
    // Others read the text as it stands, with anchors and odd keys.
    let repair = Repair { safety: Safety::Unsafe, ..values::html_spaces(yaml)? };
    let applied = Applied::new(yaml, &repair.edits);
    let mended = Tree::parse(&applied.text).ok()?;
    let repairs = vec![repair];
    (anchors(&mended) < anchors(tree)).then_some(Mended { repairs, applied, tree: mended })
}

/// Keeps a repair when the text then reads, or breaks only further on.
fn accept(
    text: &str,
    error: &YamlError,
    repair: Repair,
) -> Option<(Repair, Result<Tree, YamlError>)> {
    let mended = edit::apply(text, &repair.edits);
    match Tree::parse(&mended) {
        Ok(tree) => Some((repair, Ok(tree))),
        Err(next) => {
            let edited = repair.edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
            let end = (edited.max(error.at) + mended.len()).saturating_sub(text.len());
            (next.at > end).then_some((repair, Err(next)))
        }
    }
}

/// Moves a repair of mended text back to the original; `None` when it touches an earlier repair.
fn in_original(current: &Applied, mut repair: Repair) -> Option<Repair> {
    repair.span = current.original_span(repair.span);
    for edit in &mut repair.edits {
        if current.touches(edit.span) {
            return None;
        }
        edit.span = current.original_span(edit.span);
    }
    Some(repair)
}
