//! Reads what callers pass: a path or a text, one path or several, values as JSON.

use std::path::PathBuf;

use pyo3::prelude::*;
use savoir_package::skill_file;
use savoir_skill::{
    Diagnostic, Dialect, Folder, Reading, Source, SourceError, Span, read, read_as,
};
use serde::Serialize;
use serde_json::Value;

use crate::{diagnostic::PyDiagnostic, errors::Failure};

/// One path or several.
#[derive(Debug, FromPyObject)]
pub(crate) enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl Paths {
    pub(crate) fn into_vec(self) -> Vec<PathBuf> {
        match self {
            Self::One(path) => vec![path],
            Self::Many(paths) => paths,
        }
    }
}

/// The dialect of a name.
pub(crate) fn dialect(name: Option<&str>) -> Result<Option<Dialect>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let found = Dialect::ALL.into_iter().find(|dialect| dialect.id() == name);
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.id()).collect();
        Failure::new("WrongCallError", "unknown-dialect", format!("there is no dialect `{name}`"))
            .hints([format!("use one of {}", known.join(", "))])
    })
}

/// A skill that a function works on: a file with its folder, or a text.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) path: Option<PathBuf>,
    pub(crate) folder: Option<Folder>,
    pub(crate) source: Source,
}

impl Subject {
    /// Reads the file at a path, or takes a text.
    pub(crate) fn open(path: Option<PathBuf>, text: Option<String>) -> Result<Self, Failure> {
        match (path, text) {
            (Some(path), None) => Self::from_path(&path),
            (None, Some(text)) => {
                let source = Source::from_bytes(text.into_bytes())
                    .map_err(|error| Failure::of_source("the text", &source_problem(&error)))?;
                Ok(Self { path: None, folder: None, source })
            }
            _ => Err(wrong_subject()),
        }
    }

    fn from_path(path: &std::path::Path) -> Result<Self, Failure> {
        let file = skill_file::find(path)
            .map_err(|error| Failure::unreadable(&error).hints([error.hint()]))?;
        let source = skill_file::source(&file, skill_file::origin_of(&file))
            .map_err(|problem| Failure::of_source(&file.display().to_string(), &problem))?;
        Ok(Self { folder: skill_file::folder_of(&file), source, path: Some(file) })
    }

    /// The path as it is shown in findings.
    pub(crate) fn shown(&self) -> Option<String> {
        self.path.as_ref().map(|path| path.to_string_lossy().into_owned())
    }

    /// Reads the skill, even one that cannot be used.
    pub(crate) fn read(self, dialect: Option<Dialect>) -> LoadedSkill {
        let reading = match dialect {
            Some(dialect) => read_as(self.source, dialect, self.folder.as_ref()),
            None => read(self.source, self.folder.as_ref()),
        };
        LoadedSkill { path: self.path, folder: self.folder, reading }
    }
}

/// A skill that was read.
#[derive(Debug)]
pub(crate) struct LoadedSkill {
    pub(crate) path: Option<PathBuf>,
    pub(crate) folder: Option<Folder>,
    pub(crate) reading: Reading,
}

impl LoadedSkill {
    /// What is wrong with a skill, as a failure.
    pub(crate) fn failure(&self, message: impl std::fmt::Display) -> Failure {
        Failure::invalid(message, self.diagnostics())
    }

    pub(crate) fn diagnostics(&self) -> Vec<PyDiagnostic> {
        let shown = self.path.as_ref().map(|path| path.to_string_lossy());
        let found = self.reading.diagnostics.clone();
        PyDiagnostic::all(shown.as_deref(), self.reading.document.source(), found)
    }

    /// Rejects a skill that even a lenient reader of its dialect cannot use.
    pub(crate) fn require_usable(self) -> Result<Self, Failure> {
        if self.reading.is_usable() {
            return Ok(self);
        }
        let name = self.path.as_ref().map_or("the text".into(), |path| path.to_string_lossy());
        let why = self.reading.error().map_or("it cannot be used", |found| &found.message);
        Err(self.failure(format!("{name}: {why}")))
    }
}

pub(crate) fn wrong_subject() -> Failure {
    let message = "pass either a path or text=…, and not both";
    Failure::new("WrongCallError", "wrong-call", message)
}

/// The finding about a text that cannot be read.
pub(crate) fn source_problem(error: &SourceError) -> Diagnostic {
    Diagnostic::error(error.code(), Span::default(), error.to_string()).help(error.help())
}

/// A value as an object of Python.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    py.import("json")?.call_method1("loads", (text,))
}

/// An object of Python as JSON.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let text = value.py().import("json")?.call_method1("dumps", (value,))?;
    let text: String = text.extract()?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::new("WrongCallError", "invalid-json", error).raise(value.py()))
}
