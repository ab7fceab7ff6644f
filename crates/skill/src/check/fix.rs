//! Applies fixes until nothing more can be fixed.

use std::collections::BTreeMap;

use savoir_lint::{Diagnostic, Edit, Safety, Source, Span};

use super::{CheckedSkill, Options, check};
use crate::{
    document::{Document, State},
    edit,
    folder::Folder,
    limits,
    yaml::YamlVersion,
};

/// A fixed text.
#[derive(Debug, Clone)]
pub struct FixedText {
    /// The text after all fixes.
    pub text: String,
    /// The codes of what was fixed, in the order in which it was.
    pub fixed: Vec<&'static str>,
    /// What is left.
    pub remaining: Vec<Diagnostic>,
}

/// Fixes a file: safe fixes, or all of them when `max_safety` is [`Safety::Unsafe`].
///
/// ```
/// use savoir_skill::{Safety, check::{self, Options}};
///
/// let text = "---\nname: demo\ndescription: Use for: demos\n---\n# Demo\n";
/// let fixed = check::fix(text, None, &Options::default(), Safety::Safe);
/// assert_eq!(fixed.text, "---\nname: demo\ndescription: \"Use for: demos\"\n---\n# Demo\n");
/// assert_eq!(fixed.fixed, ["unquoted-colon"]);
/// ```
pub fn fix(
    text: &str,
    folder: Option<&Folder>,
    options: &Options,
    max_safety: Safety,
) -> FixedText {
    let mut text = text.to_owned();
    let mut fixed = Vec::new();
    let mut checked = check(Source::new(text.clone()), folder, options);
    for _ in 0..limits::MAX_FIX_ROUNDS {
        let (edits, codes) = compatible_edits(&checked.diagnostics, max_safety);
        if edits.is_empty() {
            break;
        }
        let attempt = |edits: &[Edit]| {
            let (next, after) = apply_if_better(&text, &checked, edits, folder, options)?;
            let keeps = max_safety == Safety::Unsafe || reads_the_same(&checked, &after);
            keeps.then_some((next, after))
        };
        // All together, or else the first that helps alone.
        let step = attempt(&edits).map(|step| (step, codes)).or_else(|| {
            let single =
                |found: &Diagnostic| compatible_edits(std::slice::from_ref(found), max_safety);
            let mut singles = checked.diagnostics.iter().map(single);
            singles.find_map(|(edits, codes)| Some((attempt(&edits)?, codes)))
        });
        let Some(((next, after), codes)) = step else { break };
        text = next;
        fixed.extend(codes);
        checked = after;
    }
    FixedText { text, fixed, remaining: checked.diagnostics }
}

/// The text after some edits, unless they change nothing, make it too large or unreadable.
fn apply_if_better(
    text: &str,
    before: &CheckedSkill,
    edits: &[Edit],
    folder: Option<&Folder>,
    options: &Options,
) -> Option<(String, CheckedSkill)> {
    let next = edit::apply(text, edits);
    if next == text || next.len() > limits::MAX_FILE_BYTES {
        return None;
    }
    let after = check(Source::new(next.clone()), folder, options);
    let state = |checked: &CheckedSkill| checked.reading.document.state();
    let worse = state(&after) == State::Unreadable && state(before) != State::Unreadable;
    (!worse).then_some((next, after))
}

/// Whether every loader that read the fields before reads the same values after: those of YAML 1.1 and
/// of YAML 1.2, and those that take `metadata` as JSON on one line.
fn reads_the_same(before: &CheckedSkill, after: &CheckedSkill) -> bool {
    let (before, after) = (&before.reading.document, &after.reading.document);
    let Some(fields) = before.fields().filter(|_| before.state() == State::Clean) else {
        return true;
    };
    let same = |version| {
        after.fields().is_some_and(|after| after.to_value(version) == fields.to_value(version))
    };
    same(YamlVersion::V1_1) && same(YamlVersion::V1_2) && json_line(before) == json_line(after)
}

/// The line of `metadata`, if it is a map in JSON.
fn json_line(document: &Document) -> Option<&str> {
    let block = document.layout().closed_block()?.yaml.slice(document.text());
    let line = block.lines().find_map(|line| line.strip_prefix("metadata:"))?.trim();
    line.starts_with('{').then_some(line)
}

/// The edits of all fixes that do not overlap; a fix is applied whole or not at all.
fn compatible_edits(found: &[Diagnostic], max_safety: Safety) -> (Vec<Edit>, Vec<&'static str>) {
    let mut claimed = ClaimedSpans::default();
    let mut edits: Vec<Edit> = Vec::new();
    let mut codes = Vec::new();
    for diagnostic in found {
        let Some(fix) = diagnostic.fix.as_ref().filter(|fix| fix.safety <= max_safety) else {
            continue;
        };
        if fix.edits.is_empty() || fix.edits.iter().any(|edit| claimed.overlaps(edit.span)) {
            continue;
        }
        for edit in &fix.edits {
            claimed.0.insert(edit.span.start, edit.span.end);
            edits.push(edit.clone());
        }
        codes.push(diagnostic.code);
    }
    (edits, codes)
}

/// Spans of edits that were chosen already, by start.
#[derive(Default)]
struct ClaimedSpans(BTreeMap<usize, usize>);

impl ClaimedSpans {
    /// Two edits at one offset overlap even when they are empty, because their order would be
    /// arbitrary.
    fn overlaps(&self, span: Span) -> bool {
        let before = self.0.range(..span.start).next_back();
        let after = self.0.range(span.start..).next();
        before.is_some_and(|(_, end)| *end > span.start)
            || after.is_some_and(|(start, _)| *start == span.start || *start < span.end)
    }
}
