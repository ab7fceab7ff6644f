//! Collects metrics and prints them in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::http::{Method, StatusCode};

/// Upper bounds of the histogram of response times (until the response header), in seconds.
const DURATION_BUCKETS_SECONDS: [f64; 11] =
    [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// All counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answers: Mutex<BTreeMap<(String, String, u16), RequestCounts>>,
    cache_hit: AtomicU64,
    streams: AtomicI64,
    events: AtomicU64,
}

#[derive(Debug, Default)]
struct RequestCounts {
    count: u64,
    seconds: f64,
    below: [u64; DURATION_BUCKETS_SECONDS.len()],
}

impl Metrics {
    pub(crate) fn record_request(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        took: Duration,
    ) {
        // Clients can invent methods, so unknown ones share one label; routes are a fixed set.
        let method = match *method {
            Method::GET
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::HEAD
            | Method::OPTIONS => method.as_str(),
            _ => "other",
        };
        let key = (method.to_owned(), route.to_owned(), status.as_u16());
        let seconds = took.as_secs_f64();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = answers.entry(key).or_default();
        entry.count += 1;
        entry.seconds += seconds;
        for (below, bound) in entry.below.iter_mut().zip(DURATION_BUCKETS_SECONDS) {
            *below += u64::from(seconds <= bound);
        }
    }

    /// Counts a registry response from the cache.
    pub(crate) fn record_cache_hit(&self) {
        self.cache_hit.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_stream_start(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_stream_end(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn record_event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics as text. `search` is the number of skills in the search index and the last
    /// change in it.
    pub(crate) fn text(&self, search: Option<(u64, u64)>) -> String {
        let mut text = String::new();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        head(&mut text, "savoir_http_requests_total", "counter", "Requests that were answered.");
        for ((method, route, status), answers) in &*answers {
            let count = answers.count;
            line(&mut text, "savoir_http_requests_total", &labels(method, route, *status), count);
        }
        let name = "savoir_http_request_seconds";
        head(&mut text, name, "histogram", "Time to the head of the answer.");
        for ((method, route, status), answers) in &*answers {
            let labels = labels(method, route, *status);
            for (bound, below) in DURATION_BUCKETS_SECONDS.iter().zip(answers.below) {
                let labels = format!("{labels},le=\"{bound}\"");
                line(&mut text, &format!("{name}_bucket"), &labels, below);
            }
            let all = format!("{labels},le=\"+Inf\"");
            line(&mut text, &format!("{name}_bucket"), &all, answers.count);
            line(&mut text, &format!("{name}_sum"), &labels, answers.seconds);
            line(&mut text, &format!("{name}_count"), &labels, answers.count);
        }
        let name = "savoir_registry_remembered_total";
        head(&mut text, name, "counter", "Requests that the registry answered from memory.");
        let _ = writeln!(text, "{name} {}", self.cache_hit.load(Ordering::Relaxed));
        let (skills, change) = search.unwrap_or_default();
        let name = "savoir_registry_search_skills";
        head(&mut text, name, "gauge", "Skills that the search index of this process has.");
        let _ = writeln!(text, "{name} {skills}");
        let name = "savoir_registry_search_change";
        head(&mut text, name, "gauge", "The last change that the search index knows.");
        let _ = writeln!(text, "{name} {change}");
        head(&mut text, "savoir_streams", "gauge", "Streams that are open.");
        let _ = writeln!(text, "savoir_streams {}", self.streams.load(Ordering::Relaxed));
        head(&mut text, "savoir_events_total", "counter", "Events that were sent.");
        let _ = writeln!(text, "savoir_events_total {}", self.events.load(Ordering::Relaxed));
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

fn labels(method: &str, route: &str, status: u16) -> String {
    format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"")
}
