//! Defines the approval question that is shown to the user before a run.

use super::{LineRole, QuestionLine, Request, full_question_lines, question_lines, reason_lines};

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
    /// Renders the question in lines. A line of the skill's text cannot be mistaken for a line of
    /// ours.
    pub fn lines(&self) -> Vec<QuestionLine> {
        reason_lines(&self.reasons, &self.warnings)
            .into_iter()
            .chain(question_lines(&self.request))
            .collect()
    }

    /// Renders the question with nothing left out, for a client that can scroll: the warnings
    /// first, then what is dangerous. Every line has its label.
    pub fn full_lines(&self) -> Vec<QuestionLine> {
        let mut lines = reason_lines(&self.reasons, &self.warnings);
        lines.extend(full_question_lines(&self.request));
        let mut label = "";
        for line in &mut lines {
            label = if line.label.is_empty() { label } else { line.label };
            line.label = label;
        }
        lines.sort_by_key(|line| match line.role {
            LineRole::Warning => 0,
            LineRole::Grave => 1,
            LineRole::Reason | LineRole::Fact => 2,
        });
        lines
    }
}
