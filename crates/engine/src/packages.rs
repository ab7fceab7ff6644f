//! Packages that the scripts of a skill need: which ones they are, and how they are made ready.
//!
//! - [`inline`] reads the metadata of PEP 723 in a script, [`requirements_file`] a
//!   `requirements.txt` and [`npm`] a `package.json`. All three accept only packages of the index:
//!   a skill cannot choose another place that code comes from.
//! - [`node`] installs npm packages; Python packages are [`python::environment`](crate::python::environment).
//! - [`snapshot`] notices changed files, [`versions`] remembers the versions of interpreters.
//! - [`host_path`] finds the programs that install packages.

pub(crate) mod host_path;
pub(crate) mod inline;
pub(crate) mod node;
pub(crate) mod npm;
pub(crate) mod requirements_file;
pub(crate) mod snapshot;
pub(crate) mod versions;
