//! Tests Python tools with the interpreter of this machine.

mod environment;
mod host;

use std::{
    env,
    path::{Path, PathBuf},
};

use savoir_engine::python::{environment::variables, version::python_version};

/// The interpreter, or `None` with a note when there is none.
pub(crate) fn python() -> Option<PathBuf> {
    let python = Path::new("python3");
    if python_version(python, &variables(env::vars_os())).is_ok() {
        return Some(python.to_owned());
    }
    eprintln!("note: there is no python3, so this test checks nothing here");
    None
}
