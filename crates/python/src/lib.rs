//! The native module `savoir_skills._native` of the Python package `savoir-skills`.
//!
//! Each file wraps one function of the Rust crates. While Rust works, other threads of Python run:
//! every function converts its arguments, releases the interpreter, and converts the result.
//!
//! - `check` checks skills in parallel, and fixes them.
//! - `skill` reads a skill; `convert` converts one, and inserts inputs into its prompt.
//! - `scan` scans a skill; `tools` lists tools in the formats of model APIs.
//! - `diagnostic` is a finding with its position; `input` reads what a caller passed.
//! - `errors` raises the exceptions that `savoir_skills/errors.py` defines.

mod check;
mod convert;
mod diagnostic;
mod errors;
mod input;
mod scan;
mod skill;
mod tools;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::check::{CheckReport, CheckedFile, FixedSkill, check, fix};
    #[pymodule_export]
    use crate::convert::{Conversion, convert, render};
    #[pymodule_export]
    use crate::diagnostic::PyDiagnostic;
    #[pymodule_export]
    use crate::scan::{PyFinding, ScanReport, scan};
    #[pymodule_export]
    use crate::skill::{PySkill, read};
    #[pymodule_export]
    use crate::tools::{tool_entries, tools};

    #[pymodule_init]
    fn add_constants(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use super::PyModuleMethods as _;
        let ids: Vec<&str> =
            savoir_skill::Dialect::ALL.iter().map(|dialect| dialect.id()).collect();
        module.add("DIALECTS", ids)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
