//! Reads the events of the tracer inside the sandbox: which line opened, started or looked up what.

use std::{fs::File, io::Read as _};

use savoir_package::Tree;
use savoir_sandbox::KillHandle;
use serde::Deserialize;

/// Maximum events of a run, whatever the program inside the sandbox writes.
const MAX_EVENTS: usize = 1024;

/// Maximum bytes of one event line.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum bytes of other output that are stored.
const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// One action of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct TraceEvent {
    pub(super) kind: TraceEventKind,
    pub(super) value: String,
    #[serde(default)]
    pub(super) write: bool,
    pub(super) file: String,
    pub(super) line: u32,
}

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TraceEventKind {
    Open,
    /// The skill looked up or connected to a host.
    Host,
    /// The skill started a program.
    Program,
    /// The skill imported a package that is not installed.
    Missing,
}

/// The output of a program, split into events and other output.
#[derive(Debug, Default)]
pub(super) struct TracedOutput {
    pub(super) events: Vec<TraceEvent>,
    /// The beginning of the output that is not an event.
    pub(super) other_output: Vec<u8>,
    pub(super) bytes: u64,
}

impl TraceEvent {
    /// The place in the package, if the file exists there.
    pub(super) fn place(&self, tree: &Tree) -> Option<(String, Option<u32>)> {
        tree.get(&self.file).map(|_| (self.file.clone(), Some(self.line)))
    }
}

impl TracedOutput {
    /// Reads until the end of the output, and kills a program that prints too much.
    pub(super) fn listen(mut from: File, trace_mark: &str, killer: &KillHandle, most: u64) -> Self {
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

    /// Parses a line. Output without a line break may precede an event.
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
    fn only_marked_lines_are_events() {
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
