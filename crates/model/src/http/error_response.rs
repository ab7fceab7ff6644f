//! Extracts a printable message from the error response of a server.

use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;
use url::Url;

use super::redact_url;
use crate::{Secret, limits};

/// Makes texts from a server safe to print.
pub(super) struct MessageSanitizer<'a> {
    pub(super) key: Option<&'a Secret>,
}

impl MessageSanitizer<'_> {
    /// Returns the text on one line, shortened, without the API key and control characters.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = match self.key.map(Secret::reveal) {
            Some(key) if key.len() >= limits::MIN_REDACTED_KEY_BYTES => text.replace(key, "***"),
            _ => text.to_owned(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut printable = text.chars().filter(|c| !c.is_control());
        let mut cut: String = printable.by_ref().take(limits::MAX_ERROR_MESSAGE_CHARS).collect();
        if printable.next().is_some() {
            cut.push('…');
        }
        cut
    }
}

/// Returns the message of a JSON error document, or else the whole body.
pub(super) fn error_message(body: &[u8]) -> String {
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).trim().to_owned();
    };
    ["/error/message", "/error", "/message", "/detail"]
        .iter()
        .find_map(|pointer| document.pointer(pointer)?.as_str())
        .map_or_else(|| document.to_string(), str::to_owned)
}

/// Returns a message that names the target of a redirect.
pub(super) fn redirect_message(headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let target = match target.map(Url::parse) {
        Some(Ok(url)) => redact_url(&url),
        _ => "another address".to_owned(),
    };
    format!("it redirects to {target}, and redirects are not followed; correct the base URL")
}
