//! Loads the configured language models, and converts their errors.

use std::{env, path::Path};

use savoir_model::{ModelError, Models, Settings};

use crate::{config::Config, error::CommandError};

/// Returns the models of the settings and the environment, without sending a request.
pub(crate) fn configured_models(config: &Config) -> Result<Models, CommandError> {
    let tables = config.models.clone();
    let settings = Settings::from_tables(tables.providers, tables.embedding, tables.default);
    let settings = settings.with_environment(|name| env::var(name).ok())?;
    Ok(Models::from_settings(&settings)?)
}

/// Like [`configured_models`], for commands that need no other settings. Users of these commands may
/// name a model of this machine without configuration.
pub(crate) fn load_models() -> Result<Models, CommandError> {
    let mut models = configured_models(&Config::load(Path::new("."))?)?;
    models.allow_local_ollama()?;
    Ok(models)
}

impl From<ModelError> for CommandError {
    /// Missing configuration is a usage error; a provider that does not answer is a failure.
    fn from(error: ModelError) -> Self {
        let failed = match error {
            ModelError::NoProvider => Self::input(&error).with_code("no-model"),
            ModelError::UnknownProvider { .. } | ModelError::Setting(_) => {
                Self::input(&error).with_code("invalid-model")
            }
            _ => Self::findings(&error).with_code("model-failed"),
        };
        error.help().into_iter().fold(failed, Self::hint)
    }
}
