//! Reads settings from environment variables.

use super::{
    EmbeddingSettings, ProviderKind, ProviderSettings, Settings, SettingsOrigin,
    address::parse_ollama_host,
};
use crate::{ModelError, Secret};

impl Settings {
    /// Reads settings from the environment. An empty variable counts as not set.
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        Self::default().with_environment(environment)
    }

    /// Overrides these settings with those of the environment.
    ///
    /// A provider that the environment configures takes only its model and timeouts from a file: a
    /// key from the environment is never sent to an address from a file.
    pub fn with_environment(
        mut self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let get = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        for provider in &mut self.providers {
            if provider.key_env.is_some() && !is_in_environment(provider, &get) {
                provider.key = provider.read_key(&get)?;
            }
        }
        for kind in ProviderKind::ALL {
            match provider_from_environment(kind, &get)? {
                Some(provider) => self.replace_or_add(provider),
                None => self.set_model(kind, get(kind.variable_name("model"))),
            }
        }
        if let Some(model) = get("SAVOIR_MODEL") {
            self.default = Some(model.trim().to_owned());
        }
        if let Some(model) = get("SAVOIR_EMBEDDING_MODEL") {
            self.embedding = Some(self.parse_embedding(model.trim())?);
        }
        Ok(self)
    }

    /// Replaces the provider with the same name, which came from a file, or adds the provider.
    fn replace_or_add(&mut self, mut provider: ProviderSettings) {
        let Some(existing) =
            self.providers.iter_mut().find(|existing| existing.name == provider.name)
        else {
            return self.providers.push(provider);
        };
        provider.model = provider.model.or_else(|| existing.model.take());
        provider.first_byte_timeout = existing.first_byte_timeout;
        provider.idle_timeout = existing.idle_timeout;
        *existing = provider;
    }

    fn set_model(&mut self, kind: ProviderKind, model: Option<String>) {
        let existing = self.providers.iter_mut().find(|existing| existing.name == kind.name());
        if let (Some(existing), Some(model)) = (existing, model) {
            existing.model = Some(model);
        }
    }

    /// Parses `provider:model` if that provider is configured, and otherwise a folder path.
    fn parse_embedding(&self, text: &str) -> Result<EmbeddingSettings, ModelError> {
        match text.split_once(':') {
            Some((name, model)) if self.find(name).is_some() => Ok(EmbeddingSettings::Provider {
                provider: name.to_owned(),
                model: model.to_owned(),
            }),
            Some((name, _)) if self.is_unconfigured_provider(name) => {
                Err(ModelError::Setting(format!(
                    "SAVOIR_EMBEDDING_MODEL names {name}, which is not configured; \
                 configure it too, or name a folder"
                )))
            }
            _ => Ok(EmbeddingSettings::Folder(text.into())),
        }
    }
}

/// Returns whether the environment configures a provider with the same name.
fn is_in_environment(provider: &ProviderSettings, get: &dyn Fn(&str) -> Option<String>) -> bool {
    let kind = ProviderKind::ALL.into_iter().find(|kind| kind.name() == provider.name);
    kind.is_some_and(|kind| has_variables(kind, get))
}

fn has_variables(kind: ProviderKind, get: &dyn Fn(&str) -> Option<String>) -> bool {
    let fields: &[&str] = match kind {
        ProviderKind::OpenAi | ProviderKind::Anthropic => &["key", "base-url"],
        ProviderKind::Ollama => &["base-url"],
    };
    fields.iter().any(|field| get(kind.variable_name(field)).is_some())
}

/// Returns the provider that the environment variables of a kind configure.
fn provider_from_environment(
    kind: ProviderKind,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ProviderSettings>, ModelError> {
    if !has_variables(kind, get) {
        return Ok(None);
    }
    let mut provider = ProviderSettings::new(kind.name(), kind);
    provider.origin = SettingsOrigin::Environment;
    provider.base_url = get(kind.variable_name("base-url"));
    provider.model = get(kind.variable_name("model")).map(|model| model.trim().to_owned());
    if kind == ProviderKind::Ollama {
        let host = provider.base_url.as_deref().unwrap_or_default();
        let url = parse_ollama_host(host).map_err(|error| {
            ModelError::Setting(format!(
                "OLLAMA_HOST is `{host}`, which is not a valid address: {error}; \
                 write it as http://127.0.0.1:11434"
            ))
        })?;
        provider.base_url = Some(url.to_string());
    } else {
        provider.key = get(kind.variable_name("key")).map(|key| Secret::new(&key));
    }
    Ok(Some(provider))
}
