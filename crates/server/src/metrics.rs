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

/// The counters and gauges of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), RequestCounts>>,
    cache_hits: AtomicU64,
    open_streams: AtomicI64,
    stream_events: AtomicU64,
}

#[derive(Debug, Default)]
struct RequestCounts {
    count: u64,
    seconds: f64,
    bucket_counts: [u64; DURATION_BUCKETS_SECONDS.len()],
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
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = requests.entry(key).or_default();
        entry.count += 1;
        entry.seconds += seconds;
        for (count, bound) in entry.bucket_counts.iter_mut().zip(DURATION_BUCKETS_SECONDS) {
            *count += u64::from(seconds <= bound);
        }
    }

    /// Counts a registry response from the cache.
    pub(crate) fn record_cache_hit(&self) {
        self.cache_hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_stream_start(&self) {
        self.open_streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_stream_end(&self) {
        self.open_streams.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn record_stream_event(&self) {
        self.stream_events.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns all metrics in the text format of Prometheus. `search` is the number
    /// of skills in the search index and the last change in it.
    pub(crate) fn to_prometheus_text(&self, search: Option<(u64, u64)>) -> String {
        let mut text = String::new();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        write_help_and_type(
            &mut text, "savoir_http_requests_total", "counter", "Requests that were answered.",
        );
        for ((method, route, status), counts) in &*requests {
            let count = counts.count;
            write_sample(
                &mut text,
                "savoir_http_requests_total",
                &format_labels(method, route, *status),
                count,
            );
        }
        let name = "savoir_http_request_seconds";
        write_help_and_type(&mut text, name, "histogram", "Time to the head of the answer.");
        for ((method, route, status), counts) in &*requests {
            let labels = format_labels(method, route, *status);
            for (bound, count) in DURATION_BUCKETS_SECONDS.iter().zip(counts.bucket_counts) {
                let labels = format!("{labels},le=\"{bound}\"");
                write_sample(&mut text, &format!("{name}_bucket"), &labels, count);
            }
            let all = format!("{labels},le=\"+Inf\"");
            write_sample(&mut text, &format!("{name}_bucket"), &all, counts.count);
            write_sample(&mut text, &format!("{name}_sum"), &labels, counts.seconds);
            write_sample(&mut text, &format!("{name}_count"), &labels, counts.count);
        }
        let name = "savoir_registry_remembered_total";
        write_help_and_type(
            &mut text,
            name,
            "counter",
            "Requests that the registry answered from memory.",
        );
        let _ = writeln!(text, "{name} {}", self.cache_hits.load(Ordering::Relaxed));
        let (skills, change) = search.unwrap_or_default();
        let name = "savoir_registry_search_skills";
        write_help_and_type(
            &mut text,
            name,
            "gauge",
            "Skills that the search index of this process has.",
        );
        let _ = writeln!(text, "{name} {skills}");
        let name = "savoir_registry_search_change";
        write_help_and_type(
            &mut text,
            name,
            "gauge",
            "The last change that the search index knows.",
        );
        let _ = writeln!(text, "{name} {change}");
        write_help_and_type(&mut text, "savoir_streams", "gauge", "Streams that are open.");
        let _ = writeln!(text, "savoir_streams {}", self.open_streams.load(Ordering::Relaxed));
        write_help_and_type(&mut text, "savoir_events_total", "counter", "Events that were sent.");
        let _ =
            writeln!(text, "savoir_events_total {}", self.stream_events.load(Ordering::Relaxed));
        text
    }
}

fn write_help_and_type(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn write_sample(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

fn format_labels(method: &str, route: &str, status: u16) -> String {
    format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"")
}
