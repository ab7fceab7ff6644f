//! Answers to calls of skill tools: results, left files and errors.

use savoir_engine::{
    RunError,
    approval::{ApprovalQuestion, Request, Trust, shell_word},
    run::FinishedRun,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    consent::Consent,
    toolset::ToolAnswer,
    workspaces::{LeftFile, Workspaces},
};

/// Maximum number of left files that the answer to a model lists.
const MAX_LISTED_FILES: usize = 100;

/// The files that a run left in its folder, or why they are lost.
pub(super) type LeftFiles = Result<Vec<LeftFile>, String>;

/// Stores the files that a run left in its folder.
pub(super) fn store_left_files(
    workspaces: &Workspaces,
    folder: TempDir,
    finished: &Result<FinishedRun, RunError>,
) -> LeftFiles {
    let Ok(finished) = finished else { return Ok(Vec::new()) };
    workspaces.store(folder, &finished.record.id).map_err(|error| {
        tracing::warn!(%error, "files left by a tool could not be stored");
        error.to_string()
    })
}

/// The answer to a model: the envelope of the run, and the files that it left.
pub(super) fn answer(finished: &FinishedRun, left: &LeftFiles) -> ToolAnswer {
    let envelope = &finished.envelope;
    let mut data = serde_json::to_value(envelope).unwrap_or_else(|_| json!({"success": false}));
    match left {
        Ok(left) if left.is_empty() => {}
        Ok(left) => {
            data["run"] = json!(finished.record.id);
            data["files"] = json!(left.iter().take(MAX_LISTED_FILES).collect::<Vec<_>>());
        }
        Err(why) => {
            data["files_lost"] = json!(format!("files left by the run could not be stored: {why}"));
        }
    }
    if !finished.outcome.moved_files.is_empty() {
        let moved = finished.outcome.moved_files.iter().map(ToString::to_string);
        data["put_aside"] = json!(moved.take(MAX_LISTED_FILES).collect::<Vec<_>>());
    }
    let failure = (!envelope.success).then(|| "tool-failed".to_owned());
    let access = Some(finished.record.access_summary()).filter(|access| !access.is_empty());
    ToolAnswer { failure, access, ..ToolAnswer::data(data) }
}

pub(super) fn error_answer(error: &RunError) -> ToolAnswer {
    let hint = error.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    ToolAnswer::failed(&error.code, format!("{}{hint}", error.message))
}

/// The error that a model gets when the user did not approve.
pub(super) fn rejection_error(question: &ApprovalQuestion, consent: Consent) -> RunError {
    let skill = &question.request.skill;
    if consent == Consent::Declined {
        let message = format!("the user declined to run this tool of `{skill}`");
        return RunError::refused("declined", message)
            .with_hint("do without it, or ask the user what they want instead");
    }
    let reasons = question.reasons.join("; ");
    let (code, why) = match consent {
        Consent::Unanswered => ("declined", "the question was not answered"),
        _ => ("approval-needed", "there is no user to ask"),
    };
    let message = format!("running `{skill}` needs approval, but {why}: {reasons}");
    let path = shell_word(&question.request.path.display().to_string());
    let Request { always_ask, trust, .. } = question.request;
    let hint = if always_ask || trust == Trust::Untrusted {
        // For these skills, an approval is never stored, so the hint does not suggest one.
        format!(
            "this skill needs approval for every run: ask the user to run it in a terminal: \
             savoir run {path}"
        )
    } else {
        format!("ask the user to run this in a terminal: savoir approve {path}")
    };
    RunError::refused(code, message).with_hint(hint)
}
