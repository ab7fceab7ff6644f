//! Runs a plan: checks approvals, records the decision, executes the tool and stores a run record.
//! `savoir run`, chat, MCP and the server all use this; they differ only in how they ask the user.

use std::fmt::Display;

use crate::{
    StoreError,
    approval::{Approval, ApprovalQuestion, Approvals, Verdict, decide, user_name},
    error::{Fault, RunError},
    home::Home,
    loaded_skill::LoadedSkill,
    record::{DecisionRecord, ErrorRecord, ReservedSpace, RunRecord, RunRecords},
    run::{Call, FinishedRun, RunPlan, RunUpdate, plan, refusal_record},
};

/// Runs of a skill with the approvals and records of a home.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    pub loaded_skill: &'a LoadedSkill,
    /// Where approvals and records are stored.
    pub home: &'a Home,
    /// Called when a record cannot be stored; the run continues.
    pub on_record_error: &'a dyn Fn(&dyn Display),
}

/// Whether a plan runs directly or needs approval.
#[derive(Debug)]
pub enum RunDecision {
    /// It runs without a question.
    Run(DecisionRecord),
    /// The user decides.
    Ask(Box<ApprovalQuestion>),
}

/// Whether stored approvals of earlier runs are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedApprovals {
    Use,
    Ignore,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDuration {
    /// For this run only.
    Once,
    /// Until the skill or its permissions change.
    Always,
}

impl Session<'_> {
    /// Plans a call. Refused calls are recorded.
    pub fn plan(&self, call: &Call<'_>) -> Result<RunPlan, RunError> {
        plan(call).inspect_err(|error| {
            if error.fault == Fault::Refused {
                self.store_record(&mut refusal_record(self.loaded_skill, Some(call.tool), error));
            }
        })
    }

    /// Checks a plan against the approval rules. Refused plans are recorded.
    pub fn check_approval(
        &self,
        plan: &RunPlan,
        saved: SavedApprovals,
    ) -> Result<RunDecision, RunError> {
        let request = &plan.request;
        let stored = Approvals::new(self.home).get(&request.path).map_err(approvals_failure)?;
        match decide(request, stored.as_ref().filter(|_| saved == SavedApprovals::Use)) {
            Verdict::Run { reason } => {
                let verdict = "run".to_owned();
                Ok(RunDecision::Run(DecisionRecord { verdict, reason, approved_by: None }))
            }
            Verdict::Refuse { reason, help } => {
                let error = RunError::refused("not-approved", reason).with_hint(help);
                self.record_rejection(plan, "refused", error.code.as_ref(), &error.message);
                Err(error)
            }
            Verdict::Ask { reasons, warnings } => {
                let request = request.clone();
                Ok(RunDecision::Ask(Box::new(ApprovalQuestion { request, reasons, warnings })))
            }
        }
    }

    /// Stores the user's approval and returns the decision for the record.
    pub fn record_approval(
        &self,
        question: &ApprovalQuestion,
        duration: ApprovalDuration,
    ) -> Result<DecisionRecord, RunError> {
        if duration == ApprovalDuration::Always {
            let approval = Approval::new(&question.request, user_name());
            Approvals::new(self.home).save(approval).map_err(approvals_failure)?;
        }
        let verdict = match duration {
            ApprovalDuration::Once => "once",
            ApprovalDuration::Always => "always",
        };
        let (verdict, reason) = (verdict.to_owned(), question.reasons.join("; "));
        Ok(DecisionRecord { verdict, reason, approved_by: Some(user_name()) })
    }

    /// Records a plan that does not run because it was declined or refused.
    pub fn record_rejection(&self, plan: &RunPlan, verdict: &str, code: &str, message: &str) {
        let mut record = plan.record(self.loaded_skill);
        let (verdict, reason) = (verdict.to_owned(), message.to_owned());
        record.decision = DecisionRecord { verdict, reason, approved_by: None };
        record.error = Some(ErrorRecord { code: code.to_owned(), message: message.to_owned() });
        self.store_record(&mut record);
    }

    /// Runs a plan and stores its record.
    pub fn run(
        &self,
        plan: RunPlan,
        decision: DecisionRecord,
        on_update: &mut dyn FnMut(RunUpdate<'_>),
    ) -> Result<FinishedRun, RunError> {
        let mut record = plan.record(self.loaded_skill);
        let reserved = RunRecords::new(self.home).reserve_space();
        match plan.run(self.loaded_skill, self.home, on_update) {
            Ok(mut finished) => {
                finished.record.decision = decision;
                self.store_record_in(&mut finished.record, reserved);
                Ok(finished)
            }
            Err(error) => {
                // Later lines were printed by the tool and are not stored.
                let message = error.message.lines().next().unwrap_or_default().to_owned();
                record.decision = decision;
                record.error = Some(ErrorRecord { code: error.code.to_string(), message });
                self.store_record_in(&mut record, reserved);
                Err(error)
            }
        }
    }

    fn store_record_in(&self, record: &mut RunRecord, reserved: ReservedSpace) {
        if let Err(error) = RunRecords::new(self.home).add_using_reserved(record, reserved) {
            (self.on_record_error)(&error);
        }
    }

    pub fn store_record(&self, record: &mut RunRecord) {
        if let Err(error) = RunRecords::new(self.home).add(record) {
            (self.on_record_error)(&error);
        }
    }
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("skill", &self.loaded_skill.skill.name)
            .finish_non_exhaustive()
    }
}

fn approvals_failure(error: StoreError) -> RunError {
    RunError::cannot_start("approvals-unreadable", error)
}
