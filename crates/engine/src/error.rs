//! Defines [`RunError`]: why a tool was not run, with a stable code and a hint.

use std::{borrow::Cow, fmt};

use savoir_sandbox::{ProgramFilesError, SandboxError};
use savoir_skill::command::InterpolateError;

use crate::{
    call::CallError,
    grant::{ProgramError, Refusal},
    loaded_skill::LoadSkillError,
    requirements::RequirementError,
};

/// The kind of a failure, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is wrong: parameters, names, files.
    Call,
    /// The rules do not allow it.
    Refused,
    /// The tool cannot be started on this machine, or is damaged.
    CannotStart,
}

/// Why a tool was not run. No code of the tool has been executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    pub fault: Fault,
    /// A stable name.
    pub code: Cow<'static, str>,
    /// In words.
    pub message: String,
    /// How to solve the problem.
    pub hint: Option<String>,
}

impl RunError {
    /// The call is wrong.
    pub fn call(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(Fault::Call, code, message)
    }

    /// The rules do not allow it.
    pub fn refused(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(Fault::Refused, code, message)
    }

    /// The tool cannot be started on this machine, or is damaged.
    pub fn cannot_start(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(Fault::CannotStart, code, message)
    }

    fn new(fault: Fault, code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self { fault, code: code.into(), message: message.to_string(), hint: None }
    }

    /// Adds what can be done about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RunError {}

impl From<Refusal> for RunError {
    fn from(refusal: Refusal) -> Self {
        Self::refused("permission-not-enforceable", &refusal).with_hint(refusal.hint)
    }
}

impl From<LoadSkillError> for RunError {
    fn from(error: LoadSkillError) -> Self {
        use savoir_package::TreeError;

        let new = |fault| Self::new(fault, error.code(), &error);
        match &error {
            LoadSkillError::Unreadable { .. }
            | LoadSkillError::History { .. }
            | LoadSkillError::TooLarge { .. }
            | LoadSkillError::Unfit { error: TreeError::Io { .. }, .. } => new(Fault::Call),
            LoadSkillError::Changed { .. } => new(Fault::Refused)
                .with_hint("the skill changed while it was being checked; run the command again"),
            // As in `savoir verify`: the signature cannot be checked.
            LoadSkillError::Unfit { .. } => new(Fault::CannotStart).with_hint(
                "a skill has files with plain paths, and no links that lead out of its folder; \
                 without its signature it is experimental",
            ),
            LoadSkillError::Signature { error, .. } if error.is_undecided() => {
                new(Fault::CannotStart)
            }
            LoadSkillError::Signature { path, .. } => new(Fault::Refused)
                .with_hint(format!("savoir verify {} shows what differs", path.display())),
        }
    }
}

impl From<ProgramError> for RunError {
    fn from(error: ProgramError) -> Self {
        let hint = match &error {
            ProgramError::NotFound(name) => missing_program_hint(name),
            ProgramError::NotExecutable { path, .. } | ProgramError::NotAProgram(path)
                if path.is_dir() =>
            {
                "name a file in this folder".into()
            }
            ProgramError::NotExecutable { path, .. } => format!("chmod +x {}", path.display()),
            ProgramError::NotAProgram(_) => "the file is not a program; name another one".into(),
            ProgramError::Outside(name) if name.starts_with('/') => {
                "copy it into the skill's folder, or into a folder of PATH that only you can change"
                    .into()
            }
            ProgramError::Outside(_) | ProgramError::History(_) => {
                "a relative program must be a file of the skill's folder".into()
            }
            ProgramError::Unreadable { .. } => "make it readable".into(),
        };
        Self::cannot_start(error.code(), &error).with_hint(hint)
    }
}

/// A relative path is a file of the skill, which cannot be installed.
fn missing_program_hint(name: &str) -> String {
    let path = name.strip_prefix("./").unwrap_or(name);
    let is_environment = [".venv/bin/", "venv/bin/"].iter().any(|start| path.starts_with(start));
    match path.rsplit('/').next() {
        Some(program) if is_environment => format!(
            "the skill has no such file; to use the Python environment of your project, write \
             `{program}` in the command, and run it with: --allow python-env"
        ),
        _ if name.contains('/') && !name.starts_with('/') => {
            "the skill has no such file: add it to the folder of the skill, or correct the command"
                .to_owned()
        }
        _ => format!("install {name}, or correct the command"),
    }
}

impl From<InterpolateError> for RunError {
    fn from(error: InterpolateError) -> Self {
        let failed = Self::call(error.code(), &error);
        match &error {
            InterpolateError::LooksLikeOption { parameter } => failed.with_hint(format!(
                "pass another value, such as ./-x for a file; or let the command of the skill say \
                 that options end there: write `-- {{{{{parameter}}}}}`"
            )),
            _ => failed,
        }
    }
}

impl From<CallError> for RunError {
    fn from(error: CallError) -> Self {
        Self::call(error.code(), &error).with_hint(error.hint())
    }
}

impl From<RequirementError> for RunError {
    fn from(error: RequirementError) -> Self {
        let failed = Self::cannot_start(error.code(), &error);
        match &error {
            RequirementError::MissingVariables(names) => {
                let first = names.first().map_or("NAME", String::as_str);
                failed.with_hint(format!(
                    "store it: savoir secret set {first}; a variable {first} of your environment \
                     works, too"
                ))
            }
            RequirementError::MissingPrograms(_) => failed.with_hint("install them"),
            RequirementError::NoneOfPrograms(_) => failed.with_hint("install one of them"),
            RequirementError::OtherSystem { .. } => failed,
        }
    }
}

impl From<SandboxError> for RunError {
    fn from(error: SandboxError) -> Self {
        match &error {
            SandboxError::Unsupported(_) => Self::refused("sandbox-unavailable", &error)
                .with_hint("savoir doctor shows which sandbox features this machine supports"),
            SandboxError::Link { .. } | SandboxError::BadPath { .. } => {
                Self::refused("path-refused", &error)
            }
            SandboxError::Program(ProgramFilesError::NotExecutable { .. }) => {
                Self::cannot_start("permission-denied", &error).with_hint("make it executable")
            }
            SandboxError::Program(ProgramFilesError::NotFound { .. }) => {
                Self::cannot_start("command-not-found", &error)
                    .with_hint("install it, or correct the skill")
            }
            SandboxError::Program(_) | SandboxError::Execute { .. } => {
                Self::cannot_start("program-not-runnable", &error)
            }
            SandboxError::Nul { .. } => Self::call("invalid-parameter", &error),
            _ => Self::cannot_start("sandbox-failed", &error)
                .with_hint("savoir doctor shows which sandbox features this machine supports"),
        }
    }
}
