//! What proves to registries who asks.

use std::env;

use savoir_package::registry::Token;

use crate::error::CommandError;

/// The token for a registry, if there is one.
pub(crate) fn token(_address: &str) -> Result<Option<Token>, CommandError> {
    match env::var("SAVOIR_TOKEN") {
        Ok(text) if !text.trim().is_empty() => Ok(Some(Token::new(&text)?)),
        _ => Ok(None),
    }
}
