//! The error of a command: a kind that decides the exit code, a message, and hints.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write as _},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use savoir_engine::{Fault, RunError, StoreError};
#[cfg(feature = "server")]
use savoir_registry::backup::BackupError;
use serde_json::{Map, Value, json};

use crate::output;

/// Which exit code a failure gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Problems were found, or a run failed.
    Findings,
    /// Wrong usage, or input that cannot be read.
    Input,
    /// A policy or the user refused.
    Refused,
    /// A program that was run exited with this code.
    Exited(u8),
    /// Standard output was closed (`| head`), which is not an error.
    Closed,
}

#[derive(Clone, Debug)]
pub(crate) struct CommandError {
    kind: ErrorKind,
    code: Option<Cow<'static, str>>,
    message: String,
    hints: Vec<String>,
    /// Boxed, because few errors have details.
    details: Option<Box<Map<String, Value>>>,
}

impl CommandError {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        let (message, hints) = (message.to_string(), Vec::new());
        Self { kind: ErrorKind::Input, code: None, message, hints, details: None }
    }

    pub(crate) fn findings(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Findings, ..Self::input(message) }
    }

    /// Creates the error for a feature that a lean build does not have.
    pub(crate) fn not_built_in(what: &str) -> Self {
        Self::input(format!("this savoir is a lean build, without {what}"))
            .with_code("not-built-in")
            .hint("install the full program: cargo install --path crates/savoir --profile quick")
    }

    /// Changes the exit code, for commands whose exit codes are verdicts.
    pub(crate) fn without_verdict(self) -> Self {
        Self { kind: ErrorKind::Input, ..self }
    }

    pub(crate) fn refused(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Refused, ..Self::input(message) }
    }

    /// A program exited with a code, which becomes the exit code of the command.
    pub(crate) fn exited(code: u8, message: impl fmt::Display) -> Self {
        // The message comes from a tool, so it is indented: no line can imitate one of ours.
        let message = message.to_string().replace('\n', "\n  ");
        Self { kind: ErrorKind::Exited(code), ..Self::input(message) }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Replaces the word SKILL in commands of hints by the skill that the user named.
    #[must_use]
    pub(crate) fn naming_skill(mut self, skill: &str) -> Self {
        for hint in &mut self.hints {
            for command in ["savoir approve", "savoir approve --revoke"] {
                *hint = hint.replace(&format!("{command} SKILL"), &format!("{command} {skill}"));
            }
        }
        self
    }

    /// Adds a field to the JSON.
    #[must_use]
    pub(crate) fn detail(mut self, key: &str, value: Value) -> Self {
        self.details.get_or_insert_default().insert(key.to_owned(), value);
        self
    }

    /// Sets the error code, which programs can rely on.
    #[must_use]
    pub(crate) fn with_code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The error code; `None` if standard output was closed.
    pub(crate) fn code(&self) -> Option<Cow<'static, str>> {
        let of_kind = match self.kind {
            ErrorKind::Findings => "skill-unusable",
            ErrorKind::Exited(_) => "command-failed",
            ErrorKind::Input => "wrong-call",
            ErrorKind::Refused => "not-approved",
            ErrorKind::Closed => return None,
        };
        Some(self.code.clone().unwrap_or(Cow::Borrowed(of_kind)))
    }

    /// The error as JSON; `None` if standard output was closed.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code()?.into());
        error.insert("message".to_owned(), self.to_string().into());
        error.insert("hints".to_owned(), self.hints.clone().into());
        error.extend(self.details.as_deref().cloned().unwrap_or_default());
        Some(json!({ "error": error }))
    }

    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    pub(crate) fn report(&self) -> ExitCode {
        if self.kind == ErrorKind::Closed {
            return ExitCode::SUCCESS;
        }
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
        // Ignored: standard error may be closed, too.
        let _ = writeln!(err, "{red}error{red:#}: {}", output::sanitize(&self.message));
        for hint in &self.hints {
            let _ = writeln!(err, "{cyan}hint{cyan:#}: {}", output::sanitize(hint));
        }
        ExitCode::from(self.exit_code())
    }

    /// Whether a policy or the user refused.
    pub(crate) fn is_refusal(&self) -> bool {
        self.kind == ErrorKind::Refused
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Findings => 1,
            ErrorKind::Input => 2,
            ErrorKind::Refused => 3,
            ErrorKind::Exited(code) => code,
            ErrorKind::Closed => 0,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for CommandError {
    /// For standard output: errors of files are converted where the path is known.
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => ErrorKind::Closed,
            _ => ErrorKind::Input,
        };
        Self { kind, ..Self::input(format!("the output cannot be written: {error}")) }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::input(&error).hint(error.help())
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let RunError { fault, code, message, hint } = error;
        let failed = match fault {
            Fault::Call => Self::input(message),
            Fault::Refused => Self::refused(message),
            Fault::CannotStart => Self::findings(message),
        };
        hint.into_iter().fold(failed.with_code(code), Self::hint)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

#[cfg(feature = "server")]
impl From<BackupError> for CommandError {
    fn from(error: BackupError) -> Self {
        Self::findings(&error).with_code(error.code()).hint(error.hint())
    }
}
