//! What a server said when it said no.

use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;
use url::Url;

use super::shown;
use crate::{Secret, limits};

/// Makes texts of a server fit to be shown.
pub(super) struct Words<'a> {
    pub(super) key: Option<&'a Secret>,
}

impl Words<'_> {
    /// One line, cut short, without the key and without what a terminal would obey.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = match self.key.map(Secret::reveal) {
            Some(key) if key.len() >= limits::SECRET_BYTES => text.replace(key, "***"),
            _ => text.to_owned(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown = text.chars().filter(|c| !c.is_control());
        let mut cut: String = shown.by_ref().take(limits::REFUSAL_CHARS).collect();
        if shown.next().is_some() {
            cut.push('…');
        }
        cut
    }
}

/// The sentence in an error document, else the document.
pub(super) fn message(body: &[u8]) -> String {
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).trim().to_owned();
    };
    ["/error/message", "/error", "/message", "/detail"]
        .iter()
        .find_map(|pointer| document.pointer(pointer)?.as_str())
        .map_or_else(|| document.to_string(), str::to_owned)
}

/// Where a server wants to send us.
pub(super) fn redirect(headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let target = match target.map(Url::parse) {
        Some(Ok(url)) => shown(&url),
        _ => "another place".to_owned(),
    };
    format!("it redirects to {target}, and redirects are not followed; correct the base URL")
}
