//! Asks the user of an MCP client for approval, through the client: with a request from the server,
//! or, in protocol revisions without such requests, with a response that contains the question; the
//! client then repeats its call with the answer.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use rmcp::{
    Peer, RoleServer,
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
        InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject,
    },
    service::RequestContext,
};
use savoir_agent::{
    consent::{Asker, Consent},
    toolset::ToolAnswer,
};
use savoir_engine::approval::{ApprovalQuestion, Trust, to_plain_text};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use uuid::Uuid;

use super::tools::ToolCallAnswer;

/// How long a user may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
/// Maximum calls of all clients that wait for an answer.
const MAX_PENDING_QUESTIONS: usize = 64;
/// Maximum columns of a question.
const TEXT_WIDTH: usize = 80;
/// The name of the only question of a call.
const APPROVAL_FIELD: &str = "approval";

tokio::task_local! {
    /// How the client of the current call can be asked for approval.
    static CURRENT_CALLER: Caller;
}

#[derive(Clone, Debug)]
enum Caller {
    /// With a request of the server to the client.
    Peer(Peer<RoleServer>),
    /// With the response to the client's own request.
    PendingCalls(mpsc::Sender<PendingQuestion>),
}

/// A question that is sent to the client with the next response.
#[derive(Debug)]
struct PendingQuestion {
    form: ElicitRequestParams,
    reply: oneshot::Sender<Consent>,
}

/// Asks the user of the client that made the call, if the client supports that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elicitation;

impl Asker for Elicitation {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async move {
            let (Ok(caller), Some(form)) = (CURRENT_CALLER.try_with(Clone::clone), form(question))
            else {
                return Consent::Nobody;
            };
            match caller {
                Caller::Peer(peer) => {
                    let response =
                        peer.create_elicitation_with_timeout(form, Some(ANSWER_TIMEOUT)).await;
                    response.map_or(Consent::Declined, |result| consent(&result, question))
                }
                Caller::PendingCalls(questions) => {
                    let (reply, answer) = oneshot::channel();
                    if questions.send(PendingQuestion { form, reply }).await.is_err() {
                        return Consent::Declined;
                    }
                    let answered = timeout(ANSWER_TIMEOUT, answer).await;
                    let given = answered.ok().and_then(Result::ok).unwrap_or(Consent::Declined);
                    if can_be_kept(question) { given } else { without_memory(given) }
                }
            }
        })
    }
}

/// Whether the client can show forms to a user.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities().and_then(|known| known.elicitation);
    declared.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Runs some work for a client that accepts requests of the server.
pub(super) async fn with_client<T>(peer: Peer<RoleServer>, work: impl Future<Output = T>) -> T {
    CURRENT_CALLER.scope(Caller::Peer(peer), work).await
}

/// Whether an approval can be stored for later runs.
fn can_be_kept(question: &ApprovalQuestion) -> bool {
    !question.request.always_ask && question.request.trust != Trust::Untrusted
}

fn without_memory(consent: Consent) -> Consent {
    if consent == Consent::Always { Consent::Once } else { consent }
}

/// The question as a form.
fn form(question: &ApprovalQuestion) -> Option<ElicitRequestParams> {
    let (words, meaning): (&[&str], _) = if can_be_kept(question) {
        (&["once", "always"], "once: this call only; always: until the skill changes")
    } else {
        (&["once"], "once: this call only")
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "title": "Run it?", "description": meaning, "enum": words},
        },
        "required": ["answer"],
    });
    let Value::Object(schema) = schema else { return None };
    let requested_schema = ElicitationSchema::from_json_schema(schema)
        .inspect_err(|error| tracing::error!(%error, "a question has no form"))
        .ok()?;
    let message = to_plain_text(&question.lines(), TEXT_WIDTH);
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The answer in a form. Only an explicit yes counts as consent.
fn consent(result: &ElicitResult, question: &ApprovalQuestion) -> Consent {
    let given = consent_of_form(result);
    if can_be_kept(question) { given } else { without_memory(given) }
}

fn consent_of_form(result: &ElicitResult) -> Consent {
    let word = result.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    match (&result.action, word) {
        (ElicitationAction::Accept, Some("once")) => Consent::Once,
        (ElicitationAction::Accept, Some("always")) => Consent::Always,
        (ElicitationAction::Cancel, _) => Consent::Unanswered,
        _ => Consent::Declined,
    }
}

/// The result of a call.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// The call is complete.
    Answer(ToolCallAnswer),
    /// The user must be asked before the call continues.
    Question(InputRequiredResult),
}

/// Calls that wait between two requests.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    waiting: Mutex<HashMap<String, PendingCall>>,
}

#[derive(Debug)]
struct PendingCall {
    reply: oneshot::Sender<Consent>,
    running: RunningCall,
}

#[derive(Debug)]
struct RunningCall {
    /// The called tool; an answer for another tool is rejected.
    name: String,
    arguments: JsonObject,
    task: JoinHandle<ToolCallAnswer>,
    questions: mpsc::Receiver<PendingQuestion>,
}

impl Drop for RunningCall {
    /// Aborts a call that no client waits for, and everything that it started.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PendingCalls {
    /// Starts a call that can be interrupted by a question.
    pub(super) async fn begin(
        &self,
        name: &str,
        arguments: &JsonObject,
        work: impl Future<Output = ToolCallAnswer> + Send + 'static,
    ) -> CallOutcome {
        let (sender, questions) = mpsc::channel(1);
        let task = tokio::spawn(CURRENT_CALLER.scope(Caller::PendingCalls(sender), work));
        let (name, arguments) = (name.to_owned(), arguments.clone());
        self.wait(RunningCall { name, arguments, task, questions }).await
    }

