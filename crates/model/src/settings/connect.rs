//! Creates provider clients from settings.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::{EmbeddingSettings, ProviderKind, ProviderSettings, Settings, address::parse_base_url};
#[cfg(feature = "local-embeddings")]
use crate::embed::LocalEmbedder;
use crate::{
    LanguageModel, ModelError, Models, Secret,
    embed::{EmbeddingApi, HttpEmbedder},
    http::{Http, Timeouts, redact_url},
    limits,
    provider::{ANTHROPIC_API_VERSION, Anthropic, Ollama, OpenAi},
};

impl Models {
    /// Creates the clients of all configured providers, without sending a request.
    pub fn from_settings(settings: &Settings) -> Result<Self, ModelError> {
        let mut models = Self::default();
        let (first, chosen_model) = settings.default_choice()?;
        let mut providers: Vec<_> = settings.providers.iter().collect();
        // A stable sort: the default comes first and the others stay in order.
        providers.sort_by_key(|provider| Some(provider.name.as_str()) != first);
        for (position, provider) in providers.into_iter().enumerate() {
            let http = provider.connect()?;
            let client = provider.client_over(http.clone());
            let chosen_model = chosen_model.filter(|_| position == 0).map(str::to_owned);
            models.add(&provider.name, client, chosen_model.or_else(|| provider.model.clone()));
            if let Some(EmbeddingSettings::Provider { provider: name, model }) = &settings.embedding
                && *name == provider.name
            {
                models.set_embedder(Arc::new(provider.embedder(http, model)?));
            }
        }
        match &settings.embedding {
            #[cfg(feature = "local-embeddings")]
            Some(EmbeddingSettings::Folder(path)) => {
                models.set_embedder(Arc::new(LocalEmbedder::open(path)?));
            }
            #[cfg(not(feature = "local-embeddings"))]
            Some(EmbeddingSettings::Folder(_)) => {
                let message = "this program was built without local embedding models";
                return Err(ModelError::Setting(message.to_owned()));
            }
            Some(EmbeddingSettings::Provider { provider, .. }) if models.embedder().is_none() => {
                return Err(settings.unknown_provider(provider));
            }
            _ => {}
        }
        Ok(models)
    }
}

impl Settings {
    /// Returns the default provider and model, if set.
    fn default_choice(&self) -> Result<(Option<&str>, Option<&str>), ModelError> {
        let Some(text) = self.default.as_deref().filter(|text| !text.is_empty()) else {
            return Ok((None, None));
        };
        let (name, model) = text.split_once(':').unwrap_or((text, ""));
        if self.find(name).is_some() {
            return Ok((Some(name), Some(model).filter(|model| !model.is_empty())));
        }
        if text.contains(':') && self.is_unconfigured_provider(name) {
            return Err(self.unknown_provider(name));
        }
        Ok((None, Some(text)))
    }

    fn unknown_provider(&self, name: &str) -> ModelError {
        let known = self.providers.iter().map(|provider| provider.name.clone()).collect();
        ModelError::UnknownProvider { name: name.to_owned(), known }
    }
}

impl ProviderSettings {
    /// Creates the client of this provider, without sending a request.
    pub fn client(&self) -> Result<Arc<dyn LanguageModel>, ModelError> {
        Ok(self.client_over(self.connect()?))
    }

    fn client_over(&self, http: Http) -> Arc<dyn LanguageModel> {
        match self.kind {
            ProviderKind::OpenAi => Arc::new(OpenAi::new(http)),
            ProviderKind::Anthropic => Arc::new(Anthropic::new(http)),
            ProviderKind::Ollama => Arc::new(Ollama::new(http)),
        }
    }

    fn connect(&self) -> Result<Http, ModelError> {
        if self.name.is_empty() || self.name.contains(|c: char| c == ':' || c.is_whitespace()) {
            return Err(ModelError::Setting(format!(
                "`{}` cannot be the name of a provider; use letters, digits and hyphens",
                self.name
            )));
        }
        let url = self.base_address()?;
        let key = self.read_key(&|name| std::env::var(name).ok())?;
        if key.is_none() && self.base_url.is_none() && self.kind != ProviderKind::Ollama {
            return Err(ModelError::Setting(format!(
                "{} at {} needs an API key and none is set; add `key-env` or `key-file` to [models.{}]",
                self.name,
                redact_url(&url),
                self.name
            )));
        }
        let headers = self.headers(key.as_ref())?;
        let timeouts = Timeouts {
            first_byte: self.first_byte_timeout.unwrap_or(limits::FIRST_BYTE_TIMEOUT),
            idle: self.idle_timeout.unwrap_or(limits::IDLE_TIMEOUT),
        };
        Ok(Http::new(&self.name, url, headers, key, timeouts))
    }

    /// Returns the base URL of the API.
    fn base_address(&self) -> Result<Url, ModelError> {
        let default = match self.kind {
            ProviderKind::OpenAi => "https://api.openai.com/v1",
            ProviderKind::Anthropic => "https://api.anthropic.com",
            ProviderKind::Ollama => "http://127.0.0.1:11434",
        };
        let text = self.base_url.as_deref().unwrap_or(default);
        let mut url = parse_base_url(text).map_err(|error| {
            let setting = self.setting_name("base-url");
            ModelError::Setting(format!(
                "{setting} is not a valid URL: {error}; write it as {default}"
            ))
        })?;
        let path = url.path().trim_end_matches('/').to_owned();
        match self.kind {
            // The usual address ends with `/v1`; a host alone means the same.
            ProviderKind::OpenAi if path.is_empty() => url.set_path("/v1"),
            // The usual address does not end with `/v1`.
            ProviderKind::Anthropic => url.set_path(path.strip_suffix("/v1").unwrap_or(&path)),
            ProviderKind::OpenAi | ProviderKind::Ollama => url.set_path(&path),
        }
        Ok(url)
    }

    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        if self.kind == ProviderKind::Anthropic {
            let name = HeaderName::from_static("anthropic-version");
            headers.insert(name, HeaderValue::from_static(ANTHROPIC_API_VERSION));
        }
        let Some(key) = key.map(Secret::reveal) else { return Ok(headers) };
        let (name, value) = match self.kind {
            ProviderKind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            ProviderKind::OpenAi | ProviderKind::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            let name = &self.name;
            ModelError::Setting(format!(
                "the key of {name} has line breaks or other characters that are invalid in a key; copy it again"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    fn embedder(&self, http: Http, model: &str) -> Result<HttpEmbedder, ModelError> {
        let api = match self.kind {
            ProviderKind::OpenAi => EmbeddingApi::OpenAi,
            ProviderKind::Ollama => EmbeddingApi::Ollama,
            ProviderKind::Anthropic => {
                return Err(ModelError::Setting(format!(
                    "{} has no embeddings; use a provider of the kind openai or ollama, or a folder",
                    self.name
                )));
            }
        };
        if model.is_empty() {
            let name = &self.name;
            let message = format!("name the embedding model: {name}:MODEL");
            return Err(ModelError::Setting(message));
        }
        Ok(HttpEmbedder::new(http, api, model))
    }
}
