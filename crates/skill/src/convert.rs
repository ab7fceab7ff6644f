//! Converts a skill to the dialect of another system.
//!
//! Fields that the target does not have are stored where its format allows extensions, and a report
//! lists the outcome for every field.
//!
//! A converted file contains its original, so that converting back gives the same bytes and a
//! further conversion starts from the original. Every result is verified: it is read again and the
//! original is restored from it.
//!
//! ```
//! use savoir_skill::{Dialect, Source, convert::convert, read};
//!
//! let text = "---\nname: greet\ndescription: Greets.\nknowledge_base: people\n---\nHello!\n";
//! let reading = read(Source::from_bytes(text.into())?, None);
//! let conversion = convert(&reading, None, Dialect::CLAUDE_CODE)?;
//! assert_eq!(
//!     conversion.files[0].text,
//!     "---\nname: greet\ndescription: Greets.\nmetadata:\n  savoir-from: agent-flow\n  \
//!      savoir-keep: |\n    knowledge_base: people\n  \
//!      savoir-order: name,description,knowledge_base\n---\nHello!\n",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod draft;
mod field_lines;
mod field_mapper;
mod fields;
mod merge;
mod metadata;
mod prose;
mod report;
mod side_files;
mod stash;

use std::borrow::Cow;

use savoir_lint::{Diagnostic, Edit, Safety, Source};
use thiserror::Error;

use crate::{
    dialect::{Dialect, NewFile, Strength},
    document::{Document, State},
    edit,
    folder::Folder,
    limits,
    reading::{Reading, read_as},
    skill::Skill,
};

pub mod migrate;

pub(crate) use fields::Fields;
pub use report::{FieldOutcome, FieldReport};

/// Maximum number of conversions of conversions that are traced back to the original.
const MAX_ORIGINALS: usize = 8;

/// The result of a conversion: files in the target dialect and a report.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// SKILL.md, then other files that the target needs. Other files of the skill stay unchanged.
    pub files: Vec<NewFile>,
    /// The outcome for each field.
    pub report: Vec<FieldReport>,
    /// The repairs of the source: the line and the problem.
    pub repairs: Vec<String>,
    /// Paths of files that an earlier conversion added and that this one does not need.
    pub removed: Vec<String>,
}

impl Conversion {
    fn new(files: Vec<NewFile>, report: Vec<FieldReport>) -> Self {
        Self { files, report, repairs: Vec::new(), removed: Vec::new() }
    }
}

/// Why a skill was not converted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// The source has errors, so its meaning is uncertain.
    #[error("line {line} of the skill does not read: {problem}")]
    Unreadable {
        /// The message of the first error.
        problem: String,
        /// The line of the error.
        line: usize,
    },
    /// The target would read a different value from the result, so nothing was written.
    #[error("{target} would not read `{field}` as it was")]
    Unfaithful {
        /// The path of the field in the target.
        field: String,
        /// The requested dialect.
        target: Dialect,
    },
    /// Skills of the target consist of tools, and this one has none.
    #[error("a skill of {target} needs a tool, and this one has none")]
    NoTools {
        /// The requested dialect.
        target: Dialect,
    },
}

impl ConvertError {
    /// What to do about it; none if the source has problems that `savoir check` lists.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoTools { .. } => Some(
                "add a section `### tool_name` with a `#### Command` to the skill, or choose another dialect",
            ),
            Self::Unreadable { .. } | Self::Unfaithful { .. } => None,
        }
    }

    fn unfaithful(field: &str, target: Dialect) -> Self {
        Self::Unfaithful { field: field.to_owned(), target }
    }
}

/// Converts a skill to another dialect. Converting to its own dialect returns the identical file.
///
/// The source is repaired first if its dialect allows repairs. A file that was converted from the
/// target dialect is restored, even if it is also valid in the target dialect itself.
pub fn convert(
    reading: &Reading,
    folder: Option<&Folder>,
    target: Dialect,
) -> Result<Conversion, ConvertError> {
    if reading.skill.dialect == target {
        let original = (reading.detection.strength != Strength::Explicit)
            .then(|| trace(reading, folder))
            .flatten();
        return Ok(match original {
            Some(OriginalTrace::Same(original)) if original.skill.dialect == target => {
                side_files::without_added(
                    merge::restore_original(reading, &original),
                    &original,
                    folder,
                )
            }
            _ => report_unchanged(reading),
        });
    }
    convert_from_original(reading, folder, target, MAX_ORIGINALS)
}

