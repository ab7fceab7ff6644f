//! Asks the user of a run whether a tool of a skill may run, and waits for the answer.
//!
//! The question is an event `approval` in the stream of the run, and its user answers with `POST
//! /api/v1/runs/{id}/approvals/{question}`. If no answer arrives in time, the tool does not run.
//! Only administrators in the web app are asked: an approval lets a tool run on the machine of the
//! server, and API clients do not know these events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::HeaderMap;
use futures::future::BoxFuture;
use savoir_agent::consent::{Asker, Consent};
use savoir_engine::approval::{ApprovalQuestion, QuestionLine, Request, Trust};
use savoir_flow::event::{Emitter, Event};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{
    app::App,
    auth::{Caller, has_cookie_only},
};

/// How long a question waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
/// How much longer an answer in a conversation may take if its user can be asked.
pub(crate) const EXTRA_TIME: Duration = Duration::from_mins(5);

/// The questions of this process that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<HashMap<QuestionId, OpenQuestion>>);

/// The run and the question.
type QuestionId = (String, String);

#[derive(Debug)]
struct OpenQuestion {
    user_id: i64,
    may_last: bool,
    answer: oneshot::Sender<Answer>,
}

/// The answer of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The tool may run this time.
    Once,
    /// The tools of the skill may run until the skill changes.
    Always,
    Deny,
}

impl Answer {
    pub(crate) const ALL: [Self; 3] = [Self::Once, Self::Always, Self::Deny];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.as_str() == word)
    }
}

/// Why an answer is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// There is no such question, it is already answered, or it is for another user.
    Missing,
    /// The skill asks before every run, so "always" cannot be stored.
    NotLasting,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<QuestionId, OpenQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question of one of this user's runs.
    pub(crate) fn answer(
        &self,
        run: &str,
        question: &str,
        user_id: i64,
        answer: Answer,
    ) -> Result<(), AnswerError> {
        let id = (run.to_owned(), question.to_owned());
        let mut open = self.open();
        let found = open.get(&id).filter(|found| found.user_id == user_id);
        let found = found.ok_or(AnswerError::Missing)?;
        if answer == Answer::Always && !found.may_last {
            return Err(AnswerError::NotLasting);
        }
        let answered = open.remove(&id).map(|found| found.answer.send(answer));
        if matches!(answered, Some(Ok(()))) { Ok(()) } else { Err(AnswerError::Missing) }
    }
}

/// Removes a question when the run no longer waits for its answer.
struct RemoveQuestion<'a>(&'a Questions, QuestionId);

impl Drop for RemoveQuestion<'_> {
    fn drop(&mut self) {
        self.0.open().remove(&self.1);
    }
}

/// Asks the user of one run, through the event stream of the run.
#[derive(Debug)]
pub(crate) struct StreamAsker {
    app: App,
    run: String,
    user_id: i64,
    out: Emitter,
}

impl StreamAsker {
    pub(crate) fn new(app: App, caller: &Caller, run: String, out: Emitter) -> Arc<Self> {
        Arc::new(Self { app, run, user_id: caller.user.id, out })
    }

    /// Whether a user may be asked: only an administrator in the web app. API clients do not know
    /// the question, so the run would wait in vain.
    pub(crate) fn may_ask(app: &App, headers: &HeaderMap, caller: &Caller) -> bool {
        caller.user.is_admin() && has_cookie_only(app, headers)
    }

    async fn wait_for_answer(&self, question: &ApprovalQuestion) -> Consent {
        let id = Uuid::now_v7().to_string();
        let may_last = may_last(&question.request);
        let (sender, receiver) = oneshot::channel();
        let key = (self.run.clone(), id.clone());
        let open = OpenQuestion { user_id: self.user_id, may_last, answer: sender };
        self.app.questions.open().insert(key.clone(), open);
        let _remove = RemoveQuestion(&self.app.questions, key);
        if self.out.emit(Event::Approval(members(&id, question, may_last))).await.is_err() {
            return Consent::Unanswered;
        }
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, receiver).await;
        let answer = answer.ok().and_then(Result::ok);
        let (word, consent) = match answer {
            Some(Answer::Once) => ("once", Consent::Once),
            Some(Answer::Always) => ("always", Consent::Always),
            Some(Answer::Deny) => ("deny", Consent::Declined),
            None => ("expired", Consent::Unanswered),
        };
        let (skill, run, user) = (&question.request.skill, &self.run, self.user_id);
        tracing::info!(skill, run, user, answer = word, "a question about a tool was answered");
        let answered = [("id", id.as_str()), ("answer", word)];
        let answered = answered.map(|(key, value)| (key.to_owned(), json!(value)));
        // If this fails, the client has disconnected, and the run ends anyway.
        let _ = self.out.emit(Event::Approval(answered.into_iter().collect())).await;
        consent
    }
}

impl Asker for StreamAsker {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(self.wait_for_answer(question))
    }
}

/// Whether an answer for all later runs would be used.
fn may_last(request: &Request) -> bool {
    !request.always_ask && request.trust != Trust::Untrusted
}

/// The question as the members of an event.
fn members(id: &str, question: &ApprovalQuestion, may_last: bool) -> Map<String, Value> {
    let request = &question.request;
    let choices = Answer::ALL.into_iter().filter(|answer| may_last || *answer != Answer::Always);
    // The card shows the command apart from the lines, where long ones are cut.
    let lines: Vec<QuestionLine> =
        question.full_lines().into_iter().filter(|line| line.label != "runs").collect();
    let command: Vec<String> =
        request.command.iter().map(|part| savoir_lint::visible(part).into_owned()).collect();
    let members = [
        ("id", json!(id)),
        ("tool", json!(request.tool)),
        ("skill", json!(request.skill)),
        ("command", json!(command)),
        ("lines", json!(lines)),
        ("choices", json!(choices.map(Answer::as_str).collect::<Vec<_>>())),
        ("timeout_s", json!(ANSWER_TIMEOUT.as_secs())),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(questions: &Questions, may_last: bool) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let question = OpenQuestion { user_id: 7, may_last, answer };
        questions.open().insert(("run".to_owned(), "q".to_owned()), question);
        receiver
    }

    #[test]
    fn only_the_user_of_the_run_answers_and_only_once() {
        let questions = Questions::default();
        let mut answer = ask(&questions, true);
        assert_eq!(questions.answer("run", "q", 8, Answer::Once), Err(AnswerError::Missing));
        assert_eq!(questions.answer("other", "q", 7, Answer::Once), Err(AnswerError::Missing));
        assert_eq!(questions.answer("run", "q", 7, Answer::Once), Ok(()));
        assert_eq!(answer.try_recv(), Ok(Answer::Once));
        assert_eq!(questions.answer("run", "q", 7, Answer::Deny), Err(AnswerError::Missing));
    }

    #[test]
    fn lasting_answer_is_refused_where_it_would_not_be_used() {
        let questions = Questions::default();
        let mut answer = ask(&questions, false);
        assert_eq!(questions.answer("run", "q", 7, Answer::Always), Err(AnswerError::NotLasting));
        assert_eq!(questions.answer("run", "q", 7, Answer::Deny), Ok(()));
        assert_eq!(answer.try_recv(), Ok(Answer::Deny));
    }
}
