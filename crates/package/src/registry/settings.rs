//! Settings of registry clients.

use std::{fmt, path::PathBuf, time::Duration};

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

use super::RegistryError;
pub use crate::source::Network;
use crate::source::{Progress, Watcher};

/// Who may be asked without encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only this machine: what comes from elsewhere could be changed on the way.
    #[default]
    ThisMachine,
    /// Everyone whose address says so, such as a mirror in a house of one's own.
    Anyone,
}

/// How registries are asked.
#[derive(Clone)]
pub struct Settings {
    /// Where it is kept what was learnt. It can be removed at any time.
    pub cache: PathBuf,
    /// How long one answer may take, unless it is an archive.
    pub patience: Duration,
    /// How long a registry may be silent of which something is looked up.
    pub lookup_silence: Duration,
    /// How long it may be silent that sends an archive, which may take as long as it comes; in as long,
    /// some bytes must come for each second.
    pub download_silence: Duration,
    /// Who is told what is going on.
    pub watcher: Option<Watcher>,
    /// Whether anybody is asked.
    pub network: Network,
    /// Who may be asked without encryption.
    pub plain: PlainHttp,
}

impl Settings {
    /// The usual settings with a folder for the cache.
    pub fn new(cache: PathBuf) -> Self {
        let (network, plain) = (Network::default(), PlainHttp::default());
        Self {
            cache,
            patience: Duration::from_mins(2),
            lookup_silence: Duration::from_secs(10),
            download_silence: Duration::from_secs(30),
            watcher: None,
            network,
            plain,
        }
    }

    pub(super) fn tell(&self, progress: Progress) {
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

/// What proves to a registry who asks. It is never shown, and only that registry gets it.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token as it was given out, without `Bearer`.
    pub fn new(text: &str) -> Result<Self, RegistryError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RegistryError::Token);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// The text, to keep it where secrets are kept.
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
