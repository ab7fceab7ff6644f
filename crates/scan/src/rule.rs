//! What a rule of the scanner is.

use super::{context::Context, report::Severity};

/// A rule: its id, how much it matters at most, and its documentation.
#[derive(Debug)]
pub struct Rule {
    /// Stable kebab-case id.
    pub id: &'static str,
    /// How much a finding matters when nothing speaks for or against it.
    pub severity: Severity,
    /// Whether a critical finding that is certain blocks the skill.
    pub blocks: bool,
    /// The doc comment, line by line.
    pub(super) docs: &'static str,
    /// Finds breaches; what reading itself reports has none.
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
        let lines = self.docs.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    }

    /// The first sentence of the documentation.
    pub fn title(&self) -> String {
        let docs = self.docs();
        let first = docs.split("\n\n").next().unwrap_or_default();
        first.replace('\n', " ").trim_end_matches('.').to_owned()
    }

    /// Why it matters.
    pub fn why(&self) -> String {
        self.section("## Why\n")
    }

    /// The way out.
    pub fn fix(&self) -> String {
        self.section("## Fix\n")
    }

    fn section(&self, heading: &str) -> String {
        let docs = self.docs();
        let section = docs.split_once(heading).map_or("", |(_, rest)| rest);
        let section = section.split("\n## ").next().unwrap_or_default();
        section.split_whitespace().collect::<Vec<_>>().join(" ")
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
            docs: concat!($($doc, "\n"),+),
            run: $crate::rule::rule!(@run $($run)?),
        };
    };
    (@blocks) => { false };
    (@blocks $blocks:literal) => { $blocks };
    (@run) => { None };
    (@run $run:expr) => { Some($run) };
}

pub(super) use rule;
