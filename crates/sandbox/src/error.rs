//! Why a program was not started.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::{closure::ClosureError, support::Missing};

/// Why a program was not started. Nothing of it has run.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// This machine cannot hold the policy.
    #[error("this machine cannot hold a sandbox: {0}")]
    Unsupported(#[from] Missing),
    /// A path of the policy is not one.
    #[error("{} cannot be granted: the path must be absolute and without `..`", path.display())]
    BadPath {
        /// As given.
        path: PathBuf,
    },
    /// A path of the policy leads over a link.
    #[error("{} cannot be granted: {} is a link, grant its target instead", path.display(), link.display())]
    Link {
        /// As given.
        path: PathBuf,
        /// Where the link is.
        link: PathBuf,
    },
    /// A writable path does not exist.
    #[error("{} cannot be granted for writing: it does not exist", path.display())]
    MissingPath {
        /// As given.
        path: PathBuf,
    },
    /// The working directory is not visible.
    #[error("the working directory {} is not among the granted paths", path.display())]
    HiddenDirectory {
        /// As given.
        path: PathBuf,
    },
    /// A program cannot be made visible.
    #[error(transparent)]
    Program(#[from] ClosureError),
    /// A text contains NUL.
    #[error("{what} contains a NUL character")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// An environment variable cannot be passed.
    #[error("`{name}` cannot be the name of an environment variable")]
    BadVariable {
        /// As given.
        name: String,
    },
    /// A step of building the sandbox failed.
    #[error("the sandbox cannot be built: {step}: {source}")]
    Build {
        /// What was being done.
        step: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("{} cannot be executed: {source}", program.display())]
    Execute {
        /// Which program.
        program: PathBuf,
        /// What the system said.
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
