//! What some servers and models do not know. They say so, and are asked again without it.

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

/// How a server says that it does not know a field, rather than that its value is wrong.
const UNKNOWN: [&str; 6] =
    ["support", "deprecated", "unknown", "unrecognized", "not permitted", "not allowed"];

/// Something that a model wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peculiarity {
    /// It cannot be asked for what an answer cost.
    NoStreamOptions,
    /// It has another name for the most tokens of an answer.
    CompletionTokens,
    /// It chooses its own temperature.
    NoTemperature,
}

/// What was learnt about each model. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct Peculiarities(Arc<Mutex<BTreeMap<String, Vec<Peculiarity>>>>);

impl Peculiarities {
    /// Asks for events, and asks again without what the model says that it does not know.
    pub(super) async fn ask(
        &self,
        http: &Http,
        path: &str,
        model: &str,
        mut content: Value,
    ) -> Result<Frames, ModelError> {
        self.apply(model, &mut content);
        loop {
            match http.stream(path, &content, Framing::Events).await {
                Err(error) if self.learn(model, &error, &mut content) => {}
                answer => return answer,
            }
        }
    }

    /// Makes a request fit for a model as far as it is known.
    fn apply(&self, model: &str, content: &mut Value) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for peculiarity in known.get(model).into_iter().flatten() {
            peculiarity.apply(content);
        }
    }

    /// Changes a refused request by what the refusal says. False if that leaves it as it was.
    fn learn(&self, model: &str, error: &ModelError, content: &mut Value) -> bool {
        let ModelError::Refused { status: 400 | 422, message, .. } = error else { return false };
        let Some(peculiarity) = Peculiarity::named_in(message).filter(|it| it.apply(content))
        else {
            return false;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < limits::REMEMBERED || known.contains_key(model) {
            known.entry(model.to_owned()).or_default().push(peculiarity);
        }
        true
    }
}

impl Peculiarity {
    fn named_in(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        if message.contains("max_completion_tokens") {
            Some(Self::CompletionTokens)
        } else if message.contains("stream_options") || message.contains("include_usage") {
            Some(Self::NoStreamOptions)
        } else if message.contains("temperature") && UNKNOWN.iter().any(|it| message.contains(it)) {
            Some(Self::NoTemperature)
        } else {
            None
        }
    }

    /// Changes a request. False if there was nothing to change.
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
