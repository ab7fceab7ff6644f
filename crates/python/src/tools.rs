//! Lists the tools of skills in the formats of model APIs.

use std::path::PathBuf;

use pyo3::prelude::*;
use savoir_engine::manifest::{FoundTools, Manifest};
use serde_json::{Value, json};

use crate::{
    errors::Failure,
    input::{Paths, to_python},
};

/// Whether a skill that cannot be used is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    Refuse,
    Skip,
}

/// The tools of the skills below some paths, as a list in the format of a model API.
#[pyfunction]
#[pyo3(signature = (paths, format="openai", *, skip_invalid=false))]
pub(crate) fn tools<'py>(
    py: Python<'py>,
    paths: Paths,
    format: &str,
    skip_invalid: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let render: fn(&Manifest) -> Value = match format {
        "openai" => Manifest::openai,
        "anthropic" => Manifest::anthropic,
        "mcp" => |manifest| manifest.mcp()["tools"].take(),
        "json" => |manifest| manifest.json()["tools"].take(),
        _ => {
            let message = format!("there is no format `{format}`");
            return Err(Failure::new("WrongCallError", "unknown-format", message)
                .hints(["use openai, anthropic, mcp or json"])
                .raise(py));
        }
    };
    let unusable = if skip_invalid { Unusable::Skip } else { Unusable::Refuse };
    let found = py.detach(|| {
        let found = find(&paths.into_vec(), unusable)?;
        Ok(render(&Manifest::new(&found.skills)))
    });
    to_python(py, &found.map_err(|failure: Failure| failure.raise(py))?)
}

/// As `tools` in the format `json`, with the path of each skill. The package calls it.
#[pyfunction]
pub(crate) fn tool_entries(py: Python<'_>, paths: Paths) -> PyResult<Bound<'_, PyAny>> {
    let found = py.detach(|| {
        let found = find(&paths.into_vec(), Unusable::Refuse)?;
        let mut tools = Manifest::new(&found.skills).json()["tools"].take();
        for tool in tools.as_array_mut().into_iter().flatten() {
            let file = tool["skill"].as_str().and_then(|name| found.files.get(name));
            tool["path"] = json!(file.map(|file| file.to_string_lossy()));
        }
        Ok(tools)
    });
    to_python(py, &found.map_err(|failure: Failure| failure.raise(py))?)
}

fn find(paths: &[PathBuf], unusable: Unusable) -> Result<FoundTools, Failure> {
    let found = FoundTools::find_below(paths);
    match found.problems.first() {
        Some(problem) if found.unreadable => Err(Failure::unreadable(problem)),
        Some(problem) if unusable == Unusable::Refuse => Err(Failure::invalid(problem, Vec::new())
            .hints(["list all problems with check(), or pass skip_invalid=True"])),
        _ => Ok(found),
    }
}
