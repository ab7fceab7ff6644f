//! Provides the language models, knowledge bases and database that a run can use.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _};
use savoir_knowledge::{Knowledge, chunk::estimate_tokens};
use savoir_model::{ChatRequest, Chunk, Finish, Message, ModelError, Models, Usage};
use savoir_skill::Skill;
use savoir_store::{Database, ModelRequest};

use crate::event::{Emitter, Event, ListenerDisconnected, ModelCall};

/// The services that a run may use. Clones share them.
#[derive(Clone, Debug)]
pub struct Services {
    /// The language models.
    pub models: Arc<Models>,
    /// The knowledge bases; `None` without a database.
    pub knowledge: Option<Knowledge>,
    /// The database in which usage is recorded; `None` without a database.
    pub database: Option<Database>,
    /// The time limits of runs.
    pub limits: TimeLimits,
}

/// The time limits of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// The limit of a skill, and of an answer in a conversation.
    pub answer: Duration,
    /// The limit of a workflow.
    pub workflow: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { answer: Duration::from_mins(3), workflow: Duration::from_mins(5) }
    }
}

/// A request to a language model.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// `provider:model` or a model's name; `None` for the default.
    pub model: Option<&'a str>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// The account that is charged for the usage.
    pub user: Option<i64>,
    /// The skill whose instructions are the system message. Its allowed tools apply.
    pub skill: Option<&'a Skill>,
}

/// The answer of a model, possibly incomplete.
#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    /// The error that ended the answer early.
    pub error: Option<ModelError>,
}

impl Services {
    /// Sends a request to a model, and emits each piece of its answer as a token.
    ///
    /// Ends as soon as the listener is gone. Usage is recorded even for an incomplete answer.
    pub async fn ask(
        &self,
        question: Question<'_>,
        out: &Emitter,
    ) -> Result<Answer, ListenerDisconnected> {
        let mut answer = Answer::default();
        self.ask_into(question, out, &mut answer).await?;
        Ok(answer)
    }

    /// Like [`ask`](Self::ask), but appends to an answer that the caller still has when the future
    /// is dropped early.
    pub async fn ask_into(
        &self,
        question: Question<'_>,
        out: &Emitter,
        answer: &mut Answer,
    ) -> Result<(), ListenerDisconnected> {
        // Lets earlier events reach the listener before the request is built.
        tokio::task::yield_now().await;
        let choice = match self.models.choose(question.model).await {
            Ok(choice) => choice,
            Err(error) => {
                // Recorded like a failed request, so that the record of the run has the reason.
                out.note_model_call(ModelCall::unsent(question.model, &error));
                out.emit(Event::warning(explain(&error))).await?;
                answer.error = Some(error);
                return Ok(());
            }
        };
        let sent: usize = question.messages.iter().map(estimated).sum();
        let request = ChatRequest {
            model: choice.model.clone(),
            messages: question.messages,
            temperature: question.temperature,
            max_tokens: question.max_tokens,
            tools: Vec::new(),
        };
        let client = &choice.client;
        // A panic in a client counts as an error of the model.
        let asked = std::panic::catch_unwind(AssertUnwindSafe(|| client.answer(request)));
        let Ok(mut stream) = asked else {
            let error = broken(&choice.provider);
            out.emit(Event::warning(explain(&error))).await?;
            answer.error = Some(error);
            return Ok(());
        };
        let began = Instant::now();
        let (mut spent, mut finish) = (None, None);
        let result = loop {
            let chunk = tokio::select! {
                biased;
                () = out.gone() => break Err(ListenerDisconnected),
                chunk = AssertUnwindSafe(stream.next()).catch_unwind() => {
                    chunk.unwrap_or_else(|_| Some(Err(broken(&choice.provider))))
                }
            };
            match chunk {
                Some(Ok(Chunk::Text(text))) => {
                    answer.text.push_str(&text);
                    if out.emit(Event::token(text)).await.is_err() {
                        break Err(ListenerDisconnected);
                    }
                }
                Some(Ok(Chunk::Usage(usage))) => spent = Some(usage),
                Some(Ok(Chunk::ToolCall(_))) => {}
                Some(Ok(Chunk::End(end))) => {
                    finish = Some(end);
                    break Ok(());
                }
                None => break Ok(()),
                Some(Err(error)) => {
                    answer.error = Some(error);
                    break Ok(());
                }
            }
        };
        // Providers report the usage at the end, which a stopped answer does not reach.
        let is_estimate = result.is_err() && finish.is_none();
        if is_estimate {
            let reported = spent.unwrap_or_default();
            spent = Some(Usage {
                input: reported.input.max(sent as u64),
                output: reported.output.max(estimate_tokens(&answer.text) as u64),
            });
        }
        out.note_model_call(ModelCall {
            node: None,
            model: format!("{}:{}", choice.provider, choice.model),
            usage: spent,
            is_estimate,
            finish,
            error: answer.error.as_ref().map(explain_to_owner),
            duration: began.elapsed(),
        });
        self.note(question.user, &choice.provider, &choice.model, spent).await;
        result?;
        match (&answer.error, finish) {
            // The API defines the text of the error, so the reason is an event of its own.
            (Some(error), _) if error.is_context_overflow() => {
                let message = format!("the input has more tokens than {} can read", choice.model);
                out.emit(Event::warning(with_help(message, error))).await
            }
            (Some(error), _) => out.emit(Event::warning(explain(error))).await,
            (None, Some(Finish::Length)) => {
                let limit = question.max_tokens.map(|most| format!(" of {most} tokens"));
                let limit = limit.unwrap_or_default();
                let message = format!(
                    "The answer was cut at the limit{limit}; raise `max_tokens`, or ask for less"
                );
                out.emit(Event::warning(message)).await
            }
            _ => Ok(()),
        }
    }