    /// Continues a call after its question was answered.
    pub(super) async fn resume(
        &self,
        state: &str,
        name: &str,
        arguments: &JsonObject,
        answers: &InputResponses,
    ) -> CallOutcome {
        let found = self.waiting().remove(state);
        let same = |found: &PendingCall| {
            found.running.name == name && found.running.arguments == *arguments
        };
        let Some(PendingCall { reply, running }) = found.filter(same) else {
            let message = "the question of this call has expired; make the call again";
            return CallOutcome::Answer(ToolCallAnswer::from_server(ToolAnswer::failed(
                "question-closed", message,
            )));
        };
        let given = answers.get(APPROVAL_FIELD).cloned();
        let result = given.and_then(|value| serde_json::from_value::<ElicitResult>(value).ok());
        // If the answer is too late, the call has already ended and reports that.
        let _ = reply.send(result.as_ref().map_or(Consent::Declined, consent_of_form));
        self.wait(running).await
    }

    async fn wait(&self, mut running: RunningCall) -> CallOutcome {
        tokio::select! {
            done = &mut running.task => CallOutcome::Answer(done.unwrap_or_else(|error| {
                tracing::error!(%error, "a call ended before its time");
                ToolCallAnswer::from_server(ToolAnswer::failed("failed", "the call was interrupted"))
            })),
            Some(question) = running.questions.recv() => self.wait_for_user(running, question),
        }
    }

    fn wait_for_user(&self, running: RunningCall, question: PendingQuestion) -> CallOutcome {
        let PendingQuestion { form, reply } = question;
        let mut waiting = self.waiting();
        waiting.retain(|_, one| !one.running.task.is_finished());
        if waiting.len() >= MAX_PENDING_QUESTIONS {
            let message = "too many calls wait for an answer; try again later";
            return CallOutcome::Answer(ToolCallAnswer::from_server(ToolAnswer::failed(
                "too-many-questions", message,
            )));
        }
        let state = Uuid::new_v4().to_string();
        waiting.insert(state.clone(), PendingCall { reply, running });
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let questions = InputRequests::from([(APPROVAL_FIELD.to_owned(), question)]);
        CallOutcome::Question(InputRequiredResult::new(Some(questions), Some(state)))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, PendingCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_explicit_yes_is_consent() {
        for (result, expected) in [
            (json!({"action": "accept", "content": {"answer": "once"}}), Consent::Once),
            (json!({"action": "accept", "content": {"answer": "always"}}), Consent::Always),
            (json!({"action": "accept", "content": {"answer": "yes"}}), Consent::Declined),
            (json!({"action": "accept", "content": {}}), Consent::Declined),
            (json!({"action": "accept"}), Consent::Declined),
            (json!({"action": "decline", "content": {"answer": "once"}}), Consent::Declined),
            (json!({"action": "cancel"}), Consent::Unanswered),
            (json!({"action": "cancel", "content": {"answer": "once"}}), Consent::Unanswered),
        ] {
            let read: ElicitResult = serde_json::from_value(result.clone()).unwrap();
            assert_eq!(consent_of_form(&read), expected, "{result}");
        }
    }

    #[tokio::test]
    async fn answer_is_valid_only_for_its_call() {
        let pending_calls = PendingCalls::default();
        let work = || async {
            let question = CURRENT_CALLER.with(Clone::clone);
            let Caller::PendingCalls(questions) = question else { panic!("no rounds") };
            let schema = json!({"type": "object", "properties": {}});
            let Value::Object(schema) = schema else { panic!("no object") };
            let requested_schema = ElicitationSchema::from_json_schema(schema).unwrap();
            let message = "Run it?".to_owned();
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message,
                requested_schema,
            };
            let (reply, answer) = oneshot::channel();
            questions.send(PendingQuestion { form, reply }).await.unwrap();
            ToolCallAnswer::from_server(ToolAnswer::text(format!("{:?}", answer.await)))
        };
        let arguments = JsonObject::new();
        let state = |outcome: CallOutcome| match outcome {
            CallOutcome::Question(question) => question.request_state.unwrap(),
            CallOutcome::Answer(answered) => panic!("{answered:?}"),
        };
        let text = |outcome: CallOutcome| match outcome {
            CallOutcome::Answer(answered) => answered.answer.text,
            CallOutcome::Question(question) => panic!("{question:?}"),
        };
        let yes = json!({"action": "accept", "content": {"answer": "once"}});
        let yes = InputResponses::from([(APPROVAL_FIELD.to_owned(), yes)]);

        let first = state(pending_calls.begin("a", &arguments, work()).await);
        assert_eq!(text(pending_calls.resume(&first, "a", &arguments, &yes).await), "Ok(Once)");
        let closed = text(pending_calls.resume(&first, "a", &arguments, &yes).await);
        assert!(closed.contains("has expired"), "{closed}");

        let second = state(pending_calls.begin("a", &arguments, work()).await);
        let other = text(pending_calls.resume(&second, "b", &arguments, &yes).await);
        assert!(other.contains("has expired"), "{other}");
        let third = state(pending_calls.begin("a", &arguments, work()).await);
        let nothing = InputResponses::new();
        assert_eq!(
            text(pending_calls.resume(&third, "a", &arguments, &nothing).await),
            "Ok(Declined)"
        );
    }
}
