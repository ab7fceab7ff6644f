//! Converts a skill to another dialect, and inserts inputs into its prompt.

use std::{collections::BTreeMap, path::PathBuf};

use pyo3::{prelude::*, types::PyAny};
use savoir_skill::{convert::FieldReport, render::RenderError};
use serde_json::{Map, Value};

use crate::{
    errors::Failure,
    input::{self, Subject, from_python, to_python},
};

/// A converted skill: its files, and what became of each field.
#[pyclass(frozen, module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct Conversion {
    /// The texts of SKILL.md and of other files that the target needs, by path.
    #[pyo3(get)]
    files: BTreeMap<String, String>,
    /// The dialect of the result.
    #[pyo3(get)]
    dialect: &'static str,
    report: Vec<FieldReport>,
}

#[pymethods]
impl Conversion {
    /// The text of SKILL.md.
    #[getter]
    fn text(&self) -> &str {
        self.files.get("SKILL.md").map_or("", String::as_str)
    }

    /// What became of each field: a list of dicts with `field`, `from`, `to`, `how` and `why`.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report)
    }

    fn __repr__(&self) -> String {
        format!("<Conversion to {}: {} files>", self.dialect, self.files.len())
    }
}

/// Converts a skill. Nothing is written.
#[pyfunction]
#[pyo3(signature = (path=None, to=None, *, text=None, dialect=None))]
pub(crate) fn convert(
    py: Python<'_>,
    path: Option<PathBuf>,
    to: Option<&str>,
    text: Option<String>,
    dialect: Option<&str>,
) -> PyResult<Conversion> {
    let from = input::dialect(dialect).map_err(|failure| failure.raise(py))?;
    let target = input::dialect(to).and_then(|target| {
        target.ok_or_else(|| {
            Failure::new("WrongCallError", "wrong-call", "pass the dialect to convert to: to=…")
        })
    });
    let target = target.map_err(|failure| failure.raise(py))?;
    let converted = py.detach(|| {
        let loaded = Subject::open(path, text)?.read(from);
        let done = savoir_skill::convert::convert(&loaded.reading, loaded.folder.as_ref(), target);
        done.map_err(|error| loaded.failure(error).class("ConversionError"))
    });
    let converted = converted.map_err(|failure| failure.raise(py))?;
    let files = converted.files.into_iter().map(|file| (file.path, file.text)).collect();
    Ok(Conversion { files, dialect: target.id(), report: converted.report })
}

/// Inserts inputs into the prompt of a skill. Nothing is executed.
#[pyfunction]
#[pyo3(signature = (path=None, inputs=None, *, text=None, dialect=None))]
pub(crate) fn render(
    py: Python<'_>,
    path: Option<PathBuf>,
    inputs: Option<&Bound<'_, PyAny>>,
    text: Option<String>,
    dialect: Option<&str>,
) -> PyResult<String> {
    let dialect = input::dialect(dialect).map_err(|failure| failure.raise(py))?;
    let values = match inputs.map(from_python).transpose()? {
        Some(Value::Object(values)) => values,
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            let message = "inputs must be a dict with names and values";
            return Err(Failure::new("WrongCallError", "wrong-call", message).raise(py));
        }
    };
    let rendered = py.detach(|| {
        let loaded = Subject::open(path, text)?.read(dialect).require_usable()?;
        // The reader of the prompt may be in another folder.
        let directory = loaded.folder.as_ref().map(|folder| {
            let root = folder.root();
            root.canonicalize().unwrap_or_else(|_| root.to_owned())
        });
        let directory = directory.as_ref().map(|root| root.to_string_lossy());
        savoir_skill::render::render(&loaded.reading.skill, &values, directory.as_deref())
            .map_err(|error| render_failure(&error))
    });
    rendered.map_err(|failure| failure.raise(py))
}

fn render_failure(error: &RenderError) -> Failure {
    let hint = match error {
        RenderError::MissingInput { input } => Some(format!("pass inputs={{\"{input}\": …}}")),
        _ => None,
    };
    Failure::new("RenderError", error.code(), error).hints(hint)
}
