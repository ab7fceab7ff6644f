//! What a reader or a rule has to say: a [`Diagnostic`] with a place, and perhaps a [`Fix`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::source::Span;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It speaks; `--strict` makes it stop.
    Warning,
    /// It stops.
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

/// Whether a fix may be applied without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Safety {
    /// The file means afterwards what its author wrote.
    Safe,
    /// The fix is a good guess that a person should look at.
    Unsafe,
}

/// Replaces the bytes of `span` by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What goes.
    pub span: Span,
    /// What comes.
    pub text: String,
}

impl Edit {
    /// Puts `text` before the byte `at`.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { span: Span::at(at), text: text.into() }
    }

    /// Puts `text` in the place of `span`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Takes `span` out.
    pub fn delete(span: Span) -> Self {
        Self { span, text: String::new() }
    }
}

/// Edits that together remove a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// May it be applied without asking?
    pub safety: Safety,
    /// The edits, which never overlap.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// A fix that keeps the meaning.
    pub fn safe(edits: Vec<Edit>) -> Self {
        Self { safety: Safety::Safe, edits }
    }

    /// A fix that a person should look at.
    pub fn risky(edits: Vec<Edit>) -> Self {
        Self { safety: Safety::Unsafe, edits }
    }
}

/// One finding at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case code of the rule.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// The way out.
    pub help: Option<String>,
    /// How to mend it.
    pub fix: Option<Fix>,
    /// Dotted path of the frontmatter field, when the finding is about one.
    pub field: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span, message)
    }

    fn new(code: &'static str, severity: Severity, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, severity, message, span, help: None, fix: None, field: None }
    }

    /// Adds the way out.
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

    /// Names the field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
