//! Defines the approval question that is shown to the user before a run.

use super::{QuestionLine, Request, question_lines, reason_lines};

/// The question that a person answers before a run.
#[derive(Clone, Debug)]
pub struct ApprovalQuestion {
    /// Everything that the run would get.
    pub request: Request,
    /// Why the question is asked.
    pub reasons: Vec<String>,
    /// Shown before everything else.
    pub warnings: Vec<String>,
}

impl ApprovalQuestion {
    /// The question in lines, of which none can be mistaken for another.
    pub fn lines(&self) -> Vec<QuestionLine> {
        reason_lines(&self.reasons, &self.warnings)
            .into_iter()
            .chain(question_lines(&self.request))
            .collect()
    }
}
