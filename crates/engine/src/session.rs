//! The one way in which a plan is run: it is held against the rules, somebody is asked if they say so, it
//! runs, and a record is kept. `savoir run`, chat, MCP and the server differ only in whom they ask.

use std::fmt::Display;

use crate::{
    StoreError,
    approval::{Approval, ApprovalQuestion, Approvals, Verdict, decide, user_name},
    error::{Fault, RunError},
    home::Home,
    loaded_skill::LoadedSkill,
    record::{DecisionRecord, ErrorRecord, Record, Records, Room},
    run::{Call, Finished, Heard, Plan, plan, refusal_record},
};

/// Runs of a skill with the approvals and records of a home.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The skill.
    pub subject: &'a LoadedSkill,
    /// Where approvals and records are kept.
    pub home: &'a Home,
    /// Told when a record cannot be kept, which stops nothing.
    pub on_unkept: &'a dyn Fn(&dyn Display),
}

/// What the rules say about a plan.
#[derive(Debug)]
pub enum Weighed {
    /// It runs without a question.
    Run(DecisionRecord),
    /// A person decides.
    Ask(Box<ApprovalQuestion>),
}

/// Which answers of earlier runs count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// Those that were kept.
    Counts,
    /// None.
    IsForgotten,
}

/// How somebody agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreed {
    /// To this run alone.
    Once,
    /// Until something changes.
    Always,
}

impl Session<'_> {
    /// Works out a call. What the rules refuse is in the records.
    pub fn plan(&self, call: &Call<'_>) -> Result<Plan, RunError> {
        plan(call).inspect_err(|error| {
            if error.fault == Fault::Refused {
                self.keep(&mut refusal_record(self.subject, Some(call.tool), error));
            }
        })
    }

    /// Holds a plan against the rules. What they refuse is in the records.
    pub fn weigh(&self, plan: &Plan, earlier: Earlier) -> Result<Weighed, RunError> {
        let request = &plan.request;
        let kept = Approvals::new(self.home).get(&request.path).map_err(unkept)?;
        match decide(request, kept.as_ref().filter(|_| earlier == Earlier::Counts)) {
            Verdict::Run { reason } => {
                let verdict = "run".to_owned();
                Ok(Weighed::Run(DecisionRecord { verdict, reason, approved_by: None }))
            }
            Verdict::Refuse { reason, help } => {
                let error = RunError::refused("not-approved", reason).way_out(help);
                self.turn_down(plan, "refused", error.code.as_ref(), &error.message);
                Err(error)
            }
            Verdict::Ask { reasons, warnings } => {
                let request = request.clone();
                Ok(Weighed::Ask(Box::new(ApprovalQuestion { request, reasons, warnings })))
            }
        }
    }

    /// Notes that somebody agreed.
    pub fn agree(
        &self,
        question: &ApprovalQuestion,
        how: Agreed,
    ) -> Result<DecisionRecord, RunError> {
        if how == Agreed::Always {
            let approval = Approval::new(&question.request, user_name());
            Approvals::new(self.home).keep(approval).map_err(unkept)?;
        }
        let verdict = match how {
            Agreed::Once => "once",
            Agreed::Always => "always",
        };
        let (verdict, reason) = (verdict.to_owned(), question.reasons.join("; "));
        Ok(DecisionRecord { verdict, reason, approved_by: Some(user_name()) })
    }

    /// Keeps a record of a plan that does not run: nobody agreed, or a rule forbids it.
    pub fn turn_down(&self, plan: &Plan, verdict: &str, code: &str, message: &str) {
        let mut record = plan.record(self.subject);
        let (verdict, reason) = (verdict.to_owned(), message.to_owned());
        record.decision = DecisionRecord { verdict, reason, approved_by: None };
        record.error = Some(ErrorRecord { code: code.to_owned(), message: message.to_owned() });
        self.keep(&mut record);
    }

    /// Runs a plan, and keeps a record.
    pub fn run(
        &self,
        plan: Plan,
        decision: DecisionRecord,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Finished, RunError> {
        let mut record = plan.record(self.subject);
        let room = Records::new(self.home).set_aside();
        match plan.run(self.subject, self.home, hear) {
            Ok(mut finished) => {
                finished.record.decision = decision;
                self.keep_in(&mut finished.record, room);
                Ok(finished)
            }
            Err(error) => {
                // What follows the first line was printed by the tool, and is not kept.
                let message = error.message.lines().next().unwrap_or_default().to_owned();
                record.decision = decision;
                record.error = Some(ErrorRecord { code: error.code.to_string(), message });
                self.keep_in(&mut record, room);
                Err(error)
            }
        }
    }

    /// Keeps the record of a run for which room was set aside.
    fn keep_in(&self, record: &mut Record, room: Room) {
        if let Err(error) = Records::new(self.home).add_in(record, room) {
            (self.on_unkept)(&error);
        }
    }

    /// Keeps a record.
    pub fn keep(&self, record: &mut Record) {
        if let Err(error) = Records::new(self.home).add(record) {
            (self.on_unkept)(&error);
        }
    }
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("skill", &self.subject.skill.name).finish_non_exhaustive()
    }
}

fn unkept(error: StoreError) -> RunError {
    RunError::failed("approvals-unreadable", error)
}
