//! Caches which request fields a model does not support, and retries without them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use crate::{
    ModelError,
    http::{Frames, Framing, Http},
    limits,
};

/// Phrases of an error message that mean that a field is unsupported, not that its value is wrong.
const UNSUPPORTED_PHRASES: [&str; 6] =
    ["support", "deprecated", "unknown", "unrecognized", "not permitted", "not allowed"];

/// One difference between a model and the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelQuirk {
    /// The model does not support `stream_options`.
    NoStreamOptions,
    /// The model needs `max_completion_tokens` instead of `max_tokens`.
    CompletionTokens,
    /// The model does not support `temperature`.
    NoTemperature,
}

/// The known quirks by model name. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelQuirks(Arc<Mutex<BTreeMap<String, Vec<ModelQuirk>>>>);

impl ModelQuirks {
    /// Opens an event stream, and retries without fields that the model does not support.
    pub(super) async fn open_stream(
        &self,
        http: &Http,
        path: &str,
        model: &str,
        mut content: Value,
    ) -> Result<Frames, ModelError> {
        self.apply(model, &mut content);
        loop {
            match http.stream(path, &content, Framing::Events).await {
                Err(error) if self.adapt_to_error(model, &error, &mut content) => {}
                answer => return answer,
            }
        }
    }

    /// Applies the known quirks of a model to a request.
    fn apply(&self, model: &str, content: &mut Value) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for quirk in known.get(model).into_iter().flatten() {
            quirk.apply(content);
        }
    }

    /// Adapts a rejected request to the error. Returns whether the request changed.
    fn adapt_to_error(&self, model: &str, error: &ModelError, content: &mut Value) -> bool {
        let ModelError::Refused { status: 400 | 422, message, .. } = error else { return false };
        let Some(quirk) = ModelQuirk::from_error_message(message).filter(|it| it.apply(content))
        else {
            return false;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < limits::MAX_REMEMBERED_MODELS || known.contains_key(model) {
            known.entry(model.to_owned()).or_default().push(quirk);
        }
        true
    }
}

impl ModelQuirk {
    fn from_error_message(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        if message.contains("max_completion_tokens") {
            Some(Self::CompletionTokens)
        } else if message.contains("stream_options") || message.contains("include_usage") {
            Some(Self::NoStreamOptions)
        } else if message.contains("temperature")
            && UNSUPPORTED_PHRASES.iter().any(|it| message.contains(it))
        {
            Some(Self::NoTemperature)
        } else {
            None
        }
    }

    /// Adapts a request. Returns whether the request changed.
    fn apply(self, content: &mut Value) -> bool {
        let Some(content) = content.as_object_mut() else { return false };
        match self {
            Self::NoStreamOptions => content.remove("stream_options").is_some(),
            Self::NoTemperature => content.remove("temperature").is_some(),
            Self::CompletionTokens => match content.remove("max_tokens") {
                Some(tokens) => {
                    content.insert("max_completion_tokens".to_owned(), tokens);
                    true
                }
                None => false,
            },
        }
    }
}
