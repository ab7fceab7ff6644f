//! Signed evaluations that this machine knows: in the folder of a skill, and in the data folder by the
//! digest of the skill's files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use savoir_package::{
    limits::MAX_EVALUATIONS,
    registry::wire::Attestations,
    trust::{
        TrustStore,
        evaluation::{self, EvaluationOutcome, FoundEvaluation, SignedEvaluation},
    },
};
use serde_json::Value;

use crate::write;

/// The folder in the data folder.
const FOLDER: &str = "attestations";

/// The folder of the evaluations of files with this digest.
fn folder_of(integrity: &str) -> Option<PathBuf> {
    let digest = evaluation::hex_digest(integrity)?;
    Some(Home::from_environment().ok()?.data().join(FOLDER).join(digest))
}

/// Stores a signed evaluation of files with this digest. It is only a copy, so errors are ignored.
pub(crate) fn store(integrity: &str, signed: &Value) {
    let Some(folder) = folder_of(integrity) else { return };
    let text = signed.to_string() + "\n";
    if fs::create_dir_all(&folder).is_ok() {
        let _ = write::replace(&folder.join(evaluation::file_name(signed)), &text);
    }
}

/// Stores the evaluations that a registry has of files with this digest. Those of other keys than
/// trusted ones are only stored as long as there are few.
pub(crate) fn store_published(integrity: &str, found: &Attestations, trust: &TrustStore) {
    let stored = folder_of(integrity).and_then(|folder| fs::read_dir(folder).ok());
    let mut room = MAX_EVALUATIONS.saturating_sub(stored.map_or(0, Iterator::count));
    for one in &found.items {
        let outcome = evaluation::check(one.statement.to_string().as_bytes(), integrity, trust);
        let EvaluationOutcome::Current(signed) = outcome else { continue };
        if signed.signed.trusted.is_some() || room > 0 {
            store(integrity, &one.statement);
            room = room.saturating_sub(1);
        }
    }
}

/// The evaluations of a skill: in its folder, if it has one, and in the data folder.
pub(crate) fn find(
    folder: Option<&Path>,
    integrity: &str,
    trust: &TrustStore,
) -> Vec<FoundEvaluation> {
    let own = folder.map(|folder| folder.join(evaluation::FOLDER));
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for folder in own.into_iter().chain(folder_of(integrity)) {
        let mut some = evaluation::check_all(&folder, integrity, trust);
        some.retain(|one| one.path.file_name().is_none_or(|name| known.insert(name.to_owned())));
        found.append(&mut some);
    }
    found
}

/// Those of them that are about the skill as it is now.
pub(crate) fn current(
    folder: Option<&Path>,
    integrity: &str,
    trust: &TrustStore,
) -> Vec<SignedEvaluation> {
    let found = find(folder, integrity, trust).into_iter();
    let current = found.filter_map(|one| match one.outcome {
        EvaluationOutcome::Current(signed) => Some(*signed),
        EvaluationOutcome::OtherFiles | EvaluationOutcome::Broken { .. } => None,
    });
    current.collect()
}

/// The uplift with its interval, in percentage points.
pub(crate) fn uplift_text(evaluation: &evaluation::Evaluation) -> String {
    match evaluation.uplift {
        Some(range) => format!("{:+.1} [{:+.1}, {:+.1}]", range.mean, range.lower, range.upper),
        None => "not measured".to_owned(),
    }
}
