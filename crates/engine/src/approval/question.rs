//! The approval question that is shown to the user before a run.

use super::{Line, Request, why, words};

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
    pub fn lines(&self) -> Vec<Line> {
        why(&self.reasons, &self.warnings).into_iter().chain(words(&self.request)).collect()
    }
}
