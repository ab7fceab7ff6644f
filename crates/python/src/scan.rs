//! Scans a skill for malicious behavior.

use std::path::PathBuf;

use pyo3::prelude::*;
use savoir_package::{File, OtherFiles, Tree, tree_input};
use savoir_scan::{Finding, Report};

use crate::{errors::Failure, input::wrong_subject};

/// One finding of a scan.
#[pyclass(frozen, get_all, name = "Finding", module = "savoir_skills")]
#[derive(Clone, Debug)]
pub(crate) struct PyFinding {
    rule: &'static str,
    severity: &'static str,
    confidence: &'static str,
    message: String,
    path: String,
    line: usize,
    column: usize,
    excerpt: String,
    blocks: bool,
}

impl PyFinding {
    fn new(found: Finding) -> Self {
        Self {
            rule: found.rule.id,
            severity: found.severity.as_str(),
            confidence: found.confidence.as_str(),
            blocks: found.blocks(),
            message: found.message,
            path: found.path,
            line: found.line,
            column: found.column,
            excerpt: found.excerpt,
        }
    }
}

#[pymethods]
impl PyFinding {
    fn __str__(&self) -> String {
        let Self { rule, severity, message, path, line, column, .. } = self;
        let text = format!("{path}:{line}:{column}: {severity}[{rule}]: {message}");
        savoir_lint::visible(&text).into_owned()
    }

    fn __repr__(&self) -> String {
        format!("<Finding {}>", self.__str__())
    }
}

/// The result of a scan.
#[pyclass(frozen, get_all, module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct ScanReport {
    /// `allow`, `review` or `block`.
    verdict: &'static str,
    findings: Vec<PyFinding>,
}

#[pymethods]
impl ScanReport {
    fn __repr__(&self) -> String {
        format!("<ScanReport {}: {} findings>", self.verdict, self.findings.len())
    }
}

/// Scans one skill: its folder, an archive of it, or a text. Nothing of it is executed.
#[pyfunction]
#[pyo3(signature = (path=None, *, text=None))]
pub(crate) fn scan(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
) -> PyResult<ScanReport> {
    let report = py.detach(|| {
        let others = path.as_deref().map(OtherFiles::read).unwrap_or_default();
        Ok(others.scan_with(&tree(path, text)?))
    });
    let Report { verdict, findings } = report.map_err(|failure: Failure| failure.raise(py))?;
    let findings = findings.into_iter().map(PyFinding::new).collect();
    Ok(ScanReport { verdict: verdict.as_str(), findings })
}

fn tree(path: Option<PathBuf>, text: Option<String>) -> Result<Tree, Failure> {
    match (path, text) {
        (Some(path), None) => tree_input::read_tree(&path).map_err(|error| {
            let failure = Failure::unreadable(format!("{}: {error}", path.display()));
            let failure = error.code().into_iter().fold(failure, Failure::code);
            failure.hints(error.hint())
        }),
        (None, Some(text)) => {
            let mut tree = Tree::default();
            let file = File { bytes: text.into_bytes(), executable: false };
            tree.add("SKILL.md".to_owned(), file).map_err(Failure::unreadable)?;
            Ok(tree)
        }
        _ => Err(wrong_subject()),
    }
}
