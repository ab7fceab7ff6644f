//! Defines the result of a tool run (output, exit code, error) in the JSON format of gibb.eri.sh.
//!
//! ```
//! use std::time::Duration;
//! use savoir_engine::envelope::{Capture, Ended, Envelope, Stream};
//!
//! let mut capture = Capture::default();
//! capture.push(Stream::Stdout, b"{\"count\": 5}\n");
//! let envelope = Envelope::new(Ended::Exited(0), capture.finish(), Duration::from_millis(150));
//! assert_eq!(
//!     serde_json::to_string(&envelope)?,
//!     r#"{"success":true,"exit_code":0,"output":"{\"count\": 5}","parsed":{"count":5},"truncated":false,"duration_ms":150}"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::{borrow::Cow, time::Duration};

use serde::Serialize;
use serde_json::Value;

use crate::run::Denial;

mod capture;

pub use capture::{Capture, Captured, HEAD_SIZE, PARSED_SIZE, Stream, TAIL_SIZE};

/// The result of a tool call, with the fields in the order of the specification.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Envelope {
    /// Whether the tool succeeded.
    pub success: bool,
    /// The exit code; null if the tool did not start or did not exit by itself.
    pub exit_code: Option<i32>,
    /// The output of both streams in the order of arrival, shortened in the middle.
    pub output: String,
    /// Standard output as JSON, when it is an object or an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parsed: Option<Value>,
    /// The error message, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error code. The specification does not have this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'static, str>>,
    /// Whether `output` leaves something out.
    pub truncated: bool,
    /// The duration.
    pub duration_ms: u64,
    /// What the sandbox denied, with the options that allow it. The specification does not have
    /// this field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denial>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal that we did not send.
    Signalled(i32),
    /// By us, because it took longer than this many seconds.
    TimedOut(u32),
}

impl Envelope {
    /// The envelope of a process that ran.
    pub fn new(ended: Ended, captured: Captured, duration: Duration) -> Self {
        let (exit_code, error, code) = match ended {
            Ended::Exited(0) => (Some(0), None, None),
            Ended::Exited(code) => (Some(code), Some(exit_message(code)), Some("command-failed")),
            // Shells use the same exit code, 128 plus the signal.
            Ended::Signalled(signal) => {
                let code = 128_i32.saturating_add(signal);
                (Some(code), Some(exit_message(code)), Some("command-failed"))
            }
            Ended::TimedOut(seconds) => (None, Some(timeout_message(seconds)), Some("timeout")),
        };
        Self {
            success: error.is_none(),
            exit_code,
            output: captured.output,
            parsed: captured.parsed,
            error,
            code: code.map(Cow::Borrowed),
            truncated: captured.truncated > 0,
            duration_ms: milliseconds(duration),
            denied: Vec::new(),
        }
    }

    /// Creates the envelope of a failed call: `code` is stable, `message` is for people.
    pub fn failed(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        duration: Duration,
    ) -> Self {
        Self {
            success: false,
            exit_code: None,
            output: String::new(),
            parsed: None,
            error: Some(message.into()),
            code: Some(code.into()),
            truncated: false,
            duration_ms: milliseconds(duration),
            denied: Vec::new(),
        }
    }

    /// Creates the envelope of a function's return value: `output` is its text, `parsed` the value.
    pub fn returned(value: Value, duration: Duration) -> Self {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut capture = Capture::default();
        capture.push(Stream::Stderr, text.as_bytes());
        let mut captured = capture.finish();
        captured.parsed = Some(value).filter(|value| value.is_object() || value.is_array());
        Self { exit_code: None, ..Self::new(Ended::Exited(0), captured, duration) }
    }
}

/// The specified message for an exit code other than 0.
pub fn exit_message(code: i32) -> String {
    format!("Command failed with exit code {code}")
}

/// The specified message for a command that took too long.
pub fn timeout_message(seconds: u32) -> String {
    format!("Command timed out after {seconds}s")
}

/// The message for a command that printed too much.
pub(crate) fn output_limit_message(bytes: u64) -> String {
    format!("Command printed more than {} MiB and was stopped", bytes >> 20)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(ended: Ended, output: &str) -> Value {
        let mut capture = Capture::default();
        capture.push(Stream::Stdout, output.as_bytes());
        let envelope = Envelope::new(ended, capture.finish(), Duration::from_millis(7));
        serde_json::to_value(envelope).unwrap()
    }

    #[test]
    fn success_and_failure_look_as_specified() {
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let good = envelope(Ended::Exited(0), "fine\n");
        assert_eq!(keys(&good), ["success", "exit_code", "output", "truncated", "duration_ms"]);
        assert_eq!(good["output"], "fine");
        let bad = envelope(Ended::Exited(3), "");
        assert_eq!(
            bad,
            json!({"success": false, "exit_code": 3, "output": "",
                "error": "Command failed with exit code 3", "code": "command-failed",
                "truncated": false, "duration_ms": 7})
        );
        assert_eq!(envelope(Ended::Signalled(9), "")["exit_code"], 137);
        let late = envelope(Ended::TimedOut(2), "half");
        assert_eq!(late["error"], "Command timed out after 2s");
        assert_eq!((&late["code"], &late["exit_code"]), (&json!("timeout"), &Value::Null));
        assert_eq!(late["output"], "half");
    }

    #[test]
    fn failed_start_has_a_reason() {
        let envelope =
            Envelope::failed("command-not-found", "Command not found: x", Duration::ZERO);
        assert!(!envelope.success && envelope.exit_code.is_none());
        assert_eq!(envelope.code.as_deref(), Some("command-not-found"));
    }

    #[test]
    fn functions_return_values() {
        let envelope = Envelope::returned(json!({"a": 1}), Duration::ZERO);
        assert_eq!(
            (envelope.output.as_str(), envelope.parsed),
            ("{\"a\":1}", Some(json!({"a": 1})))
        );
        let envelope = Envelope::returned(json!("text"), Duration::ZERO);
        assert_eq!((envelope.output.as_str(), envelope.parsed), ("text", None));
        let long = Envelope::returned(json!("x".repeat(10_000)), Duration::ZERO);
        assert!(long.truncated && long.success);
    }
}
