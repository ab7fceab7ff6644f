//! Systems without a sandbox: everything compiles, and nothing runs.

use std::{convert::Infallible, fs::File, io, path::Path, time::Duration};

use rustls_pki_types::CertificateDer;

use crate::{
    closure::Closure,
    error::SandboxError,
    outcome::{Enforcement, Outcome},
    policy::{Policy, TerminalSize},
    support::{Missing, Part, Support},
};

/// What this system can hold: nothing.
pub(crate) fn examine() -> Support {
    let absent = Part::absent(Missing::System.to_string(), "");
    Support {
        sandbox: absent.clone(),
        landlock: None,
        proxy: absent.clone(),
        watch: absent,
        groups: false,
    }
}

/// There is no Landlock on this system.
pub(crate) fn landlock_version() -> Option<u32> {
    None
}

/// Which of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A policy that is ready to run programs. There is none on this system.
#[derive(Debug)]
pub struct Sandbox(Infallible);

/// A program that runs. There is none on this system.
#[derive(Debug)]
pub struct Process(Infallible);

/// Ends a program. There is none on this system.
#[derive(Debug)]
pub struct Killer(Infallible);

impl Sandbox {
    /// Refuses: there is no sandbox for this system.
    pub fn new(_policy: Policy) -> Result<Self, SandboxError> {
        Err(Missing::System.into())
    }

    /// Certificates of authorities that the proxy trusts beside those of the system.
    #[must_use]
    pub fn trusting(self, _certificates: Vec<CertificateDer<'static>>) -> Self {
        self
    }

    /// Programs get a terminal of their own.
    #[must_use]
    pub fn on_terminal(self, _size: TerminalSize) -> Self {
        self
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        match self.0 {}
    }

    /// What the programs of the policy need to start.
    pub fn closure(&self) -> &Closure {
        match self.0 {}
    }

    /// Starts a program.
    pub fn start(&self, _program: &Path, _arguments: &[String]) -> Result<Process, SandboxError> {
        match self.0 {}
    }
}

impl Process {
    /// Its standard input, once.
    pub fn take_stdin(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// Its standard output, once.
    pub fn take_stdout(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// Its standard error, once.
    pub fn take_stderr(&mut self) -> Option<File> {
        match self.0 {}
    }

    /// What holds it.
    pub fn enforcement(&self) -> &Enforcement {
        match self.0 {}
    }

    /// Gives it the input and passes on its output.
    pub fn drive(self, _input: &[u8], _sink: impl FnMut(Stream, &[u8])) -> Outcome {
        match self.0 {}
    }

    /// Ends it.
    pub fn stop(self) -> Outcome {
        match self.0 {}
    }

    /// Waits until it has ended by itself, or this long.
    pub fn wait_at_most(self, _most: Duration) -> Outcome {
        match self.0 {}
    }

    /// Its terminal, if it runs on one.
    pub fn terminal(&self) -> io::Result<Option<File>> {
        match self.0 {}
    }

    /// Something that can end it from elsewhere.
    pub fn killer(&self) -> io::Result<Killer> {
        match self.0 {}
    }
}

impl Killer {
    /// Ends it when someone wants this process to end.
    pub fn kill_on_interruption(&self) {
        match self.0 {}
    }

    /// Ends it at once.
    pub fn kill(&self) {
        match self.0 {}
    }
}
