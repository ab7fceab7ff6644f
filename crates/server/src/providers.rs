//! Model providers that administrators add in the web app. They are stored in the database.
//! Providers in the settings file or the environment take precedence.

use std::{collections::BTreeMap, time::Duration};

use savoir_model::{ProviderKind, ProviderSettings, Secret};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    error::{ApiError, ApiResult},
};

/// The setting that holds the added providers as JSON.
const SETTING: &str = "models:providers";
/// Maximum delay until a change by another process takes effect here.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of tries of a change while other processes change the providers, too.
const MAX_TRIES: usize = 20;

/// A type of provider that an administrator can add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProviderChoice {
    /// The name of the provider; it stands before the colon in `openai:gpt-4o`.
    pub(crate) id: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: ProviderKind,
    pub(crate) needs_key: bool,
    /// The default URL; `None` if the administrator must enter one.
    pub(crate) usual_url: Option<&'static str>,
}

pub(crate) const CHOICES: [ProviderChoice; 4] = [
    ProviderChoice {
        id: "anthropic",
        label: "Anthropic",
        kind: ProviderKind::Anthropic,
        needs_key: true,
        usual_url: Some("https://api.anthropic.com"),
    },
    ProviderChoice {
        id: "openai",
        label: "OpenAI",
        kind: ProviderKind::OpenAi,
        needs_key: true,
        usual_url: Some("https://api.openai.com/v1"),
    },
    ProviderChoice {
        id: "ollama",
        label: "Ollama",
        kind: ProviderKind::Ollama,
        needs_key: false,
        usual_url: Some("http://127.0.0.1:11434"),
    },
    ProviderChoice {
        id: "compatible",
        label: "OpenAI-compatible server",
        kind: ProviderKind::OpenAi,
        needs_key: false,
        usual_url: None,
    },
];

impl ProviderChoice {
    pub(crate) fn find(id: &str) -> ApiResult<Self> {
        let found = CHOICES.into_iter().find(|choice| choice.id == id);
        found.ok_or_else(|| {
            let ids = CHOICES.map(|choice| choice.id).join(", ");
            ApiError::not_found(format!("There is no provider `{id}`"))
                .with_hint(format!("the providers are {ids}"))
        })
    }
}

/// The settings that an administrator entered for a provider.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct AddedProvider {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

impl std::fmt::Debug for AddedProvider {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.api_key.as_ref().map(|_| "***");
        formatter.debug_struct("AddedProvider").field("api_key", &key).finish_non_exhaustive()
    }
}

impl AddedProvider {
    /// The settings for connecting; an error if a required one is missing.
    pub(crate) fn settings(&self, choice: ProviderChoice) -> ApiResult<ProviderSettings> {
        if choice.needs_key && self.api_key.is_none() {
            return Err(ApiError::bad_request(format!("{} needs a key", choice.label))
                .with_hint("create one in your account there and enter it"));
        }
        if choice.usual_url.is_none() && self.base_url.is_none() {
            return Err(ApiError::bad_request(format!("{} needs an address", choice.label))
                .with_hint("enter its base URL, for example http://127.0.0.1:8000/v1"));
        }
        let mut settings = ProviderSettings::new(choice.id, choice.kind);
        settings.key = self.api_key.as_deref().map(Secret::new);
        settings.base_url.clone_from(&self.base_url);
        settings.model.clone_from(&self.model);
        Ok(settings)
    }

    /// Fills in missing settings from the stored ones; an empty URL or model means the default. A
    /// stored key is never sent to another URL.
    pub(crate) fn over(mut self, stored: Option<&Self>, usual_url: Option<&str>) -> Self {
        let stored = stored.cloned().unwrap_or_default();
        self.base_url = self.base_url.or_else(|| stored.base_url.clone());
        self.base_url =
            self.base_url.filter(|url| !url.is_empty() && Some(url.as_str()) != usual_url);
        self.model = self.model.or(stored.model).filter(|model| !model.is_empty());
        if self.base_url == stored.base_url {
            self.api_key = self.api_key.or(stored.api_key);
        }
        self
    }
}

pub(crate) type AddedProviders = BTreeMap<String, AddedProvider>;

/// Reads the added providers from the database.
pub(crate) async fn stored(app: &App) -> ApiResult<AddedProviders> {
    Ok(parse(app.database.settings().get(SETTING).await?.as_deref()))
}

/// Connects the stored providers when the server starts.
pub(crate) async fn load(app: &App) {
    match stored(app).await {
        Ok(providers) => use_providers(app, &providers),
        Err(error) => {
            let error = error.text();
            tracing::warn!(error, "added model providers were not read");
        }
    }
}

/// Changes the added providers and connects them. If another process changes them at the same time,
/// the change is applied again to the new state.
pub(crate) async fn change(
    app: &App,
    mut change: impl FnMut(&mut AddedProviders) -> ApiResult<()>,
) -> ApiResult<AddedProviders> {
    for _ in 0..MAX_TRIES {
        let old = app.database.settings().get(SETTING).await?;
        let mut providers = parse(old.as_deref());
        change(&mut providers)?;
        let new = serde_json::to_string(&providers).unwrap_or_default();
        if app.database.settings().swap(SETTING, old.as_deref(), &new).await? {
            use_providers(app, &providers);
            return Ok(providers);
        }
    }
    Err(ApiError::conflict("The providers are changed by others at the same time")
        .with_hint("send the request again"))
}

fn parse(text: Option<&str>) -> AddedProviders {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Applies changes that other processes make in the database, until the server stops.
pub(crate) async fn watch(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(REFRESH_INTERVAL);
    let refreshing = async {
        loop {
            every.tick().await;
            load(&app).await;
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = refreshing => {}
    }
}

/// Connects the providers if they changed. A provider whose settings are no longer valid is left
/// out.
fn use_providers(app: &App, providers: &AddedProviders) {
    let settings = CHOICES.into_iter().filter_map(|choice| {
        let settings = providers.get(choice.id)?.settings(choice).ok()?;
        match settings.client() {
            Ok(_) => Some(settings),
            Err(error) => {
                tracing::warn!(provider = choice.id, %error, "a model provider is left out");
                None
            }
        }
    });
    let settings: Vec<_> = settings.collect();
    if let Err(error) = app.services.models.replace_added(&settings) {
        tracing::warn!(%error, "added model providers are not used");
    }
}
