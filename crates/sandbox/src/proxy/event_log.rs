//! Records the network requests of a run as [`HostEvent`]s. They contain no query, header or body,
//! so no secrets.

use serde::Serialize;

use super::refusal::Refusal;
use crate::limits;

/// One request in the record of a run; equal requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostEvent {
    /// The host in canonical spelling; as written if it could not be parsed, empty if none was
    /// named.
    pub host: String,
    /// The port, or 0 if none was named.
    pub port: u16,
    /// The HTTP method; `CONNECT` if the tunnel itself was refused.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// Whether the request was allowed.
    pub verdict: Verdict,
    /// The number of equal requests.
    pub count: u32,
}

/// The proxy's decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The request was sent to the host.
    Allowed,
    /// A trap answered and stored the request; nothing was sent.
    #[serde(rename = "caught")]
    Trapped,
    /// The request was not sent.
    Refused {
        /// The reason.
        reason: Refusal,
    },
}

/// The events of a run, ordered by first occurrence.
#[derive(Debug, Default)]
pub(super) struct EventLog(Vec<HostEvent>);

/// Entries that are reserved for a full record: one for each verdict.
const OVERFLOW_EVENTS: usize = 32;

/// The known properties of a request that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestSummary {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) method: String,
    pub(super) path: String,
    /// Whether the request was recorded; each request is recorded once, with its first verdict.
    pub(super) recorded: bool,
}

impl RequestSummary {
    /// Stores a path without its query.
    pub(super) fn set_path(&mut self, target: &str) {
        self.path =
            shorten(target.split('?').next().unwrap_or_default(), limits::MAX_EVENT_PATH_CHARS);
    }

    /// Stores a host that could not be parsed, escaped so that it can be printed.
    pub(super) fn set_raw_host(&mut self, text: &str) {
        self.host = shorten(text, 253);
    }
}

fn shorten(text: &str, max_chars: usize) -> String {
    let mut short = String::new();
    for (index, char) in text.chars().enumerate() {
        if index == max_chars {
            short.push('…');
            break;
        }
        if char.is_ascii_graphic() {
            short.push(char);
        } else {
            short.extend(char.escape_default());
        }
    }
    short
}

impl EventLog {
    /// Adds an event, or increments the count of an equal one. Once the record is full, only the
    /// verdicts of further events are counted.
    pub(super) fn add(&mut self, summary: &RequestSummary, verdict: Verdict) {
        let event = HostEvent {
            host: summary.host.clone(),
            port: summary.port,
            method: summary.method.clone(),
            path: summary.path.clone(),
            verdict,
            count: 1,
        };
        if self.count(&event) {
            return;
        }
        if self.0.len() < limits::MAX_EVENTS - OVERFLOW_EVENTS {
            self.0.push(event);
            return;
        }
        let event = HostEvent {
            host: "…".to_owned(),
            port: 0,
            method: String::new(),
            path: String::new(),
            ..event
        };
        if !self.count(&event) && self.0.len() < limits::MAX_EVENTS {
            self.0.push(event);
        }
    }

    fn count(&mut self, event: &HostEvent) -> bool {
        let same = |other: &&mut HostEvent| {
            other.host == event.host
                && other.port == event.port
                && other.method == event.method
                && other.path == event.path
                && other.verdict == event.verdict
        };
        match self.0.iter_mut().find(same) {
            Some(existing) => {
                existing.count = existing.count.saturating_add(1);
                true
            }
            None => false,
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the events and clears the record.
    pub(super) fn take(&mut self) -> Vec<HostEvent> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_events_are_counted_and_the_log_is_bounded() {
        let mut events = EventLog::default();
        let mut summary = RequestSummary { method: "GET".into(), ..RequestSummary::default() };
        for turn in 0..limits::MAX_EVENTS * 2 {
            summary.host = format!("{turn}.example.com");
            events.add(&summary, Verdict::Allowed);
            summary.host = "same.example.com".into();
            events.add(&summary, Verdict::Refused { reason: Refusal::Upgrade });
        }
        let recorded = events.take();
        assert!(recorded.len() <= limits::MAX_EVENTS);
        assert_eq!(recorded[1].count as usize, limits::MAX_EVENTS * 2);
        let total: usize = recorded.iter().map(|event| event.count as usize).sum();
        assert_eq!(total, limits::MAX_EVENTS * 4);
    }

    #[test]
    fn codes_are_stable() {
        let event = HostEvent {
            host: "a.example".into(),
            port: 443,
            method: "GET".into(),
            path: "/".into(),
            verdict: Verdict::Refused { reason: Refusal::HostNotGranted },
            count: 1,
        };
        assert_eq!(
            serde_json::to_value(&event).unwrap()["verdict"]["refused"]["reason"],
            "host-not-granted"
        );
    }

    #[test]
    fn paths_are_short_and_without_query() {
        let mut summary = RequestSummary::default();
        summary.set_path(&format!("/{}?key=secret", "a".repeat(1000)));
        assert_eq!(summary.path.chars().count(), limits::MAX_EVENT_PATH_CHARS + 1);
        summary.set_path("/search?key=secret");
        assert_eq!(summary.path, "/search");
    }
}
