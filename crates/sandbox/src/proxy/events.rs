//! [`HostEvent`]: what a run asked of whom. Nothing secret is in it: no query, no header, no body.

use serde::Serialize;

use super::refusal::Refusal;
use crate::limits;

/// A request, as it is kept in the record of a run; equal ones are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostEvent {
    /// In canonical spelling; as written if there is none, empty if none was named.
    pub host: String,
    /// 0 if none was named.
    pub port: u16,
    /// `CONNECT` if the tunnel itself was refused.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How often.
    pub count: u32,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It left.
    Allowed,
    /// It seemed to leave, and was kept.
    Caught,
    /// It did not.
    Refused {
        /// Why.
        reason: Refusal,
    },
}

/// The events of a run, in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<HostEvent>);

/// Places that are left for what no longer fits: one for each verdict.
const OVERFLOW: usize = 32;

/// What is known of a request so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) method: String,
    pub(super) path: String,
    /// A request is one event, whatever happens after its verdict.
    pub(super) recorded: bool,
}

impl Note {
    /// Keeps a path without its query.
    pub(super) fn set_path(&mut self, target: &str) {
        self.path = shorten(target.split('?').next().unwrap_or_default(), limits::EVENT_PATH);
    }

    /// Keeps a host that could not be read, so that it can be printed.
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
    /// Adds an event, or counts it where it already is. Once the record is full, only the verdicts
    /// of further ones are counted.
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

    /// The events, which are then forgotten here.
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
