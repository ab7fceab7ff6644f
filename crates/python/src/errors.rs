//! Raises the exceptions of `savoir_skills.errors`, which are written in Python.

use std::fmt::Display;

use pyo3::{prelude::*, types::PyDict};
use savoir_skill::Diagnostic;

use crate::diagnostic::PyDiagnostic;

/// Why a function failed, before it is an exception.
#[derive(Debug)]
pub(crate) struct Failure {
    class: &'static str,
    code: &'static str,
    message: String,
    hints: Vec<String>,
    diagnostics: Vec<PyDiagnostic>,
}

impl Failure {
    /// A failure with the name of its class in `savoir_skills.errors`.
    pub(crate) fn new(class: &'static str, code: &'static str, message: impl Display) -> Self {
        let (hints, diagnostics) = (Vec::new(), Vec::new());
        Self { class, code, message: message.to_string(), hints, diagnostics }
    }

    /// A file or folder that cannot be read.
    pub(crate) fn unreadable(message: impl Display) -> Self {
        Self::new("UnreadableSkillError", "unreadable-file", message)
    }

    /// A skill that no reader can use, with the findings that say why.
    pub(crate) fn invalid(message: impl Display, diagnostics: Vec<PyDiagnostic>) -> Self {
        Self { diagnostics, ..Self::new("InvalidSkillError", "skill-invalid", message) }
    }

    /// Text that cannot be that of a skill.
    pub(crate) fn of_source(shown: &str, problem: &Diagnostic) -> Self {
        let message = format!("{shown}: {}", problem.message);
        let failure = Self { code: problem.code, ..Self::unreadable(message) };
        failure.hints(problem.help.clone())
    }

    #[must_use]
    pub(crate) fn hints<S: Into<String>>(mut self, hints: impl IntoIterator<Item = S>) -> Self {
        self.hints.extend(hints.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    #[must_use]
    pub(crate) fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }

    /// Makes the exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|error| error)
    }

    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("savoir_skills.errors")?.getattr(self.class)?;
        let fields = PyDict::new(py);
        fields.set_item("code", self.code)?;
        fields.set_item("hints", self.hints)?;
        fields.set_item("diagnostics", self.diagnostics)?;
        Ok(PyErr::from_value(class.call((self.message,), Some(&fields))?))
    }
}