    pub async fn note(
        &self,
        user_id: Option<i64>,
        provider: &str,
        model: &str,
        usage: Option<Usage>,
    ) {
        let Some(database) = &self.database else { return };
        let Usage { input, output } = usage.unwrap_or_default();
        let spent =
            ModelRequest { user_id, provider, model, input_tokens: input, output_tokens: output };
        if let Err(error) = database.usage().record(spent).await {
            tracing::warn!(%error, "the usage of a model was not noted");
        }
    }
}

/// Describes an error for users, with a hint.
pub fn explain(error: &ModelError) -> String {
    with_help(error.public_message(), error)
}

fn with_help(message: String, error: &ModelError) -> String {
    match error.help() {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

/// Like [`explain`], with what the provider answered, for the record that only the owner of a run
/// reads. The client has removed the API key from the answer, and shortened it.
fn explain_to_owner(error: &ModelError) -> String {
    let told = match error {
        ModelError::Refused { message, .. } if !message.is_empty() => format!(": {message}"),
        _ => String::new(),
    };
    with_help(format!("{}{told}", error.public_message()), error)
}

/// The estimated tokens of a message.
fn estimated(message: &Message) -> usize {
    match message {
        Message::System(text) | Message::User(text) | Message::Assistant { text, .. } => {
            estimate_tokens(text)
        }
        Message::Tool { .. } => 0,
    }
}

impl ModelCall {
    /// A request that was not sent, because no model could be chosen. `model` is what the caller
    /// asked for.
    pub fn unsent(model: Option<&str>, error: &ModelError) -> Self {
        let provider = match error {
            ModelError::Unreachable { provider, .. }
            | ModelError::Refused { provider, .. }
            | ModelError::TimedOut { provider, .. }
            | ModelError::InvalidResponse { provider, .. } => Some(provider.as_str()),
            _ => None,
        };
        Self {
            node: None,
            model: model.or(provider).unwrap_or_default().to_owned(),
            usage: None,
            is_estimate: false,
            finish: None,
            error: Some(explain_to_owner(error)),
            duration: Duration::ZERO,
        }
    }
}

pub fn broken(provider: &str) -> ModelError {
    let message = "its client broke down".to_owned();
    ModelError::InvalidResponse { provider: provider.to_owned(), message }
}
