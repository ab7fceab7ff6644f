//! Defines the settings of model providers, from files and the environment.

mod address;
mod connect;
mod environment;
mod key;
mod seconds;

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::Secret;

/// The wire format of a provider.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// The chat completions API of `OpenAI` and many other servers.
    OpenAi,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The native API of Ollama.
    Ollama,
}

/// The settings of one provider, from a table `[models.NAME]` of a file or from environment
/// variables.
///
/// A file of another user's project must not choose where a key is sent: read tables only from the
/// files of the user who owns the keys.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProviderSettings {
    /// The provider's name; in files, the name of the table.
    #[serde(skip)]
    pub name: String,
    pub kind: ProviderKind,
    /// Base URL; `None` uses the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The API key; it cannot be set in a settings file.
    #[serde(skip)]
    pub key: Option<Secret>,
    /// Environment variable with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File with the key, readable only by its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The model that is used when the request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long to wait for the first byte of an answer, in seconds.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    pub first_byte_timeout: Option<Duration>,
    /// How long an answer may pause between bytes, in seconds.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    #[serde(skip)]
    origin: SettingsOrigin,
}

/// Where settings came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SettingsOrigin {
    #[default]
    File,
    Environment,
}

/// The embedding model.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "EmbeddingTable", into = "EmbeddingTable")]
pub enum EmbeddingSettings {
    /// A model of a provider.
    Provider {
        /// The provider's name.
        provider: String,
        /// The model, as the provider names it.
        model: String,
    },
    /// A model in a folder, in the layout of sentence-transformers.
    Folder(PathBuf),
}

/// [`EmbeddingSettings`] in the form of a settings file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EmbeddingTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

/// All settings of models.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The providers. Names are unique.
    pub providers: Vec<ProviderSettings>,
    /// The embedding model.
    pub embedding: Option<EmbeddingSettings>,
    /// The default `provider:model`, provider or model. If it is not set, the first provider is the
    /// default.
    pub default: Option<String>,
}

impl ProviderSettings {
    /// Creates settings with only a name and a kind.
    pub fn new(name: &str, kind: ProviderKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: None,
            key: None,
            key_env: None,
            key_file: None,
            model: None,
            first_byte_timeout: None,
            idle_timeout: None,
            origin: SettingsOrigin::File,
        }
    }

    /// Returns the name of a setting for error messages.
    fn setting_name(&self, field: &str) -> String {
        match self.origin {
            SettingsOrigin::File => format!("`{field}` of [models.{}]", self.name),
            SettingsOrigin::Environment => self.kind.variable_name(field).to_owned(),
        }
    }
}

impl ProviderKind {
    /// All kinds. Each name is also the name of the provider that environment variables configure.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Ollama];

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the environment variable of a setting.
    fn variable_name(self, field: &str) -> &'static str {
        match (self, field) {
            (Self::OpenAi, "base-url") => "OPENAI_BASE_URL",
            (Self::OpenAi, "model") => "OPENAI_MODEL",
            (Self::OpenAi, _) => "OPENAI_API_KEY",
            (Self::Anthropic, "base-url") => "ANTHROPIC_BASE_URL",
            (Self::Anthropic, "model") => "ANTHROPIC_MODEL",
            (Self::Anthropic, _) => "ANTHROPIC_API_KEY",
            (Self::Ollama, "model") => "OLLAMA_MODEL",
            (Self::Ollama, _) => "OLLAMA_HOST",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl TryFrom<EmbeddingTable> for EmbeddingSettings {
    type Error = &'static str;

    fn try_from(table: EmbeddingTable) -> Result<Self, Self::Error> {
        match (table.provider, table.model, table.folder) {
            (Some(provider), Some(model), None) => Ok(Self::Provider { provider, model }),
            (None, None, Some(folder)) => Ok(Self::Folder(folder)),
            _ => Err("an embedding is either `folder` alone or `provider` and `model`"),
        }
    }
}

impl From<EmbeddingSettings> for EmbeddingTable {
    fn from(settings: EmbeddingSettings) -> Self {
        match settings {
            EmbeddingSettings::Provider { provider, model } => {
                Self { provider: Some(provider), model: Some(model), folder: None }
            }
            EmbeddingSettings::Folder(folder) => {
                Self { provider: None, model: None, folder: Some(folder) }
            }
        }
    }
}

impl Settings {
    /// Creates settings from the tables `[models.NAME]` and other fields of a file.
    pub fn from_tables(
        tables: impl IntoIterator<Item = (String, ProviderSettings)>,
        embedding: Option<EmbeddingSettings>,
        default: Option<String>,
    ) -> Self {
        let named = |(name, settings)| ProviderSettings { name, ..settings };
        Self { providers: tables.into_iter().map(named).collect(), embedding, default }
    }

    fn find(&self, name: &str) -> Option<&ProviderSettings> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Returns whether the name is a provider kind that is not configured.
    fn is_unconfigured_provider(&self, name: &str) -> bool {
        self.find(name).is_none() && ProviderKind::ALL.iter().any(|kind| kind.name() == name)
    }
}
