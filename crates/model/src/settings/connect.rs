//! From settings to those who answer.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::{EmbeddingSettings, ProviderKind, ProviderSettings, Settings, address::base_url};
use crate::{
    LanguageModel, ModelError, Models, Secret,
    embed::{HttpEmbedder, LocalEmbedder, Wire},
    http::{Http, Patience, shown},
    limits,
    provider::{Anthropic, Ollama, OpenAi, VERSION},
};

impl Models {
    /// The providers of some settings. Nothing is asked yet.
    pub fn from_settings(settings: &Settings) -> Result<Self, ModelError> {
        let mut models = Self::default();
        let (first, chosen) = settings.default_choice()?;
        let mut providers: Vec<_> = settings.providers.iter().collect();
        // A stable sort: the default comes first and the others keep their order.
        providers.sort_by_key(|provider| Some(provider.name.as_str()) != first);
        for (position, provider) in providers.into_iter().enumerate() {
            let http = provider.connect()?;
            let client: Arc<dyn LanguageModel> = match provider.kind {
                ProviderKind::OpenAi => Arc::new(OpenAi::new(http.clone())),
                ProviderKind::Anthropic => Arc::new(Anthropic::new(http.clone())),
                ProviderKind::Ollama => Arc::new(Ollama::new(http.clone())),
            };
            let chosen = chosen.filter(|_| position == 0).map(str::to_owned);
            models.add(&provider.name, client, chosen.or_else(|| provider.model.clone()));
            if let Some(EmbeddingSettings::Provider { provider: name, model }) = &settings.embedding
                && *name == provider.name
            {
                models.set_embedder(Arc::new(provider.embedder(http, model)?));
            }
        }
        match &settings.embedding {
            Some(EmbeddingSettings::Folder(path)) => {
                models.set_embedder(Arc::new(LocalEmbedder::open(path)?));
            }
            Some(EmbeddingSettings::Provider { provider, .. }) if models.embedder().is_none() => {
                return Err(settings.unknown(provider));
            }
            _ => {}
        }
        Ok(models)
    }
}

impl Settings {
    /// The provider that comes first and the model that it is asked for, as far as they are set.
    fn default_choice(&self) -> Result<(Option<&str>, Option<&str>), ModelError> {
        let Some(text) = self.default.as_deref().filter(|text| !text.is_empty()) else {
            return Ok((None, None));
        };
        let (name, model) = text.split_once(':').unwrap_or((text, ""));
        if self.find(name).is_some() {
            return Ok((Some(name), Some(model).filter(|model| !model.is_empty())));
        }
        if text.contains(':') && self.lacks(name) {
            return Err(self.unknown(name));
        }
        Ok((None, Some(text)))
    }

    fn unknown(&self, name: &str) -> ModelError {
        let known = self.providers.iter().map(|provider| provider.name.clone()).collect();
        ModelError::UnknownProvider { name: name.to_owned(), known }
    }
}

impl ProviderSettings {
    fn connect(&self) -> Result<Http, ModelError> {
        if self.name.is_empty() || self.name.contains(|c: char| c == ':' || c.is_whitespace()) {
            return Err(ModelError::Setting(format!(
                "`{}` cannot be the name of a provider; take letters, digits and hyphens",
                self.name
            )));
        }
        let url = self.address()?;
        let key = self.read_key(&|name| std::env::var(name).ok())?;
        if key.is_none() && self.base_url.is_none() && self.kind != ProviderKind::Ollama {
            return Err(ModelError::Setting(format!(
                "{} at {} wants a key, and there is none; add `key-env` or `key-file` to [models.{}]",
                self.name,
                shown(&url),
                self.name
            )));
        }
        let headers = self.headers(key.as_ref())?;
        let patience = Patience {
            first_byte: self.first_byte_timeout.unwrap_or(limits::FIRST_BYTE),
            idle: self.idle_timeout.unwrap_or(limits::IDLE),
        };
        Ok(Http::new(&self.name, url, headers, key, patience))
    }

    /// The address below which the paths of the wire format stand.
    fn address(&self) -> Result<Url, ModelError> {
        let default = match self.kind {
            ProviderKind::OpenAi => "https://api.openai.com/v1",
            ProviderKind::Anthropic => "https://api.anthropic.com",
            ProviderKind::Ollama => "http://127.0.0.1:11434",
        };
        let text = self.base_url.as_deref().unwrap_or(default);
        let mut url = base_url(text).map_err(|error| {
            let place = self.place("base-url");
            ModelError::Setting(format!("{place} is no address: {error}; write it as {default}"))
        })?;
        let path = url.path().trim_end_matches('/').to_owned();
        match self.kind {
            // Its customary address ends in /v1; who gives a host alone means the same.
            ProviderKind::OpenAi if path.is_empty() => url.set_path("/v1"),
            // Its customary address does not.
            ProviderKind::Anthropic => url.set_path(path.strip_suffix("/v1").unwrap_or(&path)),
            ProviderKind::OpenAi | ProviderKind::Ollama => url.set_path(&path),
        }
        Ok(url)
    }

    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        if self.kind == ProviderKind::Anthropic {
            let name = HeaderName::from_static("anthropic-version");
            headers.insert(name, HeaderValue::from_static(VERSION));
        }
        let Some(key) = key.map(Secret::reveal) else { return Ok(headers) };
        let (name, value) = match self.kind {
            ProviderKind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            ProviderKind::OpenAi | ProviderKind::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            let name = &self.name;
            ModelError::Setting(format!(
                "the key of {name} has line breaks or other characters that no key has; copy it again"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    fn embedder(&self, http: Http, model: &str) -> Result<HttpEmbedder, ModelError> {
        let wire = match self.kind {
            ProviderKind::OpenAi => Wire::OpenAi,
            ProviderKind::Ollama => Wire::Ollama,
            ProviderKind::Anthropic => {
                return Err(ModelError::Setting(format!(
                    "{} has no embeddings; take a provider of the kind openai or ollama, or a folder",
                    self.name
                )));
            }
        };
        if model.is_empty() {
            let name = &self.name;
            let message = format!("name the embedding model: {name}:MODEL");
            return Err(ModelError::Setting(message));
        }
        Ok(HttpEmbedder::new(http, wire, model))
    }
}
