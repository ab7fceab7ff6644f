//! Asks the user to approve a run, or takes the answer from the command line.

use savoir_engine::{
    approval::{
        ApprovalQuestion, Fingerprint, Request, Trust, matches_confirmation, printable, shell_word,
    },
    loaded_skill::LoadedSkill,
    record::DecisionRecord,
    run::RunPlan,
    session::{ApprovalDuration, RunDecision, SavedApprovals},
};
use savoir_skill::Dialect;

use super::RunContext;
use crate::{
    ask::{self, Answer, Choices, Length, Page},
    commands::approve,
    error::CommandError,
    lookup::Fetched,
    trust,
};

/// Why a plan does not run.
struct NotApproved {
    verdict: &'static str,
    error: CommandError,
}

impl RunContext<'_> {
    /// Asks for approval of a plan if needed.
    pub(super) fn decide(&self, plan: &RunPlan) -> Result<DecisionRecord, CommandError> {
        // A recording has almost all permissions, so stored approvals do not apply.
        let earlier = if self.args.record { SavedApprovals::Ignore } else { SavedApprovals::Use };
        let mut question = match self.session().check_approval(plan, earlier)? {
            RunDecision::Run(decision) => {
                self.is_approved_for_later.set(true);
                trust::show_banner(plan.request.trust);
                return Ok(decision);
            }
            RunDecision::Ask(question) => question,
        };
        if self.args.record {
            question.reasons = vec!["a recording has almost all permissions".to_owned()];
        }
        if ask::can_ask() && self.asks_again_on_terminal() {
            let reason = "it is not declared as read-only, so a terminal asks before every run until \
                          `savoir approve` approves it";
            question.reasons.insert(0, reason.to_owned());
        }
        match self.answer(&question)? {
            Ok(agreed) => {
                self.is_approved_for_later.set(agreed == ApprovalDuration::Always);
                Ok(self.session().record_approval(&question, agreed)?)
            }
            Err(NotApproved { verdict, error }) => {
                self.session().record_rejection(plan, verdict, "not-approved", &error.to_string());
                Err(error)
            }
        }
    }

    /// Whether every run asks, so that storing the answer would have no effect.
    pub(super) fn asks_again(&self) -> bool {
        let LoadedSkill { skill, trust, .. } = self.loaded_skill;
        skill.policy.always_ask == Some(true) || *trust == Trust::Untrusted
    }

    /// The answers that the dialect of the skill offers. gibb.eri.sh asks once for a tool that only
    /// reads, and before every run of another one.
    fn choices(&self) -> Choices {
        let skill = &self.loaded_skill.skill;
        match (skill.dialect == Dialect::GIBBERISH, skill.policy.read_only) {
            (true, Some(true)) => Choices::UntilChanged,
            (true, _) => Choices::OnlyOnce,
            (false, _) => Choices::OnceOrAlways,
        }
    }

    /// Whether an answer on a terminal is never stored, although `savoir approve` would store one.
    fn asks_again_on_terminal(&self) -> bool {
        let skill = &self.loaded_skill.skill;
        let writes = skill.dialect == Dialect::GIBBERISH && skill.policy.read_only != Some(true);
        writes && !self.args.record && self.fetched.is_none() && !self.asks_again()
    }

    /// The answer from the command line or the terminal; a refusal if there is neither.
    fn answer(
        &self,
        question: &ApprovalQuestion,
    ) -> Result<Result<ApprovalDuration, NotApproved>, CommandError> {
        let ApprovalQuestion { request, reasons, warnings } = question;
        let refused = |error| Ok(Err(NotApproved { verdict: "refused", error }));
        // A question shows the banner itself.
        if !ask::can_ask() || self.args.yes || self.args.approve.is_some() {
            trust::show_banner(request.trust);
        }
        if let Some(agreed) = self.again.take() {
            return Ok(Ok(agreed));
        }
        let fingerprint = Fingerprint::of(request);
        if let Some(short) = &self.args.approve {
            if matches_confirmation(&fingerprint, short) {
                return Ok(Ok(ApprovalDuration::Once));
            }
            // A few digits are not safe: another skill can be made with the same first digits.
            let is_short = fingerprint.as_str().starts_with(&short.to_ascii_lowercase());
            let message = if is_short {
                "the fingerprint of --approve is too short: 32 digits are needed"
            } else {
                "the fingerprint of --approve is for another run, or the skill was changed since"
            };
            let hint =
                format!("to approve this run: --approve {}", fingerprint.confirmation_digits());
            return refused(CommandError::refused(message).hint(hint));
        }
        if self.fetched.is_some() && self.args.yes {
            return Ok(Ok(ApprovalDuration::Once));
        }
        if !ask::can_ask() {
            return refused(match self.fetched {
                Some(fetched) => not_approved_error(fetched),
                None => self.print_request_without_terminal(request, &fingerprint, reasons),
            });
        }
        let is_once = self.args.record || self.fetched.is_some() || self.asks_again();
        let choices = if is_once { Choices::OnlyOnce } else { self.choices() };
        let scanned = approve::scan_warning(&request.path).into_iter();
        let warnings: Vec<String> = scanned.chain(warnings.iter().cloned()).collect();
        let page = Page { request, reasons, warnings: &warnings, length: Length::Question };
        Ok(match ask::ask(page, choices)? {
            Answer::Once => Ok(ApprovalDuration::Once),
            Answer::Always => Ok(ApprovalDuration::Always),
            Answer::No => {
                Err(NotApproved { verdict: "declined", error: declined_error(&request.skill) })
            }
        })
    }

    fn print_request_without_terminal(
        &self,
        request: &Request,
        fingerprint: &Fingerprint,
        reasons: &[String],
    ) -> CommandError {
        let path = shell_word(&request.path.display().to_string());
        let permissions: Vec<_> = request.permissions.iter().map(ToString::to_string).collect();
        let refused = CommandError::refused(format!(
            "{} needs approval, and there is no terminal to ask on: {}",
            request.skill,
            reasons.join("; ")
        ))
        .detail("fingerprint", fingerprint.confirmation_digits().into())
        .detail("permissions", permissions.into())
        .detail("reasons", reasons.into());
        let additions = self.args.extra_grants.words();
        let once = format!(
            "to approve only this run, add: --approve {}",
            fingerprint.confirmation_digits()
        );
        if self.args.record {
            // `savoir approve` shows what the skill declares, not what a recording gets.
            let rights = request.permissions.iter().map(ToString::to_string);
            let rights = printable(&rights.collect::<Vec<_>>().join(", "));
            let hint = format!("a recording gets these permissions: {rights}");
            return refused.hint(hint).hint(once);
        }
        if request.always_ask || request.trust == Trust::Untrusted {
            refused
                .hint(format!("to see what it may do: savoir approve {path}{additions}"))
                .hint(once)
        } else {
            refused
                .hint(format!(
                    "to approve it: savoir approve {path}{additions}; in a script, add --yes after \
                     you have read what it may do"
                ))
                .hint(once)
        }
    }
}

pub(super) fn declined_error(skill: &str) -> CommandError {
    CommandError::refused(format!("{skill} was not run: you declined"))
}

pub(super) fn not_approved_error(fetched: &Fetched) -> CommandError {
    CommandError::refused(format!(
        "{} is not installed and needs confirmation, and there is no terminal to ask on",
        fetched.name
    ))
    .hint("to run it once after you read the above, add: -y")
}
