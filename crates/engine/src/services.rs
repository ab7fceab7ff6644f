//! The language models, knowledge bases and database that a run can use.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _};
use savoir_model::{ChatRequest, Chunk, Message, ModelError, Models, Usage};
use savoir_store::{Database, ModelRequest};

use crate::{
    event::{Emitter, Event, Gone},
    knowledge::Knowledge,
};

/// What a run may ask. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Services {
    /// The language models.
    pub models: Arc<Models>,
    /// Where to search; `None` where there is no database.
    pub knowledge: Option<Knowledge>,
    /// Where usage is noted; `None` where there is no database.
    pub database: Option<Database>,
    /// How long a run may take.
    pub limits: TimeLimits,
}

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Of a skill, and of an answer in a conversation.
    pub answer: Duration,
    /// Of a workflow.
    pub workflow: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { answer: Duration::from_mins(3), workflow: Duration::from_mins(5) }
    }
}

/// A question to a model.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// `provider:model` or a model's name; the default if there is none.
    pub model: Option<&'a str>,
    /// What was said, oldest first.
    pub messages: Vec<Message>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Who asks.
    pub user: Option<i64>,
}

/// An answer as far as it came.
#[derive(Debug, Default)]
pub struct Answer {
    /// The words.
    pub text: String,
    /// Why it is not whole.
    pub error: Option<ModelError>,
}

impl Services {
    /// Asks a model and tells each piece of its answer as a token.
    ///
    /// Ends as soon as nobody listens. What was spent is noted also when the answer is not whole.
    pub async fn ask(&self, question: Question<'_>, out: &Emitter) -> Result<Answer, Gone> {
        let mut answer = Answer::default();
        self.ask_into(question, out, &mut answer).await?;
        Ok(answer)
    }

    /// As [`ask`](Self::ask), into an answer that the caller still has when the future is dropped
    /// half-way.
    pub async fn ask_into(
        &self,
        question: Question<'_>,
        out: &Emitter,
        answer: &mut Answer,
    ) -> Result<(), Gone> {
        // What was told so far goes out before the question is put together.
        tokio::task::yield_now().await;
        let choice = match self.models.choose(question.model).await {
            Ok(choice) => choice,
            Err(error) => {
                answer.error = Some(error);
                return Ok(());
            }
        };
        let request = ChatRequest {
            model: choice.model.clone(),
            messages: question.messages,
            temperature: question.temperature,
            max_tokens: question.max_tokens,
            tools: Vec::new(),
        };
        let client = &choice.client;
        // A client that breaks down is a model that fails.
        let asked = std::panic::catch_unwind(AssertUnwindSafe(|| client.answer(request)));
        let Ok(mut stream) = asked else {
            answer.error = Some(broken(&choice.provider));
            return Ok(());
        };
        let mut spent = None;
        let told = loop {
            let chunk = tokio::select! {
                biased;
                () = out.gone() => break Err(Gone),
                chunk = AssertUnwindSafe(stream.next()).catch_unwind() => {
                    chunk.unwrap_or_else(|_| Some(Err(broken(&choice.provider))))
                }
            };
            match chunk {
                Some(Ok(Chunk::Text(text))) => {
                    answer.text.push_str(&text);
                    if out.emit(Event::token(text)).await.is_err() {
                        break Err(Gone);
                    }
                }
                Some(Ok(Chunk::Usage(usage))) => spent = Some(usage),
                Some(Ok(Chunk::ToolCall(_))) => {}
                Some(Ok(Chunk::End(_))) | None => break Ok(()),
                Some(Err(error)) => {
                    answer.error = Some(error);
                    break Ok(());
                }
            }
        };
        self.note(question.user, &choice.provider, &choice.model, spent).await;
        told
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

pub fn broken(provider: &str) -> ModelError {
    let message = "its client broke down".to_owned();
    ModelError::InvalidResponse { provider: provider.to_owned(), message }
}
