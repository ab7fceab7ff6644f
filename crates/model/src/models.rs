//! Which models there are, and which one is meant.

use std::{sync::Arc, time::Instant};

use futures::future::join_all;
use tokio::sync::Mutex;

use crate::{Embedder, LanguageModel, ModelError, limits};

/// A provider under its name.
#[derive(Clone, Debug)]
struct Provider {
    name: String,
    client: Arc<dyn LanguageModel>,
    default_model: Option<String>,
    /// The first model that it offered, and when.
    listed: Arc<Mutex<Option<(Instant, String)>>>,
}

/// All configured providers. The first one is the default.
#[derive(Clone, Debug, Default)]
pub struct Models {
    providers: Vec<Provider>,
    embedder: Option<Arc<dyn Embedder>>,
}

/// The model that answers a request.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// The one to ask.
    pub client: Arc<dyn LanguageModel>,
}

/// What a provider offers, or why it is not known.
#[derive(Debug)]
pub struct Listed {
    /// The provider's name.
    pub provider: String,
    /// The model that is taken when none is named.
    pub default_model: Option<String>,
    /// Its models.
    pub models: Result<Vec<String>, ModelError>,
}

impl Models {
    /// Adds a provider. Names are unique; a second one of a name replaces the first.
    pub fn add(
        &mut self,
        name: &str,
        client: Arc<dyn LanguageModel>,
        default_model: Option<String>,
    ) {
        self.providers.retain(|provider| provider.name != name);
        let listed = Arc::default();
        self.providers.push(Provider { name: name.to_owned(), client, default_model, listed });
    }

    /// Sets what makes vectors.
    pub fn set_embedder(&mut self, embedder: Arc<dyn Embedder>) {
        self.embedder = Some(embedder);
    }

    /// What makes vectors, if anything does.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref()
    }

    /// Whether nobody can be asked.
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    /// The model that is meant by `provider:model`, by a model's name alone, or by nothing.
    ///
    /// What stands before the first colon is a provider only if there is one of that name: Ollama's
    /// models have colons of their own.
    pub async fn choose(&self, wanted: Option<&str>) -> Result<Choice, ModelError> {
        let first = self.providers.first().ok_or(ModelError::NoProvider)?;
        let (provider, model) = match wanted.filter(|wanted| !wanted.is_empty()) {
            None => (first, None),
            Some(wanted) => match wanted.split_once(':') {
                Some((name, model)) => match self.find(name) {
                    Some(provider) => (provider, Some(model.to_owned())),
                    None => (first, Some(wanted.to_owned())),
                },
                None => (first, Some(wanted.to_owned())),
            },
        };
        let model = match model.filter(|model| !model.is_empty()) {
            Some(model) => model,
            None => default_of(provider).await?,
        };
        Ok(Choice { provider: provider.name.clone(), model, client: provider.client.clone() })
    }

    fn find(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// What every provider offers. They are asked at once.
    pub async fn list(&self) -> Vec<Listed> {
        join_all(self.providers.iter().map(async |provider| Listed {
            provider: provider.name.clone(),
            default_model: provider.default_model.clone(),
            models: provider.client.models().await,
        }))
        .await
    }
}

/// The configured model, else the first one that the provider offers. That is asked now and then
/// only, and once for all who wait.
async fn default_of(provider: &Provider) -> Result<String, ModelError> {
    if let Some(model) = &provider.default_model {
        return Ok(model.clone());
    }
    let mut listed = provider.listed.lock().await;
    if let Some((when, model)) = &*listed
        && when.elapsed() < limits::LISTED
    {
        return Ok(model.clone());
    }
    let offered = provider.client.models().await?;
    let first = offered.into_iter().next().ok_or_else(|| {
        ModelError::Setting(format!("{} offers no model; name one", provider.name))
    })?;
    *listed = Some((Instant::now(), first.clone()));
    Ok(first)
}
