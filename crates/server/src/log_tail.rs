//! Keeps the newest lines of the log, for the page of administrators.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use savoir_store::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use utoipa::ToSchema;

/// How many lines are kept.
const MAX_LINES: usize = 2000;
/// Maximum bytes of a message or of the text of a field.
const MAX_TEXT_BYTES: usize = 4096;
/// How many lines a slow reader may be behind before lines are skipped for it.
const MAX_BEHIND: usize = 1000;

/// A line of the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ServerLogLine)]
pub struct LogLine {
    /// Counts from 1 since the start of the server.
    pub id: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `error`, `warn`, `info`, `debug` or `trace`
    #[schema(pattern = "^(error|warn|info|debug|trace)$")]
    pub level: &'static str,
    /// The module that wrote it.
    pub target: String,
    pub message: String,
    pub fields: Map<String, Value>,
}

/// The newest lines of the log. Clones share them.
#[derive(Clone, Debug)]
pub struct LogTail(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lines: Mutex<Lines>,
    readers: broadcast::Sender<LogLine>,
}

#[derive(Debug, Default)]
struct Lines {
    newest: VecDeque<LogLine>,
    count: u64,
}

impl Default for LogTail {
    fn default() -> Self {
        let (readers, _) = broadcast::channel(MAX_BEHIND);
        Self(Arc::new(Shared { lines: Mutex::default(), readers }))
    }
}

impl LogTail {
    /// Adds a line.
    pub fn push(
        &self,
        level: &'static str,
        target: &str,
        message: &str,
        mut fields: Map<String, Value>,
    ) {
        for value in fields.values_mut() {
            if let Value::String(text) = value {
                *text = shortened(text);
            }
        }
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.count += 1;
        let line = LogLine {
            id: lines.count,
            at: Timestamp::now(),
            level,
            target: target.to_owned(),
            message: shortened(message),
            fields,
        };
        if lines.newest.len() == MAX_LINES {
            lines.newest.pop_front();
        }
        lines.newest.push_back(line.clone());
        // Under the lock, so that readers get lines in order. Fails if there is no reader.
        let _ = self.0.readers.send(line);
    }

    /// Lines after an id that are at least as severe as a level, oldest first, and the lines that
    /// follow.
    pub(crate) fn read(
        &self,
        after: u64,
        level: &str,
    ) -> (Vec<LogLine>, broadcast::Receiver<LogLine>) {
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = lines.newest.iter().filter(|line| line.id > after && line.is_at_least(level));
        (newer.cloned().collect(), self.0.readers.subscribe())
    }
}

impl LogLine {
    /// Whether it is at least as severe as a level.
    pub(crate) fn is_at_least(&self, level: &str) -> bool {
        rank(self.level) <= rank(level)
    }
}

/// 0 for the most severe level; unknown words count as `trace`.
fn rank(level: &str) -> usize {
    let levels = ["error", "warn", "info", "debug"];
    levels.iter().position(|known| *known == level).unwrap_or(levels.len())
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_lines_are_kept_and_filtered_by_level() {
        let tail = LogTail::default();
        for number in 0..=MAX_LINES {
            let level = if number % 2 == 0 { "info" } else { "error" };
            tail.push(level, "test", &format!("line {number}"), Map::new());
        }
        let (all, _) = tail.read(0, "trace");
        assert_eq!((all.len(), all[0].id), (MAX_LINES, 2));
        let (errors, _) = tail.read(0, "error");
        assert_eq!(errors.len(), MAX_LINES / 2);
        let (later, _) = tail.read(MAX_LINES as u64, "info");
        assert_eq!(later.len(), 1);
    }
}
