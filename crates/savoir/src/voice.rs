//! The language models of the person who runs the program.

use std::{env, path::Path};

use savoir_model::{ModelError, Models, Settings};

use crate::{config::Config, error::CommandError};

/// The models that the settings and the environment name. Nothing is asked yet.
pub(crate) fn models(config: &Config) -> Result<Models, CommandError> {
    let tables = config.models.clone();
    let settings = Settings::from_tables(tables.providers, tables.embedding, tables.default);
    let settings = settings.with_environment(|name| env::var(name).ok())?;
    Ok(Models::from_settings(&settings)?)
}

/// As [`models`], for a command that needs no other settings.
pub(crate) fn from_settings() -> Result<Models, CommandError> {
    models(&Config::load(Path::new("."))?)
}

impl From<ModelError> for CommandError {
    /// What is not set up is a matter of usage; what did not answer is a failure.
    fn from(error: ModelError) -> Self {
        let failed = match error {
            ModelError::NoProvider => Self::input(&error).named("no-model"),
            ModelError::UnknownProvider { .. } | ModelError::Setting(_) => {
                Self::input(&error).named("invalid-model")
            }
            _ => Self::findings(&error).named("model-failed"),
        };
        error.help().into_iter().fold(failed, Self::hint)
    }
}
