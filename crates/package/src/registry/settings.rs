//! Settings of registry clients.

use std::{fmt, path::PathBuf, time::Duration};

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

use super::RegistryError;
pub use crate::source::Network;
use crate::source::{Progress, Watcher};

/// Which registries may be used without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only registries on this machine, because others could be tampered with in transit.
    #[default]
    ThisMachine,
    /// Every registry with an `http://` address, such as a mirror in your own network.
    Anyone,
}

/// Settings of a registry client.
#[derive(Clone)]
pub struct Settings {
    /// The cache folder. It can be removed at any time.
    pub cache: PathBuf,
    /// Maximum time of one response, except archives.
    pub response_timeout: Duration,
    /// Maximum time without data during a lookup.
    pub lookup_idle_timeout: Duration,
    /// Maximum time without data while an archive is downloaded. The average rate over this time
    /// must reach a minimum; the whole download may take longer.
    pub download_idle_timeout: Duration,
    /// Receives progress events.
    pub watcher: Option<Watcher>,
    /// Whether requests are sent at all.
    pub network: Network,
    /// Which registries may be used without TLS.
    pub plain: PlainHttp,
}

impl Settings {
    /// Default settings with a cache folder.
    pub fn new(cache: PathBuf) -> Self {
        let (network, plain) = (Network::default(), PlainHttp::default());
        Self {
            cache,
            response_timeout: Duration::from_mins(2),
            lookup_idle_timeout: Duration::from_secs(10),
            download_idle_timeout: Duration::from_secs(30),
            watcher: None,
            network,
            plain,
        }
    }

    pub(super) fn report_progress(&self, progress: Progress) {
        if let Some(watcher) = &self.watcher {
            watcher(progress);
        }
    }

    pub(super) fn is_offline(&self) -> bool {
        self.network == Network::Offline
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Settings");
        shown.field("cache", &self.cache).field("network", &self.network).finish_non_exhaustive()
    }
}

/// A registry's access token. It is never printed, and only sent to that registry.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// Wraps the text of a token, without `Bearer`.
    pub fn new(text: &str) -> Result<Self, RegistryError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RegistryError::Token);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// Returns the text, to store it with other secrets.
    pub fn secret(&self) -> &str {
        &self.0
    }

    pub(super) fn header(&self) -> Result<HeaderValue, RegistryError> {
        let text = Zeroizing::new(format!("Bearer {}", self.secret()));
        let mut value = HeaderValue::from_str(&text).map_err(|_| RegistryError::Token)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_not_shown() {
        let token = Token::new(" sv_secret\n").unwrap();
        assert_eq!(token.secret(), "sv_secret");
        assert!(!format!("{token:?}{:?}", token.header().unwrap()).contains("secret"));
        for bad in ["", " ", "a b", "a\r\nX-Other: b", "ü"] {
            assert_eq!(Token::new(bad).unwrap_err().code(), "invalid_token", "{bad:?}");
        }
    }
}
