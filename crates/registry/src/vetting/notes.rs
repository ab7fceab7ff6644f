//! What the witness inside says: which line of the skill opened, started or looked up what.

use std::{fs::File, io::Read as _};

use savoir_package::Tree;
use savoir_sandbox::Killer;
use serde::Deserialize;

/// Notes that are kept of a run, whatever the program inside writes.
const MOST: usize = 1024;

/// Bytes of one line that can be a note.
const LINE: usize = 8 << 10;

/// Bytes that are kept of what else was printed.
const SAID: usize = 4 << 10;

/// One thing that a skill did.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Note {
    pub(super) kind: Kind,
    pub(super) value: String,
    #[serde(default)]
    pub(super) write: bool,
    pub(super) file: String,
    pub(super) line: u32,
}

/// What a skill did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
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
pub(super) struct Printed {
    pub(super) notes: Vec<Note>,
    /// The beginning of the rest.
    pub(super) said: Vec<u8>,
    pub(super) bytes: u64,
}

impl Note {
    /// The place in the package, if there is such a file.
    pub(super) fn place(&self, tree: &Tree) -> Option<(String, Option<u32>)> {
        tree.get(&self.file).map(|_| (self.file.clone(), Some(self.line)))
    }
}

impl Printed {
    /// Reads until nothing more can come, and ends a program that prints too much.
    pub(super) fn listen(mut from: File, mark: &str, killer: &Killer, most: u64) -> Self {
        let mut printed = Self::default();
        let mut line = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            printed.bytes += length as u64;
            if printed.bytes > most {
                killer.kill();
                continue;
            }
            for byte in &buffer[..length] {
                if *byte == b'\n' {
                    printed.take(&line, mark);
                    line.clear();
                } else if line.len() < LINE {
                    line.push(*byte);
                }
            }
        }
        printed.take(&line, mark);
        printed
    }

    /// Something printed without an end of line may stand before a note.
    fn take(&mut self, line: &[u8], mark: &str) {
        let start = line.iter().position(|byte| *byte == 0x1e);
        let note = start.and_then(|start| {
            let text = std::str::from_utf8(&line[start + 1..]).ok()?;
            serde_json::from_str::<Note>(text.strip_prefix(mark)?).ok()
        });
        match note {
            Some(note) if self.notes.len() < MOST => self.notes.push(note),
            Some(_) => {}
            None => {
                let room = SAID.saturating_sub(self.said.len()).min(line.len());
                self.said.extend_from_slice(&line[..room]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_lines_are_notes() {
        let mut printed = Printed::default();
        let note =
            "{\"kind\":\"open\",\"value\":\"/x\",\"write\":false,\"file\":\"tools.py\",\"line\":3}";
        printed.take(format!("\u{1e}mark{note}").as_bytes(), "mark");
        printed.take(format!("said \u{1e}mark{note}").as_bytes(), "mark");
        for other in [format!("\u{1e}other{note}"), "\u{1e}mark{}".to_owned(), note.to_owned()] {
            printed.take(other.as_bytes(), "mark");
        }
        assert_eq!(printed.notes.len(), 2);
        assert_eq!((printed.notes[0].kind, printed.notes[0].line), (Kind::Open, 3));
        assert!(!printed.said.is_empty() && printed.said.len() < SAID);
    }
}
