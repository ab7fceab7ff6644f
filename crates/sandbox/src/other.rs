//! Replaces the `linux` module on systems without a sandbox: everything compiles, but nothing can
//! be started.

use std::{convert::Infallible, fs::File, io, path::Path, time::Duration};

use rustls_pki_types::CertificateDer;

use crate::{
    error::SandboxError,
    outcome::{Enforcement, Outcome},
    policy::{Policy, TerminalSize},
    program_files::ProgramFiles,
    support::{FeatureStatus, MissingFeature, RunnableTools, SandboxSupport},
};

/// Reports that this system supports no sandbox feature.
pub(crate) fn detect_support() -> SandboxSupport {
    let absent = FeatureStatus::unavailable(MissingFeature::System.to_string(), "");
    SandboxSupport {
        sandbox: absent.clone(),
        landlock: None,
        proxy: absent.clone(),
        watch: absent,
        control_groups: false,
    }
}

/// Returns that no tool may run.
pub(crate) fn runnable_tools(_support: &SandboxSupport) -> RunnableTools {
    RunnableTools::None
}

/// Returns `None`: this system has no Landlock.
pub(crate) fn landlock_version() -> Option<u32> {
    None
}

/// One of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A policy that is ready to run programs. It cannot be created on this system.
#[derive(Debug)]
pub struct Sandbox(Infallible);

/// A running program. It cannot exist on this system.
#[derive(Debug)]
pub struct Process(Infallible);

/// Ends a program. It cannot exist on this system.
#[derive(Debug)]
pub struct KillHandle(Infallible);

impl Sandbox {
    /// Returns an error: there is no sandbox for this system.
    pub fn new(_policy: Policy) -> Result<Self, SandboxError> {
        Err(MissingFeature::System.into())
    }

    /// Adds certificate authorities that the proxy trusts besides those of the system.
    #[must_use]
    pub fn with_trusted_certificates(self, _certificates: Vec<CertificateDer<'static>>) -> Self {
        self
    }

    /// Runs programs on a terminal of their own.
    #[must_use]
    pub fn with_terminal(self, _size: TerminalSize) -> Self {
        self
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        match self.0 {}
    }

    /// Returns the files that the programs of the policy need to start.
    pub fn program_files(&self) -> &ProgramFiles {
        match self.0 {}
    }

    /// Starts a program.
    pub fn start(&self, _program: &Path, _arguments: &[String]) -> Result<Process, SandboxError> {
        match self.0 {}
    }
}

impl Process {
    /// Takes the standard input, once.
    pub fn take_stdin(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// Takes the standard output, once.
    pub fn take_stdout(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// Takes the standard error, once.
    pub fn take_stderr(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// Returns the active protections.
    pub fn enforcement(&self) -> &Enforcement {
        match self.0 {}
    }

    /// Writes `input` to the program and passes on its output.
    pub fn communicate(self, _input: &[u8], _sink: impl FnMut(Stream, &[u8])) -> Outcome {
        match self.0 {}
    }

    /// Ends the program.
    pub fn stop(self) -> Outcome {
        match self.0 {}
    }

    /// Waits until the program has ended, or at most this long.
    pub fn wait_timeout(self, _most: Duration) -> Outcome {
        match self.0 {}
    }

    /// Returns the program's terminal, if it has one.
    pub fn terminal(&self) -> io::Result<Option<File>> {
        match self.0 {}
    }

    /// Returns a handle that can end the program from another thread.
    pub fn kill_handle(&self) -> io::Result<KillHandle> {
        match self.0 {}
    }
}

impl KillHandle {
    /// Kills the program when this process receives a signal to end.
    pub fn kill_on_interruption(&self) {
        match self.0 {}
    }

    /// Kills the program immediately.
    pub fn kill(&self) {
        match self.0 {}
    }
}
