//! Replaces the keyring in builds without keyring support: values are stored in a file.

use std::path::Path;

use super::KeyringError;

pub(super) fn store(_: &str, _: Option<&Path>, _: &str) -> Result<(), KeyringError> {
    Err(KeyringError::NotBuiltIn)
}

pub(super) fn read(_: &str, _: Option<&Path>) -> Result<String, KeyringError> {
    Err(KeyringError::NotBuiltIn)
}

pub(super) fn remove(_: &str, _: Option<&Path>) -> Result<(), KeyringError> {
    Err(KeyringError::NotBuiltIn)
}
