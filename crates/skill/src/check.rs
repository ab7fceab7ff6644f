//! Checks a skill against the rules and fixes what can be fixed.
//!
//! A rule is a [`Rule`] in a file under `check/rules/`; its doc comment is its documentation, its
//! examples are its tests. Problems found while reading (broken YAML, missing fields) also have
//! rules, so that every code has an explanation.

mod fix;
mod rule;
mod rules;
mod target;

pub use fix::{FixedText, fix};
pub use rule::{Example, Rule};
pub use rules::undeclared_placeholders;
pub(crate) use savoir_lint::RuleDocs;
pub use target::{Target, UnknownTarget};

use std::{collections::HashMap, path::PathBuf};

use savoir_lint::{
    Diagnostic, Source,
    render::{self, Format, Renderer, RuleDescription, TextStyle},
};

use crate::{
    dialect::{Conventions, Dialect},
    document::State,
    folder::Folder,
    limits,
    reading::{Reading, read, read_as},
    render::Placeholders,
};

/// The options of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Read the file in this dialect instead of detecting it.
    pub dialect: Option<Dialect>,
    /// Report only these codes; empty means all.
    pub select: Vec<String>,
    /// Do not report these codes.
    pub ignore: Vec<String>,
    /// Hosts whose limits are also checked.
    pub targets: Vec<Target>,
    /// Also report matters of style, and rules that do not suit every skill.
    pub strict: bool,
    /// Folders with the programs of this machine; if empty, programs are not searched.
    pub programs: Vec<PathBuf>,
}

impl Options {
    /// Whether a rule of strict checks is enabled.
    fn is_strict(&self, code: &str) -> bool {
        self.strict || self.is_selected(code)
    }

    /// Whether a rule about one host is enabled.
    fn is_for(&self, target: Target, code: &str) -> bool {
        self.targets.contains(&target) || self.is_selected(code)
    }

    fn is_selected(&self, code: &str) -> bool {
        self.select.iter().any(|wanted| wanted == code)
    }

    /// Whether findings of this code are reported.
    pub fn reports(&self, code: &str) -> bool {
        (self.select.is_empty() || self.is_selected(code))
            && !self.ignore.iter().any(|ignored| ignored == code)
    }
}

/// The data that a rule checks.
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

    pub(crate) fn conventions(&self) -> Conventions {
        self.dialect().language().conventions()
    }

    pub(crate) fn placeholders(&self) -> Placeholders {
        self.dialect().language().placeholders()
    }
}

/// Every rule, sorted by code.
pub fn all_rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Writes findings in a format.
pub fn renderer(format: Format, style: TextStyle) -> Box<dyn Renderer> {
    let rules = rules::ALL.iter().map(|rule| RuleDescription {
        id: rule.code,
        docs: rule.docs,
        severity: rule.severity,
    });
    render::renderer(format, style, rules.collect())
}

/// Returns the rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    rules::ALL.binary_search_by(|rule| rule.code.cmp(code)).ok().map(|index| rules::ALL[index])
}

/// Returns the rule code that is most similar to an unknown one.
pub fn nearest_rule(code: &str) -> Option<&'static str> {
    savoir_lint::words::nearest(code, rules::ALL.iter().map(|rule| rule.code))
}

/// A checked file.
#[derive(Debug, Clone)]
pub struct CheckedSkill {
    /// The result of reading the file.
    pub reading: Reading,
    /// The findings, in the order of the file.
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
pub fn check(source: Source, folder: Option<&Folder>, options: &Options) -> CheckedSkill {
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
    diagnostics.retain(|found| options.reports(found.code));
    diagnostics.sort_by(|a, b| {
        (a.span.start, a.code, a.span.end).cmp(&(b.span.start, b.code, b.span.end))
    });
    diagnostics.dedup();
    CheckedSkill { reading, diagnostics }
}

/// Codes for missing parts, which often follow from another error.
const MISSING_PART_CODES: [&str; 3] = ["missing-field", "no-tools", "unknown-dialect"];

/// Returns the error to show if only one can be shown: the first about existing content, else the
/// first about a missing part.
pub fn most_relevant_error(diagnostics: &[Diagnostic]) -> Option<&Diagnostic> {
    let mut errors = diagnostics.iter().filter(|found| found.is_error());
    let has = errors.clone().find(|found| !MISSING_PART_CODES.contains(&found.code));
    has.or_else(|| errors.next())
}

/// Returns the first error that makes the frontmatter look different from its content, such as a
/// terminal escape sequence in a description. People see the frontmatter when they decide about a
/// skill, so such a file is neither installed nor published.
pub fn find_disguise(reading: &Reading) -> Option<Diagnostic> {
    let head = reading.document.layout().closed_block()?.yaml;
    let options = Options::default();
    let context = Context { reading, folder: None, options: &options };
    let mut found = Vec::new();
    rules::hidden_characters(&context, &mut found);
    found.retain(|one| one.is_error() && head.contains(one.span.start));
    found.into_iter().min_by_key(|one| one.span.start)
}

/// Returns the error for a name that cannot be the name of a folder in the dialect of the skill.
pub fn find_unsafe_name(reading: &Reading) -> Option<Diagnostic> {
    let options = Options::default();
    let mut found = Vec::new();
    rules::unsafe_name(&Context { reading, folder: None, options: &options }, &mut found);
    found.pop()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> CheckedSkill {
        check(Source::new(text.into()), None, &Options::default())
    }

    #[test]
    fn wrong_parts_rank_before_missing_parts() {
        let both = checked("---\nname: demo\nname: other\n---\n");
        assert!(both.diagnostics.iter().any(|found| found.code == "missing-field"));
        assert_eq!(
            most_relevant_error(&both.diagnostics).map(|found| found.code),
            Some("duplicate-key")
        );
        let lacking = checked("---\nname: demo\n---\n");
        assert_eq!(
            most_relevant_error(&lacking.diagnostics).map(|found| found.code),
            Some("missing-field")
        );
        let warned = checked("---\nname: demo\ndescription: Shows it. Use when learning.\n---\n");
        assert!(most_relevant_error(&warned.diagnostics).is_none(), "{:?}", warned.diagnostics);
    }

    #[test]
    fn only_frontmatter_is_checked_for_disguises() {
        let head = |value: &str| format!("---\nname: demo\ndescription: {value}\n---\nBody.\n");
        let disguised = |text: &str| {
            find_disguise(&read(Source::new(text.into()), None)).map(|found| found.code)
        };
        assert_eq!(disguised(&head("\"safe\\e[2K\\rnone\"")), Some("control-character"));
        assert_eq!(disguised(&head("Open \u{202e}fdp.exe")), Some("bidi-control"));
        assert_eq!(disguised(&head("Shows it. Use when learning.")), None);
        let body = head("Shows it. Use when learning.") + "\u{202e}\u{1b}[2K";
        assert_eq!(disguised(&body), None, "what the text says is for the scan");
    }
}
