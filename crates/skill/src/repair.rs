//! Repairs frontmatter that is not valid YAML.
//!
//! 3.7 % of real skill files were invalid YAML at some time, nearly always in one of a few ways: an
//! unquoted `: `, text after a closing quote, text on the line of `>`, a missing closing fence.
//! Each has a [`Repair`] with minimal edits. A repair is accepted only if the YAML then parses
//! beyond the position of the error and no top-level key is lost.

mod fences;
mod lines;
mod values;

use savoir_lint::{Edit, Safety, Span};

use crate::{
    edit::{self, EditedText},
    limits,
    yaml::{Tree, YamlError, YamlNoteKind},
};

pub(crate) use fences::{close_block, find_block};
pub(crate) use lines::read_name_and_description;

/// A repair of one error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The rule that reports it.
    pub(crate) code: &'static str,
    /// The error message.
    pub(crate) message: String,
    /// A hint.
    pub(crate) help: &'static str,
    /// The position of the error.
    pub(crate) span: Span,
    /// The edits that repair it.
    pub(crate) edits: Vec<Edit>,
    pub(crate) safety: Safety,
}

/// YAML after repairs, with the list of repairs.
#[derive(Debug)]
pub(crate) struct RepairedYaml {
    pub(crate) repairs: Vec<Repair>,
    pub(crate) applied: EditedText,
    pub(crate) tree: Tree,
}

/// Repairs `yaml`, which failed with `error`. Spans and edits are offsets into `yaml`.
pub(crate) fn repair_yaml(yaml: &str, error: &YamlError) -> Option<RepairedYaml> {
    let mut repairs: Vec<Repair> = Vec::new();
    let mut current = EditedText::new(yaml, &[]);
    let mut error = error.clone();
    for _ in 0..limits::MAX_REPAIRS {
        let (repair, outcome) = values::repair_candidates(&current.text, &error)
            .into_iter()
            .find_map(|repair| try_repair(&current.text, &error, repair))?;
        repairs.push(map_to_original(&current, repair)?);
        let edits: Vec<Edit> = repairs.iter().flat_map(|repair| repair.edits.clone()).collect();
        current = EditedText::new(yaml, &edits);
        match outcome {
            Ok(tree) => {
                let lost = lines::has_lost_key(yaml, &tree);
                if lost {
                    for repair in &mut repairs {
                        repair.safety = Safety::Unsafe;
                    }
                }
                return Some(RepairedYaml { repairs, applied: current, tree });
            }
            Err(next) => error = next,
        }
    }
    None
}

/// Repairs `yaml` that parses only because `&nbsp;` looks like an anchor.
pub(crate) fn repair_pasted_spaces(yaml: &str, tree: &Tree) -> Option<RepairedYaml> {
    let anchors =
        |tree: &Tree| tree.notes.iter().filter(|note| note.kind == YamlNoteKind::Anchor).count();
    if anchors(tree) == 0 {
        return None;
    }
    // Other readers accept the text unchanged, with anchors and odd keys, so the repair is unsafe.
    let repair = Repair { safety: Safety::Unsafe, ..values::html_spaces(yaml)? };
    let applied = EditedText::new(yaml, &repair.edits);
    let repaired = Tree::parse(&applied.text).ok()?;
    let repairs = vec![repair];
    (anchors(&repaired) < anchors(tree)).then_some(RepairedYaml {
        repairs,
        applied,
        tree: repaired,
    })
}

/// Accepts a repair if the text then parses, or fails only at a later position.
fn try_repair(
    text: &str,
    error: &YamlError,
    repair: Repair,
) -> Option<(Repair, Result<Tree, YamlError>)> {
    let repaired = edit::apply(text, &repair.edits);
    match Tree::parse(&repaired) {
        Ok(tree) => Some((repair, Ok(tree))),
        Err(next) => {
            let edited = repair.edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
            let end = (edited.max(error.at) + repaired.len()).saturating_sub(text.len());
            (next.at > end).then_some((repair, Err(next)))
        }
    }
}

/// Maps a repair of edited text back to the original; `None` if it overlaps an earlier repair.
fn map_to_original(current: &EditedText, mut repair: Repair) -> Option<Repair> {
    repair.span = current.original_span(repair.span);
    for edit in &mut repair.edits {
        if current.overlaps_edit(edit.span) {
            return None;
        }
        edit.span = current.original_span(edit.span);
    }
    Some(repair)
}
