//! A finding of a check with its position in the file.

use pyo3::prelude::*;
use savoir_lint::Safety;
use savoir_skill::{Diagnostic, Source};

/// One problem at one position of a file.
#[pyclass(frozen, get_all, name = "Diagnostic", module = "savoir_skills")]
#[derive(Clone, Debug)]
pub(crate) struct PyDiagnostic {
    code: &'static str,
    severity: &'static str,
    message: String,
    help: Option<String>,
    field: Option<String>,
    path: Option<String>,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    fix: Option<&'static str>,
}

impl PyDiagnostic {
    /// Converts a finding; without the text, its position is the start of the file.
    pub(crate) fn new(path: Option<&str>, source: Option<&Source>, found: Diagnostic) -> Self {
        let place = |offset| {
            source.map_or((1, 1), |source| {
                let at = source.position(offset);
                (at.line, at.column)
            })
        };
        let (line, column) = place(found.span.start);
        let (end_line, end_column) = place(found.span.end);
        Self {
            code: found.code,
            severity: if found.is_error() { "error" } else { "warning" },
            message: found.message,
            help: found.help,
            field: found.field,
            path: path.map(str::to_owned),
            line,
            column,
            end_line,
            end_column,
            fix: found.fix.map(|fix| match fix.safety {
                Safety::Safe => "safe",
                Safety::Unsafe => "unsafe",
            }),
        }
    }

    /// Converts all findings of a file.
    pub(crate) fn all(path: Option<&str>, source: &Source, found: Vec<Diagnostic>) -> Vec<Self> {
        found.into_iter().map(|found| Self::new(path, Some(source), found)).collect()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == "error"
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

#[pymethods]
impl PyDiagnostic {
    /// `SKILL.md:3:14: error[unquoted-colon]: …`, one line.
    fn __str__(&self) -> String {
        let Self { code, severity, message, line, column, .. } = self;
        let path = self.path.as_deref().unwrap_or("<text>");
        savoir_lint::visible(&format!("{path}:{line}:{column}: {severity}[{code}]: {message}"))
            .into_owned()
    }

    fn __repr__(&self) -> String {
        format!("<Diagnostic {}>", self.__str__())
    }
}
