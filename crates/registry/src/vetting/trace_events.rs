//! Reads the events of the tracer inside the sandbox: which line opened, started or looked up what.

use std::{fs::File, io::Read as _};

use savoir_package::Tree;
use savoir_sandbox::Killer;
use serde::Deserialize;

/// Notes that are kept of a run, whatever the program inside writes.
const MAX_EVENTS: usize = 1024;

/// Bytes of one line that can be a note.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Bytes that are kept of what else was printed.
const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// One thing that a skill did.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct TraceEvent {
    pub(super) kind: TraceEventKind,
    pub(super) value: String,
    #[serde(default)]
    pub(super) write: bool,
    pub(super) file: String,
    pub(super) line: u32,
}

/// What a skill did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TraceEventKind {
    /// Opened a file.
    Open,
    /// Looked up or called a host.
    Host,
    /// Started a program.
    Program,
    /// Imported a package that is not there.
    Missing,
}

/// Everything that was printed, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct TracedOutput {
    pub(super) events: Vec<TraceEvent>,
    /// The beginning of the rest.
    pub(super) other_output: Vec<u8>,
    pub(super) bytes: u64,
}

impl TraceEvent {
    /// The place in the package, if there is such a file.
    pub(super) fn place(&self, tree: &Tree) -> Option<(String, Option<u32>)> {
        tree.get(&self.file).map(|_| (self.file.clone(), Some(self.line)))
    }
}

impl TracedOutput {
    /// Reads until nothing more can come, and ends a program that prints too much.
    pub(super) fn listen(mut from: File, trace_mark: &str, killer: &Killer, most: u64) -> Self {
        let mut output = Self::default();
        let mut line = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            output.bytes += length as u64;
            if output.bytes > most {
                killer.kill();
                continue;
            }
            for byte in &buffer[..length] {
                if *byte == b'\n' {
                    output.take(&line, trace_mark);
                    line.clear();
                } else if line.len() < MAX_LINE_BYTES {
                    line.push(*byte);
                }
            }
        }
        output.take(&line, trace_mark);
        output
    }

    /// Something printed without an end of line may stand before a note.
    fn take(&mut self, line: &[u8], trace_mark: &str) {
        let start = line.iter().position(|byte| *byte == 0x1e);
        let note = start.and_then(|start| {
            let text = std::str::from_utf8(&line[start + 1..]).ok()?;
            serde_json::from_str::<TraceEvent>(text.strip_prefix(trace_mark)?).ok()
        });
        match note {
            Some(note) if self.events.len() < MAX_EVENTS => self.events.push(note),
            Some(_) => {}
            None => {
                let room = MAX_OUTPUT_BYTES.saturating_sub(self.other_output.len()).min(line.len());
                self.other_output.extend_from_slice(&line[..room]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_lines_are_notes() {
        let mut output = TracedOutput::default();
        let note =
            "{\"kind\":\"open\",\"value\":\"/x\",\"write\":false,\"file\":\"tools.py\",\"line\":3}";
        output.take(format!("\u{1e}mark{note}").as_bytes(), "mark");
        output.take(format!("said \u{1e}mark{note}").as_bytes(), "mark");
        for other in [format!("\u{1e}other{note}"), "\u{1e}mark{}".to_owned(), note.to_owned()] {
            output.take(other.as_bytes(), "mark");
        }
        assert_eq!(output.events.len(), 2);
        assert_eq!((output.events[0].kind, output.events[0].line), (TraceEventKind::Open, 3));
        assert!(!output.other_output.is_empty() && output.other_output.len() < MAX_OUTPUT_BYTES);
    }
}
