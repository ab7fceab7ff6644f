//! Reads which packages the scripts of a skill need, and installs them.
//!
//! - [`inline`] reads the PEP 723 metadata in a script, [`requirements_file`] a `requirements.txt`
//!   and [`npm`] a `package.json`. All three accept only packages of the index: a skill cannot
//!   choose another source of code.
//! - [`node`] installs npm packages; [`python::environment`](crate::python::environment) installs
//!   Python packages.
//! - [`snapshot`] detects changed files, [`versions`] caches the versions of interpreters.
//! - [`host_path`] finds the programs that install packages.

pub(crate) mod host_path;
pub(crate) mod inline;
pub(crate) mod node;
pub(crate) mod npm;
pub(crate) mod requirements_file;
pub(crate) mod snapshot;
pub(crate) mod versions;