/// Whether a text is a conversion to prose, which stores the frontmatter of its original.
pub(crate) fn is_converted_to_prose(document: &Document) -> bool {
    prose::original(document).is_some()
}

/// Returns the original of a converted file with its tools, if the file itself declares none: some
/// dialects cannot declare tools, so the conversion stored those of the original. Name,
/// description, body and policy (invocation and allowed tools) come from the file itself.
pub fn with_tools_of_original(reading: &Reading, folder: Option<&Folder>) -> Option<Skill> {
    if !reading.skill.tools.is_empty() {
        return None;
    }
    let original = match trace(reading, folder)? {
        OriginalTrace::Same(original) => original,
        OriginalTrace::Edited(original) => {
            let dialect = original.skill.dialect;
            let conversion = convert(reading, folder, dialect).ok()?;
            read_as(Source::new(conversion.files.into_iter().next()?.text), dialect, folder)
        }
    };
    if original.skill.tools.is_empty() || !original.is_usable() {
        return None;
    }
    let (mut skill, current) = (original.skill, reading.skill.clone());
    skill.name = current.name;
    skill.description = current.description;
    skill.body = current.body;
    skill.policy.model_invocable = current.policy.model_invocable.or(skill.policy.model_invocable);
    skill.policy.user_invocable = current.policy.user_invocable.or(skill.policy.user_invocable);
    skill.policy.allowed_tools = current.policy.allowed_tools.or(skill.policy.allowed_tools);
    skill.policy.disallowed_tools.extend(current.policy.disallowed_tools);
    Some(skill)
}

fn report_unchanged(reading: &Reading) -> Conversion {
    let why = "the skill is in this dialect already";
    let keys = reading.document.entries().iter().map(|entry| entry.key.as_str());
    let report = keys.chain(["body"]);
    Conversion::new(
        vec![NewFile::new("SKILL.md", reading.document.text())],
        report.map(|key| FieldReport::new(key, key, FieldOutcome::Kept, why)).collect(),
    )
}

/// Converts a file; if it is an unedited conversion, converts its original instead.
fn convert_from_original(
    reading: &Reading,
    folder: Option<&Folder>,
    target: Dialect,
    depth: usize,
) -> Result<Conversion, ConvertError> {
    match trace(reading, folder).filter(|_| depth > 0) {
        Some(OriginalTrace::Same(original)) if original.skill.dialect == target => {
            let restored = merge::restore_original(reading, &original);
            return Ok(side_files::without_added(restored, &original, folder));
        }
        Some(OriginalTrace::Same(original)) => {
            return convert_from_original(&original, folder, target, depth - 1);
        }
        Some(OriginalTrace::Edited(original)) if original.skill.dialect == target => {
            if let Some(conversion) = merge::merge(reading, &original) {
                return Ok(side_files::without_added(conversion, &original, folder));
            }
        }
        _ => {}
    }
    let (reading, repairs) = repair_source(reading, folder)?;
    let draft = draft::write_draft(&reading, target)?;
    let written = read_as(Source::new(draft.text.clone()), target, None);
    if written.diagnostics.iter().any(|found| found.code == "no-tools") {
        return Err(ConvertError::NoTools { target });
    }
    let mut files = vec![NewFile::new("SKILL.md", draft.text)];
    files.extend(
        draft.files.into_iter().filter_map(|file| side_files::merge_with_existing(file, folder)),
    );
    let mut report = draft.report;
    report.extend(repairs.iter().map(|repair| FieldReport {
        field: "frontmatter".into(),
        from: Some("frontmatter".into()),
        to: Some("frontmatter".into()),
        how: FieldOutcome::Approximated,
        why: format!("repaired {repair}; converting back gives the repaired text"),
    }));
    Ok(Conversion { repairs, ..Conversion::new(files, report) })
}

