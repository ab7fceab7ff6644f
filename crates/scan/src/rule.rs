//! Definition of a scanner rule.

use savoir_lint::{RuleDocs, words::one_line};

use super::{context::Context, report::Severity};

/// A rule: its id, maximum severity and documentation.
#[derive(Debug)]
pub struct Rule {
    /// Stable kebab-case id.
    pub id: &'static str,
    /// Default severity of a finding.
    pub severity: Severity,
    /// Whether a critical finding that is certain blocks the skill.
    pub blocks: bool,
    pub(super) docs: RuleDocs,
    /// Checks a skill; `None` for rules that are reported while files are read.
    pub(super) run: Option<fn(&mut Context<'_>)>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

impl Rule {
    /// The documentation as Markdown.
    pub fn docs(&self) -> String {
        self.docs.markdown()
    }

    /// The first sentence of the documentation.
    pub fn title(&self) -> String {
        self.docs.summary().trim_end_matches('.').to_owned()
    }

    /// Why it matters.
    pub fn why(&self) -> String {
        one_line(&self.docs.section("Why").unwrap_or_default())
    }

    /// How the author can fix it.
    pub fn fix(&self) -> String {
        one_line(&self.docs.section("Fix").unwrap_or_default())
    }
}

/// Declares a rule; the doc comment above it becomes its documentation.
macro_rules! rule {
    (
        $(#[doc = $doc:literal])+
        $name:ident = $id:literal, $severity:ident $(, blocks $blocks:literal)? $(, run $run:expr)?
    ) => {
        pub(crate) static $name: $crate::Rule = $crate::Rule {
            id: $id,
            severity: $crate::Severity::$severity,
            blocks: $crate::rule::rule!(@blocks $($blocks)?),
            docs: savoir_lint::RuleDocs(concat!($($doc, "\n"),+)),
            run: $crate::rule::rule!(@run $($run)?),
        };
    };
    (@blocks) => { false };
    (@blocks $blocks:literal) => { $blocks };
    (@run) => { None };
    (@run $run:expr) => { Some($run) };
}

pub(super) use rule;
