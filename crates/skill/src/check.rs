//! Holding a skill against the rules, and mending what can be mended.
//!
//! A rule is a [`Rule`] in a file under `check/rules/`; its doc comment is its documentation, its
//! examples are its tests. What reading finds (broken YAML, missing fields) is reported under rules
//! of the same kind, so that every code has an explanation.

mod fix;
pub mod render;
mod rule;
mod rules;
mod target;

pub use fix::{Fixed, fix};
pub use rule::{Example, Rule};
pub use rules::undeclared_placeholders;
pub use target::{Target, UnknownTarget};

use std::collections::HashMap;

use crate::{
    diagnostic::Diagnostic,
    dialect::{Dialect, Habits},
    document::State,
    folder::Folder,
    limits,
    reading::{Reading, read, read_as},
    render::Placeholders,
    source::Source,
};

/// What to check and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Read the file in this dialect instead of finding out.
    pub dialect: Option<Dialect>,
    /// Only these codes; empty means all.
    pub select: Vec<String>,
    /// Not these codes.
    pub ignore: Vec<String>,
    /// Hosts whose limits are checked, too.
    pub targets: Vec<Target>,
}

impl Options {
    /// Whether findings of this code are wanted.
    pub fn wants(&self, code: &str) -> bool {
        (self.select.is_empty() || self.select.iter().any(|wanted| wanted == code))
            && !self.ignore.iter().any(|ignored| ignored == code)
    }
}

/// What a rule looks at.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) folder: Option<&'a Folder>,
    pub(crate) options: &'a Options,
}

impl<'a> Context<'a> {
    pub(crate) fn text(&self) -> &'a str {
        self.reading.document.text()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.reading.detection.dialect
    }

    pub(crate) fn habits(&self) -> Habits {
        self.dialect().language().habits()
    }

    pub(crate) fn placeholders(&self) -> Placeholders {
        self.dialect().language().placeholders()
    }
}

/// Every rule, sorted by code.
pub fn all_rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// The rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    rules::ALL.binary_search_by(|rule| rule.code.cmp(code)).ok().map(|index| rules::ALL[index])
}

/// The code of the rule that `code` may have meant.
pub fn nearest_rule(code: &str) -> Option<&'static str> {
    crate::shape::nearest(code, rules::ALL.iter().map(|rule| rule.code))
}

/// A checked file.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What was read.
    pub reading: Reading,
    /// What was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads and checks one file.
///
/// ```
/// use savoir_skill::{Source, check};
///
/// let text = "---\nname: Demo\ndescription: Use for: demos\n---\n# Demo\n";
/// let checked = check::check(Source::from_bytes(text.into())?, None, &check::Options::default());
/// let codes: Vec<_> = checked.diagnostics.iter().map(|found| found.code).collect();
/// assert_eq!(codes, ["invalid-name", "unquoted-colon"]);
/// # Ok::<(), savoir_skill::SourceError>(())
/// ```
pub fn check(source: Source, folder: Option<&Folder>, options: &Options) -> Checked {
    let reading = match options.dialect {
        Some(dialect) => read_as(source, dialect, folder),
        None => read(source, folder),
    };
    let mut diagnostics = reading.diagnostics.clone();
    let context = Context { reading: &reading, folder, options };
    for rule in rules::ALL {
        if let Some(run) = rule.run {
            let before = diagnostics.len();
            run(&context, &mut diagnostics);
            diagnostics.truncate(before + limits::MAX_FINDINGS_PER_RULE);
        }
    }
    if reading.document.state() == State::Repaired {
        let own = reading.diagnostics.len();
        diagnostics.iter_mut().skip(own).for_each(|found| found.fix = None);
    }
    cap_per_code(&mut diagnostics);
    diagnostics.retain(|found| options.wants(found.code));
    diagnostics.sort_by(|a, b| {
        (a.span.start, a.code, a.span.end).cmp(&(b.span.start, b.code, b.span.end))
    });
    diagnostics.dedup();
    Checked { reading, diagnostics }
}

/// Keeps the first findings of each code, so that a hostile file cannot flood a report.
fn cap_per_code(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() <= limits::MAX_FINDINGS_PER_RULE {
        return;
    }
    let mut seen: HashMap<&'static str, usize> = HashMap::new();
    diagnostics.retain(|found| {
        let count = seen.entry(found.code).or_default();
        *count += 1;
        *count <= limits::MAX_FINDINGS_PER_RULE
    });
}
