//! Maps errors from installing skills to exit codes and hints.

use savoir_package::{
    InstallFailure, install::CheckError, policy::PolicyRefusal, source::SourceError,
};

use crate::error::CommandError;

impl From<InstallFailure> for CommandError {
    fn from(error: InstallFailure) -> Self {
        let failed = match &error {
            InstallFailure::MoreCapabilities(_)
            | InstallFailure::Integrity { .. }
            | InstallFailure::OtherName { .. } => Self::refused(&error),
            InstallFailure::Lock(_)
            | InstallFailure::File(_)
            | InstallFailure::Agent(_)
            | InstallFailure::NoFolder { .. }
            | InstallFailure::NotInstalled(_) => Self::input(&error),
            _ => Self::findings(&error),
        };
        let failed = failed.with_code(error.code());
        match &error {
            InstallFailure::Resolve(why) => why.hints().iter().fold(failed, Self::hint),
            InstallFailure::NotInstalled(_) => {
                failed.hint("list installed skills: savoir list --origin savoir")
            }
            _ => error.hint().into_iter().fold(failed, Self::hint),
        }
    }
}

impl From<SourceError> for CommandError {
    fn from(error: SourceError) -> Self {
        let failed = match &error {
            SourceError::Text { .. }
            | SourceError::Pasted { .. }
            | SourceError::Ambiguous { .. }
            | SourceError::NoPath(_) => Self::input(&error),
            SourceError::Digest { .. } | SourceError::TagMoved { .. } => Self::refused(&error),
            _ => Self::findings(&error),
        };
        error.hint().into_iter().fold(failed.with_code(error.code()), Self::hint)
    }
}

impl From<PolicyRefusal> for CommandError {
    fn from(refusal: PolicyRefusal) -> Self {
        Self::refused(&refusal).with_code(refusal.code()).hint(refusal.hint)
    }
}

impl From<CheckError> for CommandError {
    fn from(error: CheckError) -> Self {
        let failed = match &error {
            CheckError::SkillSummary { .. } => Self::findings(&error)
                .hint("`savoir check` shows details, and `savoir check --fix` fixes what it can"),
            CheckError::Signature { .. } => Self::refused(&error)
                .hint("do not use these files; ask the publisher, or use another source"),
        };
        failed.with_code(error.code())
    }
}
