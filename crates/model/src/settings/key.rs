//! Reads the API key of a provider.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::ProviderSettings;
use crate::{ModelError, Secret, limits};

impl ProviderSettings {
    /// Returns the key set directly, from the key file, or from the environment variable.
    pub(super) fn read_key(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Secret>, ModelError> {
        match (&self.key, &self.key_file, &self.key_env) {
            (Some(key), _, _) => Ok(Some(key.clone())),
            (None, Some(_), Some(_)) => Err(ModelError::Setting(format!(
                "[models.{}] has both `key-file` and `key-env`; remove one",
                self.name
            ))),
            (None, Some(file), None) => read_key_file(&self.name, file).map(Some),
            (None, None, Some(name)) => match environment(name) {
                Some(value) if !value.trim().is_empty() => Ok(Some(Secret::new(&value))),
                _ => Err(ModelError::Setting(format!(
                    "the variable {name} with the key of {} is not set; \
                     it is named by `key-env` of [models.{}]",
                    self.name, self.name
                ))),
            },
            (None, None, None) => Ok(None),
        }
    }
}

fn read_key_file(provider: &str, path: &Path) -> Result<Secret, ModelError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        let path = path.display();
        ModelError::Setting(format!("the key of {provider} cannot be read from {path}: {error}"))
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    check_key_file_mode(provider, path, &file).map_err(|error| unreadable(&error))??;
    let mut text = String::new();
    file.take(limits::MAX_KEY_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(&error))?;
    if text.len() as u64 > limits::MAX_KEY_FILE_BYTES {
        return Err(unreadable(&"the file is too long for a key"));
    }
    if text.trim().is_empty() {
        return Err(unreadable(&"the file is empty"));
    }
    Ok(Secret::new(&text))
}

/// Rejects a key file that other users can read.
#[cfg(unix)]
fn check_key_file_mode(
    provider: &str,
    path: &Path,
    file: &File,
) -> io::Result<Result<(), ModelError>> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = file.metadata()?.permissions().mode() & 0o777;
    let others = mode & 0o077;
    if others == 0 {
        return Ok(Ok(()));
    }
    let path = path.display();
    Ok(Err(ModelError::Setting(format!(
        "the key of {provider} in {path} is readable by other users (mode {mode:o}); \
         run: chmod 600 {path}"
    ))))
}

#[cfg(not(unix))]
fn check_key_file_mode(_: &str, _: &Path, _: &File) -> io::Result<Result<(), ModelError>> {
    Ok(Ok(()))
}
