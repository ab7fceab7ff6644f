//! What a command fails with: a kind that picks the exit code, a sentence, and hints.

use std::{fmt, process::ExitCode};

use anstream::eprintln;
use anstyle::{AnsiColor, Style};

/// Which exit code a failure gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something was found, or a run failed.
    Findings,
    /// Wrong usage, or input that cannot be read.
    Input,
}

/// A failure with hints.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: Kind,
    message: String,
    hints: Vec<String>,
}

impl CommandError {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Input, message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn findings(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Findings, message: message.to_string(), hints: Vec::new() }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    pub(crate) fn report(&self) -> ExitCode {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        eprintln!("{red}error{red:#}: {}", self.message);
        for hint in &self.hints {
            eprintln!("{cyan}help{cyan:#}: {hint}");
        }
        ExitCode::from(match self.kind {
            Kind::Findings => 1,
            Kind::Input => 2,
        })
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<std::io::Error> for CommandError {
    /// Files have their own errors with a path; what is left is standard output.
    fn from(error: std::io::Error) -> Self {
        Self::input(format!("the output cannot be written: {error}"))
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::input(error)
    }
}
