//! A language model whose failures are overheard.
//!
//! The events of a run tell clients that an answer failed and not why: an error may name addresses
//! that are none of theirs. Who runs it on their own terminal may know, and needs to.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use savoir_model::{ChatRequest, Choice, Chunk, LanguageModel, ModelError, Models};

use crate::error::CommandError;

/// The last failure of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<ModelError>>>);

impl Failure {
    /// The failure as an error with its way out, once.
    pub(crate) fn take(&self) -> Option<CommandError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map(CommandError::from)
    }
}

#[derive(Debug)]
struct Overheard {
    client: Arc<dyn LanguageModel>,
    failure: Failure,
}

/// The model that is meant, alone, and what it fails with.
pub(crate) async fn choose(
    models: &Models,
    wanted: Option<&str>,
) -> Result<(Models, Failure), ModelError> {
    let Choice { provider, model, client } = models.choose(wanted).await?;
    let failure = Failure::default();
    let mut chosen = Models::default();
    let overheard = Overheard { client, failure: failure.clone() };
    chosen.add(&provider, Arc::new(overheard), Some(model));
    if let Some(embedder) = models.embedder() {
        chosen.set_embedder(Arc::clone(embedder));
    }
    Ok((chosen, failure))
}

impl LanguageModel for Overheard {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let failure = self.failure.clone();
        let answer = self.client.answer(request).map(move |chunk| {
            chunk.map_err(|error| {
                let told = ModelError::Setting(error.to_string());
                *failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                told
            })
        });
        answer.boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        self.client.models()
    }
}
