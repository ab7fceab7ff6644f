//! Checks the evaluation files of a skill, for `savoir check` and editors.

use savoir_eval::formats::{self, EvalFile};
use savoir_skill::{Diagnostic, Folder, Severity};

/// The evaluation files of a skill that have mistakes. They are warnings, because no agent reads
/// these files.
pub(crate) fn find_invalid_eval_files(folder: &Folder, skill: &str) -> Vec<EvalFile> {
    let as_warnings = |mut file: EvalFile| {
        file.diagnostics.retain(Diagnostic::is_error);
        file.diagnostics.iter_mut().for_each(|found| found.severity = Severity::Warning);
        file
    };
    let files = formats::read(folder, skill).files.into_iter().map(as_warnings);
    files.filter(|file| !file.diagnostics.is_empty()).collect()
}
