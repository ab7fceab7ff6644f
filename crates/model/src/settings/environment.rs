//! Settings from variables.

use super::{
    EmbeddingSettings, Origin, ProviderKind, ProviderSettings, Settings, address::ollama_host,
};
use crate::{ModelError, Secret};

impl Settings {
    /// What the environment says. An empty variable is one that is not set.
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        Self::default().with_environment(environment)
    }

    /// These settings, with those of the environment above them.
    ///
    /// A provider that the environment names takes from a file of the same name only what the
    /// environment does not say and what is not about where a key goes: a key of the environment is
    /// never sent to an address of a file.
    pub fn with_environment(
        mut self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let get = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        for provider in &mut self.providers {
            if provider.key_env.is_some() && !named_by(provider, &get) {
                provider.key = provider.read_key(&get)?;
            }
        }
        for kind in ProviderKind::ALL {
            match provider(kind, &get)? {
                Some(provider) => self.put(provider),
                None => self.set_model(kind, get(kind.variable("model"))),
            }
        }
        if let Some(model) = get("SAVOIR_MODEL") {
            self.default = Some(model.trim().to_owned());
        }
        if let Some(model) = get("SAVOIR_EMBEDDING_MODEL") {
            self.embedding = Some(self.embedding_of(model.trim())?);
        }
        Ok(self)
    }

    /// Puts a provider of the environment in the place of a file's provider of that name.
    fn put(&mut self, mut provider: ProviderSettings) {
        let Some(known) = self.providers.iter_mut().find(|known| known.name == provider.name)
        else {
            return self.providers.push(provider);
        };
        provider.model = provider.model.or_else(|| known.model.take());
        provider.first_byte_timeout = known.first_byte_timeout;
        provider.idle_timeout = known.idle_timeout;
        *known = provider;
    }

    fn set_model(&mut self, kind: ProviderKind, model: Option<String>) {
        let known = self.providers.iter_mut().find(|known| known.name == kind.name());
        if let (Some(known), Some(model)) = (known, model) {
            known.model = Some(model);
        }
    }

    /// `provider:model` if there is that provider, else a folder.
    fn embedding_of(&self, text: &str) -> Result<EmbeddingSettings, ModelError> {
        match text.split_once(':') {
            Some((name, model)) if self.find(name).is_some() => Ok(EmbeddingSettings::Provider {
                provider: name.to_owned(),
                model: model.to_owned(),
            }),
            Some((name, _)) if self.lacks(name) => Err(ModelError::Setting(format!(
                "SAVOIR_EMBEDDING_MODEL names {name}, which is not configured; \
                 set that up, too, or name a folder"
            ))),
            _ => Ok(EmbeddingSettings::Folder(text.into())),
        }
    }
}

/// Whether the environment has a provider of the same name.
fn named_by(provider: &ProviderSettings, get: &dyn Fn(&str) -> Option<String>) -> bool {
    let kind = ProviderKind::ALL.into_iter().find(|kind| kind.name() == provider.name);
    kind.is_some_and(|kind| is_set(kind, get))
}

fn is_set(kind: ProviderKind, get: &dyn Fn(&str) -> Option<String>) -> bool {
    let fields: &[&str] = match kind {
        ProviderKind::OpenAi | ProviderKind::Anthropic => &["key", "base-url"],
        ProviderKind::Ollama => &["base-url"],
    };
    fields.iter().any(|field| get(kind.variable(field)).is_some())
}

/// The provider that the variables of a kind describe.
fn provider(
    kind: ProviderKind,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ProviderSettings>, ModelError> {
    if !is_set(kind, get) {
        return Ok(None);
    }
    let mut provider = ProviderSettings::new(kind.name(), kind);
    provider.origin = Origin::Environment;
    provider.base_url = get(kind.variable("base-url"));
    provider.model = get(kind.variable("model")).map(|model| model.trim().to_owned());
    if kind == ProviderKind::Ollama {
        let host = provider.base_url.as_deref().unwrap_or_default();
        let url = ollama_host(host).map_err(|error| {
            ModelError::Setting(format!(
                "OLLAMA_HOST is `{host}`, which is no address: {error}; \
                 write it as http://127.0.0.1:11434"
            ))
        })?;
        provider.base_url = Some(url.to_string());
    } else {
        provider.key = get(kind.variable("key")).map(|key| Secret::new(&key));
    }
    Ok(Some(provider))
}
