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
    Caught,
    /// The request was not sent.
    Refused {
        /// The reason.
        reason: Refusal,
    },
}

/// The events of a run, ordered by first occurrence.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<HostEvent>);

/// Entries that are reserved for a full record: one for each verdict.
const OVERFLOW: usize = 32;

/// The known properties of a request that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) method: String,
    pub(super) path: String,
    /// Whether the request was recorded; each request is recorded once, with its first verdict.
    pub(super) recorded: bool,
}

impl Note {
    /// Stores a path without its query.
    pub(super) fn set_path(&mut self, target: &str) {
        self.path = shorten(target.split('?').next().unwrap_or_default(), limits::EVENT_PATH);
    }

    /// Stores a host that could not be parsed, escaped so that it can be printed.
    pub(super) fn set_raw_host(&mut self, text: &str) {
        self.host = shorten(text, 253);
    }
}

fn shorten(text: &str, most: usize) -> String {
    let mut short = String::new();
    for (index, char) in text.chars().enumerate() {
        if index == most {
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

impl Events {
    /// Adds an event, or increments the count of an equal one. Once the record is full, only the
    /// verdicts of further events are counted.
    pub(super) fn add(&mut self, note: &Note, verdict: Verdict) {
        let event = HostEvent {
            host: note.host.clone(),
            port: note.port,
            method: note.method.clone(),
            path: note.path.clone(),
            verdict,
            count: 1,
        };
        if self.count(&event) {
            return;
        }
        if self.0.len() < limits::EVENTS - OVERFLOW {
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
        if !self.count(&event) && self.0.len() < limits::EVENTS {
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
            Some(known) => {
                known.count = known.count.saturating_add(1);
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
    fn equal_events_are_counted_and_the_record_ends() {
        let mut events = Events::default();
        let mut note = Note { method: "GET".into(), ..Note::default() };
        for turn in 0..limits::EVENTS * 2 {
            note.host = format!("{turn}.example.com");
            events.add(&note, Verdict::Allowed);
            note.host = "same.example.com".into();
            events.add(&note, Verdict::Refused { reason: Refusal::Upgrade });
        }
        let kept = events.take();
        assert!(kept.len() <= limits::EVENTS);
        assert_eq!(kept[1].count as usize, limits::EVENTS * 2);
        let total: usize = kept.iter().map(|event| event.count as usize).sum();
        assert_eq!(total, limits::EVENTS * 4);
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
        let mut note = Note::default();
        note.set_path(&format!("/{}?key=secret", "a".repeat(1000)));
        assert_eq!(note.path.chars().count(), limits::EVENT_PATH + 1);
        note.set_path("/search?key=secret");
        assert_eq!(note.path, "/search");
    }
}
