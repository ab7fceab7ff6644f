//! Renders diagnostics as text, JSON, SARIF or GitHub annotations.
//!
//! A [`Renderer`] writes one report after the other, so that a hundred thousand files need no more
//! memory than one. It makes many small writes, so pass a buffered writer.
//!
//! ```
//! use savoir_lint::{Diagnostic, Source, Span};
//! use savoir_lint::render::{self, FileReport, Format, Summary, TextStyle};
//!
//! let source = Source::from_bytes(b"name: Demo\n".to_vec())?;
//! let found = [Diagnostic::error("invalid-name", Span::new(6, 10), "a capital letter")];
//! let report =
//!     FileReport { path: "SKILL.md", source: Some(&source), dialect: None, diagnostics: &found };
//!
//! let mut out = Vec::new();
//! let mut renderer = render::renderer(Format::Text, TextStyle::default(), Vec::new());
//! renderer.start(&mut out)?;
//! renderer.file(&mut out, &report)?;
//! renderer.finish(&mut out, &Summary { files: 1, errors: 1, ..Summary::default() })?;
//! assert!(String::from_utf8(out)?.ends_with("checked 1 skill: 1 error\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod github;
mod json;
mod sarif;
#[cfg(test)]
mod tests;
mod text;
mod window;

pub use sarif::uri;

use std::{
    fmt,
    io::{self, Write},
    str::FromStr,
};

use thiserror::Error;

use crate::{Diagnostic, Position, RuleDocs, Severity, Source, Span};

/// The diagnostics of one file.
#[derive(Clone, Copy, Debug)]
pub struct FileReport<'a> {
    /// The path as shown to users.
    pub path: &'a str,
    /// The text that was checked; `None` if the file could not be read.
    pub source: Option<&'a Source>,
    /// The dialect in which the file was parsed; `None` if unknown.
    pub dialect: Option<&'static str>,
    /// Diagnostics in file order.
    pub diagnostics: &'a [Diagnostic],
}

impl FileReport<'_> {
    /// Returns the start and end of a span; `None` if the file could not be read.
    fn range(&self, span: Span) -> Option<(Position, Position)> {
        let source = self.source?;
        let end = span.end.max(span.start);
        Some((source.position(span.start), source.position(end)))
    }

    /// Returns the start and end of a span, or the start of the file if the file could not be read,
    /// for formats that need a position.
    fn range_or_file_start(&self, span: Span) -> (Position, Position) {
        let beginning = Position { line: 1, column: 1 };
        self.range(span).unwrap_or((beginning, beginning))
    }
}

/// Totals over all files of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of checked files.
    pub files: usize,
    /// Number of errors in all files.
    pub errors: usize,
    /// Number of warnings in all files.
    pub warnings: usize,
    /// Number of diagnostics that a safe fix removes.
    pub fixable: usize,
    /// Number of further diagnostics that only an unsafe fix removes.
    pub fixable_unsafe: usize,
}

/// Writes reports: one start, any number of files, one finish.
pub trait Renderer {
    /// Writes the text before the first file.
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the diagnostics of one file.
    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()>;

    /// Writes the text after the last file.
    fn finish(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}

/// The output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people: the source line, the position in it, and a hint.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// SARIF 2.1.0, which code scanning services read.
    Sarif,
    /// Workflow commands, which GitHub Actions turns into annotations.
    Github,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Sarif, Self::Github];

    /// Returns the name that users type.
    pub fn id(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Sarif => "sarif",
            Self::Github => "github",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The error for a word that is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown format `{0}`; expected one of {known}", known = Format::ALL.map(Format::id).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.id() == word);
        found.ok_or_else(|| UnknownFormat(word.to_owned()))
    }
}

/// Options of [`Format::Text`]; the other formats ignore them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether to write ANSI color codes.
    pub color: bool,
    /// Columns of the terminal; longer source lines are cut around the diagnostic.
    pub width: usize,
}

impl Default for TextStyle {
    /// Returns a style without color and with the line width of rustc.
    fn default() -> Self {
        Self { color: false, width: 140 }
    }
}

/// The description of a rule in reports.
#[derive(Clone, Copy, Debug)]
pub struct RuleDescription {
    /// The stable kebab-case ID of the rule.
    pub id: &'static str,
    pub docs: RuleDocs,
    /// The severity of its diagnostics.
    pub severity: Severity,
}

/// Creates the renderer of a format. `rules` are all rules that reports may name, sorted by ID.
pub fn renderer(
    format: Format,
    style: TextStyle,
    rules: Vec<RuleDescription>,
) -> Box<dyn Renderer> {
    match format {
        Format::Text => Box::new(text::TextRenderer::new(style)),
        Format::Json => Box::new(json::JsonRenderer::default()),
        Format::Sarif => Box::new(sarif::SarifRenderer::new(rules)),
        Format::Github => Box::new(github::GithubRenderer),
    }
}
