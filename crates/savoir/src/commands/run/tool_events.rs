//! Prints the run of a tool as events: one line of JSON each, while the tool runs.
//!
//! `progress` is a message of Savoir, `output` a part of the tool's output. The last event is
//! `result` with the envelope of the run, or `error` if the tool did not run.

use std::{cell::RefCell, io};

use savoir_engine::envelope::{Envelope, Stream};
use savoir_lint::visible_json;
use serde_json::{Value, json};

use crate::{error::CommandError, output};

/// Prints events, and keeps bytes of unfinished characters until the rest arrives.
#[derive(Debug, Default)]
pub(super) struct ToolEvents {
    unfinished: RefCell<[Vec<u8>; 2]>,
}

impl ToolEvents {
    /// Prints a part of the tool's output.
    pub(super) fn output(&self, stream: Stream, bytes: &[u8]) {
        let at = usize::from(stream == Stream::Stderr);
        let mut unfinished = self.unfinished.borrow_mut();
        let mut bytes = [std::mem::take(&mut unfinished[at]), bytes.to_vec()].concat();
        unfinished[at] = bytes.split_off(complete_length(&bytes));
        drop(unfinished);
        print_output(at, &bytes);
    }

    /// Prints the result of the run.
    pub(super) fn result(
        &self,
        envelope: &Envelope,
        value: Option<&Value>,
    ) -> Result<(), CommandError> {
        for (at, rest) in self.unfinished.take().iter().enumerate() {
            print_output(at, rest);
        }
        let mut data = serde_json::to_value(envelope)?;
        if let Some(value) = value {
            data["value"] = value.clone();
        }
        print("result", &data)
    }
}

/// Prints a message about the progress of a run.
pub(super) fn progress(message: &str) {
    // If standard output is closed, the last event fails, too.
    let _ = print("progress", &json!({ "message": message }));
}

/// Prints why the tool did not run.
pub(super) fn error(error: &CommandError) -> Result<(), CommandError> {
    match error.to_json() {
        Some(mut data) => print("error", &data["error"].take()),
        // Standard output is closed.
        None => Ok(()),
    }
}

fn print_output(at: usize, bytes: &[u8]) {
    if !bytes.is_empty() {
        let stream = ["stdout", "stderr"][at];
        let text = String::from_utf8_lossy(bytes);
        // If standard output is closed, the last event fails, too.
        let _ = print("output", &json!({ "stream": stream, "text": text }));
    }
}

/// The length without the first bytes of a character at the end.
fn complete_length(bytes: &[u8]) -> usize {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid bytes earlier in the text are replaced anyway, so only the end matters.
        Err(_) => {
            let tail = bytes.len().saturating_sub(3);
            (tail..bytes.len())
                .find(|at| {
                    let rest = str::from_utf8(&bytes[*at..]);
                    bytes[*at] >= 0xC0 && rest.is_err_and(|error| error.error_len().is_none())
                })
                .unwrap_or(bytes.len())
        }
        Ok(_) => bytes.len(),
    }
}

fn print(event: &str, data: &Value) -> Result<(), CommandError> {
    use io::Write as _;
    let line = json!({ "event": event, "data": data }).to_string();
    let mut out = output::stdout();
    writeln!(out, "{}", visible_json(&line))?;
    output::flush(out)
}

#[cfg(test)]
mod tests {
    use super::complete_length;

    #[test]
    fn unfinished_characters_are_kept() {
        assert_eq!(complete_length(b"abc"), 3);
        assert_eq!(complete_length("é".as_bytes()), 2);
        assert_eq!(complete_length(&"aé".as_bytes()[..2]), 1);
        assert_eq!(complete_length(b"\xff"), 1);
        assert_eq!(complete_length(b"\xffa\xe2\x82"), 2);
        assert_eq!(complete_length(b"\xff\xe2"), 1);
    }
}