/// The original of a converted file.
enum OriginalTrace {
    /// The file is unedited: converting the original again gives the same text.
    Same(Reading),
    /// The file was edited after the conversion.
    Edited(Reading),
}

fn trace(reading: &Reading, folder: Option<&Folder>) -> Option<OriginalTrace> {
    let text = reading.document.text();
    if !text.contains(stash::PREFIX) {
        return None;
    }
    let edited = original_of(reading, folder);
    if let Some(original) = edited.as_ref().filter(|original| is_conversion_of(original, reading)) {
        return Some(OriginalTrace::Same(original.clone()));
    }
    // Some dialects cannot be distinguished by their files, so the others are tried as well.
    let unknown_fields =
        Dialect::ALL.into_iter().filter(|dialect| *dialect != reading.skill.dialect);
    for dialect in unknown_fields {
        let other = read_as(Source::new(text.to_owned()), dialect, folder);
        if let Some(original) =
            original_of(&other, folder).filter(|found| is_conversion_of(found, &other))
        {
            return Some(OriginalTrace::Same(original));
        }
    }
    edited.filter(|_| first_error(reading).is_none()).map(OriginalTrace::Edited)
}

/// Returns the original that is stored in a file, if it has no errors.
fn original_of(reading: &Reading, folder: Option<&Folder>) -> Option<Reading> {
    let original = stash::original(reading)?;
    let original = read_as(Source::new(original.text), original.dialect, folder);
    first_error(&original).is_none().then_some(original)
}

/// Whether a file is exactly the conversion of `original`.
fn is_conversion_of(original: &Reading, reading: &Reading) -> bool {
    let (from, target) = (original.skill.dialect, reading.skill.dialect);
    from != target && draft::converts_to(original, target, reading.document.text())
}

/// Applies safe fixes to errors of the source, if its dialect allows repairs. Also returns what was
/// repaired.
fn repair_source<'r>(
    reading: &'r Reading,
    folder: Option<&Folder>,
) -> Result<(Cow<'r, Reading>, Vec<String>), ConvertError> {
    let mut reading = Cow::Borrowed(reading);
    let mut repairs = Vec::new();
    for _ in 0..limits::MAX_FIX_ROUNDS {
        let Some(problem) = first_error(&reading) else { return Ok((reading, repairs)) };
        repairs.extend(safe_fixes(&reading).map(|fixed| {
            let line = reading.document.source().position(fixed.span.start).line;
            format!("line {line}: {}", fixed.message)
        }));
        let edits = safe_edits(&reading);
        if edits.is_empty() {
            return Err(unreadable(&reading, &problem));
        }
        let text = edit::apply(reading.document.text(), &edits);
        reading = Cow::Owned(read_as(Source::new(text), reading.skill.dialect, folder));
    }
    match first_error(&reading) {
        None => Ok((reading, repairs)),
        Some(problem) => Err(unreadable(&reading, &problem)),
    }
}

fn unreadable(reading: &Reading, problem: &Diagnostic) -> ConvertError {
    let line = reading.document.source().position(problem.span.start).line;
    ConvertError::Unreadable { problem: problem.message.clone(), line }
}

/// Returns the first error that makes the meaning of a file uncertain.
fn first_error(reading: &Reading) -> Option<Diagnostic> {
    let document = &reading.document;
    let absent = document.state() == State::Absent && !reading.skill.dialect.fences().optional;
    let broken = document.problems().iter().find(|problem| problem.is_error());
    let missing = || reading.error().filter(|_| absent);
    broken.or_else(missing).cloned()
}

/// Returns the errors of a file that have a safe fix, if its dialect allows repairs.
fn safe_fixes(reading: &Reading) -> impl Iterator<Item = &Diagnostic> {
    let allowed = reading.skill.dialect.language().repairs();
    reading.document.problems().iter().filter(move |problem| {
        let fix = problem.fix.as_ref();
        allowed && problem.is_error() && fix.is_some_and(|fix| fix.safety == Safety::Safe)
    })
}

fn safe_edits(reading: &Reading) -> Vec<Edit> {
    let fixes = safe_fixes(reading).filter_map(|problem| problem.fix.as_ref());
    fixes.flat_map(|fix| fix.edits.iter().cloned()).collect()
}
