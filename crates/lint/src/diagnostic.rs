//! Defines [`Diagnostic`], a problem at a position of a file, and [`Fix`], the edits that solve it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::source::Span;

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Reported; fails the check only with `--strict`.
    Warning,
    /// Fails the check.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Whether a fix may be applied without asking the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Safety {
    /// The fix does not change what the file means.
    Safe,
    /// The fix is a guess that a user should review.
    Unsafe,
}

/// Replaces the bytes of `span` by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that are replaced.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Edit {
    /// Inserts `text` before the byte `at`.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { span: Span::at(at), text: text.into() }
    }

    /// Replaces `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Deletes `span`.
    pub fn delete(span: Span) -> Self {
        Self { span, text: String::new() }
    }
}

/// Edits that together solve a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Whether the fix may be applied without asking the user.
    pub safety: Safety,
    /// The edits, which never overlap.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// Creates a fix that does not change what the file means.
    pub fn safe(edits: Vec<Edit>) -> Self {
        Self { safety: Safety::Safe, edits }
    }

    /// Creates a fix that a user should review.
    pub fn unsafe_edits(edits: Vec<Edit>) -> Self {
        Self { safety: Safety::Unsafe, edits }
    }
}

/// One problem at one position of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case code of the rule.
    pub code: &'static str,
    pub severity: Severity,
    /// A description of the problem, in one sentence without a full stop.
    pub message: String,
    /// The bytes that the problem is about.
    pub span: Span,
    /// A hint how to solve the problem.
    pub help: Option<String>,
    /// Edits that solve the problem.
    pub fix: Option<Fix>,
    /// Dotted path of the frontmatter field, if the diagnostic is about one.
    pub field: Option<String>,
}

impl Diagnostic {
    /// Creates an error.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span, message)
    }

    /// Creates a warning.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span, message)
    }

    fn new(code: &'static str, severity: Severity, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, severity, message, span, help: None, fix: None, field: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a fix.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Sets the frontmatter field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
