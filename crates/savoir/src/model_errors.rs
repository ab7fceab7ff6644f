//! A language model that stores its last failure.
//!
//! The events of a run do not contain the reason of a failure, because it may contain URLs that
//! other clients must not see. Users need the reason on their own terminal.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use savoir_model::{ChatRequest, ChosenModel, Chunk, LanguageModel, ModelError, Models};

use crate::error::CommandError;

/// The last failure of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<CommandError>>>);

impl Failure {
    /// Takes the failure as an error with a hint.
    pub(crate) fn take(&self) -> Option<CommandError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The failure, which stays.
    pub(crate) fn get(&self) -> Option<CommandError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct ModelErrors {
    client: Arc<dyn LanguageModel>,
    failure: Failure,
}

/// The chosen model alone, and its last failure.
pub(crate) async fn choose(
    models: &Models,
    wanted: Option<&str>,
) -> Result<(Models, Failure), ModelError> {
    let ChosenModel { provider, model, client } = models.choose(wanted).await?;
    let failure = Failure::default();
    let mut chosen = Models::default();
    let overheard = ModelErrors { client, failure: failure.clone() };
    chosen.add(&provider, Arc::new(overheard), Some(model));
    if let Some(embedder) = models.embedder() {
        chosen.set_embedder(Arc::clone(embedder));
    }
    Ok((chosen, failure))
}

impl LanguageModel for ModelErrors {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let failure = self.failure.clone();
        let answer = self.client.answer(request).map(move |chunk| {
            chunk.map_err(|error| {
                let setting_error = ModelError::Setting(error.to_string());
                *failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.into());
                setting_error
            })
        });
        answer.boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        self.client.models()
    }
}
