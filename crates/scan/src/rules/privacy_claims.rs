//! Rules about skills that break their own promise to keep data local.

use crate::{Confidence, Severity};
use crate::{
    action::{Action, Taint},
    context::{Context, FindingDraft},
    fragment::Role,
};

use super::exfiltration::is_unknown_host;

/// Promises that user data stays local.
const PROMISES: [&str; 26] = [
    "never leave your",
    "never leaves your",
    "never leave this",
    "never leaves this",
    "never leave the machine",
    "never leaves the machine",
    "don't leave your",
    "doesn't leave your",
    "does not leave your",
    "do not leave your",
    "leaves your machine",
    "leaves your computer",
    "leaves the machine",
    "stays on your",
    "stay on your",
    "stays on this machine",
    "nothing is uploaded",
    "nothing is sent",
    "nothing leaves",
    "no data is sent",
    "no data leaves",
    "never uploaded",
    "not uploaded",
    "without uploading",
    "no uploads",
    "processed on the local machine",
];

/// Short promises, which count only in the description.
const SHORT_PROMISES: [&str; 8] = [
    "runs locally", "run locally", "processed locally", "files locally", "on your device",
    "on your own machine", "on your machine", "local-only",
];

/// Whether the skill promises that user data stays on the machine.
pub(super) fn promises_local_data(context: &Context<'_>) -> bool {
    let Some(reading) = context.reading.as_ref() else { return false };
    let description = reading.skill.description.to_lowercase();
    if SHORT_PROMISES.iter().chain(&PROMISES).any(|promise| description.contains(promise)) {
        return true;
    }
    let own = context.fragments.iter().filter(|analyzed| {
        analyzed.fragment.role == Role::Instructions
            && analyzed.fragment.depth == 0
            && !analyzed.fragment.is_shown_in_document
    });
    own.map(|analyzed| analyzed.fragment.text.to_lowercase())
        .any(|text| PROMISES.iter().any(|promise| text.contains(promise)))
}

/// Returns a finding if the action sends files. A request without files does not break the promise.
pub(super) fn breaks_promise(action: &Action) -> Option<FindingDraft> {
    let Action::Connects { to, sends, .. } = action else { return None };
    let carries =
        matches!(sends, Taint { read: true, .. }) || sends.files || sends.private.is_some();
    (carries && is_unknown_host(to)).then(|| {
        let message = "the skill claims that no data leaves the machine, but the code sends files";
        FindingDraft::new(Severity::High, Confidence::Medium, message)
    })
}
