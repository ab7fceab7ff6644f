//! A skill that was read, with the fields that all dialects share.

use std::path::PathBuf;

use pyo3::prelude::*;
use savoir_skill::Skill;

use crate::{
    diagnostic::PyDiagnostic,
    input::{self, LoadedSkill, Subject, to_python},
};

/// A skill, whatever the dialect of its file.
#[pyclass(frozen, name = "Skill", module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct PySkill {
    loaded: LoadedSkill,
}

impl PySkill {
    fn skill(&self) -> &Skill {
        &self.loaded.reading.skill
    }
}

#[pymethods]
impl PySkill {
    #[getter]
    fn name(&self) -> &str {
        &self.skill().name
    }

    #[getter]
    fn version(&self) -> Option<&str> {
        self.skill().version.as_deref()
    }

    #[getter]
    fn description(&self) -> &str {
        &self.skill().description
    }

    #[getter]
    fn when_to_use(&self) -> Option<&str> {
        self.skill().when_to_use.as_deref()
    }

    #[getter]
    fn dialect(&self) -> &'static str {
        self.loaded.reading.detection.dialect.id()
    }

    /// Why this dialect was detected.
    #[getter]
    fn dialect_reason(&self) -> &str {
        &self.loaded.reading.detection.why
    }

    #[getter]
    fn body(&self) -> &str {
        &self.skill().body
    }

    /// The whole text of the file.
    #[getter]
    fn text(&self) -> &str {
        self.loaded.reading.document.text()
    }

    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.loaded.path.clone()
    }

    #[getter]
    fn directory(&self) -> Option<PathBuf> {
        self.loaded.folder.as_ref().map(|folder| folder.root().to_owned())
    }

    #[getter]
    fn authors(&self) -> Vec<String> {
        self.skill().authors.clone()
    }

    #[getter]
    fn license(&self) -> Option<&str> {
        self.skill().license.as_deref()
    }

    #[getter]
    fn compatibility(&self) -> Option<&str> {
        self.skill().compatibility.as_deref()
    }

    #[getter]
    fn tags(&self) -> Vec<String> {
        self.skill().tags.clone()
    }

    #[getter]
    fn resources(&self) -> Vec<String> {
        self.skill().resources.clone()
    }

    #[getter]
    fn permissions(&self) -> Vec<String> {
        self.skill().permissions.iter().map(ToString::to_string).collect()
    }

    /// The tier that the file claims.
    #[getter]
    fn security_tier(&self) -> Option<&'static str> {
        self.skill().policy.tier.map(savoir_skill::permission::Tier::as_str)
    }

    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.skill().tools)
    }

    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.skill().inputs)
    }

    #[getter]
    fn requirements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.skill().requirements)
    }

    #[getter]
    fn policy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.skill().policy)
    }

    /// Top-level fields that the dialect does not define.
    #[getter]
    fn extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.skill().extra)
    }

    /// Problems that were found while reading; `check` finds more.
    #[getter]
    fn diagnostics(&self) -> Vec<PyDiagnostic> {
        self.loaded.diagnostics()
    }

    #[getter]
    fn is_valid(&self) -> bool {
        self.loaded.reading.is_valid()
    }

    /// All fields, as `savoir show --json` prints them.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.skill())
    }

    fn __repr__(&self) -> String {
        let version = self.version().map(|version| format!(" {version}")).unwrap_or_default();
        format!("<Skill {}{} ({})>", self.name(), version, self.dialect())
    }
}

/// Reads a skill. Raises `InvalidSkillError` if no agent could use it.
#[pyfunction]
#[pyo3(signature = (path=None, *, text=None, dialect=None))]
pub(crate) fn read(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
    dialect: Option<&str>,
) -> PyResult<PySkill> {
    let dialect = input::dialect(dialect).map_err(|failure| failure.raise(py))?;
    let loaded = py.detach(|| Subject::open(path, text)?.read(dialect).require_usable());
    Ok(PySkill { loaded: loaded.map_err(|failure| failure.raise(py))? })
}
