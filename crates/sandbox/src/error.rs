//! Defines [`SandboxError`]: why a program was not started.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::{program_files::ProgramFilesError, support::MissingFeature};

/// Why a program was not started. The program has not run at all.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// This machine lacks a feature that the sandbox needs.
    #[error("this machine does not support the sandbox: {0}")]
    Unsupported(#[from] MissingFeature),
    /// A path of the policy is not absolute or contains `..`.
    #[error("{} cannot be granted: the path must be absolute and without `..`", path.display())]
    BadPath {
        /// The path as passed.
        path: PathBuf,
    },
    /// A path of the policy contains a symbolic link.
    #[error("{} cannot be granted: {} is a link, grant its target instead", path.display(), link.display())]
    Link {
        /// The path as passed.
        path: PathBuf,
        /// The path of the link.
        link: PathBuf,
    },
    /// A writable path does not exist.
    #[error("{} cannot be granted for writing: it does not exist", path.display())]
    MissingPath {
        /// The path as passed.
        path: PathBuf,
    },
    /// The working directory is not visible.
    #[error("the working directory {} is not among the granted paths", path.display())]
    HiddenDirectory {
        /// The path as passed.
        path: PathBuf,
    },
    /// The files that a program needs cannot be found.
    #[error(transparent)]
    Program(#[from] ProgramFilesError),
    /// A text contains a NUL character.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The name of an environment variable is invalid.
    #[error("`{name}` cannot be the name of an environment variable")]
    BadVariable {
        /// The name as passed.
        name: String,
    },
    /// A step of building the sandbox failed.
    #[error("the sandbox cannot be built: {step}: {source}")]
    Build {
        /// The step that failed.
        step: String,
        /// The system's error.
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("{} cannot be executed: {source}", program.display())]
    Execute {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The proxy could not be started.
    #[error("the proxy cannot be started: {0}")]
    Proxy(String),
}

impl SandboxError {
    pub(crate) fn build(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Build { step: step.into(), source: source.into() }
    }
}
