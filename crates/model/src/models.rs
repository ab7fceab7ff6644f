//! Stores the configured providers and resolves model names such as `openai:gpt-4o`.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use futures::future::join_all;
use tokio::sync::Mutex;

use crate::{Embedder, LanguageModel, ModelError, ProviderKind, ProviderSettings, limits};

/// A configured provider.
#[derive(Clone, Debug)]
struct Provider {
    name: String,
    client: Arc<dyn LanguageModel>,
    default_model: Option<String>,
    /// Cached default: the first model that the provider listed, and when.
    first_listed_model: Arc<Mutex<Option<(Instant, String)>>>,
}

/// All configured providers. The first one is the default.
#[derive(Clone, Debug, Default)]
pub struct Models {
    providers: Vec<Provider>,
    /// Providers that were added while the program runs. Clones share them.
    added: Arc<RwLock<Vec<Provider>>>,
    /// The server on this machine, which is used only if its name is given.
    local: Option<Provider>,
    embedder: Option<Arc<dyn Embedder>>,
}

/// The model that answers a request.
#[derive(Clone, Debug)]
pub struct ChosenModel {
    /// The provider's name.
    pub provider: String,
    /// The model name that the provider uses.
    pub model: String,
    /// The client to call.
    pub client: Arc<dyn LanguageModel>,
}

/// The models of a provider, or why they could not be listed.
#[derive(Debug)]
pub struct ProviderModels {
    /// The provider's name.
    pub provider: String,
    /// The model that is used when the request names none.
    pub default_model: Option<String>,
    pub models: Result<Vec<String>, ModelError>,
}

impl Provider {
    fn new(name: &str, client: Arc<dyn LanguageModel>, default_model: Option<String>) -> Self {
        Self { name: name.to_owned(), client, default_model, first_listed_model: Arc::default() }
    }
}

fn find<'a>(providers: &'a [Provider], name: &str) -> Option<&'a Provider> {
    providers.iter().find(|provider| provider.name == name)
}

impl Models {
    /// Adds a provider, or replaces the provider with the same name.
    pub fn add(
        &mut self,
        name: &str,
        client: Arc<dyn LanguageModel>,
        default_model: Option<String>,
    ) {
        self.providers.retain(|provider| provider.name != name);
        self.providers.push(Provider::new(name, client, default_model));
    }

    /// Replaces the providers that were added while the program runs, without sending a request.
    /// A configured provider hides an added one of the same name.
    pub fn replace_added(&self, settings: &[ProviderSettings]) -> Result<(), ModelError> {
        let connected = settings.iter().map(|provider| {
            Ok(Provider::new(&provider.name, provider.client()?, provider.model.clone()))
        });
        let connected = connected.collect::<Result<Vec<_>, ModelError>>()?;
        *self.added.write().unwrap_or_else(PoisonError::into_inner) = connected;
        Ok(())
    }

    /// Makes `ollama:MODEL` work without configuration, with the default address of Ollama.
    pub fn allow_local_ollama(&mut self) -> Result<(), ModelError> {
        let kind = ProviderKind::Ollama;
        let client = ProviderSettings::new(kind.name(), kind).client()?;
        self.local = Some(Provider::new(kind.name(), client, None));
        Ok(())
    }

    /// Whether a provider of this name is configured, apart from the added ones.
    pub fn is_configured(&self, name: &str) -> bool {
        find(&self.providers, name).is_some()
    }

    /// The configured providers, then the added ones.
    fn all(&self) -> Vec<Provider> {
        let mut all = self.providers.clone();
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        all.extend(added.iter().filter(|provider| !self.is_configured(&provider.name)).cloned());
        all
    }

    pub fn set_embedder(&mut self, embedder: Arc<dyn Embedder>) {
        self.embedder = Some(embedder);
    }

    /// Returns the embedder, if one is configured.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref()
    }

    /// Returns whether no provider is configured.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Resolves `provider:model`, a model name alone, or `None` for the default.
    ///
    /// The text before the first colon is a provider only if one has that name, because names of
    /// Ollama models contain colons.
    pub async fn choose(&self, name_or_default: Option<&str>) -> Result<ChosenModel, ModelError> {
        let providers = self.all();
        let wanted = name_or_default.filter(|wanted| !wanted.is_empty());
        let named = wanted.and_then(|wanted| {
            let (name, model) = wanted.split_once(':')?;
            let local = || self.local.as_ref().filter(|local| local.name == name);
            Some((find(&providers, name).or_else(local)?, Some(model.to_owned())))
        });
        let (provider, model) = match (named, providers.first()) {
            (Some(named), _) => named,
            (None, Some(first)) => (first, wanted.map(str::to_owned)),
            (None, None) => return Err(ModelError::NoProvider),
        };
        let model = match model.filter(|model| !model.is_empty()) {
            Some(model) => model,
            None => default_model_of(provider).await?,
        };
        Ok(ChosenModel { provider: provider.name.clone(), model, client: provider.client.clone() })
    }

    /// Lists the models of every provider, concurrently.
    pub async fn list(&self) -> Vec<ProviderModels> {
        join_all(self.all().iter().map(async |provider| ProviderModels {
            provider: provider.name.clone(),
            default_model: provider.default_model.clone(),
            models: provider.client.models().await,
        }))
        .await
    }
}

/// Returns the configured model, or else the first one that the provider lists. The result is
/// cached, and concurrent callers share one request.
async fn default_model_of(provider: &Provider) -> Result<String, ModelError> {
    if let Some(model) = &provider.default_model {
        return Ok(model.clone());
    }
    let mut first_listed_model = provider.first_listed_model.lock().await;
    if let Some((when, model)) = &*first_listed_model
        && when.elapsed() < limits::DEFAULT_MODEL_TTL
    {
        return Ok(model.clone());
    }
    let offered = provider.client.models().await?;
    let first = offered.into_iter().next().ok_or_else(|| {
        ModelError::Setting(format!("{} offers no model; name one", provider.name))
    })?;
    *first_listed_model = Some((Instant::now(), first.clone()));
    Ok(first)
}
