//! Which exit code a failure of the shelf gets.

use savoir_package::{ShelfError, policy::PolicyRefusal, shelf::ReadyError, source::SourceError};

use crate::error::CommandError;

impl From<ShelfError> for CommandError {
    fn from(error: ShelfError) -> Self {
        let failed = match &error {
            ShelfError::Growth(_) | ShelfError::Integrity { .. } | ShelfError::OtherName { .. } => {
                Self::refused(&error)
            }
            ShelfError::Lock(_)
            | ShelfError::File(_)
            | ShelfError::Agent(_)
            | ShelfError::NoFolder { .. }
            | ShelfError::NotInstalled(_) => Self::input(&error),
            _ => Self::findings(&error),
        };
        let failed = failed.named(error.code());
        match &error {
            ShelfError::Resolve(why) => why.hints().iter().fold(failed, Self::hint),
            ShelfError::NotInstalled(_) => {
                failed.hint("`savoir list --origin savoir` shows all that are")
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
        error.hint().into_iter().fold(failed.named(error.code()), Self::hint)
    }
}

impl From<PolicyRefusal> for CommandError {
    fn from(refusal: PolicyRefusal) -> Self {
        Self::refused(&refusal).named(refusal.code()).hint(refusal.hint)
    }
}

impl From<ReadyError> for CommandError {
    fn from(error: ReadyError) -> Self {
        let failed = match &error {
            ReadyError::Card { .. } => Self::findings(&error)
                .hint("`savoir check` shows more, and `savoir check --fix` fixes what it can"),
            ReadyError::Signature { .. } => Self::refused(&error)
                .hint("do not use these files; ask the publisher, or get them elsewhere"),
        };
        failed.named(error.code())
    }
}
